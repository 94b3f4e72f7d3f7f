"""What many sleeping threads cost the sampler."""

import statistics
import time

import programs
import tables

TITLE = "Many threads: what sampling costs the sampler"
TOOLS = ("gdb", "eu-stack")
COUNTS = [10, 100, 1000, 10000]


def sample(world, target, seconds):
    """Runs fgprof-c for some seconds. Returns the share of one CPU that it used while sampling,
    its Usage and its Summary."""
    sampler = world.attach(target.pid, "-d", f"{seconds}s")
    # This excludes its start and the naming at its end.
    time.sleep(0.2 * seconds)
    begin_s, begin_cpu_s = time.monotonic(), programs.cpu_s(sampler.pid)
    time.sleep(0.7 * seconds)
    cpu = (programs.cpu_s(sampler.pid) - begin_cpu_s) / (time.monotonic() - begin_s)
    usage = sampler.wait(120)
    return cpu, usage, programs.summary_of(usage)


def fgprof_snapshot(world, target):
    """How many seconds a profile of one tick takes: with the shortest duration, at the highest rate, because
    the first tick comes one period after the start."""
    usage = world.run(world.fgprof, "attach", "-p", target.pid, "-F", 1000, "-d", "1ms",
                      "-o", world.path("snapshot.folded"), timeout_s=120)
    programs.summary_of(usage)
    return usage.wall_s


def peer_snapshot(world, target, tool, count, timeout_s):
    if not world.has(tool):
        return tables.NOT_INSTALLED
    usage, stacks = programs.snapshot(world, tool, target.pid, timeout_s)
    if usage.timed_out:
        return f"> {timeout_s} s"
    # Its main thread is not included in these.
    missing = "" if stacks > count else f", {stacks} stacks"
    return tables.duration(usage.wall_s) + missing


def report(world):
    seconds, timeout_s, times = world.pick((10, 120, 5), (0.5, 2, 1))
    cost_rows, snapshot_rows = [], []
    for count in COUNTS:
        for mode in ("asleep", "waking"):
            programs.progress(f"  {count} threads {mode}")
            with world.target("idle", count, mode) as target:
                time.sleep(0.5)
                before, begin_s = target.mark(), time.monotonic()
                cpu, usage, summary = sample(world, target, seconds)
                wakes = target.mark()["wakes"] - before["wakes"]
                cost_rows.append([
                    tables.count(count) + (", waking" if mode == "waking" else ""),
                    tables.count(wakes / (time.monotonic() - begin_s)), tables.percent(cpu),
                    tables.duration(usage.cpu_s), f"{usage.memory_mib:.1f} MiB",
                    f"{summary.planned} / {summary.taken} / {summary.late}",
                    tables.count(summary.samples), f"{summary.cut_percent:.2f} %"])
                if mode == "waking":
                    continue
                own = [fgprof_snapshot(world, target) for _ in range(times)]
                # A tool that is killed while it holds threads may leave them stopped, so eu-stack goes first.
                peers = {tool: peer_snapshot(world, target, tool, count, timeout_s)
                         for tool in ("eu-stack", "gdb")}
                snapshot_rows.append([
                    tables.count(count),
                    tables.duration(statistics.median(own)),
                    peers["gdb"], peers["eu-stack"]])
    return f"""Threads that sleep, a third each in futex, poll and read; "waking" are such that each wakes once a
second at random. Sampled at 99 Hz for {seconds} s. *CPU* is of one CPU, while it samples; *CPU in
all* is the CPU time of the whole run, with its start and the naming at its end. *Memory* is
the peak.

{tables.table(["threads", "wakes/s", "CPU", "CPU in all", "memory",
               "ticks planned / taken / late", "samples", "stacks cut"], cost_rows)}
One snapshot of all of them, from the program's start to its end: for fgprof-c a profile of one tick
(`-F 1000 -d 1ms`), 1 ms of which is the wait for that tick. The others stop all threads meanwhile.

{tables.table(["threads", "fgprof-c", "gdb -batch", "eu-stack"], snapshot_rows)}"""

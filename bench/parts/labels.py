"""What threads with labels cost the sampler, and whether records are ever mixed."""

import json
import time

import programs
import tables
from parts.threads import sample

TITLE = "Threads with labels"
TOOLS = ()
COUNTS = [100, 1000]


def rows(world, seconds):
    for count in COUNTS:
        for mode in ("asleep", "waking"):
            for labels in ("", "labelled"):
                programs.progress(f"  {count} threads {mode} {labels}")
                with world.target("idle", count, mode, *filter(None, [labels])) as target:
                    time.sleep(0.5)
                    before, begin_s = target.mark(), time.monotonic()
                    cpu, usage, summary = sample(world, target, seconds)
                    wakes = target.mark()["wakes"] - before["wakes"]
                    yield [f"{tables.count(count)} {mode}", labels or "none",
                           tables.count(wakes / (time.monotonic() - begin_s)), tables.percent(cpu),
                           tables.duration(usage.cpu_s), f"{usage.memory_mib:.1f} MiB",
                           f"{summary.planned} / {summary.taken} / {summary.late}"]


def read_contexts(world, count):
    programs.progress(f"  {count} reads of a record that changes")
    usage = world.run(world.program("read-contexts"), count, timeout_s=3600,
                      keeps_stdout=True)
    return json.loads(usage.stdout)


def report(world):
    seconds, count = world.pick((20, 10000000), (0.5, 10000))
    header = ["threads", "labels", "wakes/s", "CPU", "CPU in all", "memory",
              "ticks planned / taken / late"]
    costs = tables.table(header, list(rows(world, seconds)))
    reads = read_contexts(world, count)
    return f"""Threads that sleep, a third each in futex, poll and read; "waking" are such that each wakes once a
second at random, and takes two other labels. Sampled at 99 Hz for {seconds} s. *CPU* is of one CPU,
while it samples; *CPU in all* is the CPU time of the whole run.

{costs}
A thread that changes its record of 230 bytes {tables.count(reads["changes_per_s"])} times a second, in place and by another
pointer, read while it runs, as for samples by the kernel: of {tables.count(reads["reads"])} times, {reads["us"]:.1f} us each,
{tables.count(reads["taken"])} found a record that all readings agreed on, {tables.count(reads["changed"])} one that changed, and
{tables.count(reads["none"])} none that was valid. **{reads["mixed"]} of those that were taken were mixed of two.**"""

"""Short-lived threads: what they cost the sampler, and whether it delays them."""

import os
import time

import programs
import tables

TITLE = "Threads that come and go"
TOOLS = ()
RATE_HZ = 2000
LIVES_MS = [5, 100]
LOOK_S = 0.25


def born_in(target, seconds):
    begin_s, begin = time.monotonic(), target.mark()["born"]
    time.sleep(seconds)
    return (target.mark()["born"] - begin) / (time.monotonic() - begin_s)


def sample(world, target, seconds):
    """A row's figures under fgprof-c."""
    sampler = world.attach(target.pid, "-d", f"{seconds}s")
    begin_s, begin = time.monotonic(), target.mark()["born"]
    cpu_begin_s, most_files = programs.cpu_s(sampler.pid), 0
    while time.monotonic() - begin_s < 0.9 * seconds:
        time.sleep(LOOK_S)
        most_files = max(most_files, len(os.listdir(f"/proc/{sampler.pid}/fd")))
    passed_s = time.monotonic() - begin_s
    born = (target.mark()["born"] - begin) / passed_s
    cpu = (programs.cpu_s(sampler.pid) - cpu_begin_s) / passed_s
    usage = sampler.wait(60)
    summary = programs.summary_of(usage)
    return [tables.count(born), tables.percent(cpu), f"{usage.memory_mib:.1f} MiB",
            str(most_files), f"{summary.planned} / {summary.taken} / {summary.late}",
            tables.count(summary.threads / summary.elapsed_s), summary.pause_words]


def report(world):
    seconds = world.pick(10, 1)
    rows = []
    for life_ms in LIVES_MS:
        programs.progress(f"  threads that live for {life_ms} ms")
        with world.target("churn", RATE_HZ, life_ms) as target:
            time.sleep(0.5)
            rows.append([f"{life_ms} ms", tables.count(born_in(target, seconds / 2)),
                         *sample(world, target, seconds)])
    header = ["each lives for", "born/s without", "born/s with", "CPU", "memory", "most open files",
              "ticks planned / taken / late", "threads seen/s", "pauses"]
    return f"""{RATE_HZ} threads a second are born, sleep, and end. Sampled at 99 Hz for {seconds} s. *CPU* is of
one CPU, with the sampler's start. A thread that lives for less than a tick, 10.1 ms, may not be
seen.

{tables.table(header, rows)}"""

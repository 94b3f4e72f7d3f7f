"""The cost of having the kernel record each context switch of a program."""

import json

import programs
import tables

TITLE = "The record of context switches: what a switch costs more"
TOOLS = ()


def report(world):
    rounds, milliseconds = world.pick((40, 300), (2, 50))
    programs.progress(f"  {rounds} rounds")
    done = world.run(world.program("switch-cost"), rounds, milliseconds, timeout_s=600,
                     keeps_stdout=True)
    if done.status != 0:
        raise RuntimeError(f"bench-switch-cost ended with {done.status}: {done.stderr}")
    found = json.loads(done.stdout)
    rows = [[name, f"{ns:,} ns", f"{more:+,} ns" if name != "nothing" else ""]
            for name, (ns, more) in found.items()]
    return f"""Two threads on one CPU wake each other over pipes: half of a round trip is one switch, with a
write that wakes and a read that sleeps. By turns of {milliseconds} ms, in random order, nothing is recorded; or
by BPF programs, switches of other processes, of which nothing is kept, or those of the two threads,
with the top of their stacks, and who ends waits that a tick finds; or by perf events for each of the threads, as fgprof-c
uses them. Given are medians of {rounds} rounds: the time of a switch, and by how much it is longer than
in the same round without a record. Ticks come at 100 Hz.

{tables.table(["recorded", "a switch", "more than nothing"], rows)}"""

"""Whether a sampler changes what sleeping threads do: how many of their calls return early because of it."""

import time

import programs
import tables

TITLE = "Sleeping threads: calls that return before their time"
TOOLS = ("gdb", "eu-stack")
SETTLE_S = 0.5


class Watch:
    """Counts early returns, and how often the threads were given a CPU, until end() is called."""

    def __init__(self, target):
        self.target = target
        self.early = target.mark()
        self.begin = time.monotonic()

    def end(self, snapshots):
        early = self.target.mark()
        self.s = time.monotonic() - self.begin
        self.snapshots = snapshots
        self.counts = {call: None if early[call] is None else early[call] - self.early[call]
                       for call in early}
        return self


def without(world, target, seconds):
    watch = Watch(target)
    time.sleep(seconds)
    return watch.end(0)


def under_fgprof(world, target, seconds):
    watch = Watch(target)
    summary = programs.summary_of(world.attach(target.pid, "-d", f"{seconds}s").wait(seconds + 30))
    return watch.end(summary.taken)


def under_snapshots(tool, world, target, number):
    watch = Watch(target)
    for _ in range(number):
        programs.snapshot(world, tool, target.pid)
    return watch.end(number)


def cell(watch, call):
    early = watch.counts[call]
    if early is None:
        return "not permitted here"
    if not watch.snapshots:
        return str(early)
    return f"{early} ({early / watch.snapshots:.2f})"


def report(world):
    seconds, number = world.pick((10, 20), (1, 2))
    columns = {}
    with world.target("sleepers") as target:
        time.sleep(SETTLE_S)  # by then all are in their calls
        programs.progress("  without")
        columns["without"] = without(world, target, seconds)
        programs.progress("  fgprof-c")
        columns["fgprof-c"] = under_fgprof(world, target, seconds)
        for tool in programs.SNAPSHOTS:
            if world.has(tool):
                programs.progress(f"  {tool}")
                columns[tool] = under_snapshots(tool, world, target, number)
        calls = list(columns["without"].counts)
    header = ["call"] + [f"{name}, {watch.snapshots} snapshots" if watch.snapshots else
                         f"without, {watch.s:.0f} s" for name, watch in columns.items()]
    header += [f"{tool}" for tool in programs.SNAPSHOTS if not world.has(tool)]
    rows = [[call] + [cell(watch, call) for watch in columns.values()] +
            [tables.NOT_INSTALLED for tool in programs.SNAPSHOTS if not world.has(tool)]
            for call in calls]
    return f"""A thread sleeps in each of these calls, which nothing should end within the hour; one works for
0.2 ms and waits for 1 ms by turns. Counted are the calls that came back early, with EINTR or with
less than was asked for, and in brackets how many that is a snapshot. fgprof-c ran at 99 Hz.

{tables.table(header, rows)}"""

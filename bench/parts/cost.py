"""What sampling costs a program under load, measured finely: its CPU time for each unit of work.

A restarted server, or a restarted load, differs by one or two percent from the one before. So there is one of
each, and the samplers take turns of a second and a half."""

import random
import statistics
import time

import programs
import tables
from parts import load, pause, servers

TITLE = "CPU time that a program under load loses by being sampled"
TOOLS = ("redis-server", "redis-benchmark", "nginx", "wrk", "perf")
SLICE_S = 1.5
SETTLE_S = 0.8  # perf and fgprof-c have read the program's files
MARGIN_S = 60   # longer than all slices are planned to take, so that the load does not end before


class PingPong:
    """As in part "load"."""

    title = load.PingPong.title
    tools = load.PingPong.tools

    def __init__(self, world, _seconds):
        self.target = load.PingPong(world).target

    def pids(self):
        return [self.target.pid]

    def done(self):
        return self.target.mark()["trips"]

    def stop(self):
        self.target.end()


class Served:
    """A server of part "servers", under one load that lasts."""

    def __init__(self, kind, world, seconds):
        self.server = kind(world)
        self.load = self.server.load(seconds)

    def pids(self):
        return self.server.pids()

    def done(self):
        return self.server.served()

    def stop(self):
        self.load.end()
        self.server.stop()


def cpu_s_of_unit(loaded, start):
    """CPU seconds for a unit of work."""
    pids = loaded.pids()
    sampler = start(pids)
    time.sleep(SETTLE_S)
    first, first_s = loaded.done(), sum(map(programs.cpu_s, pids))
    time.sleep(SLICE_S)
    last, last_s = loaded.done(), sum(map(programs.cpu_s, pids))
    load.end(sampler)
    if last == first:
        raise RuntimeError("the load has ended")
    return (last_s - first_s) / (last - first)


def measure(title, loaded, ways, rounds):
    """{way: [CPU seconds for a unit of work, in each round]}"""
    figures, order = {name: [] for name in ways}, random.Random(1)
    for number in range(rounds):
        programs.progress(f"  {title}, round {number + 1} of {rounds}")
        for name in order.sample(list(ways), len(ways)):
            figures[name].append(cpu_s_of_unit(loaded, ways[name]))
    return figures


def ratio(values, plain):
    """The mean of the ratios in each round, with its standard error."""
    ratios = [value / one for value, one in zip(values, plain)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    return f"{statistics.mean(ratios):.4f} ± {error:.4f}"


def row(title, figures):
    plain = figures["nothing"]
    return [title, f"{statistics.median(plain) * 1e6:.3g} us",
            *(ratio(values, plain) for name, values in figures.items() if name != "nothing")]


def kinds():
    yield PingPong.title, PingPong.tools, PingPong
    for kind in servers.SERVERS:
        if hasattr(kind, "served"):
            yield kind.title, kind.tools, lambda world, seconds, kind=kind: Served(kind, world, seconds)


def report(world):
    rounds = world.pick(10, 1)
    ways = {name: start for name, start in load.samplers(world).items() if "stops" not in name}
    rows, names = [], [name for name in ways if name != "nothing"]
    seconds = rounds * len(ways) * 2 * (SETTLE_S + SLICE_S) + MARGIN_S
    with pause.two_cpus():
        for title, tools, make in kinds():
            if not world.has(*tools):
                rows.append([title, tables.NOT_INSTALLED] + [""] * len(names))
                continue
            loaded = make(world, seconds)
            try:
                rows.append(row(title, measure(title, loaded, ways, rounds)))
            finally:
                loaded.stop()
    return f"""One program and one load, of {rounds} rounds: in each, every sampler has {SLICE_S} s in turn, in a random
order, at 99 Hz. Given is the CPU time of the program for each unit of its work without a sampler, and
the ratio to it with each sampler in the same round: the mean, and its standard error. perf record copies
stacks as `--call-graph dwarf` does; *bare timers* are events of the CPUs' clocks at the same rate, of
which nobody takes anything. The sampler's own time is not in it: see `load.md`.

{tables.table(["load", "without", *names], rows)}"""

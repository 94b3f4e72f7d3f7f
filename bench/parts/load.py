"""How much less work is done under load while a process is sampled: by fgprof-c, by perf record."""

import signal
import statistics
import time

import programs
import tables
from parts import pause, servers

TITLE = "Work lost under load"
TOOLS = (*servers.TOOLS, "perf")


class PingPong:
    """Two threads that wake each other over a socket: each switch that gets dearer is seen."""

    title = "two threads, a byte to and fro"
    tools = ()
    unit = "round trips/s"

    def __init__(self, world):
        self.world = world
        self.target = programs.Target(world, world.program("pingpong"))

    def work(self, start, seconds):
        sampler = start([self.target.pid])
        time.sleep(pause.SETTLE_S)
        first = self.target.mark()
        time.sleep(seconds)
        last = self.target.mark()
        share = end(sampler)
        return (last["trips"] - first["trips"]) * 1e9 / (last["ns"] - first["ns"]), share

    def stop(self):
        self.target.end()


class UnderLoad:
    """A server of parts/servers.py."""

    def __init__(self, kind, world):
        self.server = kind(world)

    def work(self, start, seconds):
        server, load = self.server, None
        if server.processes_come_with_load:
            load = server.load(seconds)
            time.sleep(0.3)
        sampler = start(server.pids())
        if not load:
            time.sleep(pause.SETTLE_S)
            load = server.load(seconds)
        usage = load.wait(seconds + 60)
        share = end(sampler)
        return server.throughput(usage), share

    def stop(self):
        self.server.stop()


def end(sampler):
    """Returns how much of a CPU it took, from its start to its end."""
    if not sampler:
        return 0
    sampler.signal(signal.SIGINT)
    usage = sampler.wait(60)
    # perf ends by the signal that it is sent.
    if usage.status not in (0, -signal.SIGINT, 128 + signal.SIGINT):
        raise RuntimeError(f"a sampler ended with {usage.status}: {usage.stderr}")
    return usage.cpu_s / usage.wall_s


def samplers(world):
    """{name: what starts it on some processes}. Nothing is the first."""
    def perf(pids):
        return programs.Measured(world, "perf", "record", "-F", "99", "--call-graph", "dwarf", "-o",
                                 world.path("perf.data"), "-p", ",".join(map(str, pids)))
    found = {"nothing": lambda pids: None,
             "fgprof-c": world.attach,
             "fgprof-c, stops": lambda pids: world.attach(pids, "--capture=ptrace")}
    if world.has("perf"):
        found["perf record"] = perf
    return found


def measure(title, work, ways, repetitions, seconds):
    """{way: [(work a second, the sampler's share of a CPU)]}. Each round has each way once and ends with nothing, so that what changes in
    time changes all of them."""
    figures = {name: [] for name in ways}
    for repetition in range(repetitions):
        programs.progress(f"  {title}, round {repetition + 1} of {repetitions}")
        for name, start in ways.items():
            figures[name].append(work(start, seconds))
    figures["nothing"].append(work(ways["nothing"], seconds))
    return figures


def row(title, unit, figures):
    works = {name: [work for work, _ in values] for name, values in figures.items()}
    plain = statistics.median(works["nothing"])
    cells = [title, f"{plain:,.0f} {unit}"]
    # How far runs without a sampler are from their median.
    cells.append(tables.percent(statistics.median(abs(one / plain - 1) for one in works["nothing"])))
    for name, values in works.items():
        if name != "nothing":
            cells.append(f"{statistics.median(values) / plain:.3f}")
    return cells


def cpu_row(title, figures):
    return [title, *(tables.percent(statistics.median(share for _, share in values))
                     for name, values in figures.items() if name != "nothing")]


def kinds(world):
    """[(title, unit, tools, what makes it)]"""
    yield PingPong.title, PingPong.unit, PingPong.tools, lambda: PingPong(world)
    for kind in servers.SERVERS:
        yield kind.title, kind.unit, kind.tools, lambda kind=kind: UnderLoad(kind, world)


def report(world):
    repetitions, seconds = world.pick((9, 4), (1, 0.5))
    ways, rows, cpu_rows = samplers(world), [], []
    names = [name for name in ways if name != "nothing"]
    header = ["load", "without", "noise", *names]
    with pause.two_cpus():
        for title, unit, tools, make in kinds(world):
            if not world.has(*tools):
                rows.append([title, tables.NOT_INSTALLED] + [""] * (len(header) - 2))
                continue
            loaded = make()
            try:
                figures = measure(title, loaded.work, ways, repetitions, seconds)
                rows.append(row(title, unit, figures))
                cpu_rows.append(cpu_row(title, figures))
            finally:
                loaded.stop()
    return f"""Load, what is loaded and sampler share two CPUs. Runs of about {seconds} s by turns, {repetitions} with
each sampler, all at 99 Hz. Given is the work done with a sampler as a share of that done without, by
the medians of all runs; *noise* is how far half of the runs without one are from their median. *Stops*
is with `--capture=ptrace`; perf record copies stacks as `--call-graph dwarf` does.

{tables.table(header, rows)}
What the sampler itself took of a CPU, from its start to its end; it varies less:

{tables.table(["load", *names], cpu_rows)}"""

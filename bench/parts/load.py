"""How much a process's throughput falls under load while it is sampled: by fgprof-c, by perf record."""

import collections
import signal
import statistics
import time

import programs
import tables
from parts import pause, servers

TITLE = "Work lost under load"
TOOLS = (*servers.TOOLS, "perf")

# Work a second; what the sampler took of a CPU; and the CPU time of the target for each unit of work.
Run = collections.namedtuple("Run", "work share cpu_s")


class PingPong:
    """Two threads that wake each other over a socket: this shows any increase in the cost of a switch."""

    title = "two threads, a byte to and fro"
    tools = ()
    unit = "round trips/s"

    def __init__(self, world):
        self.world = world
        self.target = programs.Target(world, world.program("pingpong"))

    def work(self, start, seconds):
        sampler = start([self.target.pid])
        time.sleep(pause.SETTLE_S)
        first = self.mark()
        time.sleep(seconds)
        last = self.mark()
        share = end(sampler)
        trips = last["trips"] - first["trips"]
        return Run(trips * 1e9 / (last["ns"] - first["ns"]), share,
                   (last["cpu_s"] - first["cpu_s"]) / trips)

    def mark(self):
        return {**self.target.mark(), "cpu_s": programs.cpu_s(self.target.pid)}

    def stop(self):
        self.target.end()


class UnderLoad:
    """A server of parts/servers.py."""

    def __init__(self, kind, world):
        self.server = kind(world)

    def work(self, start, seconds):
        run = self.work_of_new if self.server.processes_come_with_load else self.work_of_old
        return run(start, seconds)

    def work_of_old(self, start, seconds):
        """For processes that exist before the load."""
        server = self.server
        pids = server.pids()
        sampler = start(pids)
        time.sleep(pause.SETTLE_S)
        before_s = sum(map(programs.cpu_s, pids))
        usage = server.load(seconds).wait(seconds + 60)
        cpu_s = sum(map(programs.cpu_s, pids)) - before_s
        return Run(server.throughput(usage), end(sampler), cpu_s / server.requests(usage, seconds))

    def work_of_new(self, start, seconds):
        """For processes that end with the load: their CPU time is read before that."""
        server = self.server
        load = server.load(seconds)
        time.sleep(0.3)
        pids = server.pids()
        sampler = start(pids)
        time.sleep(pause.SETTLE_S)
        on_cpu_s, _, clock_s = servers.kernel_account(pids)
        time.sleep(max(0.5, seconds - 0.5))
        last_on_cpu_s, _, last_clock_s = servers.kernel_account(pids)
        throughput = server.throughput(load.wait(seconds + 60))
        share = (last_on_cpu_s - on_cpu_s) / (last_clock_s - clock_s)
        return Run(throughput, end(sampler), share / throughput)

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
    found["bare timers"] = lambda pids: programs.Measured(world, world.program("bare-timer"))
    return found


def measure(title, work, ways, repetitions, seconds):
    """{way: [Run]}. Each round has each way once and ends with nothing, so that changes over time affect all
    of them."""
    figures = {name: [] for name in ways}
    for repetition in range(repetitions):
        programs.progress(f"  {title}, round {repetition + 1} of {repetitions}")
        for name, start in ways.items():
            figures[name].append(work(start, seconds))
    figures["nothing"].append(work(ways["nothing"], seconds))
    return figures


def median_of(runs, what):
    return statistics.median(getattr(run, what) for run in runs)


def compare(figures, what):
    """How far runs without a sampler are from their median, and the ratio to that median of runs with one."""
    plain = median_of(figures["nothing"], what)
    noise = statistics.median(abs(getattr(run, what) / plain - 1) for run in figures["nothing"])
    return [tables.percent(noise), *(f"{median_of(runs, what) / plain:.3f}"
                                     for name, runs in figures.items() if name != "nothing")]


def work_row(title, unit, figures):
    plain = median_of(figures["nothing"], "work")
    return [title, f"{plain:,.0f} {unit}", *compare(figures, "work")]


def cpu_row(title, figures):
    plain = median_of(figures["nothing"], "cpu_s")
    return [title, f"{plain * 1e6:.2f} us", *compare(figures, "cpu_s")]


def share_row(title, figures):
    return [title, *(tables.percent(median_of(runs, "share"))
                     for name, runs in figures.items() if name != "nothing")]


def kinds(world):
    """[(title, unit, tools, what makes it)]"""
    yield PingPong.title, PingPong.unit, PingPong.tools, lambda: PingPong(world)
    for kind in servers.SERVERS:
        yield kind.title, kind.unit, kind.tools, lambda kind=kind: UnderLoad(kind, world)


def report(world):
    repetitions, seconds = world.pick((9, 4), (1, 0.5))
    ways, rows, cpu_rows, share_rows = samplers(world), [], [], []
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
                rows.append(work_row(title, unit, figures))
                cpu_rows.append(cpu_row(title, figures))
                share_rows.append(share_row(title, figures))
            finally:
                loaded.stop()
    return f"""Load, what is loaded and sampler share two CPUs. Runs of about {seconds} s by turns, {repetitions} with
each sampler, all at 99 Hz. Given is the work done with a sampler as a share of that done without, by
the medians of all runs; *noise* is how far half of the runs without one are from their median. *Stops*
is with `--capture=ptrace`; perf record copies stacks as `--call-graph dwarf` does; *bare timers* are
events of the CPUs' clocks at the same rate, of which nobody takes anything.

{tables.table(header, rows)}
The CPU time of what is loaded for each unit of its work, as a ratio in the same way. That is what it
loses by being sampled; the sampler's own time, for which both CPUs are too busy here, comes on top in
the table above.

{tables.table(header, cpu_rows)}
What the sampler itself took of a CPU, from its start to its end; it varies less:

{tables.table(["load", *names], share_rows)}"""

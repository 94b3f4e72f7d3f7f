"""What observing a program's page faults costs it, and how accurate the figures are."""

import signal
import subprocess
import time

import programs
import tables
from parts import load, pause, servers

TITLE = "Growth of memory, from outside"
TOOLS = ("redis-server", "redis-benchmark")


def samplers(world):
    """{name: what starts it on some processes}. Nothing is the first."""
    found = {"nothing": lambda pids: None,
             "fgprof-c": lambda pids: world.attach(pids, "--kind", "growth")}
    if world.options.other:
        found["the other"] = lambda pids: world.attach(pids, "--kind", "growth",
                                                       fgprof=world.options.other)
    return found


class Pages:
    """CPU time for each page that is touched."""

    def __init__(self, world, threads, pages_per_s):
        self.target = programs.Target(world, world.program("pages"), threads, pages_per_s)

    def work(self, start, seconds):
        sampler = start([self.target.pid])
        time.sleep(pause.SETTLE_S)
        first = self.target.mark()
        time.sleep(seconds)
        last = self.target.mark()
        share, pages = load.end(sampler), last["pages"] - first["pages"]
        return load.Run(pages / seconds, share, (last["cpu_ns"] - first["cpu_ns"]) / 1e9 / pages)

    def stop(self):
        self.target.end()


class Filled(servers.Redis):
    """A redis-server that takes new values, so that it grows: CPU time for each."""

    def work(self, start, seconds):
        subprocess.run(["redis-cli", "-p", str(self.port), "flushall"], check=True,
                       stdout=subprocess.DEVNULL)
        sampler = start(self.pids())
        time.sleep(pause.SETTLE_S)
        count = int(60000 * seconds)
        before_s = programs.cpu_s(self.pids()[0])
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-t", "set", "-r", "100000000", "-d",
                        "400", "-n", str(count), "-q"], check=True, stdout=subprocess.DEVNULL,
                       timeout=600)
        cpu_s = programs.cpu_s(self.pids()[0]) - before_s
        return load.Run(count / seconds, load.end(sampler), cpu_s / count)


def kinds(world):
    yield "a thread, all the pages that it can", lambda: Pages(world, 1, 0)
    yield "two threads, all the pages that they can", lambda: Pages(world, 2, 0)
    yield "a thread, 10,000 pages a second", lambda: Pages(world, 1, 10000)
    if world.has("redis-server", "redis-benchmark", "redis-cli"):
        yield "redis-server, SET of 400 bytes, 50 clients", lambda: Filled(world)


def costs(world):
    repetitions, seconds = world.pick((9, 4), (1, 0.5))
    ways = samplers(world)
    with pause.two_cpus():
        for title, make in kinds(world):
            target = make()
            try:
                figures = load.measure(title, target.work, ways, repetitions, seconds)
            finally:
                target.stop()
            yield [title, f"{load.median_of(figures['nothing'], 'cpu_s') * 1e9:,.0f} ns",
                   *load.compare(figures, "cpu_s"),
                   *(tables.percent(load.median_of(runs, "share"))
                     for name, runs in figures.items() if name != "nothing")]


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


def shown(world, path):
    """Bytes of memory of redis-server's own, by the folded stacks."""
    done = world.run(world.fgprof, "convert", path, "-f", "folded", keeps_stdout=True)
    return sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines())


def truth(world):
    """The growth of redis-server according to /proc, and as shown: it grows slowly, and all at once."""
    for title, clients in (("1 client", 1), ("50 clients", 50)):
        server = servers.Redis(world)
        try:
            pid, path = server.pids()[0], world.path(f"growth-{clients}.fgprof")
            before = resident(pid)
            sampler = programs.Measured(world, world.fgprof, "attach", "-p", pid, "--kind", "growth", "-o",
                                        path)
            time.sleep(pause.SETTLE_S)
            subprocess.run(["redis-benchmark", "-p", str(server.port), "-t", "set", "-r", "100000000",
                            "-d", "400", "-c", str(clients), "-n", str(world.pick(300000, 20000)), "-q"],
                           check=True, stdout=subprocess.DEVNULL, timeout=600)
            grown = resident(pid) - before
            sampler.signal(signal.SIGINT)
            usage = sampler.wait(60)
            if usage.status:
                raise RuntimeError(usage.stderr)
            yield [f"redis-server, SET of 400 bytes, {title}", f"{grown / 2**20:.1f} MiB",
                   f"{shown(world, path) / grown:.3f}"]
        finally:
            server.stop()


def report(world):
    header = ["program", "CPU a page, or value", "noise", "sampled", "CPU of fgprof-c"]
    if world.options.other:
        header[4:] = ["by the other", "CPU of fgprof-c", "CPU of the other"]
    cost = tables.table(header, list(costs(world)))
    true = tables.table(["program", "grew by", "shown"], list(truth(world)))
    return f"""CPU time of the program itself for each page that it touches first, or each value that it takes, and its
ratio while its page faults are sampled; and what the sampler took of a CPU. Medians of runs by turns;
*noise* is how far half of the runs without a sampler are from their median. To touch pages and do
nothing else is the worst there is.

{cost}
What redis-server grew by in memory of its own, as /proc/PID/status says, and the part of that which
`--kind growth` shows:

{true}"""

"""Real servers under load: how much their throughput falls while they are sampled, and how accurate the
results are."""

import contextlib
import os
import re
import signal
import socket
import statistics
import time
import urllib.request

import programs
import tables

TITLE = "Servers under load"
TOOLS = ("redis-server", "redis-benchmark", "nginx", "wrk", "postgres", "pgbench")
READY_S = 20


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(process, port):
    """Waits until the server accepts connections."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end and process.process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    process.end()
    raise RuntimeError("a server does not come up: " + process.wait(1).stderr)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return list(map(int, file.read().split()))


def as_other_user(name):
    """Options to run a program that refuses to run as root as this user."""
    return {"user": name, "group": name} if os.getuid() == 0 else {}


class Server:
    """A server, its load, and what to sample of it."""

    title = None
    tools = ()
    unit = None
    processes_come_with_load = False

    def __init__(self, world):
        self.world = world
        self.port = free_port()
        self.directory = world.path(type(self).__name__)
        os.makedirs(self.directory, exist_ok=True)

    def pids(self):
        """The ids of the processes to sample."""
        return [self.process.pid]

    def load(self, seconds):
        """Starts the load."""

    def throughput(self, usage):
        """What the load program measured, once it has ended."""

    def requests(self, usage, seconds):
        """How many there were in all."""
        return self.throughput(usage) * max(seconds, 1)

    def stop(self):
        self.process.end()


class Redis(Server):
    title = "redis-server, GET, 50 clients"
    tools = ("redis-server", "redis-benchmark")
    unit = "requests/s"
    options = ("-c", 50)

    def __init__(self, world):
        super().__init__(world)
        self.process = programs.Measured(
            world, "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--dir", self.directory)
        wait_for(self.process, self.port)
        self.per_s = 20000  # until known better
        self.per_s = self.throughput(self.load(0.5).wait(60))

    def load(self, seconds):
        return programs.Measured(
            self.world, "redis-benchmark", "-h", "127.0.0.1", "-p", self.port, "-t", "get",
            "-n", int(self.per_s * seconds), *self.options, "--csv", keeps_stdout=True)

    def requests(self, usage, seconds):
        return int(self.per_s * seconds)

    def served(self):
        """How many requests there have been so far."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as client:
            client.sendall(b"INFO stats\r\nQUIT\r\n")
            answer = client.makefile().read()
        return int(re.search(r"^total_commands_processed:(\d+)", answer, re.MULTILINE)[1])

    def throughput(self, usage):
        return float(re.search(r'^"GET","([\d.]+)"', usage.stdout, re.MULTILINE)[1])


class RedisPipelined(Redis):
    title = "redis-server, GET, 50 clients, 16 requests at once"
    options = ("-c", 50, "-P", 16)


class Nginx(Server):
    title = "nginx, a file of 1 KiB, 32 connections"
    tools = ("nginx", "wrk")
    unit = "requests/s"

    def __init__(self, world):
        super().__init__(world)
        with open(os.path.join(self.directory, "file"), "w") as file:
            file.write("x" * 1024)
        configuration = os.path.join(self.directory, "nginx.conf")
        temporary = "".join(f"{kind}_temp_path {self.directory}/{kind};\n" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(configuration, "w") as file:
            file.write(f"""daemon off;
worker_processes 1;
pid {self.directory}/pid;
error_log {self.directory}/error.log;
events {{ }}
http {{
access_log off;
{temporary}server {{ listen 127.0.0.1:{self.port}; root {self.directory};
location = /status {{ stub_status; }} }}
}}
""")
        self.process = programs.Measured(world, "nginx", "-p", self.directory, "-c", configuration)
        wait_for(self.process, self.port)

    def pids(self):
        return children(self.process.pid)

    def load(self, seconds):
        return programs.Measured(self.world, "wrk", "-t", 1, "-c", 32, "-d",
                                 f"{max(seconds, 1):.0f}s",
                                 f"http://127.0.0.1:{self.port}/file", keeps_stdout=True)

    def served(self):
        """How many requests there have been so far: "server accepts handled requests", followed by three
        figures."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5) as answer:
            return int(answer.read().split(b"\n")[2].split()[2])

    def throughput(self, usage):
        return float(re.search(r"^Requests/sec:\s*([\d.]+)", usage.stdout, re.MULTILINE)[1])


class Postgres(Server):
    title = "postgres, pgbench -S, 4 clients"
    tools = ("postgres", "initdb", "pgbench", "createdb")
    unit = "transactions/s"
    processes_come_with_load = True  # one for each client

    def __init__(self, world):
        super().__init__(world)
        self.user = as_other_user("postgres")
        os.chmod(self.directory, 0o777)
        data = os.path.join(self.directory, f"data-{self.port}")
        self._run("initdb", "-D", data, "-U", "bench", "-A", "trust", "--no-sync")
        self.process = programs.Measured(
            world, "postgres", "-D", data, "-p", self.port, "-k", self.directory,
            "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", **self.user)
        wait_for(self.process, self.port)
        self.client = ["-h", "127.0.0.1", "-p", self.port, "-U", "bench"]
        self._run("createdb", *self.client, "bench")
        self._run("pgbench", "-i", "-q", *self.client, "bench")

    def _run(self, *command):
        usage = self.world.run(*command, timeout_s=60, cwd=self.directory, **self.user)
        if usage.status:
            raise RuntimeError(f"{command[0]} failed: {usage.stderr}")

    def pids(self):
        """The ids of the clients' processes, by the titles that postgres gives its processes."""
        found = []
        for pid in children(self.process.pid):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/cmdline") as file:
                if file.read().startswith("postgres: bench bench"):
                    found.append(pid)
        return found

    def load(self, seconds):
        # One second more, in which the clients connect and sampling begins.
        return programs.Measured(self.world, "pgbench", "-S", "-c", 4, "-P", 1, "-T",
                                 int(max(seconds, 1)) + 1, *self.client, "bench", keeps_stdout=True)

    def throughput(self, usage):
        each_second = re.findall(r"^progress: .*?([\d.]+) tps", usage.stderr, re.MULTILINE)
        return statistics.mean(map(float, each_second[1:]))

    def stop(self):
        # SIGINT is a fast shutdown: all of its processes end, and its shared memory is freed.
        self.process.signal(signal.SIGINT)
        self.process.wait(20)


SERVERS = [Redis, RedisPipelined, Nginx, Postgres]


@contextlib.contextmanager
def under_load(world, make, seconds):
    """The ids of a server's processes while it is under load, for at most this long."""
    server = make(world)
    load = None
    try:
        load = server.load(seconds)
        time.sleep(1)
        yield server.pids()
    finally:
        if load:
            load.end()
        server.stop()


def kernel_account(pids):
    """The seconds for which the threads were on a CPU, waited for one, and existed."""
    threads = [thread for pid in pids for thread in programs.schedstats(pid)]
    return (sum(thread[0] for thread in threads) / 1e9, sum(thread[1] for thread in threads) / 1e9,
            time.monotonic())


def sampled(server, seconds):
    """The throughput under fgprof-c, fgprof-c's report, its CPU time and the kernel's account."""
    if server.processes_come_with_load:
        load = server.load(seconds)
        time.sleep(0.3)
    pids = server.pids()
    sampler = server.world.attach(pids)
    before, cpu_before_s = kernel_account(pids), programs.cpu_s(sampler.pid)
    if server.processes_come_with_load:
        time.sleep(max(0.5, seconds - 0.5))
        # Now, since the processes end with the load.
        after, cpu_s = kernel_account(pids), programs.cpu_s(sampler.pid) - cpu_before_s
        usage = load.wait(seconds + 60)
    else:
        time.sleep(0.2)
        usage = server.load(seconds).wait(seconds + 60)
        after, cpu_s = kernel_account(pids), programs.cpu_s(sampler.pid) - cpu_before_s
        sampler.signal(signal.SIGINT)
    summary = programs.summary_of(sampler.wait(60))
    clock_s = after[2] - before[2]
    return (server.throughput(usage), summary, cpu_s / clock_s,
            (after[0] - before[0]) / clock_s, (after[1] - before[1]) / clock_s)


def bench(server, repetitions, seconds):
    """The rows of both tables."""
    plain = [server.throughput(server.load(seconds).wait(seconds + 60))]
    with_sampler = []
    for repetition in range(repetitions):
        programs.progress(f"  {server.title}, round {repetition + 1} of {repetitions}")
        with_sampler.append(sampled(server, seconds))
        plain.append(server.throughput(server.load(seconds).wait(seconds + 60)))
    ratios = [one[0] / statistics.mean(plain[i:i + 2]) for i, one in enumerate(with_sampler)]
    # How far one run is from its neighbours without any sampler.
    noise = [abs(plain[i] / statistics.mean([plain[i - 1], plain[i + 1]]) - 1)
             for i in range(1, len(plain) - 1)]
    summaries = [one[1] for one in with_sampler]
    median = statistics.median
    found = "-"
    if not server.processes_come_with_load:  # one of its threads does all the work
        found = tables.percent(median(s.pauses / s.taken for s in summaries))
    throughput = [server.title, f"{median(plain):,.0f} {server.unit}",
                  f"{median(one[0] for one in with_sampler):,.0f} {server.unit}",
                  tables.spread(ratios, "{:.3f}".format),
                  tables.percent(median(noise)) if noise else "-",
                  tables.percent(median(one[2] for one in with_sampler))]
    context = [server.title, tables.count(median(s.samples for s in summaries)),
               tables.percent(sum(s.late for s in summaries) / sum(s.planned for s in summaries)),
               tables.percent(median(s.cut_percent / 100 for s in summaries)),
               tables.percent(median(one[3] for one in with_sampler)),
               tables.percent(median(one[4] for one in with_sampler)), found,
               summaries[-1].pause_words]
    return throughput, context


THROUGHPUT = ["server and load", "without", "with", "with / without", "noise", "sampler's CPU"]
CONTEXT = ["server and load", "samples a run", "ticks late", "stacks cut", "on a CPU",
           "waiting for one", "found running", "pauses"]


def report(world):
    repetitions, seconds = world.pick((7, 5), (1, 0.5))
    throughput_rows, context_rows = [], []
    for kind in SERVERS:
        if not world.has(*kind.tools):
            throughput_rows.append([kind.title, tables.NOT_INSTALLED] + [""] * 4)
            continue
        server = kind(world)
        try:
            throughput, context = bench(server, repetitions, seconds)
        finally:
            server.stop()
        throughput_rows.append(throughput)
        context_rows.append(context)
    return f"""Server, load and sampler share {len(os.sched_getaffinity(0))} CPUs; the load comes by loopback.
Runs of about {seconds} s, without and with fgprof-c at 99 Hz by turns, {repetitions} with it.
*With / without* is of neighbouring runs; *noise* is by how much a run without differs from the
mean of the two runs without beside it. The *sampler's CPU* is of one CPU. Given are medians, in
brackets between what the middle half lies.

{tables.table(THROUGHPUT, throughput_rows)}
What was found of them. *On a CPU* and *waiting for one* are the kernel's account of all threads of
the server in the time that was sampled, of one CPU; *found running* is at how many of the ticks a
thread was found on a CPU or waiting for one, for servers in which one thread does all the work.

{tables.table(CONTEXT, context_rows)}"""

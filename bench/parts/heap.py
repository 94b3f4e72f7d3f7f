"""What heap profilers cost, and whether they agree with a program's own account."""

import collections
import glob
import json
import os
import re
import statistics
import subprocess
import time

import programs
import real_programs
import tables

TITLE = "Heap profiles, beside other profilers of the heap"
TOOLS = ("heaptrack", "valgrind", "jeprof", "redis-server", "python3", "node")
RATE = 512 << 10
LIBRARIES = "/usr/lib/*-linux-gnu/"
PROFILED = {"MALLOC_CONF": f"prof:true,lg_prof_sample:{RATE.bit_length() - 1}"}
SAMPLED = {"TCMALLOC_SAMPLE_PARAMETER": str(RATE)}

Way = collections.namedtuple("Way", "name base prefix environment")


def library(name):
    found = sorted(glob.glob(LIBRARIES + name))
    return found[0] if found else None


def ways(world):
    """How a program is run. The cost of each is the excess over its base."""
    agent = os.path.join(world.build, "libfgprof-agent.so")
    jemalloc, tcmalloc = library("libjemalloc.so.2"), library("libtcmalloc.so.4")
    profile = world.path("heap.fgprof")
    yield Way("malloc of glibc", None, (), {})
    yield Way("fgprof-c's agent, idle", "malloc of glibc", (), {"LD_PRELOAD": agent})
    yield Way("fgprof-c run --kind heap", "malloc of glibc",
              (world.fgprof, "run", "--kind", "heap", "--heap-rate", str(RATE), "-o", profile, "--"),
              {})
    if jemalloc:
        yield Way("jemalloc", None, (), {"LD_PRELOAD": jemalloc})
        yield Way("jemalloc, profiling", "jemalloc", (), {"LD_PRELOAD": jemalloc, **PROFILED})
    if tcmalloc:
        yield Way("tcmalloc", None, (), {"LD_PRELOAD": tcmalloc})
        yield Way("tcmalloc, sampling", "tcmalloc", (), {"LD_PRELOAD": tcmalloc, **SAMPLED})
    if world.has("heaptrack"):
        yield Way("heaptrack", "malloc of glibc", ("heaptrack", "-o", world.path("heaptrack")), {})
    if world.has("valgrind"):
        yield Way("massif", "malloc of glibc",
                  ("valgrind", "--tool=massif", "--massif-out-file=" + world.path("massif")), {})


def is_slow(way):
    return way.name in ("heaptrack", "massif")


def run(way, *command, timeout_s=600, stdin=subprocess.DEVNULL):
    environment = {**programs.ENVIRONMENT, **way.environment}
    done = subprocess.run([*way.prefix, *map(str, command)], env=environment, text=True,
                          capture_output=True, timeout=timeout_s, stdin=stdin, check=False)
    if done.returncode:
        raise RuntimeError(f"{way.name}: {done.stderr.strip()[-500:]}")
    return done.stdout


def answer(text):
    """The target's line among what its profiler prints."""
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))


def pair_ns(world, way, count, threads):
    return answer(run(way, world.program("heap"), "pairs", count, 24, 516, threads))["ns"]


def pairs(world, threads):
    """The median time of a pair in each way, measured in turn."""
    count, rounds = world.pick((20000000, 7), (100000, 1))
    found = collections.defaultdict(list)
    for turn in range(rounds):
        for way in ways(world):
            if is_slow(way) and turn:
                continue
            programs.progress(f"  {way.name}, {threads} thread{'s'[:threads > 1]}")
            found[way.name].append(
                pair_ns(world, way, count // 20 if is_slow(way) else count, threads))
    medians = {name: statistics.median(values) for name, values in found.items()}
    for way in ways(world):
        base = medians.get(way.base)
        yield [way.name, f"{medians[way.name]:.1f} ns",
               f"{medians[way.name] - base:+.1f} ns" if base else "",
               f"{medians[way.name] / base:.2f}" if base else ""]


def sample_us(world):
    """The cost of one sample, from a rate at which samples are most of the cost."""
    rate = 8 << 10
    prefix = (world.fgprof, "run", "--kind", "heap", "--heap-rate", str(rate), "-o",
              world.path("heap.fgprof"), "--")
    often = Way("often", None, prefix, {})
    idle = next(way for way in ways(world) if "idle" in way.name)
    count = world.pick(5000000, 100000)
    ns = [pair_ns(world, often, count, 1) - pair_ns(world, idle, count, 1)
          for _ in range(world.pick(5, 1))]
    return statistics.median(ns) * rate / 516 / 1000


def timed(way, command):
    begin = time.monotonic()
    run(way, *command)
    return time.monotonic() - begin


REAL = {
    "python3": ("python3", "-c", "import json\nfor i in range(15):\n"
                " d = [{'key%d' % j: [j, str(j)]} for j in range(20000)]\n"
                " json.loads(json.dumps(d))"),
    "node": ("node", "-e", "for (let i = 0; i < 40; i++) { let b = []; "
             "for (let j = 0; j < 4000; j++) b.push(Buffer.alloc(5000, j)); "
             "JSON.parse(JSON.stringify(b.map(x => x.length))); }"),
}


def answers(port):
    asked = subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, text=True,
                           check=False)
    return asked.stdout == "PONG\n"


def filled(world, way):
    """The time of a request that sets a value in redis-server, which has its own malloc."""
    port = real_programs.free_port()
    command = [*way.prefix, "redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1",
               "--dir", world.directory]
    server = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env={**programs.ENVIRONMENT, **way.environment})
    try:
        end = time.monotonic() + 60
        while not answers(port) and time.monotonic() < end:
            time.sleep(0.1)
        done = subprocess.run(["redis-benchmark", "-p", str(port), "-t", "set", "-r", "1000000", "-d",
                               "400", "-n", str(world.pick(400000, 5000)), "--csv"],
                              capture_output=True, text=True, timeout=600, check=True)
        subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], check=False)
        server.wait(60)
        return 1 / float(done.stdout.splitlines()[-1].split(",")[1].strip('"'))
    finally:
        server.kill()
        server.wait()


def real(world):
    rounds = world.pick(5, 1)
    measures = {name: lambda way, command=command: timed(way, command)
                for name, command in REAL.items() if world.has(name)}
    if world.has("redis-server", "redis-benchmark"):
        measures["redis-server"] = lambda way: filled(world, way)
    for name, measure in measures.items():
        found = collections.defaultdict(list)
        for turn in range(rounds):
            for way in ways(world):
                if way.name == "massif" or (is_slow(way) and turn):
                    continue
                programs.progress(f"  {name}: {way.name}")
                found[way.name].append(measure(way))
        medians = {name: statistics.median(values) for name, values in found.items()}
        for way in ways(world):
            if way.base and way.name in medians:
                yield [f"{name}: {way.name}", tables.duration(medians[way.name]),
                       f"{medians[way.name] / medians[way.base]:.2f}"]


def by_function(lines):
    """{function of the target: value}, from folded stacks."""
    values = collections.Counter()
    for line in lines:
        stack, _, value = line.rpartition(" ")
        found = re.search(r"allocate_\d+", stack)
        if found:
            values[found.group()] += float(value)
    return values


def by_fgprof(world, rounds):
    file = world.path("shares.folded")
    prefix = (world.fgprof, "run", "--kind", "heap", "--heap-rate", str(RATE), "-f", "folded", "-o",
              file, "--")
    run(Way("fgprof-c", None, prefix, {}), world.program("heap"), "shares", rounds)
    with open(file) as lines:
        return by_function(lines)


def by_jeprof(world, pattern):
    """What jeprof finds in the last file that matches, by function."""
    files = sorted(glob.glob(pattern), key=os.path.getmtime)
    text = subprocess.run(["jeprof", "--text", "--cum", world.program("heap"), files[-1]],
                          capture_output=True, text=True, check=False).stdout
    values = collections.Counter()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 6 and re.fullmatch(r"allocate_\d+", fields[5]):
            values[fields[5]] = float(fields[3])
    return values


def by_jemalloc(world, rounds):
    prefix = world.path("jemalloc")
    options = PROFILED["MALLOC_CONF"] + f",prof_final:true,prof_prefix:{prefix}"
    run(Way("jemalloc", None, (), {"LD_PRELOAD": library("libjemalloc.so.2"),
                                   "MALLOC_CONF": options}),
        world.program("heap"), "shares", rounds)
    return by_jeprof(world, prefix + "*.heap")


def by_heaptrack(world, rounds):
    prefix, file = world.path("shares"), world.path("shares.folded")
    run(Way("heaptrack", None, ("heaptrack", "-o", prefix), {}), world.program("heap"), "shares",
        rounds)
    recorded = sorted(glob.glob(prefix + "*.zst") + glob.glob(prefix + "*.gz"))[-1]
    subprocess.run(["heaptrack_print", "-f", recorded, "-p", "0", "-a", "0", "-T", "0", "-l", "0",
                    "--flamegraph-cost-type", "leaked", "-F", file], stdout=subprocess.DEVNULL,
                   check=False)
    with open(file) as lines:
        return by_function(lines)


def shares(world):
    rounds = world.pick(400, 20)
    truth = answer(run(Way("", None, (), {}), world.program("heap"), "shares", rounds))
    found = {"fgprof-c": by_fgprof(world, rounds)}
    if library("libjemalloc.so.2") and world.has("jeprof"):
        found["jemalloc"] = by_jemalloc(world, rounds)
    if world.has("heaptrack", "heaptrack_print"):
        found["heaptrack"] = by_heaptrack(world, rounds)
    total = sum(share["in_use"] for share in truth.values())
    yield ["function", "true", *found]
    for name, share in truth.items():
        yield [name, tables.percent(share["in_use"] / total),
               *(tables.percent(values[name] / (sum(values.values()) or 1))
                 for values in found.values())]


def report(world):
    header = ["", "a pair", "more than without", "ratio"]
    one = tables.table(header, list(pairs(world, 1)))
    four = tables.table(header, list(pairs(world, 4)))
    sample = sample_us(world)
    slowed = tables.table(["program", "time", "ratio to its own malloc"], list(real(world)))
    head, *rows = shares(world)
    return f"""`malloc(516)` and `free` of it, 24 frames deep, one sample each {tables.count(RATE)} bytes on average, medians
of runs by turns. One thread:

{one}
Four threads:

{four}
A sample of fgprof-c costs {sample:.2f} us (at one each 8 KiB).

Real programs: the whole run of python3 and node, a request of redis-server, which has jemalloc of its
own.

{slowed}
Memory in use at the end of a program that knows what it allocated, by function:

{tables.table(head, rows)}"""

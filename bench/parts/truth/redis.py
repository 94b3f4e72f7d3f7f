"""redis-server has no account of its own time, so perf is the judge of where it runs."""

import collections
import contextlib
import os
import subprocess
import time

import programs
import stacks  # of tests/matrix
import tables
import watchers
from parts.stacks import mappings_of
from parts.truth.account import NOTHING
from parts.truth.scenes import RATE_HZ

# In the first, most of the time is the kernel's; in the second, requests come 16 at a time.
LOADS = {"redis": ("20 clients", ()), "redis-pipelined": ("20 clients, 16 requests at once", ("-P", 16))}


@contextlib.contextmanager
def redis_under_load(world, arguments):
    socket = world.path("redis")
    server = programs.Measured(world, "redis-server", "--port", 0, "--unixsocket", socket, "--save",
                               "", "--dir", world.directory)
    load = None
    try:
        while not os.path.exists(socket):
            if server.process.poll() is not None:
                raise RuntimeError("redis-server does not come up")
            time.sleep(0.05)
        # One command: with more the load would change every few seconds.
        load = programs.Measured(world, "redis-benchmark", "-s", socket, "-n", 1000000000, "-q", "-c",
                                 20, "-t", "set", *arguments)
        time.sleep(1)
        yield server.pid
    finally:
        if load:
            load.end()
        server.end()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)


def self_shares(samples):
    """{function: share of running time}, and the number of samples."""
    counts = collections.Counter()
    for sample in samples:
        if sample.state == "running":
            counts[sample.functions[0] if sample.functions else NOTHING] += sample.count
    number = sum(counts.values())
    if not number:
        raise watchers.Failed("no samples")
    return {function: count / number for function, count in counts.items()}, number


def files_of(pid):
    """The files mapped by a process, and those of their debug information."""
    mapped = {path for _, _, path in mappings_of(pid) if path.startswith("/")}
    files = set(mapped)
    for path in mapped:
        notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, timeout=60).stdout
        build_id = notes.partition("Build ID: ")[2].partition("\n")[0].strip()
        files.add(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    return files


def watch_redis(world, arguments, ways):
    """{way: samples}, {way: why it failed}, and a test whether two names are of one function."""
    rounds, seconds = world.pick((8, 3), (1, 1))
    samples, failures = {way: [] for way in ways}, {}
    with redis_under_load(world, arguments) as pid:
        files, aliases = files_of(pid), stacks.Aliases(world.directory)
        for number in range(rounds):
            programs.progress(f"  redis-server, round {number + 1} of {rounds}")
            for way in ways:
                try:
                    samples[way] += ways[way].watch(world, pid, seconds, RATE_HZ)
                except watchers.Failed as error:
                    failures[way] = f"{way} failed: {error}."
    return samples, failures, lambda one, other: one == other or aliases.are(one, other, files)


def text(world, key, ways):
    title, arguments = LOADS[key]
    judge, again = "perf", "perf again"
    ways = {judge: watchers.Perf(), again: watchers.Perf(),
            **{way.name: way for way in ways if isinstance(way, watchers.Fgprof)}}
    samples, failures, is_same = watch_redis(world, arguments, ways)
    truth, number = self_shares(samples.pop(judge))
    top = sorted(truth, key=truth.get, reverse=True)[:10]
    columns = []
    for way in samples:
        if not samples[way]:
            continue
        shares, _ = self_shares(samples[way])
        shown = [sum(share for name, share in shares.items() if is_same(function, name))
                 for function in top]
        errors = [share - truth[function] for function, share in zip(top, shown)]
        columns.append([way, *(f"{tables.points(share)} ({tables.points(error, '{:+.2f}')})"
                               for share, error in zip(shown, errors)),
                        tables.points(max(map(abs, errors)))])
    header, *rows = zip(["function", *top, "largest difference"],
                        [judge, *(tables.points(truth[function]) for function in top), "-"], *columns)
    said = "".join(f"\n{failure}\n" for failure in failures.values())
    return f"""## redis-server under redis-benchmark, {title}

perf took {tables.count(number)} samples.

{tables.table(list(header), rows)}{said}"""

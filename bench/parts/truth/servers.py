"""Servers keep no account of their own time, so perf is the reference for where they run."""

import collections
import subprocess

import programs
import stacks  # of tests/matrix
import watchers
from parts import servers
from parts.stacks import mappings_of
from parts.truth.account import NOTHING, Row, Run
from parts.truth.scenes import DEFAULT_RATE_HZ, Scene

# In the first, most of the time is the kernel's; in the second, requests come 16 at a time.
SERVERS = {"redis": servers.Redis, "redis-pipelined": servers.RedisPipelined,
           "postgres": servers.Postgres}
WAYS = ("fgprof-c", "--capture=ptrace")
PERF_HZ = 997
SECONDS = 60
FUNCTIONS = 10
LOAD = "under load"


def scene_of(key):
    return Scene(f"Where it runs, by perf: {SERVERS[key].title}", None, None, ["running"], {})


def self_shares(samples):
    """{function: share of running time}, and the number of samples."""
    counts = collections.Counter()
    for sample in samples:
        if sample.state == "running":
            counts[sample.functions[0].split("@")[0] if sample.functions else NOTHING] += sample.count
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


def watch(world, key, way):
    """The rows of one way, while perf watches the same load."""
    seconds, perf = world.pick(SECONDS, 1), watchers.Perf(call_graph="fp")
    with servers.under_load(world, SERVERS[key], seconds + 20) as pids:
        files, aliases = files_of(pids[0]), stacks.Aliases(world.directory)
        recording = perf.start(world, seconds, PERF_HZ)
        samples = way.watch(world, ",".join(map(str, pids)), seconds, DEFAULT_RATE_HZ)
        judged = perf.samples_of(world, recording, pids)
    truth, _ = self_shares(judged)
    shares, number = self_shares(samples)
    run, rows = Run(way.name, DEFAULT_RATE_HZ, LOAD), []
    named = [function for function in truth if function and not function.startswith(("[", "("))]
    for function in sorted(named, key=truth.get, reverse=True)[:FUNCTIONS]:
        shown = sum(share for name, share in shares.items()
                    if name == function or aliases.are(function, name, files))
        rows.append(Row("running", run, function, 0, truth[function], shown, number))
    return rows


def watch_server(world, key, ways):
    """All rows of a server, and what failed."""
    rows, failures = [], []
    for way in ways:
        if way.name not in WAYS:
            continue
        programs.progress(f"  {key}: {way.name}")
        try:
            found = world.resumed(f"{key}.{way.name}", lambda: watch(world, key, way))
            rows += [Row(*values)._replace(run=Run(*values[1])) for values in found]
        except watchers.Failed as error:
            failures.append(f"{way.name} failed: {error}.")
    return rows, failures

"""Whether a profile tells the truth where a thread computes and waits for 10 to 500 us at a time.

The programs of bench/targets/truth keep account of their own time; of redis-server perf is the
judge."""

import collections
import contextlib
import os
import subprocess
import time

import programs
import stacks  # of tests/matrix
import tables
import watchers
from parts.pause import two_cpus
from parts.stacks import mappings_of

TITLE = "Whether a profile tells the truth, at the scale of 50 us"
TOOLS = ("perf", "offcputime", "redis-server", "redis-benchmark")
RATE_HZ = 999
LOW_RATE_HZ = 99
SETTLE_S = 0.3
NOTHING = "(none of these)"
LEAST_SHOWN = 0.0005
VERDICTS = ["within 3 sigma", "within 1 point", "off"]

# What is told of which threads, for how many seconds. A kind is what a share is of: "running" and
# "wall" time, or wall time by function and "state"; "off" is time off the CPU.
# In the first way also at the default rate, if so many seconds are given.
Scene = collections.namedtuple("Scene", "title command threads seconds kinds low_rate_seconds",
                               defaults=[0])
SCENES = {
    "bursts": Scene("Bursts of 60, 30 and 10 us", ("bursts", "steady"), ["server"], 10,
                    ["running"], 15),
    "bursts-mixed": Scene("Bursts of 20 to 500 us, cut in three", ("bursts", "mixed"), ["server"], 6,
                          ["running"]),
    "waits": Scene("Waits of 40, 120 and 400 us by turns", ("waits", "steady"), ["waiter"], 10,
                   ["wall", "off"]),
    "waits-mixed": Scene("Waits of 30 us to 50 ms at random", ("waits", "mixed"), ["waiter"], 10,
                         ["wall", "off"], 40),
    "lock": Scene("A lock that two threads hand back and forth", ("handover",), ["left", "right"], 6,
                  ["running", "wall", "off"]),
    "in-step": Scene("A program that repeats itself as often as it is sampled", ("in_step", RATE_HZ),
                     ["worker"], 5, ["running"]),
    "threads-4": Scene("4 threads on two CPUs", ("shares", 4), ["worker"], 5, ["running"]),
    "threads-40": Scene("40 threads on two CPUs", ("shares", 40), ["worker"], 5, ["running"]),
    "crowd": Scene("A thread that is woken and waits for a CPU, beside 4 that compute", ("crowd", 4),
                   ["sleeper"], 8, ["state", "running"], 40),
}
KINDS = {"running": "running time", "wall": "wall time", "state": "wall time, by state",
         "off": "time off the CPU"}

# One function, or function and state, of one kind, by one way.
Row = collections.namedtuple("Row", "kind way label each_s truth shown samples")


def error_of(row):
    return row.shown - row.truth


def deviation_of(row):
    """The standard deviation of a share among so many samples: binomial. None are none by chance."""
    return (row.truth * (1 - row.truth) / row.samples) ** 0.5 if row.samples else 0


def verdict_of(row):
    error = abs(error_of(row))
    if error <= 3 * deviation_of(row):
        return VERDICTS[0]
    return VERDICTS[1] if error <= 0.01 else VERDICTS[2]


def badness(row):
    return VERDICTS.index(verdict_of(row)), abs(error_of(row))


# ---- What the target knows of itself ----


def spent_in(target_before, target_after, threads):
    """{function: Counter of calls, wall_ns, cpu_ns and delay_ns} between two answers."""
    spent = collections.defaultdict(collections.Counter)
    for before, after in zip(target_before["threads"], target_after["threads"]):
        if after["thread"] in threads:
            for function, totals in after["functions"].items():
                spent[function].update(totals)
                spent[function].subtract(before["functions"][function])
    return spent


def check_account(before, after):
    """That the parts of each thread's time add up to all of it."""
    elapsed_ns = after["ns"] - before["ns"]
    for first, last in zip(before["threads"], after["threads"]):
        spent = spent_in({"threads": [first]}, {"threads": [last]}, [last["thread"]])
        wall_ns = sum(totals["wall_ns"] for totals in spent.values())
        wall_ns += last["open_ns"] - first["open_ns"]
        if abs(wall_ns - elapsed_ns) > 0.02 * elapsed_ns:
            raise RuntimeError(f"the account of {last['thread']} has {wall_ns} of {elapsed_ns} ns")


def weights_of(spent, kind):
    """{label: ns}"""
    if kind == "running":
        return {function: totals["cpu_ns"] for function, totals in spent.items()}
    if kind == "wall":
        return {function: totals["wall_ns"] for function, totals in spent.items()}
    if kind == "off":
        return {function: totals["wall_ns"] - totals["cpu_ns"] for function, totals in spent.items()}
    weights = {}
    for function, totals in spent.items():
        weights[f"{function}, running"] = totals["cpu_ns"]
        weights[f"{function}, runnable"] = totals["delay_ns"]
        weights[f"{function}, asleep"] = totals["wall_ns"] - totals["cpu_ns"] - totals["delay_ns"]
    return weights


# ---- What a way shows of it ----


def counts_of(samples, kind, threads, functions):
    """{label: number of samples}, with those that show none of the functions."""
    counts = collections.Counter()
    for sample in samples:
        if sample.thread not in threads or (kind == "running" and sample.state != "running"):
            continue
        function = next((name for name in sample.functions if name in functions), NOTHING)
        counts[f"{function}, {sample.state}" if kind == "state" else function] += sample.count
    return counts


def rows_of(way_name, kind, spent, samples, threads):
    weights = weights_of(spent, kind)
    counts = counts_of(samples, kind, threads, set(spent))
    all_ns, number = sum(weights.values()), sum(counts.values())
    if not number:
        raise watchers.Failed("no samples")
    rows = []
    for label in [*weights, *(label for label in counts if label not in weights)]:
        totals = spent.get(label.partition(",")[0], {"calls": 0, "wall_ns": 0})
        each_s = totals["wall_ns"] / totals["calls"] / 1e9 if totals["calls"] else 0
        row = Row(kind, way_name, label, each_s, weights.get(label, 0) / all_ns,
                  counts[label] / number, number)
        if max(row.truth, row.shown) >= LEAST_SHOWN:
            rows.append(row)
    return rows


def watch_target(world, scene, way, rate_hz, seconds):
    """The rows of one way, or of none if it fails here."""
    with world.target("truth-" + scene.command[0], *scene.command[1:]) as target:
        time.sleep(SETTLE_S)  # the clock speeds up
        before = target.mark()
        samples = way.watch(world, target.pid, seconds, rate_hz)
        after = target.mark()
    check_account(before, after)
    spent = spent_in(before, after, scene.threads)
    name = way.name if rate_hz == RATE_HZ else f"{way.name}, {rate_hz} Hz"
    return [row if way.samples else row._replace(samples=0)
            for kind in scene.kinds if kind in way.kinds
            for row in rows_of(name, kind, spent, samples, scene.threads)]


def watch_scene(world, key, ways):
    """All rows of a scene, and what failed."""
    scene, rows, failures = SCENES[key], [], []
    seconds = world.pick(scene.seconds, 1)
    turns = [(way, RATE_HZ, seconds) for way in ways if way.kinds & set(scene.kinds)]
    if scene.low_rate_seconds:
        turns.append((ways[0], LOW_RATE_HZ, world.pick(scene.low_rate_seconds, 1)))
    for way, rate_hz, seconds in turns:
        programs.progress(f"  {key}: {way.name}, {rate_hz} Hz")
        try:
            rows += watch_target(world, scene, way, rate_hz, seconds)
        except watchers.Failed as error:
            failures.append(f"{way.name} failed: {error}.")
    return rows, failures


def points(share, write="{:.2f}"):
    return write.format(100 * share)


def scene_text(scene, rows, failures):
    header = ["share of", "by", "function", "each takes", "truth, %", "shown, %", "error, points",
              "expected sd", "verdict"]
    cells = [[KINDS[row.kind], row.way, row.label, tables.duration(row.each_s) if row.each_s else "-",
              points(row.truth), points(row.shown), points(error_of(row), "{:+.2f}"),
              points(deviation_of(row)) if row.samples else "-", verdict_of(row)]
             for row in sorted(rows, key=lambda row: scene.kinds.index(row.kind))]
    said = "".join(f"\n{failure}\n" for failure in failures)
    return f"## {scene.title}\n\n{tables.table(header, cells)}{said}"


def summary_text(found):
    """For each scene, the error of each way that is judged worst."""
    ways = list(dict.fromkeys(row.way for rows in found.values() for row in rows))
    cells = []
    for key, rows in found.items():
        for kind in SCENES[key].kinds:
            line = [f"{SCENES[key].title}: {KINDS[kind]}"]
            for way in ways:
                mine = [row for row in rows if (row.way, row.kind) == (way, kind)]
                worst = max(mine, key=badness, default=None)
                line.append(f"{points(error_of(worst), '{:+.2f}')}, {verdict_of(worst)}" if worst
                            else "-")
            cells.append(line)
    return tables.table(["worst error, points", *ways], cells)


# ---- redis-server, with perf as the judge ----


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


def redis_text(world, key, ways):
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
        columns.append([way, *(f"{points(share)} ({points(error, '{:+.2f}')})"
                               for share, error in zip(shown, errors)),
                        points(max(map(abs, errors)))])
    header, *rows = zip(["function", *top, "largest difference"],
                        [judge, *(points(truth[function]) for function in top), "-"], *columns)
    said = "".join(f"\n{failure}\n" for failure in failures.values())
    return f"""## redis-server under redis-benchmark, {title}

perf took {tables.count(number)} samples.

{tables.table(list(header), rows)}{said}"""


TEXT = """Programs that keep account of their own time to the nanosecond, cut where their functions
end (`bench/targets/truth`), are watched in each way for some seconds at {rate} Hz. *Truth* is a
function's share by that account, in the same run; *shown* is its share in the profile, with what it
calls. The *expected sd* is the standard deviation that so many samples have by chance:
sqrt(p(1-p)/n). *Each takes* is the mean by the clock from the end of the function before to its own.
perf sees what runs. offcputime sees each moment that does not, so there is no chance in it; but it
starts later than the account. *Worst error* is that of the function which is judged worst. The
sampler and the program share two CPUs, so the sampler's own work disturbs what it sees, as it would
elsewhere.

redis-server has no such account, so perf is the judge. Shown are the functions with the largest share
of running time by perf, each without those that it calls, in %; in brackets the difference from perf
in points. Time in the kernel is of the function that called it. All watch by turns; *perf again*
shows by how much two looks at the same load differ by chance.
"""


def report(world):
    with two_cpus():
        ways = watchers.own(world) + watchers.others(world)
        found, texts = {}, []
        for key in world.chosen(SCENES):
            found[key], failures = watch_scene(world, key, ways)
            texts.append(scene_text(SCENES[key], found[key], failures))
        if world.has("perf", "redis-server", "redis-benchmark"):
            texts += [redis_text(world, key, ways) for key in world.chosen(LOADS)]
    summary = summary_text(found) + "\n" if found else ""
    return TEXT.format(rate=RATE_HZ) + "\n" + summary + "\n".join(texts)

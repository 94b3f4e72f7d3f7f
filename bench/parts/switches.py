"""Each look of the profiler compared with the kernel's own record of switches (bench/switch_log.py). This
needs no target that keeps account of its time, so servers can be judged, too."""

import collections
import operator
import os
import time

import programs
import stacks  # of tests/matrix
import switch_log
import tables
import watchers
from parts import servers
from parts.pause import two_cpus
from parts.truth import runs
from parts.truth.account import NOTHING, spent_in
from parts.truth.servers import files_of
from parts.truth.scenes import DEFAULT_RATE_HZ, SCENES
from switch_log import ASLEEP

TITLE = "Looks beside the kernel's record of switches"
TOOLS = ("perf", "redis-server", "redis-benchmark", "postgres", "pgbench")
RATE_HZ = DEFAULT_RATE_HZ
SCENE_KEYS = ["turns", "turns-asleep", "drawn", "drawn-asleep", "requests", "waits"]
SERVERS = {"redis": servers.Redis, "postgres": servers.Postgres}
SECONDS = 20
LEAST_SHARE = 0.005
Look = collections.namedtuple("Look", "tid evidence state tick ticks asleep_ticks missed_ticks at_ns "
                              "asleep_at_ns departed_ns")
# When a look found a thread asleep: at that time, or in the departure that began at that time.
Found = collections.namedtuple("Found", "at_ns departed_ns")
# A tick of a thread whose look has no usable result is lost. `shifts_ns` are from each tick to when its look
# found the thread asleep.
Verdict = collections.namedtuple("Verdict", "same other lost awake_right awake_wrong shifts_ns")
# A place of waiting, and its shares of the time asleep.
Place = collections.namedtuple("Place", "name truth shown")


def read_looks(path):
    """[Look, ...] and {number of a tick: when it was due}."""
    looks, ticks = [], {}
    with open(path) as file:
        for line in file:
            kind, *values = line.split()
            if kind == "tick":
                ticks[int(values[0])] = int(values[1])
            else:
                looks.append(Look(int(values[0]), values[1], values[2], *map(int, values[3:])))
    return looks, ticks


def seen_asleep(looks):
    """{(tid, tick): Found}. A look also stands for the ticks before it that had none. Its report begins with
    how long the thread stayed asleep where the look before had found it."""
    seen, departed_ns, told = {}, {}, {}
    for look in looks:
        before = told.get(look.tid, look.tick - look.ticks - look.asleep_ticks)
        for tick in range(before + 1, before + 1 + look.asleep_ticks):
            seen.setdefault((look.tid, tick), Found(look.asleep_at_ns, departed_ns.get(look.tid, 0)))
        told[look.tid] = look.tick
        if look.evidence != "asleep":
            continue
        departed_ns[look.tid] = look.departed_ns
        for tick in range(look.tick - look.ticks + 1, look.tick + 1):
            seen.setdefault((look.tid, tick), Found(look.at_ns, look.departed_ns))
    return seen


def is_in(log, tid, found, departure):
    """Whether the look found the thread in that departure."""
    if found.departed_ns:
        return log.nearest(tid, found.departed_ns) == departure
    return log.at(tid, found.at_ns) == (ASLEEP, departure)


def judge(log, looks, ticks, tids, woken="woken_ns"):
    """How each tick of each thread was counted, compared with its state at the tick's own moment."""
    seen, counts, shifts_ns = seen_asleep(looks), collections.Counter(), []
    for tid in tids:
        begin_ns, end_ns = log.bounds_ns(tid)
        for tick, tick_ns in ticks.items():
            if not begin_ns <= tick_ns < end_ns:
                continue
            state, departure = log.at(tid, tick_ns, woken)
            found = seen.get((tid, tick))
            if found is None:
                counts["lost" if state == ASLEEP else "awake_right"] += 1
            elif state != ASLEEP:
                counts["awake_wrong"] += 1
            else:
                shifts_ns.append(found.at_ns - tick_ns)
                counts["same" if is_in(log, tid, found, departure) else "other"] += 1
    return Verdict(*(counts[name] for name in Verdict._fields[:-1]), shifts_ns)


def places_of(log, samples, tids, bounds_ns, name_of, is_same):
    """[Place, ...], most first, and the number of samples. `name_of` takes a stack's functions."""
    truth, shown = collections.Counter(), collections.Counter()
    for counter in log.asleep_ns(*bounds_ns).values():
        for functions, ns in counter.items():
            truth[name_of(functions)] += ns
    for sample in samples:
        if sample.state == "asleep":
            name = name_of(sample.functions)
            name = next((known for known in truth if is_same(known, name)), name)
            shown[name] += sample.count
    all_ns, number = sum(truth.values()), sum(shown.values())
    if not all_ns or not number:
        raise watchers.Failed("nothing was asleep")
    names = sorted({*truth, *shown}, key=lambda name: (-truth[name], name))
    places = [Place(name, truth[name] / all_ns, shown[name] / number) for name in names]
    return [place for place in places if max(place[1:]) >= LEAST_SHARE], number


def threads_of(pids):
    """{tid: name}"""
    names = {}
    for pid in pids:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/comm") as file:
                names[int(tid)] = file.read().rstrip("\n")
    return names


def watch(world, pids, tids, seconds):
    """The log of these threads, and the profiler's looks, ticks and samples."""
    recording, looks_path = world.path("switches.data"), world.path("looks")
    samples_path = world.path("looks.folded")
    perf = switch_log.record(world, tids, recording)
    try:
        usage = world.run("env", f"FGPROF_LOOK_LOG={looks_path}", world.program("looks"), "attach",
                          "-p", ",".join(map(str, pids)), "-F", RATE_HZ, "-d", f"{seconds}s", "-t",
                          "--state", "-f", "folded", "-o", samples_path, timeout_s=seconds + 60)
    finally:
        switch_log.stop(perf)
    watchers.require(usage)
    log = switch_log.Log(world, recording, tids)
    os.unlink(recording)
    if log.unwoken > LEAST_SHARE:
        raise watchers.Failed(f"the record lacks {tables.percent(log.unwoken)} of the wakes")
    looks, ticks = read_looks(looks_path)
    with open(samples_path) as file:
        samples = [watchers.Fgprof.sample(line) for line in file]
    return log, looks, ticks, samples


def result(name, load, log, looks, ticks, samples, tids, name_of, is_same):
    bounds_ns = (min(ticks.values()), max(ticks.values()))
    places, number = places_of(log, samples, tids, bounds_ns, name_of, is_same)
    verdict = judge(log, looks, ticks, tids)
    by_waker = agreement_of(judge(log, looks, ticks, tids, "waking_ns"))
    return {"name": name, "load": load, "places": places, "samples": number, "verdict": verdict,
            "by_waker": by_waker,
            "account": None, "each_s": None, "is_lossy": log.is_lossy,
            "switches": sum(map(len, log.departures.values())) / (bounds_ns[1] - bounds_ns[0]) * 1e9}


def watch_scene(world, key, load):
    """A target of bench/targets/truth, whose own account judges the log."""
    scene = SCENES[key]
    with runs.load(world, load), \
            world.target("truth-" + scene.command[0], *runs.arguments_of(world, scene)) as target:
        time.sleep(runs.SETTLE_S)
        before = target.mark()
        tids = [thread["tid"] for thread in before["threads"]
                if thread["thread"] in scene.threads]
        log, looks, ticks, samples = watch(world, [target.pid], tids, world.pick(SECONDS, 2))
        after = target.mark()
    spent = spent_in(before, after, scene.threads)

    def name_of(functions):
        return next((name for name in functions if name in spent), NOTHING)

    samples = [sample for sample in samples if sample.thread in scene.threads]
    off_ns = {name: totals["wall_ns"] - totals["cpu_ns"] for name, totals in spent.items()}
    account = {name: ns / sum(off_ns.values()) for name, ns in off_ns.items()}
    found = result(key, load, log, looks, ticks, samples, tids, name_of, operator.eq)
    wall_ns, calls = (sum(totals[key] for totals in spent.values()) for key in ("wall_ns", "calls"))
    return {**found, "account": account, "each_s": wall_ns / max(1, calls) / 1e9}


def watch_server(world, key, load):
    seconds = world.pick(SECONDS, 2) + 10
    with runs.load(world, load), servers.under_load(world, SERVERS[key], seconds) as pids:
        threads, files = threads_of(pids), files_of(pids[0])
        log, looks, ticks, samples = watch(world, pids, list(threads), world.pick(SECONDS, 2))
    # What a thread did before it first left its CPU is not in the record.
    first_ns, last_ns = min(ticks.values()), max(ticks.values())
    tids = [tid for tid in threads if log.is_known(tid, first_ns, last_ns)]
    log.keep(tids)
    names = {threads[tid] for tid in tids}
    samples = [sample for sample in samples if sample.thread in names]
    aliases = stacks.Aliases(world.directory)

    def name_of(functions):
        return functions[0].split("@")[0] if functions else NOTHING

    def is_same(one, other):
        return one == other or aliases.are(one, other, files)

    return result(key, load, log, looks, ticks, samples, tids, name_of, is_same)


def agreement_of(verdict):
    right = verdict.same + verdict.awake_right
    return right / max(1, right + verdict.other + verdict.lost + verdict.awake_wrong)


def agreement_row(found):
    verdict = Verdict(*found["verdict"])
    number = sum(verdict[:-1])
    asleep = max(1, verdict.same + verdict.other + verdict.lost)
    awake = max(1, verdict.awake_right + verdict.awake_wrong)
    share = agreement_of(verdict)
    found_asleep = max(1, verdict.same + verdict.other + verdict.awake_wrong)
    shifts = sorted(verdict.shifts_ns) or [0]
    return [found["name"], found["load"], tables.count(found["switches"]),
            tables.duration(found["each_s"]) if found["each_s"] else "-", tables.count(number),
            f"{tables.points(share, '{:.1f}')} "
            f"({tables.points((share * (1 - share) / max(1, number)) ** 0.5)})",
            tables.points(found["by_waker"], "{:.1f}"),
            *(tables.points(count / asleep, "{:.1f}")
              for count in (verdict.same, verdict.other, verdict.lost)),
            tables.points(verdict.awake_wrong / awake, "{:.1f}"),
            tables.points(verdict.same / found_asleep, "{:.1f}"),
            tables.duration(shifts[len(shifts) // 2] / 1e9),
            tables.duration(shifts[len(shifts) * 9 // 10] / 1e9)]


def places_rows(found):
    for name, truth, shown in found["places"]:
        deviation = (truth * (1 - truth) / found["samples"]) ** 0.5
        account = (found["account"] or {}).get(name)
        yield [found["name"], found["load"], name, tables.points(truth),
               tables.points(account) if account is not None else "-", tables.points(shown),
               tables.points(shown - truth, "{:+.2f}"), tables.points(deviation)]


TEXT = """perf records each switch and each wake of the target's threads (tracepoints, filtered to
them in the kernel), while fgprof-c watches them at {rate} Hz. At the moment at which each tick was
due, the record says whether a thread was asleep, and in which departure from its CPU. Of the ticks
that found it asleep, *same* are those whose look found it in that same sleep, *other* those whose look
found it in a later one, and *lost* those whose look came to nothing: it was thrown away, or says that
the thread was awake. *Taken for asleep* is the share of the ticks with the thread awake whose look
found it asleep. *True looks* are those that found a thread in the sleep that was in force at the tick,
of all that found one asleep. *Agree* is the share of all ticks that became what was in force, with its standard
deviation in brackets. *Later* is how long after the tick the look found the thread asleep. *Each call* is the mean of the
target's functions: beside the same without perf (`scripts/bench truth`) it says what perf disturbs.

A thread is asleep until it is in its CPU's queue (sched_wakeup), as in the kernel's own account of
waits for a CPU. Another CPU has decided to wake it before that (sched_waking); if the thread's CPU is idle, that
one has to come first, which takes 20 to 50 us in a virtual machine. *By the waker* is the agreement if the
sleep ends with that decision.

None of the outputs has the time of a look: timelines have the time of the look to within a tick, as
what a thread ran and slept between two looks is put in a fixed order, and looks that find the same
are merged. So the looks come from a build of fgprof-c that also logs them (`bench/look_log.c`).

A server has no account of its own time. By the record it was asleep in these functions for these
shares of its time asleep; of the targets of `bench/targets/truth` also *by account*, which includes
the time for which it waited for a CPU. Durations are drawn from the seed {seed} (`--seed`).
"""


def all_found(world):
    watched = [(key, watch_scene) for key in world.chosen(SCENE_KEYS)]
    for key in world.chosen(SERVERS):
        if world.has(*SERVERS[key].tools):
            watched.append((key, watch_server))
        else:
            programs.progress(f"  {key}: skipped, as it is not installed")
    for key, function in watched:
        for load in runs.loads_of(world):
            programs.progress(f"  {key}, {load}")
            try:
                yield world.resumed(f"switches.{key}.{load}", lambda: function(world, key, load))
            except watchers.Failed as error:
                programs.progress(f"  {key}, {load}: {error}")


def report(world):
    if not world.has("perf"):
        return "perf is not installed.\n"
    with two_cpus():
        found = list(all_found(world))
    agreement = tables.table(
        ["target", "machine", "switches/s", "each call", "ticks", "agree, % (sd)", "by the waker, %",
         "same, %", "other, %", "lost, %", "taken for asleep, %", "true looks, %", "later, median",
         "90 %"],
        map(agreement_row, found))
    places = tables.table(
        ["target", "machine", "asleep in", "record, %", "by account, %", "shown, %", "error, points",
         "expected sd"], [row for one in found for row in places_rows(one)])
    lossy = "".join(f"\nperf lost records of {one['name']}, {one['load']}.\n"
                    for one in found if one["is_lossy"])
    return (f"{TEXT.format(rate=RATE_HZ, seed=world.seed)}\n{agreement}{lossy}\n"
            f"## Where threads wait\n\n{places}")

"""Whether a profile is accurate if a thread computes and waits for 10 us to some ms at a time.

The programs of bench/targets/truth keep account of their own time; for redis-server, perf is the
reference."""

import tables
import watchers
from parts.pause import two_cpus
from parts.truth import account, locks, runs, servers
from parts.truth.account import badness, deviation_of, error_of, verdict_of
from parts.truth.scenes import KINDS, SCENES

TITLE = "Whether a profile tells the truth, at the scale of 50 us"
TOOLS = ("perf", "offcputime", "redis-server", "redis-benchmark", "postgres", "pgbench")
LOCKS = "locks"

TEXT = """Programs that keep account of their own time to the nanosecond, cut where their functions
end (`bench/targets/truth`), are watched in each way for some seconds at 20, 99 and 999 Hz, on a
machine that is idle and on one whose CPUs are kept *busy* by two processes that compute. *Truth* is a
function's share by that account, in the same run; *shown* is its share in the profile, with what it
calls. The *expected sd* is the standard deviation that so many samples have by chance:
sqrt(p(1-p)/n), where n counts all ticks. Looks that come to nothing make it larger: by a tenth if
one in six does. *Each takes* is the mean by the clock from the end of the function before to its own.
perf sees what runs. offcputime sees each moment that does not, so there is no chance in it; but it
starts later than the account. *Worst error* is that of the function which is judged worst, with the
sd of its share in brackets. The sampler and the program share two CPUs, so the sampler's own work
disturbs what it sees, as it would elsewhere. Durations that are drawn come from the seed {seed}
(`--seed`).

Of locks, *each wait* is the mean of all, also of those that find the lock free, and the *truth* is how long their waiters slept for them, by the waiters' own clocks; *shown* is
what the mutex profile says of the owner. Both are seconds in a second.

Servers have no such account, so perf is the judge (`perf record -a` at 997 Hz, for the same minute).
Shown are the functions with the largest share of running time by perf, each without those that it
calls. Time in the kernel is of the function that called it. What perf has no name for, such as the
linker's stubs and static functions of stripped programs, is not shown.
"""


def run_name(run):
    return f"{run.way}, {run.rate_hz} Hz, {run.load}"


def scene_text(scene, rows, failures):
    header = ["share of", "by", "function", "each takes", "truth, %", "shown, %", "error, points",
              "expected sd", "verdict"]
    cells = [[KINDS[row.kind], run_name(row.run), row.label,
              tables.duration(row.each_s) if row.each_s else "-", tables.points(row.truth),
              tables.points(row.shown), tables.points(error_of(row), "{:+.2f}"),
              tables.points(deviation_of(row)) if row.samples else "-", verdict_of(row)]
             for row in sorted(rows, key=lambda row: scene.kinds.index(row.kind))]
    said = "".join(f"\n{failure}\n" for failure in failures)
    return f"## {scene.title}\n\n{tables.table(header, cells)}{said}"


def worst_text(rows):
    worst = max(rows, key=badness, default=None)
    return (f"{tables.points(error_of(worst), '{:+.2f}')} ({tables.points(deviation_of(worst))}), "
            f"{verdict_of(worst)}" if worst else "-")


def summary_text(found):
    """For each scene and load, the error of each way and rate that is the worst."""
    all_rows = [row for rows in found.values() for row in rows]
    ways = list(dict.fromkeys(row.run.way for row in all_rows))
    columns = sorted({row.run[:2] for row in all_rows},
                     key=lambda column: (ways.index(column[0]), column[1]))
    lines = []
    for key, rows in found.items():
        for kind in SCENES[key].kinds:
            for load in dict.fromkeys(row.run.load for row in rows):
                mine = [row for row in rows if row.kind == kind and row.run.load == load]
                if mine:
                    lines.append([f"{SCENES[key].title}: {KINDS[kind]}", load, *(
                        worst_text([row for row in mine if row.run[:2] == column])
                        for column in columns)])
    header = ["worst error, points", "machine", *(f"{way}, {rate} Hz" for way, rate in columns)]
    return tables.table(header, lines)


def report(world):
    with two_cpus():
        ways = watchers.own(world) + watchers.others(world)
        found, texts = {}, []
        for key in world.chosen(SCENES):
            found[key], failures = runs.watch_scene(world, key, ways)
            texts.append(scene_text(SCENES[key], found[key], failures))
        if world.chosen([LOCKS]):
            texts.append(locks.text(world))
        for key in world.chosen(servers.SERVERS):
            if world.has("perf", *servers.SERVERS[key].tools):
                rows, failures = servers.watch_server(world, key, ways)
                texts.append(scene_text(servers.scene_of(key), rows, failures))
    summary = summary_text(found) + "\n" if found else ""
    return TEXT.format(seed=world.seed) + "\n" + summary + "\n".join(texts)

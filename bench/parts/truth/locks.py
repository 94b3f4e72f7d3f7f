"""Whether `--kind mutex` credits each owner of a lock with the time that it made others wait, by the waiters'
own clocks (bench/targets/truth/contended.c)."""

import collections
import time

import programs
import tables
from parts import owners
from parts.truth import account
from parts.truth.runs import SETTLE_S, load, loads_of
from parts.truth.scenes import DEFAULT_RATE_HZ, LOW_RATE_HZ, RATE_HZ

SECONDS = {LOW_RATE_HZ: 15, DEFAULT_RATE_HZ: 30, RATE_HZ: 6}
# Those that compute share two CPUs, which each needs half of the time.
LOCKS = {"computes": 2, "sleeps": 4}
# A row for each owner. Seconds are per second of the run.
Credit = collections.namedtuple("Credit", "mode load rate_hz owner wait_s truth shown samples")


def credits_of(world, mode, load_name, rate_hz):
    seconds, recording = world.pick(SECONDS[rate_hz], 1), world.path("locks.fgprof")
    with load(world, load_name), \
            world.target("truth-contended", mode, LOCKS[mode], world.seed) as target:
        time.sleep(SETTLE_S)
        before = target.mark()
        usage = world.run(world.fgprof, "attach", "-p", target.pid, "-F", rate_hz, "-d",
                          f"{seconds}s", "-o", recording, timeout_s=seconds + 60)
        after = target.mark()
    account.check(before, after)
    elapsed_s = programs.summary_of(usage).elapsed_s
    credited = collections.Counter()
    for ns, labels, _ in owners.converted(world, recording, "--kind=mutex"):
        credited[labels.get("thread")] += ns
    rows = []
    for number, waiter in enumerate(after["threads"]):
        spent = account.spent_in(before, after, [waiter["thread"]])["wait_for_lock"]
        truth = account.asleep_ns(spent) / (after["ns"] - before["ns"])
        shown = credited[f"owner-{number}"] / 1e9 / elapsed_s
        rows.append(Credit(mode, load_name, rate_hz, number,
                           account.asleep_ns(spent) / max(1, spent["calls"]) / 1e9, truth, shown,
                           elapsed_s * rate_hz))
    return rows


def deviation_of(row):
    """The deviation by chance of the share of one thread's ticks that find it waiting."""
    return (row.truth * (1 - row.truth) / row.samples) ** 0.5


def text(world):
    rows = []
    for mode in LOCKS:
        for load_name in loads_of(world):
            for rate_hz in SECONDS:
                programs.progress(f"  locks: {mode}, {rate_hz} Hz, {load_name}")
                rows += [Credit(*values) for values in world.resumed(
                    f"locks.{mode}.{rate_hz}.{load_name}",
                    lambda: credits_of(world, mode, load_name, rate_hz))]
    cells = [[f"{row.owner}, {row.mode}", row.load, row.rate_hz, tables.duration(row.wait_s),
              f"{row.truth:.3f}", f"{row.shown:.3f}", f"{100 * (row.shown / row.truth - 1):+.1f}",
              f"{100 * deviation_of(row) / row.truth:.1f}"]
             for row in rows if row.truth > 0]
    header = ["owner", "machine", "Hz", "each wait", "truth, s/s", "shown, s/s", "error, %",
              "expected sd, %"]
    return f"""## Locks that are held for 50 us to 5 ms: the credit of each owner

{tables.table(header, cells)}"""

"""The owners that are reported for what threads wait for, compared with a program that knows them, and the
cost of finding them."""

import collections
import json
import re
import subprocess
import time

import programs
import tables
from real_programs import Missing, Stage, mariadbd

TITLE = "Owners of what threads wait for"
TOOLS = ("gdb", "mariadbd")
WAITING = 1000

# Stops all threads again and again, and reads the owner of each mutex that a thread waits for from libc's own
# type.
GDB_LOOKS = r"""
import gdb, json, time
LOCKS = "pthread_mutex_lock", "__GI___pthread_mutex_lock", "___pthread_mutex_lock"

def frames():
    frame, found = gdb.newest_frame(), []
    while frame is not None and len(found) < 60:
        found.append(frame)
        frame = frame.older()
    return found

gdb.execute("set pagination off")
gdb.execute("set print thread-events off")
looks = []
for _ in range(%d):
    gdb.execute("attach %d", to_string=True)
    threads = {thread.ptid[1]: thread for thread in gdb.selected_inferior().threads()}
    for thread in threads.values():
        thread.switch()
        for frame in frames()[:8]:
            if frame.name() not in LOCKS:
                continue
            try:
                mutex = frame.read_var("mutex")
                owner, address = int(mutex["__data"]["__owner"]), int(mutex)
            except (gdb.error, ValueError):
                break
            symbol = gdb.execute("info symbol %%#x" %% address, to_string=True)
            names = []
            if owner in threads:
                threads[owner].switch()
                names = [frame.name() or "" for frame in frames()]
            looks.append([symbol, owner in threads, names])
            break
    gdb.execute("detach", to_string=True)
    time.sleep(0.02)
with open("%s", "w") as file:
    json.dump(looks, file)
"""


def rows_of(text):
    """[(nanoseconds, {label: value}, [function, ...])] of a contention profile as text; of one of time, samples."""
    rows = []
    for line in text.splitlines():
        begin = re.match(r"(\d+)(?: \d+)? @", line)
        labels = re.match(r"# labels: \{(.*)\}", line)
        frame = re.match(r"#\t0x[0-9a-f]+\t([^\t+]+)", line)
        if begin:
            rows.append((int(begin[1]), {}, []))
        elif labels:
            rows[-1][1].update(re.findall(r'"(\w+)":"([^"]*)"', labels[1]))
        elif frame:
            rows[-1][2].append(frame[1].strip())
    return rows


def converted(world, recording, *arguments):
    path = world.path("converted.txt")
    usage = world.run(world.fgprof, "convert", recording, "-f", "text", "-o", path, *arguments)
    if usage.status:
        raise RuntimeError(f"convert said {usage.stderr}")
    return rows_of(open(path).read())


def shares_of_owners(waits, kind):
    """The waiters' time in the lock, and how much of it is attributed to the thread that holds it, to the
    other waiter, which has it for a moment, to nobody known, and to anyone else."""
    times = collections.Counter()
    for ns, labels, _ in waits:
        if labels.get("thread") != "wait-" + kind or labels.get("wait") not in (
                "mutex", "read-write lock"):
            continue
        owner = labels.get("owner")
        times["right" if owner == "hold-" + kind else "other" if owner == "wait-" + kind else
              "unknown" if not owner else "wrong"] += ns
    return times


def shares_of_places(blamed, kind):
    """Of the time that is attributed to the holder, how much is shown where it holds the lock."""
    times = collections.Counter()
    for ns, labels, functions in blamed:
        if labels.get("thread") != "hold-" + kind:
            continue
        times["right" if "hold_inner" in functions or "hold_outer" in functions else
              "unknown" if "[not sampled then]" in functions else "wrong"] += ns
    return times


def part(times, which):
    return tables.percent(times[which] / sum(times.values())) if times else "-"


def accuracy(world, seconds):
    recording, rows = world.path("locks.fgprof"), []
    with world.target("locks") as target:
        before, begin_s = target.mark(), time.monotonic()
        usage = world.run(world.fgprof, "attach", "-p", target.pid, "-d", f"{seconds}s", "-o", recording,
                          timeout_s=seconds + 60)
        window_s = time.monotonic() - begin_s
        after = target.mark()
    summary = programs.summary_of(usage)
    waits, blamed = converted(world, recording, "--kind=block"), converted(world, recording, "--kind=mutex")
    for kind in before:
        # Both per second: the program was not watched for all of the window.
        true = (after[kind] - before[kind]) / 1e9 / window_s
        owners, places = shares_of_owners(waits, kind), shares_of_places(blamed, kind)
        shown = sum(owners.values()) / 1e9 / summary.elapsed_s
        rows.append([kind, f"{true:.3f}", f"{shown:.3f}", tables.percent(shown / true - 1),
                     *(part(owners, which) for which in ("right", "other", "unknown", "wrong")),
                     *(part(places, which) for which in ("right", "unknown", "wrong"))])
    return rows, summary


def shares_of_turns(world, mode, hold_us, rate_hz, seconds):
    """The largest difference, in points, between the part of a waiter's time for which the profile says an
    owner had the lock, and the same by the program's own clock; and the size of a difference by chance."""
    recording = world.path("turns.fgprof")
    usage = world.run(world.fgprof, "run", "-F", rate_hz, "-o", recording, "--", world.program("handover"),
                      seconds, hold_us, mode, timeout_s=seconds + 60, keeps_stdout=True)
    programs.summary_of(usage)
    truth, shown = collections.defaultdict(dict), collections.defaultdict(collections.Counter)
    for waiter, owner, us in re.findall(r"(\w+) (\w+) (\d+)\n", usage.stdout):
        truth[waiter][owner] = int(us) / 1e6
    for ns, labels, functions in converted(world, recording, "--kind=block"):
        if "wait_for_turn" in functions and labels.get("wait") == "mutex":
            shown[labels["thread"]][labels.get("owner")] += ns / 1e9
    worst, chance, unknown = 0, 0, 0
    for waiter, owners in truth.items():
        whole_s = sum(owners.values())
        for owner, true_s in owners.items():
            error = shown[waiter][owner] / sum(shown[waiter].values()) - true_s / whole_s
            if abs(error) >= abs(worst):
                part_of_it = true_s / whole_s
                worst, chance = error, (part_of_it * (1 - part_of_it) / (whole_s * rate_hz)) ** 0.5
        unknown = max(unknown, shown[waiter][None] / sum(shown[waiter].values()))
    return [mode, f"{hold_us} us", rate_hz, f"{100 * worst:+.1f}", f"{100 * chance:.1f}", tables.percent(unknown)]


def turns(world):
    rows = []
    for mode in ("sleeps", "computes"):
        for hold_us in (200, 1000, 5000):
            for rate_hz, seconds in world.pick(((20, 60), (99, 30), (499, 10)), ((99, 1),)):
                programs.progress(f"  a lock by turns: {mode}, {hold_us} us, {rate_hz} Hz")
                rows.append(shares_of_turns(world, mode, hold_us, rate_hz, seconds))
    return tables.table(["the owner", "shortest hold", "Hz", "largest error, points", "expected sd", "not known"],
                        rows)


def cost(world, seconds, times):
    used = {"condition": [], "mutex": []}
    for _ in range(times):
        for mode, values in used.items():
            programs.progress(f"  {WAITING} threads: {mode}")
            with world.target("locks", WAITING, mode) as target:
                sampler = world.attach(target.pid, "-d", f"{seconds}s")
                time.sleep(0.2 * seconds)
                begin_s, begin_cpu_s = time.monotonic(), programs.cpu_s(sampler.pid)
                time.sleep(0.7 * seconds)
                values.append((programs.cpu_s(sampler.pid) - begin_cpu_s) / (time.monotonic() - begin_s))
                programs.summary_of(sampler.wait(120))
    return [[mode, tables.spread(values, tables.percent)] for mode, values in used.items()]


def variable(symbol):
    """Converts gdb's "LOCK_commit_ordered in section .bss of /usr/sbin/mariadbd" to a resource's name:
    "mysql_bin_log + 16" becomes "mysql_bin_log+0x10"."""
    found = re.match(r"(\S+)(?: \+ (\d+))? in section", symbol)
    if not found:
        return "no variable"
    return found[1] + (f"+{int(found[2]):#x}" if found[2] else "")


def as_gdb_reads(stage, pid, looks):
    script = stage.write("looks.py", GDB_LOOKS % (looks, pid, stage.path("looks.json")))
    subprocess.run(["gdb", "-nx", "-batch", "-ex", f"source {script}"], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600, check=True)
    return json.load(open(stage.path("looks.json")))


def beside_gdb(world, seconds, looks):
    """Shares of waits for mutexes of mariadbd by lock, and for how many the owner is known; and, for the lock
    with the most waits, how many owners are in fdatasync."""
    stage = Stage()
    try:
        pid, = mariadbd(stage, "--log-bin=bin", "--sync-binlog=1", clients=16)
        recording = stage.path("mariadbd.fgprof")
        time.sleep(2)
        usage = world.run(world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s", "-o", recording,
                          timeout_s=seconds + 120)
        programs.summary_of(usage)
        waits = [row for row in converted(world, recording, "--kind=block")
                 if row[1].get("wait") == "mutex"]
        blamed = converted(world, recording, "--kind=mutex")
        by_gdb = as_gdb_reads(stage, pid, looks)
    finally:
        stage.close()
    ours, gdbs, known = collections.Counter(), collections.Counter(), collections.Counter()
    for ns, labels, _ in waits:
        name = labels["resource"].removeprefix("mutex ")
        name = "no variable" if name.startswith("0x") or re.match(r"\S+\+0x", name) and \
            name.startswith("mariadbd+") else name
        ours[name] += ns
        known[name] += ns if labels.get("owner") else 0
    gdb_known = collections.Counter()
    for symbol, has_owner, _ in by_gdb:
        gdbs[variable(symbol)] += 1
        gdb_known[variable(symbol)] += has_owner
    rows = [[name, tables.percent(ours[name] / sum(ours.values())),
             tables.percent(gdbs[name] / max(1, len(by_gdb))),
             tables.percent(known[name] / ours[name]) if ours[name] else "-",
             tables.percent(gdb_known[name] / gdbs[name]) if gdbs[name] else "-"]
            for name, _ in (ours + gdbs).most_common() if ours[name] or gdbs[name]]
    in_sync = [sum(ns for ns, _, names in blamed if any("fdatasync" in name for name in names)) /
               max(1, sum(ns for ns, _, _ in blamed)),
               sum(any("fdatasync" in name for name in names) for _, is_known, names in by_gdb if is_known) /
               max(1, sum(is_known for _, is_known, _ in by_gdb))]
    return rows, in_sync, len(by_gdb), looks


def report(world):
    seconds, cost_s, times = world.pick((30, 10, 3), (2, 1, 1))
    programs.progress(f"  locks of each kind for {seconds} s")
    rows, summary = accuracy(world, seconds)
    programs.progress("  mariadbd beside gdb")
    try:
        shares, in_sync, waits, looks = beside_gdb(world, *world.pick((20, 600), (3, 20)))
        judged = f"""mariadbd with a binary log and 16 clients that write: the share of each lock in the waits for
mutexes, in a profile and in {waits} waits that gdb found in {looks} stops of the whole process, and for how
many of its waits the owner is known. Owners were in fdatasync for {tables.percent(in_sync[0])} of their
waiters' time, and by gdb for {tables.percent(in_sync[1])} of the waits.

{tables.table(["lock", "waits", "by gdb", "owner known", "by gdb"], shares)}"""
    except Missing as missing:
        judged = f"{missing} is not installed: not judged by gdb.\n"
    return f"""Locks of each kind, which one thread holds for 200 us to 50 ms by turns while two wait; 99 Hz for
{seconds} s, {summary.late} of {summary.planned} ticks late. *Waited* is by the program's own clock, with the time in
which a woken waiter had no CPU yet; *shown* is the delay in the profile. *Owner*: the one that holds it, the other
waiter (which has it for a moment), not known, or any other. *Place*, of the holder's time: in the
function that holds the lock, `[not sampled then]`, or elsewhere.

{tables.table(["lock", "waited, s/s", "shown, s/s", "difference", "owner: holder", "waiter",
               "not known", "other", "place: right", "not known", "wrong"], rows)}
A lock that three threads have by turns, one for so long, and the others for twice and three times as long: a wait
mostly spans the turns of two others. Which of them had the lock, as part of a waiter's time, and by the program's own
clock: the largest of six differences, what it is expected to be by chance, and for how much nobody is known.

{turns(world)}
The sampler's CPU, of one, while {WAITING} threads wait for one mutex, and while they wait in one condition
variable, by turns: the median of {times} and the middle half.

{tables.table(["waiting for", "CPU"], cost(world, cost_s, times))}
{judged}"""

"""What ended waits: compared with offwaketime and with the owners of locks, and the cost of recording it."""

import collections
import contextlib
import os
import re
import statistics
import time

import programs
import tables
from parts import pause
from parts.owners import converted

TITLE = "Who ended waits"
TOOLS = ("bpftrace",)

# What bcc's offwaketime does, which needs the kernel's headers: each wait of a process, by who ended it, with
# the stacks of both. Here a wait's time ends at the wakeup, and not when the thread has a CPU again.
OFFWAKETIME = """
tracepoint:sched:sched_switch /pid == $1 && args->prev_state != 0/ {
  @off[args->prev_pid] = nsecs; @kernel[args->prev_pid] = kstack; @user[args->prev_pid] = ustack;
}
tracepoint:sched:sched_waking /@off[args->pid]/ {
  @stacks[@kernel[args->pid], @user[args->pid], kstack, ustack, args->comm, comm] = sum(nsecs - @off[args->pid]);
  @ns[args->comm, comm] = sum(nsecs - @off[args->pid]);
  delete(@off[args->pid]); delete(@kernel[args->pid]); delete(@user[args->pid]);
}
interval:s:$2 { exit(); }
END { clear(@off); clear(@kernel); clear(@user); clear(@stacks); }
"""
PRINTED = re.compile(r"@ns\[(.+), (.+)\]: (\d+)")
HOLDERS_HZ = 499
KINDS = ("cond", "sem", "event", "futex", "pipe", "tcp", "pool", "signal", "nobody")


def start_offwaketime(world, pid, seconds):
    return programs.Measured(world, "bpftrace", "-e", OFFWAKETIME, pid, seconds, keeps_stdout=True)


def await_programs(tool):
    """Waits until the tool has loaded its three BPF programs."""
    deadline_s, loaded = time.monotonic() + 30, 0
    while loaded < 3 and time.monotonic() < deadline_s:
        time.sleep(0.1)
        loaded = 0
        for fd in os.listdir(f"/proc/{tool.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                loaded += os.readlink(f"/proc/{tool.pid}/fd/{fd}") == "anon_inode:bpf-prog"


def by_offwaketime(text):
    """{waiter: {waker: seconds}}"""
    waits = collections.defaultdict(collections.Counter)
    for waiter, waker, ns in PRINTED.findall(text):
        waits[waiter][waker] += int(ns) / 1e9
    return waits


def by_profile(rows):
    """The same in samples; None is an unknown waker."""
    waits = collections.defaultdict(collections.Counter)
    for samples, labels, _ in rows:
        if labels.get("state") == "sleeping":
            waits[labels["thread"]][labels.get("waker")] += samples
    return waits


def measured(stdout):
    """The same as the program measured it: {waiter: {waker: seconds}}"""
    waits = collections.defaultdict(collections.Counter)
    for waiter, waker, us in re.findall(r"(\w+) ([\w-]+) (\d+)\n", stdout):
        waits[waiter][waker] += int(us) / 1e6
    return waits


def largest_error(shown, true):
    """The error in points of the shares of known wakers."""
    whole, true_whole = sum(shown.values()), sum(true.values())
    if not whole or not true_whole:
        return "-"
    return f"{max((100 * (shown[name] / whole - s / true_whole) for name, s in true.items()), key=abs):+.1f}"


def alike(one, other):
    """The part of two sets of shares that agrees."""
    whole, other_whole = sum(one.values()), sum(other.values())
    return sum(min(one[name] / whole, other[name] / other_whole) for name in one) if whole and other_whole else 0


def most_of(wakers):
    return ", ".join(f"{waker} {100 * s / sum(wakers.values()):.0f}" for waker, s in wakers.most_common(3))


def beside(world, seconds):
    """Both observe one run of a program whose threads wait in eight ways, each for three others."""
    recording, rows = world.path("wakes.fgprof"), []
    target = programs.Measured(world, world.program("wakes"), seconds + 8, keeps_stdout=True)
    time.sleep(1)
    offwaketime = start_offwaketime(world, target.pid, seconds)
    await_programs(offwaketime)
    usage = world.run(world.fgprof, "attach", "-p", target.pid, "--capture=record", "-d", f"{seconds}s", "-o",
                      recording, timeout_s=seconds + 60)
    summary = programs.summary_of(usage)
    theirs = by_offwaketime(offwaketime.wait(seconds + 60).stdout)
    ours = by_profile(converted(world, recording))
    true = measured(target.wait(seconds + 60).stdout)
    for kind in KINDS:
        known = collections.Counter({waker: s for waker, s in ours[kind].items() if waker})
        whole = sum(ours[kind].values())
        rows.append([kind, most_of(theirs[kind]), most_of(known),
                     tables.percent(sum(known.values()) / whole) if whole else "-",
                     tables.percent(alike(known, theirs[kind])), largest_error(known, true[kind]),
                     largest_error(theirs[kind], true[kind])])
    return rows, summary


def holders(world, seconds):
    """For what share of the waits for a lock whose owner and waker are both known these are the same
    thread."""
    rows = []
    for name, arguments in ("handover", (seconds, 1000, "sleeps")), ("handover", (seconds, 1000, "computes")), \
            ("holders", (seconds,)):
        path = world.path("holders.fgprof")
        usage = world.run(world.fgprof, "run", "-F", HOLDERS_HZ, "--capture=record", "--threads=tid", "-o", path, "--",
                          world.program(name), *arguments, timeout_s=seconds + 60)
        programs.summary_of(usage)
        locks = collections.defaultdict(collections.Counter)
        for samples, labels, _ in converted(world, path):
            if labels.get("wait") == "mutex" and labels.get("state") == "sleeping":
                owner, waker = labels.get("owner"), labels.get("waker")
                locks[labels["resource"]]["single" if not owner or not waker else owner == waker] += samples
        for lock, parts in sorted(locks.items()):
            whole = sum(parts.values())
            rows.append([" ".join(map(str, (name, *arguments[1:], "-", lock))), f"{whole / HOLDERS_HZ:.1f} s",
                         *(tables.percent(parts[which] / whole) for which in (True, False, "single"))])
    return rows


def trips_lost(world, rounds, seconds):
    """How long a round trip of two threads takes, and what each tool adds to it."""
    def trip_s(target):
        first = target.mark()
        time.sleep(seconds)
        last = target.mark()
        return (last["ns"] - first["ns"]) / 1e9 / (last["trips"] - first["trips"])

    added = {"fgprof-c, with the record": [], "offwaketime": []}
    with pause.two_cpus(), world.target("pingpong") as target:
        before = [trip_s(target)]
        for number in range(rounds):
            programs.progress(f"  round trips, round {number + 1} of {rounds}")
            for tool, values in added.items():
                if tool == "offwaketime":
                    if not world.has("bpftrace"):
                        continue
                    watcher = start_offwaketime(world, target.pid, round(seconds + 5))
                    await_programs(watcher)
                else:
                    watcher = world.attach(target.pid, "--capture=record", "-d", f"{round(seconds + 5)}s")
                time.sleep(1.5)
                during = trip_s(target)
                failed = watcher.wait(90).status
                before.append(trip_s(target))
                if not failed:
                    values.append(during - statistics.mean(before[-2:]))
    return statistics.median(before), [[tool, tables.spread(values, lambda s: f"{s * 1e6:+.1f} us")]
                                       for tool, values in added.items() if values]


def report(world):
    seconds, rounds, trip_seconds = world.pick((30, 7, 2), (3, 1, 0.5))
    if world.has("bpftrace"):
        programs.progress(f"  wakes beside offwaketime, {seconds} s")
        rows, summary = beside(world, seconds)
        judged = f"""Threads that wait in eight ways, each for three others that end its waits by turns, and one that nobody
wakes: who ended their waits, in % of the time whose waker is known, by offwaketime and by a profile of the same
{seconds} s (99 Hz, {summary.late} of {summary.planned} ticks late), for how much the profile knows one, and how much of
the shares agrees. *Error* is the largest difference of a waker's share from the program's own clock, in points, of the
profile and of offwaketime. By chance, two thousand samples of three wakers differ by 1 to 2. offwaketime names the
thread that ran when a timer came.

{tables.table(["waits for", "by offwaketime, %", "shown, %", "known", "agrees", "error", "its error"], rows)}"""
    else:
        judged = "bpftrace is not installed: not judged by offwaketime.\n"
    programs.progress("  owners and wakers of locks")
    same = holders(world, seconds)
    programs.progress("  round trips")
    trip, added = trips_lost(world, rounds, trip_seconds)
    return f"""{judged}
Waits for mutexes, at {HOLDERS_HZ} Hz: for how much of their time the owner that the lock's memory names is the thread that ended
the wait, is another one (that had the lock at the tick and gave it to a third), or one of both is not known.

{tables.table(["program and lock", "waits", "the same", "another", "not known"], same)}
Two threads wake each other over a socket; a round trip takes {trip * 1e6:.1f} us, and so much longer beside each tool,
by turns: the median of {rounds} rounds and the middle half.

{tables.table(["", "more"], added)}"""

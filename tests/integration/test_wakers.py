"""Who ended waits that nobody is known to have been able to end before, as the waiting program measured it."""

import collections
import json
import re
import time

from harness import alone, folded, has, users_build, wait_until_sampling
from servers import postgres_with_a_lock
from test_capture import need_record
from test_waits import converted, labels_of

RATE_HZ = 499
SECONDS = 6
KINDS = ("cond", "sem", "event", "futex", "pipe", "tcp", "pool", "signal")


def measured(stdout):
    """{waiter: {waker: seconds}}"""
    found = collections.defaultdict(dict)
    for waiter, waker, us in re.findall(r"(\w+) ([\w-]+) (\d+)", stdout):
        found[waiter][waker] = int(us) / 1e6
    return found


def seen(text):
    """{waiter: {waker: samples}}, and {(waiter, waker): {stack: samples}}; None: not known."""
    found, stacks = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for count, labels, _ in labels_of(text):
        if labels["state"] == "sleeping":
            waiter, waker = labels["thread"], labels.get("waker")
            found[waiter][waker] += count
            stacks[waiter, waker][labels.get("waker_stack", "")] += count
    return found, stacks


def recorded(world, *options):
    path = world.path("wakes.fgprof")
    done = world.fgprof("run", "-F", RATE_HZ, "--capture=record", "-o", path, *options, "--",
                        world.fixture("wakes"), SECONDS)
    assert done.returncode == 0, done.stderr
    return path, done


@alone
@users_build
def test_every_way_to_wake(world):
    need_record(world)
    path, done = recorded(world)
    text = converted(world, path, "-f", "text")
    awake = [labels for _, labels, _ in labels_of(text) if "waker" in labels and labels["state"] != "sleeping"]
    assert not awake, awake
    # What moved to a sample with its waker is shown there in the order of time, too.
    order = json.loads(world.fgprof("convert", path, "-f", "speedscope").stdout)
    assert all(stack for profile in order["profiles"] for stack in profile["samples"])
    found, stacks = seen(text)
    truth = measured(done.stdout)
    for kind in KINDS:
        wakers, own = found[kind], {f"{kind}-{i}" for i in range(3)}
        known = sum(count for waker, count in wakers.items() if waker)
        right = sum(count for waker, count in wakers.items() if waker in own)
        assert right >= 0.99 * known, (kind, wakers)
        assert known >= 0.97 * sum(wakers.values()), (kind, wakers)
        whole = sum(truth[kind].values())
        for waker in own:
            # By chance, shares of some 2,500 samples differ by 1 point; more on a busy machine.
            assert abs(wakers[waker] / known - truth[kind][waker] / whole) <= 0.06, (kind, waker, wakers, truth[kind])
            made = stacks[kind, waker]
            in_place = sum(count for stack, count in made.items() if "end_wait > wake_" in stack)
            assert in_place >= 0.95 * sum(made.values()), (waker, made)
    timers = found["nobody"]
    # The thread that makes it may still wake it while it begins.
    others = sum(count for waker, count in timers.items() if waker not in ("timer", None))
    assert others <= 0.003 * sum(timers.values()), timers
    assert timers["timer"] >= 0.97 * sum(timers.values()), timers


def test_holders_let_waiters_go(world):
    """The thread that holds a mutex ends the wait of the only one that waits for it."""
    need_record(world)
    path = world.path("holders.txt")
    done = world.fgprof("run", "-F", RATE_HZ, "--capture=record", "-f", "text", "-o", path, "--",
                        world.fixture("holders"), 4)
    assert done.returncode == 0, done.stderr
    found = collections.Counter()
    for count, labels, _ in labels_of(open(path).read()):
        if labels.get("resource") == "mutex g_second" and "owner" in labels and "waker" in labels:
            found[labels["owner"] == labels["waker"]] += count
    assert found[True] >= 0.97 * sum(found.values()) > 300, found


@alone
@users_build
def test_blame_and_report(world):
    need_record(world)
    path, done = recorded(world)
    truth = measured(done.stdout)
    blamed = folded(converted(world, path, "--blame"))
    for kind in ("cond", "event", "pipe", "signal"):
        for waker, waited in truth[kind].items():
            charged = sum(count for stack, count in blamed.items()
                          if stack[0] == waker and has(stack, "end_wait", kind, "wait_always"))
            assert 0.8 * waited * RATE_HZ <= charged <= 1.2 * waited * RATE_HZ, (kind, waker, charged, waited)
    report = converted(world, path, "-f", "report")
    woken = report[report.index("Woken by: "):]
    assert re.search(r', by thread "[a-z]+-[012]"\n     it was in: .*wake_in_turn > end_wait', woken), report


def test_without_record_nothing_is_said(world):
    path = world.path("wakes.txt")
    done = world.fgprof("run", "--capture=ptrace", "-f", "text", "-o", path, "--", world.fixture("wakes"), 1)
    assert done.returncode == 0, done.stderr
    found, _ = seen(open(path).read())
    assert {waker for wakers in found.values() for waker in wakers} == {None}, found


def test_waker_outside(world):
    """A thread of a process that is not sampled is named, and not blamed."""
    need_record(world)
    path = world.path("outside.fgprof")
    program = ("import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n os.close(r)\n"
               " for _ in range(40):\n  time.sleep(0.05)\n  os.write(w, b'x')\n os._exit(0)\n"
               "os.close(w)\nwhile os.read(r, 1):\n pass\n")
    done = world.fgprof("run", "--capture=record", "-o", path, "--", "python3", "-c", program)
    assert done.returncode == 0, done.stderr
    wakers = collections.Counter()
    for count, labels, _ in labels_of(converted(world, path, "-f", "text")):
        if labels.get("wait") == "pipe" and labels["thread"].startswith("python"):
            wakers[re.sub(r"\d+", "N", labels.get("waker", ""))] += count
    assert wakers["pythonN/N"] >= 0.9 * sum(wakers.values()), wakers
    assert not folded(converted(world, path, "--blame")), wakers


def test_row_lock_of_postgres(world):
    """No word in memory names the session that has the lock; the kernel knows who wakes the other one."""
    need_record(world)
    path = world.path("postgres.txt")
    with postgres_with_a_lock(world) as (_, unlock, holder, waiter):
        sampler = world.start("attach", "-p", f"{holder},{waiter}", "-d", "4s", "--capture=record", "-f", "text",
                              "-o", path)
        wait_until_sampling(sampler)
        time.sleep(1.5)
        unlock()
        assert sampler.wait() == 0
    wakers = collections.Counter()
    for count, labels, stack in labels_of(open(path).read()):
        if labels.get("pid") == str(waiter) and any("ProcSleep" in function for function in stack):
            wakers[labels.get("waker"), labels.get("waker_stack", "").split(" > ")[-1]] += count
    by_holder = sum(count for (waker, _), count in wakers.items() if waker == "postgres")
    # It looks for a deadlock once it has waited for a second.
    by_timer = sum(count for (waker, _), count in wakers.items() if waker == "timer")
    assert by_holder >= 40 and by_holder + by_timer >= 0.9 * sum(wakers.values()), wakers

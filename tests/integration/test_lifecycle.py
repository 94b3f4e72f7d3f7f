"""The target comes first: whatever happens to it or to the profiler, it runs on unharmed."""

import contextlib
import os
import re
import signal
import subprocess
import time

from harness import (RATE, alone, by_root, context_switches, folded, has, need, pauses,
                     status_field, thread_named, ticks_planned, wait_for, wait_until_asleep, wait_until_sampled,
                     wait_until_sampling)


def test_target_exits(world):
    with world.running("renamed", 60, stdin=subprocess.PIPE) as target:
        sampler = world.start("attach", "-p", target.pid, "-d", "60s")
        wait_until_sampling(sampler)
        wait_until_sampled(target.pid, "apple")
        target.stdin.close()
        stdout, stderr = sampler.communicate(timeout=30)
    assert sampler.returncode == 0, stderr
    assert any("in_apple" in stack for stack in folded(stdout))


def test_target_executes_another_program(world):
    with world.running("states", 4, world.fixture("deep"), 2, 40) as target:
        done = world.attach(target, "-t", duration="60s")
    stacks = folded(done.stdout)
    assert any(has(stack, "spinning", "in_spin") for stack in stacks), stacks
    after = {stack: count for stack, count in stacks.items() if stack.count("recurse") == 41}
    # Named by what it is now, and by the files of its new program.
    assert sum(count for stack, count in after.items() if stack[0] == "fixture-deep") > RATE, stacks
    strange = [stack for stack in stacks for frame in stack if re.match(r"\[(fix|unk)", frame)]
    assert not strange, strange


def test_programs_that_have_just_begun(world):
    """Each program maps its libraries while it is sampled: an address is looked up in its maps of that time,
    and not in those of when the program was first seen."""
    # They live long enough that none has gone when its maps are read.
    eight = f"{world.fixture('deep')} 0.1 40 & " * 8
    script = f"i=0; while [ $i -lt 40 ]; do {eight} wait; i=$((i+1)); done"
    done = world.fgprof("run", "--children", "-F", 1000, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert any(stack.count("recurse") == 41 for stack in stacks), stacks
    # A thread that waits for a CPU within execve(2) has a place of the program before.
    unknown = sum(count for stack, count in stacks.items() if "[unknown]" in stack)
    assert unknown < sum(stacks.values()) / 100, (unknown, stacks)


def test_target_is_killed(world):
    with world.running("states", 60) as target:
        sampler = world.start("attach", "-p", target.pid, "-d", "60s")
        wait_until_sampling(sampler)
        wait_until_sampled(target.pid, "spinning")
        target.kill()
        stdout, stderr = sampler.communicate(timeout=30)
    assert sampler.returncode == 0, stderr
    assert any("in_spin" in stack for stack in folded(stdout))


def test_signals_arrive_once_each(world):
    with world.running("signals", 3) as target:
        done = world.fgprof("attach", "-F", 500, "-p", target.pid)
        counts = re.fullmatch(r"(\d+) of (\d+)\n", target.stdout.readline())
    assert done.returncode == 0, done.stderr
    assert counts[1] == counts[2] and int(counts[2]) > 1000, counts[0]


def test_stopped_target_stays_stopped(world):
    with world.running("states", 60) as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_for(lambda: status_field(target.pid, "State").startswith("T"), "the stop")
        done = world.attach(target, "-t", duration="1s")
        counts, planned = by_root(folded(done.stdout)), ticks_planned(done.stderr)
        assert status_field(target.pid, "State").startswith("T")
        assert len(counts) == 5 and all(
            abs(c - planned) <= 1 for c in counts.values()), (counts, planned)
        os.kill(target.pid, signal.SIGCONT)
        wait_for(lambda: not status_field(target.pid, "State").startswith("T"), "SIGCONT")


@alone
def test_uninterruptible_thread(world):
    with world.running("vfork", 6) as target:
        wait_for(lambda: status_field(target.pid, "State").startswith("D"), "the vfork")
        beside = thread_named(target.pid, "beside")
        wait_for(lambda: status_field(beside, "State").startswith("S"), "the thread beside it")
        done = world.attach(target, "-t", duration="2s")
        assert status_field(target.pid, "State").startswith("D")
        assert status_field(target.pid, "TracerPid") == "0"
        stacks = folded(done.stdout)
        counts = by_root(stacks)
        assert target.wait(timeout=20) == 0
    assert set(counts) == {"fixture-vfork", "beside"}, counts
    planned = ticks_planned(done.stderr)
    assert all(abs(count - planned) <= 1 for count in counts.values()), (counts, planned)
    for stack in stacks:
        assert stack[0] == "beside" or has(stack, "main", "vfork"), stack
    # It holds up nothing: if all ticks waited for it, hardly any would be on time.
    assert pauses(done.stderr) == 0, done.stderr
    assert int(re.search(r"(\d+) late", done.stderr)[1]) < 0.75 * planned, done.stderr


# For a socket's timeout of half a minute: the coarsest step of the kernel's timers there, whatever HZ is (the
# table in its kernel/time/timer.c), and a second.
LATE_MS_MAX = 4096 + 1000

SLEEPERS = ["O0-omit", "O0-no-omit", "O2-omit", "O2-no-omit"]


def check_outcomes(lines, seconds):
    """What the sleepers reported at their end: no EINTR, no early return, no late timeout."""
    assert len(lines) == 4 * 7, lines
    # io_uring may not be permitted on this machine.
    outcomes = [line.split() for line in lines if not re.match("io_uring_enter 0 ", line)]
    # A machine that stalls at the end makes them all late.
    least_late_ms = min(int(outcome[3]) for outcome in outcomes)
    assert -50 < least_late_ms < 1000 * seconds / 2, lines
    for line in outcomes:
        call, result, error, late_ms = line
        # At its timeout epoll_wait and io_getevents give 0 events, the others an error.
        assert result == ("0" if call in ("epoll_wait", "io_getevents") else "-1"), line
        assert error in ("0", "EAGAIN", "ETIME"), line
        assert int(late_ms) < least_late_ms + LATE_MS_MAX, (line, lines)


def test_sleepers_are_never_woken(world):
    """No EINTR, no early return, no late timeout, and not one context switch."""
    seconds = 10 if world.is_sanitized else 30
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(world.running("sleepers-" + name, seconds + 5))
                   for name in SLEEPERS]
        pids = [target.pid for target in targets]
        wait_until_asleep(*pids)
        before = [context_switches(pid) for pid in pids]
        # Well before any of them wakes, however long it took to get here.
        spent = time.monotonic() - begin
        duration = min(seconds, seconds + 3 - spent)
        if spent > 2:
            duration /= 2  # the profiler is slow to start, too
        assert duration > 2, "the machine is too slow"
        done = world.fgprof("attach", "-p", ",".join(map(str, pids)), "-d", f"{duration:.1f}s",
                            "--threads=tid")
        after = [context_switches(pid) for pid in pids]
        lines = [line for target in targets for line in target.stdout.read().splitlines()]
        assert [target.wait(timeout=20) for target in targets] == [0] * 4
    assert done.returncode == 0 and after == before, (before, after)
    assert sum(map(len, before)) == 4 * 8, before
    assert "no thread was found running" in done.stderr, done.stderr
    check_outcomes(lines, seconds)
    stacks = folded(done.stdout)
    planned = ticks_planned(done.stderr)
    for root, count in by_root(stacks).items():
        assert abs(count - planned) <= 1, (root, count, planned)
    # This includes threads whose frame pointer is not visible and had to be found. On aarch64 semtimedop and
    # syscall keep their return address in a register, which is not visible either.
    cut = [stack for stack in stacks if any("[truncated" in frame for frame in stack)]
    for stack in set(stacks) - set(cut):
        assert has(stack, "start_thread", "run", "in_") or has(stack, "_start", "main"), stack
    if os.uname().machine == "aarch64":
        assert all(has(stack, "frame pointer not known", "semtimedop")
                   or has(stack, "frame pointer not known", "syscall") for stack in cut), cut
    else:
        assert not cut and " 0.00 % cut" in done.stderr, (cut, done.stderr)


def test_nothing_of_the_profiler_is_left_in_the_target(world):
    with world.running("states", 30) as target:
        before = os.listdir(f"/proc/{target.pid}/fd")
        world.attach(target, duration="300ms")
        assert os.listdir(f"/proc/{target.pid}/fd") == before
        assert status_field(target.pid, "TracerPid") == "0"
        # Another tracer finds it free.
        need("gdb")
        done = subprocess.run(["gdb", "-batch", "-nx", "-p", str(target.pid), "-ex", "bt 1"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        assert "#0" in done.stdout, done.stdout

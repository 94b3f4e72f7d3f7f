"""Targets that do what no program should do: the profile is complete, the target lives, and our memory stays
within a ratio of that for a normal target."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import time

from harness import HANGS_S, Skip, folded, has, late_share, need, ready, status, ticks_planned, users_build, wait_for_ticks
from test_go import build, minor_version
from test_goroutines import DEBIANS

# Mappings; the kernel's default limit is 65530.
MANY = 30000
# Measured: 1.2 for so many mappings, 1.0 for the names.
MEMORY_RATIO = 2


def attach(world, target, *arguments, duration="2s"):
    """Returns the stacks, the summary and the maximum of the profiler's memory that was seen, in KiB."""
    sampler, most = world.start("attach", "-p", target.pid, "-d", duration, *arguments), 0
    while sampler.poll() is None:
        # A process that has just ended has no memory.
        most = max(most, int(status(sampler.pid).get("VmHWM", "0 kB").split()[0]))
        time.sleep(0.01)
    stdout, stderr = sampler.communicate()
    assert sampler.returncode == 0, stderr
    return folded(stdout), stderr, most


def check_samples(stacks, stderr, *names):
    """Threads in these functions have a sample for each tick that was not late."""
    for name in names:
        found = sum(count for stack, count in stacks.items() if has(stack, name))
        assert found >= (1 - late_share(stderr)) * ticks_planned(stderr) - 3, (name, found, stderr)


@users_build
def test_tens_of_thousands_of_mappings_of_a_sparse_file(world):
    most = []
    for count in 0, MANY:
        with world.running("many_maps", HANGS_S, count) as target:
            stacks, stderr, kib = attach(world, target)
            assert target.poll() is None
        check_samples(stacks, stderr, "in_spin", "sleep_until")
        most.append(kib)
    assert most[1] < MEMORY_RATIO * most[0], most


@users_build
def test_a_name_that_changes_all_the_time_and_a_robust_list_into_nowhere(world):
    most = []
    for name in "many_maps", "restless":
        with world.running(name, HANGS_S, 0) as target:
            stacks, stderr, kib = attach(world, target)
            assert target.poll() is None
        most.append(kib)
    check_samples(stacks, stderr, "in_rename", "sleep_until")
    assert most[1] < MEMORY_RATIO * most[0], most


LOST = "sleep_at", "spin_at"


@contextlib.contextmanager
def stuck(world, *arguments):
    """A target with memory that is never provided: any reader of it waits for ever."""
    command = [world.fixture("stuck"), "0.1", *arguments]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 77:
        raise Skip("no such memory is permitted")
    with world.running("stuck", HANGS_S, *arguments) as target:
        yield target
        assert target.poll() is None
        assert status(target.pid)["State"][0] in "SR", status(target.pid)


def check_stuck(world, target, *names):
    """Nothing waits for that memory: neither ticks, nor the end, nor an interruption."""
    for capture in "auto", "ptrace":
        stacks, stderr, _ = attach(world, target, "--capture", capture)
        check_samples(stacks, stderr, "sleep_until", *LOST, *names)
        unreadable = sum(count for stack, count in stacks.items()
                         if has(stack, "[truncated: stack unreadable]"))
        # The thread that spins has its own stack for a moment, before and after.
        lost = sum(count for stack, count in stacks.items() if any(has(stack, name) for name in LOST))
        assert 0.95 * lost <= unreadable <= lost, stacks
    done = world.fgprof("dump", "-p", target.pid)
    assert done.returncode == 0, done.stderr
    for name in "sleep_until", "sleep_at", *names:
        assert name in done.stdout, done.stdout
    # It is seen once, and may be between two spins then.
    assert "spin_at" in done.stdout or "in_lost_spin" in done.stdout, done.stdout
    sampler = world.start("attach", "-p", target.pid, "-d", "60s")
    wait_for_ticks(sampler)
    sampler.send_signal(signal.SIGINT)
    stdout, stderr = sampler.communicate(timeout=HANGS_S / 10)
    assert sampler.returncode == 0 and LOST[0] in stdout, stderr


def test_a_stack_and_a_word_and_a_list_in_pages_of_a_userfaultfd(world):
    with stuck(world) as target:
        check_stuck(world, target, "in_lost_word")


def test_a_stack_in_a_file_of_a_file_system_that_does_not_answer(world):
    os.mkdir(world.path("mount"))
    with stuck(world, world.path("mount")) as target:
        check_stuck(world, target)


def test_code_in_a_file_of_a_file_system_that_does_not_answer(world):
    os.mkdir(world.path("mount"))
    with stuck(world, world.path("mount"), "code") as target:
        stacks, stderr, _ = attach(world, target)
        check_samples(stacks, stderr, "sleep_until", *LOST)


# What lies, arguments of the profiler, functions whose threads are always there, and the most memory,
# in KiB. Measured: 20,800 for a program that does not lie, then 21,000, 131,000 (64 MB of the map are
# read) and 23,000.
LIES = (("locks", (), ("sleep_until", "in_spin", "lie_about_owners"), 50000),
        ("map", (), ("sleep_until", "in_spin", "grow_map"), 300000),
        ("exec", ("--children",), ("sleep_until",), 50000))


def check_alive(target):
    assert target.poll() is None
    threads = os.listdir(f"/proc/{target.pid}/task")
    states = {status(f"{target.pid}/task/{tid}")["State"][0] for tid in threads}
    assert states <= set("RSD"), states


@users_build
def test_programs_that_lie(world):
    for lie, arguments, names, most_kib in LIES:
        with world.running("liar", HANGS_S, lie) as target:
            stacks, stderr, kib = attach(world, target, *arguments)
            check_alive(target)
        remove_map(target.pid)
        check_samples(stacks, stderr, *names)
        assert kib < most_kib, (lie, kib)


# The most memory for a program that makes no sense, in KiB. Measured: 53,000 for a perf map, of which
# 16 MB are read, and 26,000 to 28,000 for all others.
SENSELESS_KIB_MAX, PERF_MAP_KIB_MAX = 60000, 150000


def senseless_cases(world):
    listed = subprocess.run([world.fixture("senseless"), "1", "list"], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in listed.stdout.splitlines()]


def remove_map(pid):
    """Removes perf maps that a killed program has left where other tests would find them."""
    path = f"/tmp/perf-{pid}.map"
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def check_senseless(world, kind, number):
    directory = world.path(f"{kind}-{number}")
    os.mkdir(directory)
    with world.running("senseless", HANGS_S, kind, number, directory) as target:
        try:
            stacks, stderr, kib = attach(world, target, duration="400ms")
            dump = world.fgprof("dump", "-p", target.pid)
            check_alive(target)
        finally:
            remove_map(target.pid)
    shutil.rmtree(directory)
    check_samples(stacks, stderr, "sleep_until")
    assert "crashed" not in stderr and "takes too long" not in stderr, stderr
    assert dump.returncode == 0 and "sleep_until" in dump.stdout, (dump.stdout, dump.stderr)
    return kib


def test_a_hundred_programs_that_make_no_sense(world):
    """Their registers, frames, lists, thread pointers, files, maps and names make no sense."""
    cases, failed, most = senseless_cases(world), [], {}
    assert len(cases) >= 100, len(cases)
    for kind, number in cases[::4] if world.is_sanitized else cases:
        try:
            most[kind] = max(most.get(kind, 0), check_senseless(world, kind, number))
        except AssertionError as error:
            failed.append((kind, number, str(error)[:2000]))
    assert not failed, failed
    limits = {"perf-map": PERF_MAP_KIB_MAX}
    if not world.is_sanitized:
        assert all(kib < limits.get(kind, SENSELESS_KIB_MAX) for kind, kib in most.items()), most


# Of a list of 1,000,000 goroutines and more, measured: 160 MiB, most of it what is known of each.
GOROUTINES_KIB_MAX = 400 << 10


def lying_goroutines(world, go):
    # The list is the runtime's own: since Go 1.23 its linker has to be told that this is meant.
    need(go)
    return build(world, "goroutines-lying", ["-ldflags=-checklinkname=0"] if minor_version(go) >= 23 else [], go)


def check_lying_goroutines(world, go):
    """A thread that computes rewrites the list of goroutines all the time."""
    program = lying_goroutines(world, go)
    for how, when in itertools.product(("wild", "long", "made-up"), ("later", "at once")):
        with ready(program, HANGS_S, how, when) as target:
            stacks, stderr, kib = attach(world, target)
            dump = world.fgprof("dump", "-p", target.pid)
            assert target.poll() is None
        # The runtime interrupts it now and then, and then it is in no list.
        found = sum(count for stack, count in stacks.items() if has(stack, "main.lie"))
        assert found > 0.7 * (1 - late_share(stderr)) * ticks_planned(stderr), (how, found, stderr)
        assert kib < GOROUTINES_KIB_MAX, (how, kib)
        # How many were not read, or could not be.
        assert "goroutine" in stderr, (how, stderr)
        assert dump.returncode == 0 and dump.stdout.startswith("process "), (how, dump.stdout[:2000], dump.stderr)
        # What it said at first was no list of goroutines.
        if when == "at once":
            assert "are not read, as no list of them makes sense: its threads are shown" in stderr, (how, stderr)
            assert "goroutine-seconds" not in stderr and "\ngoroutine " not in dump.stdout, (how, stderr, dump.stdout[:2000])


@users_build
def test_lists_of_goroutines_that_lie(world):
    check_lying_goroutines(world, "go")


@users_build
def test_lists_of_goroutines_that_lie_of_debians_go(world):
    check_lying_goroutines(world, DEBIANS)


def test_go_programs_that_exit_while_they_are_read(world):
    program = build(world, "goroutines", [])
    for i in range(20):
        with ready(program, 120, 40, world.path("truth"), stdin=subprocess.PIPE) as target:
            sampler = world.start("attach", "-p", target.pid, "-d", "20s")
            time.sleep(0.02 * i)
            target.kill()
            _, stderr = sampler.communicate(timeout=HANGS_S)
            # It may have been gone before it was attached.
            assert sampler.returncode == 0 or "has exited" in stderr, (sampler.returncode, stderr)

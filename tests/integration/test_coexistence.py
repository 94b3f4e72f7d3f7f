"""The target is shared with others: debuggers, signals, programs that it executes, users who press keys."""

import contextlib
import ctypes
import os
import pty
import re
import select
import signal
import struct
import subprocess
import time

from harness import (RATE, alone, by_root, end, folded, has, need, status_field, thread_named,
                     threads_of, ticks_planned, users_build, wait_for, wait_until_sampling)

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206  # in Linux's include/uapi/linux/ptrace.h
WALL = 0x40000000  # in Linux's include/uapi/linux/wait.h
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]


def backtrace(pid):
    need("gdb")
    done = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "bt"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.stdout


def test_gdb_attaches_meanwhile(world):
    for rate in 99, 1000:
        with world.running("workers", 60, 2, 2) as target:
            sampler = world.start("attach", "-F", rate, "-p", target.pid, "--threads=tid")
            wait_until_sampling(sampler)
            seen, tries = 0, 0
            while seen < 2:
                # It may come just when a thread is stopped.
                tries += 1
                assert tries <= 10, shown
                shown = backtrace(target.pid)
                seen += bool(re.search(r"^#\d+ .* main ", shown, re.M))
            assert sampler.poll() is None
            sampler.send_signal(signal.SIGINT)
            stdout, stderr = sampler.communicate(timeout=30)
            for thread in threads_of(target.pid):
                assert status_field(thread, "State")[0] in "RS"
                assert status_field(thread, "TracerPid") == "0"
        assert sampler.returncode == 0, stderr
        counts = by_root(folded(stdout))
        assert len(counts) == 5, counts
        for root, count in counts.items():
            assert abs(count - ticks_planned(stderr)) <= 2, (root, count, stderr)


def test_under_gdb(world):
    with world.running("workers", 60, 1, 1) as target:
        need("gdb")
        gdb = subprocess.Popen(["gdb", "-nx", "-q", "-p", str(target.pid), "-ex", "echo HELD\\n"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        try:
            while "HELD" not in (line := gdb.stdout.readline()):
                assert line, "gdb ended"
            done = world.fgprof("attach", "-p", target.pid, "-d", "1s")
        finally:
            gdb.communicate("kill\nquit\n", timeout=30)
    assert done.returncode == 1 and not done.stdout, done
    assert f"already traced by process {gdb.pid} (gdb)" in done.stderr, done.stderr


def test_a_thread_that_another_traces(world):
    """The thread can't be stopped while it runs; its time is there, under its name."""
    with world.running("workers", 30, 1, 0) as target:
        tid = int(thread_named(target.pid, "spinning").split("/")[-1])
        seized = libc.ptrace(PTRACE_SEIZE, tid, None, None)
        assert seized == 0, os.strerror(ctypes.get_errno())
        done = world.attach(target, "-t", "--capture=ptrace", duration="1s")
        target.kill()
        os.waitpid(tid, WALL)  # its tracer is told first
    stacks = folded(done.stdout)
    assert set(by_root(stacks)) == {"fixture-workers", "spinning"}, done.stdout
    assert all("truncated" in stack[1] for stack in stacks if stack[0] == "spinning"), stacks


def send(pid, number, value):
    """Queues a signal, and waits for room if the queue is full."""
    while libc.sigqueue(pid, number, value & 0xffffffff):
        assert ctypes.get_errno() == 11, os.strerror(ctypes.get_errno())
        time.sleep(0.001)


@alone
@users_build
def test_queued_signals_arrive_once_each_and_in_order(world):
    receivers = range(4)
    with world.running("queued", 60) as target:
        sampler = world.start("attach", "-F", 1000, "-p", target.pid)
        wait_until_sampling(sampler)
        sent, began = 0, time.monotonic()
        while sent < 1000 or time.monotonic() < began + 3:
            for i in receivers:
                send(target.pid, signal.SIGRTMIN + i, sent)
            sent += 1
            time.sleep(0.0003)
        end(sampler)
        for i in receivers:
            send(target.pid, signal.SIGRTMIN + i, -1)
        lines = target.stdout.read().splitlines()
        assert target.wait(timeout=60) == 0
    assert lines == [f"{sent} 0"] * 4, (sent, lines)


EXEC_COUNT = 20
EXEC_RATE = 1000
EXEC_THREADS_MAX = 10


def check_exec_profile(stderr, stacks, last):
    """Threads by id; the process's own id belongs to the thread that sleeps in main. Executing takes long if
    its threads must wait for a CPU to exit. Meanwhile they may or may not be there, and the first is gone if
    another one executes."""
    lived_s, executing_s = map(float, re.search(r"last ([\d.]+) ([\d.]+)\n", last).groups())
    counts, planned = by_root(stacks), ticks_planned(stderr)
    assert any(has(stack, "in_spin") for stack in stacks)
    main = max(counts.values())
    assert abs(main - planned) <= 0.03 * planned + executing_s * EXEC_RATE, (
        main, planned, executing_s)
    found_s = sum(counts.values()) / EXEC_RATE
    longest_s = lived_s + EXEC_THREADS_MAX * executing_s
    assert 0.75 * lived_s < found_s < 1.15 * longest_s, (found_s, lived_s, executing_s, stderr)


@alone
def test_exec_again_and_again(world):
    with world.running("exec_again", EXEC_COUNT) as target:
        done = world.fgprof("attach", "-F", EXEC_RATE, "--threads=tid", "-p", target.pid)
        last = target.stdout.read()
        assert target.wait(timeout=60) == 0
    assert done.returncode == 0, done.stderr
    check_exec_profile(done.stderr, folded(done.stdout), last)


@alone
def test_run_of_a_command_that_execs_again_and_again(world):
    out = world.path("exec.folded")
    done = world.fgprof("run", "-F", EXEC_RATE, "--threads=tid", "-o", out, "--",
                        world.fixture("exec_again"), EXEC_COUNT)
    assert done.returncode == 0 and done.stdout.startswith("ready\nlast "), done
    check_exec_profile(done.stderr, folded(open(out).read()), done.stdout)


def test_profiler_is_killed(world):
    """The profiler is killed again and again, at 1000 Hz, wherever it happens to be: all threads continue."""
    file, spinning = world.path("progress"), 4

    def progress():
        return struct.unpack(f"{spinning}Q", open(file, "rb").read(spinning * 8))

    def all_got_on(before):
        return all(now > then for now, then in zip(progress(), before))

    with world.running("workers", 600, spinning, 4, file) as target:
        for i in range(10):
            sampler = world.start("attach", "-F", 1000, "-p", target.pid)
            wait_until_sampling(sampler)
            time.sleep(0.03 + i * 0.0037)
            sampler.kill()
            sampler.communicate()
            for thread in threads_of(target.pid):
                assert status_field(thread, "TracerPid") == "0"
            wait_for(lambda: all(status_field(thread, "State")[0] in "RS"
                                 for thread in threads_of(target.pid)), "no stopped thread")
            assert len(threads_of(target.pid)) == spinning + 5
            before = progress()
            wait_for(lambda: all_got_on(before), "progress of all threads")
        world.attach(target, duration="200ms")


@contextlib.contextmanager
def on_a_terminal(*command):
    """A command that leads a terminal's session. Yields its pid and the terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], list(map(str, command)))
    terminal = open(fd, "r+b", buffering=0)
    try:
        yield pid, terminal
    finally:
        terminal.close()
        with contextlib.suppress(ChildProcessError):  # the test has waited for it
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def read_samples(terminal, more_than=0):
    """Reads the terminal until the progress line shows more samples than that; returns their
    number."""
    shown, until = "", time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += terminal.read(4096).decode()
        numbers = [int(n) for n in re.findall(r"(\d+) samples", shown)]
        if numbers and numbers[-1] > more_than:
            return numbers[-1]
    raise AssertionError(shown)


def has_ended(pid):
    return status_field(pid, "State")[0] == "Z"


def test_ctrl_z_does_not_suspend_attach(world):
    out = world.path("ctrl-z.folded")
    with world.running("states", 60) as target, on_a_terminal(
            world.program, "attach", "-p", target.pid, "-o", out) as (pid, terminal):
        samples = read_samples(terminal)
        terminal.write(b"\x1a")
        # It sends its signal at once; what comes after next is sampled later.
        for _ in range(3):
            samples = read_samples(terminal, samples)
        assert status_field(pid, "State")[0] in "RS"
        terminal.write(b"\x03")
        wait_for(lambda: has_ended(pid), "the end")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert any("in_spin" in stack for stack in folded(open(out).read()))


def test_a_terminal_that_hangs_up(world):
    out = world.path("hang-up.folded")
    with world.running("states", 60) as target, on_a_terminal(
            world.program, "attach", "-p", target.pid, "-o", out) as (pid, terminal):
        read_samples(terminal)
        terminal.close()
        wait_for(lambda: has_ended(pid), "the end")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert any("in_spin" in stack for stack in folded(open(out).read()))


def test_nohup(world):
    with world.running("states", 60) as target:
        sampler = world.start("attach", "-p", target.pid, "-d", "3s",
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until_sampling(sampler)
        sampler.send_signal(signal.SIGHUP)
        stdout, stderr = sampler.communicate(timeout=30)
    assert sampler.returncode == 0, stderr
    assert ticks_planned(stderr) >= 3 * RATE - 1, stderr

"""What threads were doing: the state of each sample, in all formats."""

import collections
import contextlib
import os
import re
import signal
import subprocess
import time

from harness import (Skip, alone, children_of, end, folded, has, is_asleep, status_field,
                     thread_named, threads_of, tool, users_build, wait_for, wait_for_ticks,
                     wait_until_asleep, wait_until_sampled)

CALLS = {"sleeping": "[clock_nanosleep]", "locked": "[mutex mutex]", "piped": "[read]",
         "fixture-states": "[clock_nanosleep]"}

# Writes one recording of process argv[1] whole, and in two parts, to argv[2], argv[3] and argv[4].
PARTS = r"""
#include <fcntl.h>
#include <fgprof.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    fgprof_options *options;
    fgprof_recorder *recorder;
    fgprof_profile *profile;
    if (argc != 5 || fgprof_options_new(&options))
        return 1;
    fgprof_options_set_duration_ns(options, 1000000000);
    if (fgprof_recorder_new(options, &recorder) ||
        fgprof_recorder_attach(recorder, atoi(argv[1])) || fgprof_recorder_run(recorder, &profile))
        return 2;
    enum fgprof_kept kept[] = {FGPROF_KEPT_ALL, FGPROF_KEPT_ON_CPU, FGPROF_KEPT_OFF_CPU};
    for (int i = 0; i < 3; i++) {
        int fd = open(argv[2 + i], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || fgprof_profile_set_kept(profile, kept[i]) ||
            fgprof_profile_write(profile, FGPROF_FOLDED, fd))
            return 3;
    }
    fgprof_profile_free(profile);
    fgprof_recorder_free(recorder);
    fgprof_options_free(options);
    return 0;
}
"""


def leaves_by_root(text):
    """{root: {leaf: count}}"""
    leaves = collections.defaultdict(collections.Counter)
    for stack, count in folded(text).items():
        leaves[stack[0]][stack[-1]] += count
    return leaves


def shares(stderr):
    """The summary's shares of time, as {state: percent}."""
    line = re.search(r"^  thread time: (.*)$", stderr, re.M)[1]
    return {state: float(share) for share, state in re.findall(r"([\d.]+) % ([a-z ]+)", line)}


@contextlib.contextmanager
def running_states(world):
    """The fixture, once each of its threads has reached its state."""
    with world.running("states", 100) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        yield target


def test_leaf_frames(world):
    with running_states(world) as target:
        done = world.attach(target, "-t", "--state")
    leaves = leaves_by_root(done.stdout)
    for thread, leaf in CALLS.items():
        assert set(leaves[thread]) == {leaf}, leaves[thread]
    # On a busy machine it waits for a CPU at times; if it gets none at the end, no more is known.
    assert leaves["spinning"]["[running]"] > 0, leaves["spinning"]
    assert set(leaves["spinning"]) <= {"[running]", "[runnable]", "[unknown]"}, leaves["spinning"]
    found = shares(done.stderr)
    assert found["asleep"] >= 65 and abs(sum(found.values()) - 100) < 0.5, done.stderr


def test_without_the_flag_there_is_no_such_frame(world):
    with running_states(world) as target:
        done = world.attach(target, duration="300ms")
    assert not re.search(r";\[(running|runnable|futex|read|clock_nanosleep)\] ", done.stdout)


def test_calls_that_a_stop_would_disturb(world):
    with world.running("sleepers-O2-omit", 100) as target:
        wait_until_asleep(target.pid)
        stacks = folded(world.attach(target, "--state", duration="1s").stdout)
    leaves = {stack[-1] for stack in stacks}
    epoll_wait = "[epoll_pwait]" if os.uname().machine == "aarch64" else "[epoll_wait]"
    assert {epoll_wait, "[semtimedop]", "[rt_sigtimedwait]", "[recvfrom]", "[accept]"} <= leaves, (
        leaves)


def kernel_workers(pid):
    """The names of io_uring's threads. A worker first has the name of the thread that created it."""
    names = {status_field(thread, "Name") for thread in threads_of(pid)}
    return sorted(name for name in names if name.startswith("iou-"))


def stolen_s():
    """How long the machine's CPUs have been taken away from it, in all (proc_stat(5))."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def check_kernel_workers(done, names, stolen):
    """`names`: the thread that polls, and the one that waits. `stolen`: the share of the time in which the
    first may have lost its CPU."""
    stacks = [stack for stack in folded(done.stdout) if stack[0] in names]
    assert {stack[:2] for stack in stacks} == {(name, "[kernel worker]") for name in names}, stacks
    polls, waits = (leaves_by_root(done.stdout)[name] for name in names)
    # On a busy machine it waits for a CPU at times, and stolen time counts as a little sleep (docs/limits.md).
    assert polls["[running]"] > 0 and polls["[sleeping]"] <= (0.05 + stolen) * sum(polls.values()), (polls, stolen)
    assert set(polls) <= {"[running]", "[runnable]", "[sleeping]", "[unknown]"}, polls
    assert set(waits) == {"[sleeping]"}, waits
    assert " 0.00 % cut" in done.stderr, done.stderr


def test_threads_that_the_kernel_made(world):
    """Two threads of io_uring, which have no user stack."""
    fixture = world.fixture("io_uring")
    done = subprocess.run([fixture, "0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode == 77:
        raise Skip("no io_uring")
    with world.running("io_uring", 100) as target:
        if len(threads_of(target.pid)) == 1:
            raise Skip("the kernel's threads are of no process before Linux 5.12")
        wait_for(lambda: len(kernel_workers(target.pid)) == 2, "a worker with a name of its own")
        names = kernel_workers(target.pid)
        for options in [], ["--capture=ptrace"]:
            begin_s, stolen_before_s = time.monotonic(), stolen_s()
            done = world.attach(target, "-t", "--state", *options)
            stolen = (stolen_s() - stolen_before_s) / (time.monotonic() - begin_s)
            check_kernel_workers(done, names, stolen)
        dump = world.fgprof("dump", "-p", target.pid).stdout
    assert "3 threads" in dump.splitlines()[0], dump
    assert dump.count("[kernel worker]") == 2 and "io_uring_setup" not in dump, dump


@contextlib.contextmanager
def running_vfork(world):
    with world.running("vfork", 300) as target:
        wait_for(lambda: status_field(target.pid, "State").startswith("D"), "the vfork")
        wait_for(lambda: is_asleep(thread_named(target.pid, "beside")), "sleep")
        (child,) = children_of(target.pid)
        try:
            yield target
        finally:
            # It holds the fixture's memory, and must not outlive the fixture.
            os.kill(child, signal.SIGKILL)


def test_uninterruptible(world):
    with running_vfork(world) as target:
        done = world.attach(target, "-t", "--state", duration="1s")
        # Not read earlier: /proc tells none for a thread that has just gone to sleep.
        channel = open(f"/proc/{target.pid}/wchan").read()
    leaf = "[uninterruptible: " + (channel if channel != "0" else "vfork") + "]"
    leaves = leaves_by_root(done.stdout)
    assert set(leaves["fixture-vfork"]) == {leaf}, leaves
    assert set(leaves["beside"]) == {"[clock_nanosleep]"}, leaves


def test_uninterruptible_in_pprof(world):
    path = world.path("vfork.pb.gz")
    with running_vfork(world) as target:
        world.attach(target, "-o", path, duration="300ms")
    assert re.search(r"state:\[uninterruptible\] syscall:\[vfork\]", tool("go", "tool", "pprof", "-raw", path))


def test_stopped(world):
    with running_states(world) as target:
        os.kill(target.pid, signal.SIGSTOP)
        for tid in os.listdir(f"/proc/{target.pid}/task"):
            wait_for(lambda: status_field(f"{target.pid}/task/{tid}", "State").startswith("T"),
                     "the stop")
        done = world.attach(target, "--state", duration="500ms")
        os.kill(target.pid, signal.SIGCONT)
    assert {stack[-1] for stack in folded(done.stdout)} == {"[stopped]"}, done.stdout
    assert shares(done.stderr)["stopped"] == 100, done.stderr


def times_of(pid):
    """Times on a CPU, and waiting for one, of all threads: the kernel's own account."""
    lines = [open(f"/proc/{pid}/task/{tid}/schedstat").read().split()
             for tid in os.listdir(f"/proc/{pid}/task")]
    return sum(int(line[0]) for line in lines), sum(int(line[1]) for line in lines)


@alone
@users_build
def test_waiting_for_a_cpu(world):
    # With two on one CPU each waits for at least half of its time, longer if others use that CPU.
    with world.running("spinners", 30, 2) as target:
        before = times_of(target.pid)
        done = world.attach(target, "--state", duration="3s")
        after = times_of(target.pid)
    running, waiting = after[0] - before[0], after[1] - before[1]
    truth = waiting / (running + waiting)
    leaves = collections.Counter()
    for stack, count in folded(done.stdout).items():
        leaves[stack[-1]] += count
    # If a thread gets no CPU at the end, nothing is known of it.
    assert set(leaves) <= {"[running]", "[runnable]", "[unknown]"}, leaves
    found = leaves["[runnable]"] / (leaves["[runnable]"] + leaves["[running]"])
    assert truth > 0.4 and abs(found - truth) < 0.3, (found, truth, done.stderr)


def samples_of(raw):
    """[(values, {label: value})] of pprof -raw."""
    samples = []
    for values, labels in re.findall(r"^((?: +\d+)+): [\d ]+\n +(\S.*)$", raw, re.M):
        pairs = re.findall(r"(\w+):\[(.*?)\]", labels)
        assert len(dict(pairs)) == len(pairs), labels
        samples.append(([int(value) for value in values.split()], dict(pairs)))
    return samples


def test_pprof(world):
    path = world.path("states.pb.gz")
    with running_states(world) as target:
        world.attach(target, "-o", path, duration="1s")
    raw = tool("go", "tool", "pprof", "-raw", path)
    assert ("samples/count time/nanoseconds[dflt] on_cpu/nanoseconds off_cpu/nanoseconds "
            "elapsed/nanoseconds\n") in raw
    samples = samples_of(raw)
    for (count, time, on_cpu, off_cpu, _), labels in samples:
        assert count >= 0 and time == on_cpu + off_cpu > 0, (time, on_cpu, off_cpu)
        assert (on_cpu > 0) == (labels["state"] == "running"), (on_cpu, labels)
        assert ("syscall" in labels) == (labels["state"] == "sleeping"), labels
    calls = {(labels["thread"], labels.get("syscall")) for _, labels in samples}
    assert {("locked", "futex"), ("piped", "read"), ("sleeping", "clock_nanosleep"),
            ("spinning", None)} <= calls, calls
    on_cpu = tool("go", "tool", "pprof", "-top", "-sample_index=on_cpu", path)
    assert "in_spin" in on_cpu and "nanosleep" not in on_cpu, on_cpu
    futex = tool("go", "tool", "pprof", "-top", "-tagfocus=syscall=futex", path)
    assert "in_lock" in futex and "in_pipe" not in futex, futex


def test_parts_add_up(world):
    source, program = world.path("parts.c"), world.path("parts")
    with open(source, "w") as file:
        file.write(PARTS)
    sanitize = ["-fsanitize=address,undefined"] if world.is_sanitized else []
    tool("gcc", "-std=c17", "-D_GNU_SOURCE", *sanitize, source, "-I" + world.source + "/include",
         "-o", program, "-L" + world.build, "-lfgprof", "-Wl,-rpath," + world.build)
    paths = [world.path(name) for name in ("whole.folded", "on.folded", "off.folded")]
    with running_states(world) as target:
        tool(program, target.pid, *paths)
    whole, on_cpu, off_cpu = (collections.Counter(folded(open(path).read())) for path in paths)
    assert on_cpu and off_cpu and on_cpu + off_cpu == whole, (on_cpu, off_cpu, whole)


def test_one_kind_alone(world):
    def sample(*arguments):
        """Samples until the thread that computes was seen."""
        sampler = world.start("attach", "-p", target.pid, *arguments)
        wait_for_ticks(sampler)
        wait_until_sampled(target.pid, "spinning")
        return end(sampler)

    with running_states(world) as target:
        on_cpu, summary = sample("--on-cpu", "--state")
        off_cpu, _ = sample("--off-cpu", "--state")
        text, _ = sample("--on-cpu", "-f", "text")
    assert {stack[-1] for stack in folded(on_cpu)} == {"[running]"}, on_cpu
    leaves = {stack[-1] for stack in folded(off_cpu)}
    assert {"[mutex mutex]", "[read]", "[clock_nanosleep]"} <= leaves and "[running]" not in leaves, leaves
    assert set(re.findall(r'"state":"(\w+)"', text)) == {"running"}, text
    # The summary is of all of it.
    assert shares(summary)["asleep"] >= 65, summary


@alone
@users_build
def test_short_work_between_waits(world):
    """A thread's running time counts for where it runs, and not for the call in which its stop may find
    it."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU: the sampler runs when the thread sleeps")
    with world.running("turns", 30) as target:
        os.sched_setaffinity(target.pid, cpus[:1])
        done = world.fgprof("attach", "-p", target.pid, "-d", "4s", "-F", 1000, "--state",
                            preexec_fn=lambda: os.sched_setaffinity(0, cpus[1:2]))
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    running = {stack: count for stack, count in stacks.items() if stack[-1] == "[running]"}
    working = sum(count for stack, count in running.items() if "in_work" in stack)
    assert working > 0.85 * sum(running.values()), running
    assert any(has(stack, "in_wait", "[epoll_wait]") for stack in stacks), stacks

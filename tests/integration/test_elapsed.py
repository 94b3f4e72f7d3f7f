"""Elapsed time: each instant of a process, divided among its threads."""

import os
import re
import signal
import subprocess

from harness import (HANGS_S, PERIOD, Skip, by_root, end, folded, has, need, ticks_planned, tool,
                     users_build, wait_for, wait_until_sampling)


class Crowd:
    """The fixture's own account of what it did, in seconds."""

    def __init__(self, line):
        self.alone, self.together, self.short, self.long, self.late, self.gap = map(
            float, line.split())
        # What neither ticks nor the kernel's accounts show: where a tick fell at the beginning and at the
        # end, how long a thread had waited for a CPU when its account was last read, and how long the first
        # thread was awake together with the others.
        self.unknown = 3 * PERIOD + self.gap + self.late


def record_crowd(world, *arguments):
    """Records the fixture. Returns (its account, the recording, the summary)."""
    path = world.path("crowd.fgprof")
    with world.running("crowd", 3000, 1000, stdin=subprocess.PIPE) as target:
        sampler = world.start("attach", "-p", target.pid, "-o", path, *arguments)
        wait_until_sampling(sampler)
        target.stdin.write("go\n")
        target.stdin.flush()
        account = Crowd(target.stdout.readline())
        _, stderr = end(sampler)
    return account, path, stderr


def converted(world, path, *arguments):
    done = world.fgprof("convert", path, "-f", "folded", *arguments)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return {stack: count * PERIOD for stack, count in folded(done.stdout).items()}


def sum_of(stacks, *names):
    return sum(count for stack, count in stacks.items() if has(stack, *names))


def assert_near(value, wanted, part, more):
    assert abs(value - wanted) <= part * wanted + more, (value, wanted, more)


def check_crowd(world, *arguments):
    account, path, stderr = record_crowd(world, *arguments)
    stacks = converted(world, path, "--elapsed", "--threads", "--state")
    threads = by_root(stacks)
    length = ticks_planned(stderr) * PERIOD
    assert_near(sum(threads.values()), length, 0, 2 * PERIOD)
    awake = {root: sum(count for stack, count in stacks.items() if stack[0] == root
                       and stack[-1] in ("[running]", "[runnable]")) for root in threads}
    assert_near(awake["fixture-crowd"], account.alone, 0.01, account.unknown)
    assert_near(awake["worker"], account.together, 0.01, account.unknown)
    # What ticks divide is what is left of the time: its errors are of opposite sign.
    assert_near(sum_of(stacks, "in_short_wait"), account.short, 0.03, account.unknown)
    assert stacks[("[idle]",)] > 0.97 * account.long - account.unknown, stacks
    assert not sum_of(stacks, "in_long_wait"), stacks
    # Thread-seconds, of the same recording: each of the eight counts.
    wall = converted(world, path, "--threads", "--state")
    workers = sum(count for stack, count in wall.items() if stack[0] == "worker"
                  and stack[-1] in ("[running]", "[runnable]"))
    assert workers > 4 * account.together, (workers, account.together)
    assert ("[idle]",) not in wall
    return account, path, stderr


@users_build
def test_one_thread_and_then_eight(world):
    account, path, stderr = check_crowd(world)
    shares = re.search(r"^  parallelism: (no thread running .*)$", stderr, re.M)[1]
    shares = re.sub(r"no thread running ([\d.]+ %) of the time", r"0 for \1", shares)
    rows = {number: float(share) / 100
            for number, share in re.findall(r"(\d+(?:-\d+)?) for ([\d.]+) %", shares)}
    length = ticks_planned(stderr) * PERIOD
    assert abs(sum(rows.values()) - 1) < 0.005, rows
    assert rows["0"] * length > account.short + account.long - account.unknown, rows
    # No more threads run at once than there are CPUs.
    assert all(int(number.split("-")[0]) <= os.cpu_count() for number in rows), rows
    # pprof has it as one more type, and time is still the one that is shown.
    profile = world.path("crowd.pb.gz")
    assert not world.fgprof("convert", path, "-o", profile).returncode
    total = re.compile(r"^Duration: .*, Total samples = ([\d.]+m?s)", re.M)
    seconds = {}
    for kind in "elapsed", "time":
        text = tool("go", "tool", "pprof", "-top", "-unit=s", "-sample_index=" + kind, profile)
        assert f"Type: {kind}\n" in text, text
        seconds[kind] = float(re.search(r"([\d.]+)s total$", text, re.M)[1])
        assert total.search(text), text
        assert ("[idle]" in text) == (kind == "elapsed"), text
    assert_near(seconds["elapsed"], length, 0, 2 * PERIOD)
    assert seconds["time"] > 8 * length, seconds
    assert "Type: time\n" in tool("go", "tool", "pprof", "-top", profile)


@users_build
def test_one_thread_and_then_eight_that_are_stopped(world):
    check_crowd(world, "--capture", "ptrace")


def waited_s(pid):
    """For how long the process's first thread has waited for a CPU."""
    return int(open(f"/proc/{pid}/task/{pid}/schedstat").read().split()[1]) / 1e9


@users_build
def test_a_single_thread_has_the_time_that_it_was_awake(world):
    """Bursts are shorter than the interval of ticks: nothing is left to chance."""
    path = world.path("turns.fgprof")
    with world.running("turns", 30) as target:
        before = waited_s(target.pid)
        world.attach(target, "-o", path)
        waited = waited_s(target.pid) - before
    wall, elapsed = (converted(world, path, "--state", *option) for option in ([], ["--elapsed"]))
    assert_near(sum_of(elapsed, "[running]"), sum_of(wall, "[running]"), 0, 4 * PERIOD)
    # The kernel tells a wait for a CPU when it has ended: the time of threads may lack a part of it.
    assert (sum_of(wall, "[runnable]") - 4 * PERIOD < sum_of(elapsed, "[runnable]")
            < waited + 4 * PERIOD), (waited, wall, elapsed)
    # Its waits are all short: there is no idle time.
    assert_near(sum(count for stack, count in elapsed.items() if stack != ("[idle]",)),
                sum(elapsed.values()), 0.02, 3 * PERIOD)


def test_children_have_their_own_time(world):
    path = world.path("family.fgprof")
    with world.running("family", "tree", 60) as target:
        target.stdout.readline()
        done = world.attach(target, "--children", "-o", path)
    length = ticks_planned(done.stderr) * PERIOD
    processes = by_root(converted(world, path, "--elapsed", "--processes"))
    assert len(processes) > 1, processes
    oldest = [count for name, count in processes.items() if name.endswith(f"/{target.pid}")]
    assert len(oldest) == 1
    assert_near(oldest[0], length, 0, 3 * PERIOD)
    assert all(count <= length + 3 * PERIOD for count in processes.values()), (processes, length)


def test_a_lock_is_held_by_one_that_sleeps(world):
    """The process would be idle, except for the threads that it delays: where the holder sleeps is what they
    wait for."""
    path = world.path("held_up.fgprof")
    with world.running("held_up", "lock") as target:
        world.attach(target, "-o", path, duration="2s")
    wall, elapsed = (converted(world, path, "--threads", *option) for option in ([], ["--elapsed"]))
    assert {"middle", "last"} < set(by_root(wall)), wall
    assert sum_of(elapsed, "in_hold") > 0.9 * sum(elapsed.values()), elapsed
    threads = by_root(elapsed)
    assert threads.get("middle", 0) + threads.get("last", 0) < 0.1 * sum(threads.values()), threads


def test_the_end_of_an_idle_thread_is_no_work(world):
    path = world.path("join.fgprof")
    with world.running("held_up", "join") as target:
        world.attach(target, "-o", path, duration="2s")
    assert sum_of(converted(world, path), "in_sleep")
    assert set(converted(world, path, "--elapsed")) == {("[idle]",)}


def test_formats_that_lack_it(world):
    with world.running("states", 30) as target:
        for format in "text", "speedscope":
            done = world.fgprof("attach", "-p", target.pid, "-d", "100ms", "--elapsed", "-f", format)
            assert done.returncode == 2 and not done.stdout, done
            assert done.stderr == (
                "fgprof-c: this format can't hold elapsed time: use --elapsed with folded or html; "
                "pprof always has it\n"), done.stderr
    old = os.path.join(world.source, "tests/golden/version-1.fgprof")
    for command in (["convert", old, "-f", "folded"], ["convert", old, "-f", "html"],
                    ["diff", old, old]):
        done = world.fgprof(*command, "--elapsed")
        assert done.returncode == 1 and not done.stdout, done
        assert "has no elapsed time: it was recorded by an older fgprof-c" in done.stderr, done



def latency_by_perf(path):
    """What `perf report --latency` makes of perf's samples: each is divided by how many threads of the
    process ran at that time. {thread name: seconds}, and the same without dividing. The switches say how many
    those were."""
    text = tool("perf", "script", "-i", path, "--show-switch-events", "-F",
                "comm,tid,time,event,period")
    running, latency, times = set(), {}, {}
    for line in text.splitlines():
        match = re.match(r" *(\S+) +(\d+) +[\d.]+: +(?:PERF_RECORD_SWITCH (IN|OUT)|(\d+) cpu-clock)",
                         line)
        if not match:
            continue
        name, tid, switch, period = match.groups()
        if switch == "OUT":
            running.discard(tid)
        else:
            running.add(tid)
        if period:
            times[name] = times.get(name, 0) + int(period) / 1e9
            latency[name] = latency.get(name, 0) + int(period) / 1e9 / len(running)
    return latency, times


def unknown_overlap(busy_s, length_s):
    """If other programs take the CPUs, how many threads ran at once is only known on average. Returns how
    much longer or shorter some threads may have run that ran for `busy_s` in total: from all CPUs always busy
    together to never two of them."""
    cpus = len(os.sched_getaffinity(0))
    part = min(1, busy_s / cpus / length_s)
    average = 1 - (1 - part) ** cpus
    return length_s * max(average - part, min(1, cpus * part) - average)


@users_build
def test_running_time_is_that_of_perf_latency(world):
    need("perf")
    path, data = world.path("crowd.fgprof"), world.path("perf.data")
    with world.running("crowd", 3000, 1000, stdin=subprocess.PIPE) as target:
        perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "997",
                                 "--switch-events", "-o", data, "-p", str(target.pid)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sampler = world.start("attach", "-p", target.pid, "-o", path)
        wait_until_sampling(sampler)
        # Its file is there when it records.
        wait_for(lambda: perf.poll() is not None or os.path.exists(data) and os.path.getsize(data),
                 "perf")
        if perf.poll() is not None:
            end(sampler)
            raise Skip("perf may not record here")
        target.stdin.write("go\n")
        target.stdin.flush()
        account = Crowd(target.stdout.readline())
        end(sampler)
        perf.send_signal(signal.SIGINT)
        perf.wait(timeout=HANGS_S)
    stacks = converted(world, path, "--elapsed", "--threads", "--state")
    truth, times = latency_by_perf(data)
    more = {"fixture-crowd": 0, "worker": unknown_overlap(times["worker"], account.together)}
    for name in more:
        ours = sum(count for stack, count in stacks.items()
                   if stack[0] == name and stack[-1] == "[running]")
        assert_near(ours, truth[name], 0.02, account.unknown + more[name])

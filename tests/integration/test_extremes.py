"""The program's promises for targets that are hard to sample."""

import os
import re
import resource
import signal
import statistics
import time

from harness import (PERIOD, Skip, alone, by_root, children_of, context_switches, end, folded, has,
                     is_sampling, late_share, pauses, status_field, thread_named, threads_of,
                     ticks_planned, users_build, wait_for, wait_until_asleep, wait_until_sampling)

TRANSFERS = {"write", "send", "recv"}


def transfers(target):
    """Ends the fixture. Returns its report: {name: (calls, short ones, failed ones)}."""
    target.terminate()
    lines = [line.split() for line in target.stdout.read().splitlines()]
    assert target.wait(timeout=60) == 0
    result = {name: tuple(map(int, numbers)) for name, *numbers in lines}
    assert set(result) == TRANSFERS, lines
    return result


def test_transfers_that_sleep_are_never_cut_short(world):
    """They block in the middle of their transfer, and are sampled: not a single call comes back short."""
    with world.running("transfers", 100, "still") as one, world.running(
            "transfers", 100, "still") as two:
        pids = one.pid, two.pid
        wait_until_asleep(*pids)
        before = [context_switches(pid) for pid in pids]
        for rate in 99, 1000:
            done = world.fgprof("attach", "-F", rate, "-p", ",".join(map(str, pids)), "-d", "1s",
                                "-t")
            assert done.returncode == 0, done.stderr
            assert pauses(done.stderr) == 0, done.stderr
            assert TRANSFERS <= set(by_root(folded(done.stdout))), done.stdout
        assert [context_switches(pid) for pid in pids] == before
        for target in one, two:
            for name, (calls, short, failed) in transfers(target).items():
                assert calls >= 1 and short == 0 and failed == 0, (name, calls, short, failed)


ON_CPU, WAITING, TURNS = range(3)  # in /proc/TID/schedstat: ns on a CPU, ns waiting for one, turns


def sum_of(pid, field):
    """The sum of a schedstat field over all of the process's threads."""
    return sum(int(open(f"/proc/{thread}/schedstat").read().split()[field])
               for thread in threads_of(pid))


def time_of(pid, *fields):
    return sum(sum_of(pid, field) for field in fields) / 1e9


def sample_transfers(world, rate):
    """Slow transfers: each thread sleeps most of its time, and runs in between. A call that is stopped in the
    middle of its copy comes back short, because the kernel ends it; each such stop is a pause of a running
    thread, and is reported. Any further short calls would mean that sleepers were stopped."""
    with world.running("transfers", 100) as target, world.running("transfers", 100) as other:
        busy = time_of(target.pid, ON_CPU, WAITING)
        done = world.attach(target, "-F", rate, "-t", duration="3s")
        busy = time_of(target.pid, ON_CPU, WAITING) - busy
        sampled, unsampled = transfers(target), transfers(other)
    short = sum(short for _, short, _ in sampled.values())
    stops = pauses(done.stderr)
    assert all(short == failed == 0 for _, short, failed in unsampled.values()), unsampled
    assert all(failed == 0 and calls > 0 for calls, _, failed in sampled.values()), sampled
    assert short <= stops, (sampled, done.stderr)
    # As often as the kernel's own account says that they run: here in two looks of a hundred.
    assert stops <= 10 + 3 * busy * rate, (stops, busy, done.stderr)
    for name, count in by_root(folded(done.stdout)).items():
        assert abs(count - ticks_planned(done.stderr)) <= 1, (name, count, done.stderr)


@alone
def test_slow_transfers_are_short_only_where_running_ones_were_stopped(world):
    sample_transfers(world, 99)


@alone
@users_build
def test_slow_transfers_at_the_highest_rate(world):
    sample_transfers(world, 1000)


@alone
@users_build
def test_more_running_threads_than_cpus(world):
    spinning = 30
    with world.running("workers", 100, spinning, 0) as target:
        done = world.attach(target, "--threads=tid", duration="3s")
        turn_s = time_of(target.pid, ON_CPU, WAITING) / sum_of(target.pid, TURNS)
    stacks, planned = folded(done.stdout), ticks_planned(done.stderr)
    counts = by_root(stacks)
    assert len(counts) == spinning + 1, counts
    for root, count in counts.items():
        assert abs(count - planned) <= 2, (root, count, planned)
        assert root.startswith("fixture") or any(has(stack, root, "in_spin") for stack in stacks), (
            root, done.stdout, done.stderr)
    running = float(re.search(r"thread time: ([\d.]+) % running", done.stderr)[1])
    assert running * len(counts) < 110 * os.cpu_count(), done.stderr
    # After a thread's last turn it is not known where it was until the end, if it has no turn soon.
    without_s = PERIOD * sum(
        count for stack, count in stacks.items() if "not observed in time" in stack[1])
    each_s = 2 * turn_s + late_share(done.stderr) * planned * PERIOD
    assert without_s < spinning * min(each_s, 1), (without_s, turn_s, done.stderr)


def pauses_longest_s(summary):
    longest, unit = re.search(r"([\d.]+) (us|ms) max", summary).groups()
    return float(longest) * {"us": 1e-6, "ms": 1e-3}[unit]


@alone
@users_build
def test_pauses_take_no_more_than_they_may(world):
    def sample(*arguments):
        with world.running("workers", 30, 1, 0) as target:
            done = world.attach(target, "-F", 1000, "--threads=tid", "--capture=ptrace", *arguments,
                                duration="3s")
        for root, count in by_root(folded(done.stdout)).items():
            assert abs(count - ticks_planned(done.stderr)) <= 2, (root, count, done.stderr)
        share = float(re.search(r"([\d.]+) % of their running time$", done.stderr, re.M)[1])
        left_out = re.search(r"(\d+) more pauses? w[a-z]+ skipped", done.stderr)
        return pauses(done.stderr), share, int(left_out[1]) if left_out else 0, done.stderr

    many, _, none, _ = sample("--max-pause", 100)
    # Where a pause takes 10 us, this allows one in five.
    limit = 0.2
    few, share, left_out, summary = sample("--max-pause", limit)
    # A single pause may be longer than the thread's running time before it.
    assert none <= many / 100 and many > 2 * few and left_out > few, (many, few, none, left_out)
    # What a thread may be paused at first comes on top, a millisecond, and the pause that was one
    # too many: of the time that it ran, on a busy machine less than the three seconds. Of those
    # that the machine made long, at most one in a hundred where the 99th percentile is short, no
    # more than 2 ms count.
    running_s = 2 * 3 * float(re.search(r"thread time: ([\d.]+) % running", summary)[1]) / 100
    longest_s = pauses_longest_s(summary)
    above_s = longest_s if longest_s < 0.002 else (1 + few / 100) * longest_s
    assert share < limit + 100 * (0.001 + above_s) / running_s + 0.01, (share, summary)
    # Where the limit was not kept, the summary says so, and only there; 0.20 may be either.
    if share != limit:
        assert (f"that is more than --max-pause allows ({limit} %)" in summary) == (share > limit), summary


@alone
@users_build
def test_time_on_the_cpu_is_the_kernels(world):
    """There are more threads than CPUs: how long each ran does not depend on what ticks happen to
    see."""
    with world.running("workers", 30, 5, 0) as target:
        ran_before_s, begin = time_of(target.pid, ON_CPU), time.monotonic()
        done = world.attach(target, duration="4s")
        ran_s = time_of(target.pid, ON_CPU) - ran_before_s
        took_s = time.monotonic() - begin
    sampled_s = ticks_planned(done.stderr) * PERIOD
    found_s = float(re.search(r"([\d.]+) % running", done.stderr)[1]) / 100 * sampled_s * 6
    # Before and after sampling, they may run on all CPUs, or on none. The share is rounded to a
    # 1000th.
    before_and_after_s = os.cpu_count() * (took_s - sampled_s)
    assert ran_s - before_and_after_s - 0.1 < found_s < ran_s + 0.1, (found_s, ran_s, took_s, done)


@alone
def test_very_short_lived_threads(world):
    """2,000 threads a second that live for 2 ms: their time is counted, and nothing of them is kept."""
    out = world.path("churn.folded")
    sampler = world.start("run", "-o", out, "--threads=tid", "--", world.fixture("churn"), 5, 2000,
                          500, 2000)
    try:
        # The command's stdout is the profiler's.
        assert sampler.stdout.readline() == "ready\n"
        wait_until_sampling(sampler)
        fds, alive, rss_kb = [], [], []
        command = children_of(sampler.pid)[0]

        def goes_on():
            if not is_sampling(sampler):
                return False
            fds.append(len(os.listdir(f"/proc/{sampler.pid}/fd")))
            alive.append(len(threads_of(command)))
            rss_kb.append(int(status_field(sampler.pid, "VmRSS").split()[0]))
            return True

        wait_for(lambda: not goes_on(), "the end of the command", 60)
        stdout, stderr = sampler.communicate(timeout=60)
    finally:
        sampler.kill()
        sampler.wait()
    assert sampler.returncode == 0, stderr
    births, lived_s = re.fullmatch(r"(\d+) threads lived ([\d.]+) s\n", stdout).groups()
    assert int(births) >= 2000, stdout

    def rise(numbers):
        """The rise from beginning to end, except for moments in which the machine stalls."""
        early, late = numbers[len(numbers) // 5:len(numbers) // 2], numbers[len(numbers) // 2:]
        return statistics.median(late) - statistics.median(early)

    # Up to four for each living thread; more threads are alive if they wait for a CPU.
    assert rise(fds) <= 4 + 4 * max(0, rise(alive)), (fds[::100], alive[::100])
    if not world.is_sanitized:  # the sanitizer keeps freed memory for a while
        assert max(rss_kb) < 2 * rss_kb[len(rss_kb) // 5], rss_kb[::100]
    planned = ticks_planned(stderr)
    counts = by_root(folded(open(out).read()))
    main = max(counts.values())
    assert abs(main - planned) <= 2, (main, planned)
    found_s = (sum(counts.values()) - main) * PERIOD
    # Threads that exit while they are listed are counted too, without a stack.
    unseen = late_share(stderr)
    assert 0.85 - unseen < found_s / float(lived_s) < 1.2 + unseen, (found_s, stdout, stderr)


@alone
@users_build
def test_threads_that_are_gone_when_they_are_looked_at(world):
    """The threads live for 0.2 ms: many exit after they are listed and before they are read, but their time
    counts nevertheless. The lifetime that the fixture measures is a fifth longer than the one that the kernel
    lists."""
    out = world.path("gone.folded")
    done = world.fgprof("run", "-o", out, "--threads=tid", "--", world.fixture("churn"), 3, 200, 200)
    assert done.returncode == 0, done.stderr
    births, lived_s = map(float, re.search(r"(\d+) threads lived ([\d.]+) s\n", done.stdout).groups())
    stacks = folded(open(out).read())
    counts = by_root(stacks)
    found_s = (sum(counts.values()) - max(counts.values())) * PERIOD
    gone_s = PERIOD * sum(n for stack, n in stacks.items() if "not observed in time" in stack[1])
    unseen = late_share(done.stderr)
    assert 0.5 - unseen < found_s / lived_s < 1.6 + unseen, (found_s, done)
    assert gone_s < 0.9 * found_s, (gone_s, found_s, done)
    # If the machine stalls, they live for longer and can be read. The record of switches knows of many that
    # slept at a tick.
    assert gone_s > 0.04 * found_s or lived_s > births * 0.0008, (gone_s, found_s, done)


def test_fewer_files_than_threads(world):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 300:
        raise Skip("no 300 open files")
    with world.running("workers", 60, 0, 500) as target:
        wait_until_asleep(target.pid)
        done = world.fgprof(
            "attach", "-p", target.pid, "-d", "2s", "--threads=tid",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)))
    assert done.returncode == 0, done.stderr
    stacks, planned = folded(done.stdout), ticks_planned(done.stderr)
    counts = by_root(stacks)
    assert len(counts) == 501, len(counts)
    for root, count in counts.items():
        assert abs(count - planned) <= 1, (root, count, planned)
    assert all(has(stack, "in_sleep") or has(stack, "main") for stack in stacks), stacks
    assert re.search("^ .*open files", done.stderr, re.M), done.stderr


@alone
def test_more_running_threads_than_are_stopped_at_a_time(world):
    cpus = sorted(os.sched_getaffinity(0))[:1]
    with world.running("workers", 100, 150, 0) as target:
        for tid in os.listdir(f"/proc/{target.pid}/task"):
            os.sched_setaffinity(int(tid), cpus)
        sampler = world.start("attach", "-p", target.pid, "-d", "2s", "-o", world.path("out.folded"))
        wait_until_sampling(sampler)
        waited_s, longest_stall_s, then = 0, 0, time.monotonic()
        while is_sampling(sampler):
            waited_s = max(waited_s, time_of(sampler.pid, WAITING))
            longest_stall_s = max(longest_stall_s, time.monotonic() - then)
            then = time.monotonic()
            time.sleep(0.01)
        _, stderr = sampler.communicate(timeout=60)
    # It ends in time, and keeps its ticks meanwhile, except for the time in which it waited for a CPU itself,
    # or the whole machine stood still.
    elapsed_s, taken = re.match(r"fgprof-c: ([\d.]+) s at .* (\d+) taken", stderr).groups()
    hindered_s = waited_s + longest_stall_s
    assert sampler.returncode == 0 and float(elapsed_s) < 2.6 + hindered_s, (hindered_s, stderr)
    assert int(taken) > 10 or hindered_s > 0.5, (hindered_s, stderr)


def hold_in_a_round(sampler, thread, running, seconds):
    """Stops the profiler at a moment at which its sampling thread is not waiting and does not hold
    the running thread: a long pause would count against that thread's next one."""
    def call():
        return open(f"/proc/{thread}/syscall").read().split()[0]

    wait = next(number for number in iter(call, None) if number not in ("running", "-1"))

    def is_held():
        sampler.send_signal(signal.SIGSTOP)
        wait_for(lambda: status_field(thread, "State")[0] == "T", "the stop")
        if call() != wait and status_field(running, "TracerPid") == "0":
            return True
        sampler.send_signal(signal.SIGCONT)
        return False

    wait_for(is_held, "a round")
    time.sleep(seconds)
    sampler.send_signal(signal.SIGCONT)


@alone
@users_build
def test_what_held_a_round_up_is_not_rested_from(world):
    """The profiler rests for twice the CPU time that it needed, and not for the time that it stood still."""
    held_s = 2
    with world.running("workers", 100, 1, 500) as target:
        spinning = thread_named(target.pid, "spinning")

        def stops():
            return int(status_field(spinning, "voluntary_ctxt_switches"))

        def waited_s():
            return int(open(f"/proc/{sampling}/schedstat").read().split()[WAITING]) / 1e9

        sampler = world.start("attach", "-F", 1000, "--max-pause", 100, "--capture=ptrace", "-p",
                              target.pid)
        wait_until_sampling(sampler)
        sampling = thread_named(sampler.pid, "fgprof-sampler")
        for _ in range(2):
            before = stops()
            wait_for(lambda: stops() > before + 20, "ticks")
            hold_in_a_round(sampler, sampling, spinning, held_s)
            begin, before, waited_before_s = time.monotonic(), stops(), waited_s()
            wait_for(lambda: stops() > before, "ticks")
            waiting_s = waited_s() - waited_before_s
            assert time.monotonic() - begin - waiting_s < held_s, "it rests"
        end(sampler)


def test_what_can_not_be_read_is_not_stopped(world):
    """With so few open files that most of /proc can't be read, sleeping threads must not be taken for running
    ones."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    with world.running("workers", 30, 0, 20) as target:
        wait_until_asleep(target.pid)
        before = context_switches(target.pid)
        done = world.fgprof("attach", "-p", target.pid, "-d", "1s", preexec_fn=limit)
        if "samples" not in done.stderr:
            assert done.returncode == 1, done
            return
        moved = [thread for thread, count in context_switches(target.pid).items()
                 if count != before[thread]]
    assert " 0.0 % running" in done.stderr, done
    # One thread is woken for the frame pointer at each of two places, and another one if it moved meanwhile.
    assert len(moved) <= 4, (moved, done)
    assert pauses(done.stderr) <= len(moved), done


def test_a_process_that_nobody_waits_for(world):
    """Its time ends when it exits, and not when its parent reaps it."""
    with world.running("workers", 100, 0, 1) as brief, world.running("deep", 100, 10) as other:
        begin = time.monotonic()
        sampler = world.start("attach", "-p", f"{brief.pid},{other.pid}", "-t")
        wait_until_sampling(sampler)
        began = time.monotonic()
        time.sleep(0.5)
        shortest = time.monotonic() - began
        brief.kill()
        wait_for(lambda: status_field(brief.pid, "State")[0] == "Z", "its end")
        longest = time.monotonic() - begin
        time.sleep(1.5)
        stdout, stderr = end(sampler)
    counts, planned = by_root(folded(stdout)), ticks_planned(stderr)
    assert planned * PERIOD > shortest + 1.4, (planned, shortest)
    assert abs(counts["fixture-deep"] - planned) <= 1, (counts, stderr)
    # Its end was seen at a tick, and some ticks were late: its time ends at the tick before.
    unseen = late_share(stderr) * planned * PERIOD
    found = counts["fixture-workers"] * PERIOD
    assert shortest - unseen - 0.1 < found < longest + 0.1, (found, shortest, longest, stderr)

"""The numbers: a profile adds up to the time that passed."""

import contextlib
import re
import subprocess
import time

from harness import (PERIOD, RATE, alone, by_root, end, folded, has, late_share, ticks_planned, tool,
                     users_build, wait_for, wait_until_asleep, wait_until_sampling)
THREADS = {"fixture-states", "sleeping", "spinning", "locked", "piped"}


def test_each_thread_adds_up_to_the_time(world):
    with world.running("states", 30) as target:
        done = world.attach(target, "--threads=tid")
    counts = by_root(folded(done.stdout))
    assert {root.rsplit("/", 1)[0] for root in counts} == THREADS, counts
    assert len(counts) == len(THREADS)
    planned = ticks_planned(done.stderr)
    assert planned >= 2 * RATE - 1
    for root, count in counts.items():
        assert abs(count - planned) <= 1, f"{root}: {count} of {planned}"


def seed_of(stderr):
    return int(re.search(r"late \(seed (\d+)\)$", stderr, re.M)[1])


def test_a_seed_is_said_and_can_be_given(world):
    with world.running("states", 30) as target:
        seeds = {seed_of(world.attach(target, duration="100ms").stderr) for _ in range(3)}
        assert len(seeds) > 1, seeds
        for seed in 0, 18446744073709551615:
            done = world.attach(target, "--seed", seed, duration="100ms")
            assert seed_of(done.stderr) == seed, done.stderr


def test_the_shortest_recording_has_a_tick(world):
    # A period of 1 ms, then one that is longer than the recording.
    for rate in 1000, 99:
        with world.running("states", 30) as target:
            done = world.attach(target, "-F", rate, duration="1ms")
        assert int(re.search(r"(\d+) taken", done.stderr)[1]) >= 1, done.stderr
        assert ticks_planned(done.stderr) >= 1, done.stderr


@alone
@users_build
def test_late_ticks_carry_their_weight(world):
    # At 1000 Hz, with a stop of every thread at each tick, ticks are missed for certain.
    with world.running("states", 30) as target:
        done = world.attach(target, "-F", 1000, "--threads=tid")
    planned = ticks_planned(done.stderr)
    assert planned >= 1999
    for root, count in by_root(folded(done.stdout)).items():
        # What is outstanding at the end is sampled then.
        assert planned - 1 <= count <= planned + 1, f"{root}: {count} of {planned}"


def test_pprof_time_is_elapsed_time(world):
    profile = world.path("truth.pb.gz")
    with world.running("states", 30) as target:
        world.attach(target, "--threads=tid", "-o", profile)
    raw = tool("go", "tool", "pprof", "-raw", profile)
    duration = float(re.search(r"Duration: ([\d.]+)", raw)[1])
    times = {}
    for count, time_ns, labels in re.findall(
            r"^ +(\d+) +(\d+) +\d+ +\d+ +\d+: [\d ]+\n.*?thread:\[(.*?)\]", raw, re.M):
        times[labels] = times.get(labels, 0) + int(time_ns)
        assert int(time_ns) > 0 and int(count) >= 0
    assert set(times) == THREADS, times
    for name, time_ns in times.items():
        assert abs(time_ns / 1e9 - duration) < PERIOD + 0.02, (name, time_ns, duration)
    assert len(re.findall(r"tid:\[?\d+", raw)) >= len(THREADS), raw[:2000]


def test_equal_stacks_of_equally_named_threads_are_one_sample(world):
    profile, sleeping = world.path("equal.pb.gz"), 50
    with world.running("workers", 60, 1, sleeping) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        done = world.attach(target, "-o", profile, duration="1s")
        by_tid = world.attach(target, "--threads=tid", duration="1s")
    raw = tool("go", "tool", "pprof", "-raw", profile)
    assert "tid:" not in raw
    samples = re.findall(r"^ +(\d+) +\d+ +\d+ +\d+ +\d+: ([\d ]+)\n +(.*)$", raw, re.M)
    keys = [(stack, labels) for _, stack, labels in samples]
    assert len(keys) == len(set(keys)), "one stack in two samples"
    planned = ticks_planned(done.stderr)
    counts = [int(count) for count, _, labels in samples if "thread:[sleeping]" in labels]
    assert len(counts) == 1 and abs(counts[0] - sleeping * planned) <= sleeping, (counts, planned)
    stacks = folded(by_tid.stdout)
    assert sum(has(stack, "sleeping/", "in_sleep") for stack in stacks) == sleeping, stacks


@alone
@users_build
def test_short_lived_threads_are_counted_in_proportion(world):
    # About five threads of 5 ms each are alive at any time; the fixture reports how long they
    # lived.
    with world.running("churn", 3) as target:
        done = world.fgprof("attach", "-p", target.pid, "-t")
        lived_s = float(target.stdout.readline().split()[3])
    assert done.returncode == 0, done.stderr
    # Even if they still wait for their first CPU, or had no time to be captured.
    stacks = folded(done.stdout)
    short = sum(count for stack, count in stacks.items() if "main" not in stack)
    assert any("short_life" in stack for stack in stacks), stacks
    late = late_share(done.stderr)
    assert 0.6 - late < short * PERIOD / lived_s < 1.6 + late, (short * PERIOD, lived_s, late)


@alone
@users_build
def test_bursts_after_a_long_sleep_are_seen(world):
    """Threads that have slept for 8 s are observed every 0.2 s, but immediately if their process has used the
    CPU. A burst is shorter than that, so few of them would be seen by chance."""
    slept_s, burst_s, bursts = 8, 0.06, 6

    def tell(target):
        target.stdin.write("!")
        target.stdin.flush()

    def ran_s(target):
        return int(open(f"/proc/{target.pid}/schedstat").read().split()[0]) / 1e9

    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(world.running("phases", 100, stdin=subprocess.PIPE))
                   for _ in range(bursts)]
        for target in targets:
            tell(target)
        wait_until_asleep(*(target.pid for target in targets))
        sampler = world.start("attach", "-p", ",".join(str(target.pid) for target in targets),
                              "--threads=tid")
        wait_until_sampling(sampler)
        time.sleep(slept_s)
        for target in targets:
            until_s = ran_s(target) + burst_s
            tell(target)
            wait_for(lambda: ran_s(target) > until_s, "the end of a burst")
            tell(target)
            wait_until_asleep(target.pid)
        stdout, stderr = end(sampler)
    stacks, seen = folded(stdout), 0
    counts = by_root(stacks)
    for target in targets:
        root = f"phases/{target.pid}"
        assert abs(counts[root] - ticks_planned(stderr)) <= 1, (root, counts, stderr)
        found = sum(count for stack, count in stacks.items()
                    if has(stack, root, "in_second", "run_until_told"))
        seen += found * PERIOD > burst_s / 2
    # The machine may stall for longer than a burst.
    assert seen >= bursts - 1, (seen, stdout, stderr)


@alone
@users_build
def test_shares_of_the_example(world):
    """Its parts end at fixed times: if it, or the profiler, waits long for a CPU, that part lasts longer and
    others less."""
    done = world.fgprof("run", "-t", "--state", "--", world.build + "/examples/slow-service", 5)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    total = sum(count for stack, count in stacks.items() if stack[0] == "slow-service")
    waits = late_share(done.stderr) + sum(
        count for stack, count in stacks.items() if stack[-1] == "[runnable]") / total
    for name, share in ("slow_network_request", 0.6), ("cpu_intensive_task", 0.3), ("nap", 0.1):
        found = sum(count for stack, count in stacks.items()
                    if stack[0] == "slow-service" and name in stack)
        assert abs(found / total - share) < 0.05 + waits, (name, found / total, waits)

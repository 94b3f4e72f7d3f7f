"""The numbers: what a profile adds up to is the time that passed."""

import re

from harness import (PERIOD, RATE, alone, by_root, folded, has, late_share, ticks_planned, tool,
                     users_build, wait_until_asleep)
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
            r"^ +(\d+) +(\d+) +\d+ +\d+: [\d ]+\n.*?thread:\[(.*?)\]", raw, re.M):
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
    samples = re.findall(r"^ +(\d+) +\d+ +\d+ +\d+: ([\d ]+)\n +(.*)$", raw, re.M)
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
def test_shares_of_the_example(world):
    """Its parts end at given times: if it, or the profiler, waits for a CPU for long, that part
    lasts longer and others less."""
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

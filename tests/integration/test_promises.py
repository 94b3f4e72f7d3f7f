"""What the program promises of targets that are hard to sample."""

from harness import (by_root, context_switches, folded, pauses, threads_of, ticks_planned,
                     wait_until_asleep)

TRANSFERS = {"write", "send", "recv"}


def transfers(target):
    """What the fixture says at its end: {name: (calls, short ones, failed ones)}."""
    lines = [line.split() for line in target.stdout.read().splitlines()]
    assert target.wait(timeout=20) == 0
    result = {name: tuple(map(int, numbers)) for name, *numbers in lines}
    assert set(result) == TRANSFERS, lines
    return result


def test_transfers_that_sleep_are_never_cut_short(world):
    """Blocked in the middle of its block, and sampled: not one call comes back short."""
    with world.running("transfers", 5, "still") as one, world.running(
            "transfers", 5, "still") as two:
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


def time_on_cpu_or_waiting_for_one(pid):
    """Of all its threads, in seconds."""
    times = [open(f"/proc/{thread}/schedstat").read().split()[:2] for thread in threads_of(pid)]
    return sum(int(on_cpu) + int(waiting) for on_cpu, waiting in times) / 1e9


def sample_transfers(world, rate):
    """Slow transfers: a thread of them sleeps most of its time, and runs between. A call that is
    stopped in the middle of its copy comes back short, which is the kernel's doing; each such stop
    is a pause of a running thread, and is said. More short ones would be of stopped sleepers."""
    with world.running("transfers", 5) as target, world.running("transfers", 4) as alone:
        busy = time_on_cpu_or_waiting_for_one(target.pid)
        done = world.attach(target, "-F", rate, "-t", duration="3s")
        busy = time_on_cpu_or_waiting_for_one(target.pid) - busy
        sampled, unsampled = transfers(target), transfers(alone)
    short = sum(short for _, short, _ in sampled.values())
    stops = pauses(done.stderr)
    assert all(short == failed == 0 for _, short, failed in unsampled.values()), unsampled
    assert all(failed == 0 and calls > 1 for calls, _, failed in sampled.values()), sampled
    assert short <= stops, (sampled, done.stderr)
    # As often as the kernel's own account says that they run: here two in a hundred looks.
    assert stops <= 10 + 3 * busy * rate, (stops, busy, done.stderr)
    for name, count in by_root(folded(done.stdout)).items():
        assert abs(count - ticks_planned(done.stderr)) <= 1, (name, count, done.stderr)


def test_slow_transfers_are_short_only_where_running_ones_were_stopped(world):
    sample_transfers(world, 99)


def test_slow_transfers_at_the_highest_rate(world):
    sample_transfers(world, 1000)

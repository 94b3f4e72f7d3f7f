"""Targets that do what no program should: the profile comes whole, the target lives, and our memory
stays within a ratio of what a calm target takes."""

import time

from harness import HANGS_S, folded, has, late_share, status, ticks_planned, users_build

# Mappings; the kernel's default limit is 65530.
MANY = 30000
# Measured: 1.2 for so many mappings, 1.0 for the names.
MEMORY_RATIO = 2


def attach(world, target):
    """Returns the stacks, the summary and the most memory that the profiler is seen to have, in KiB."""
    sampler, most = world.start("attach", "-p", target.pid, "-d", "2s"), 0
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

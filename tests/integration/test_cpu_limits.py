"""Time that a quota takes from the threads of a control group. Needs root, to make one."""

import contextlib
import os
import re
import time

from harness import Skip
from test_cgroups import move
from test_waits import converted

# Version 2, alone or beside version 1; or the hierarchy of version 1 that has CPUs.
ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu")
PERIOD_US = 100000


def write(directory, name, text):
    """With version 1 in use, the root of version 2 may be an ordinary folder: creates no file."""
    with open(os.open(os.path.join(directory, name), os.O_WRONLY), "w") as file:
        file.write(text)


def set_quota(root, directory, cpus):
    quota = str(int(cpus * PERIOD_US))
    if root.endswith("/cpu"):
        write(directory, "cpu.cfs_period_us", str(PERIOD_US))
        write(directory, "cpu.cfs_quota_us", quota)
        return
    write(root, "cgroup.subtree_control", "+cpu")
    write(directory, "cpu.max", f"{quota} {PERIOD_US}")


@contextlib.contextmanager
def group_with_quota(cpus):
    """A new group, whose parent has this quota, and the parent."""
    parent = None
    for root in ROOTS:
        parent = os.path.join(root, f"fgprof-quota-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.mkdir(parent)
            set_quota(root, parent, cpus)
            os.mkdir(os.path.join(parent, "child"))
            break
        with contextlib.suppress(OSError):
            os.rmdir(parent)
    else:
        raise Skip("no control group with a quota may be made")
    child = os.path.join(parent, "child")
    try:
        yield child, parent
    finally:
        until = time.monotonic() + 30
        while os.path.exists(parent) and time.monotonic() < until:
            for directory in (child, parent):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
            time.sleep(0.1)


def throttled_s(directory):
    """How long the group has been throttled so far, according to the kernel."""
    text = open(os.path.join(directory, "cpu.stat")).read()
    found = re.search(r"throttled_usec (\d+)", text)
    return int(found[1]) / 1e6 if found else int(re.search(r"throttled_time (\d+)", text)[1]) / 1e9


def seconds(amount, unit):
    return float(amount) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def test_throttled_by_the_parents_quota(world):
    path = world.path("throttled.fgprof")
    with group_with_quota(0.05) as (child, parent), world.running("spinners", 60, 1) as target:
        move(target.pid, child)
        time.sleep(0.5)  # it was throttled before, too, which does not count
        before = throttled_s(parent)
        begin = time.monotonic()
        done = world.fgprof("attach", "-p", target.pid, "-d", "2s", "-o", path)
        after, elapsed = throttled_s(parent), time.monotonic() - begin
        assert done.returncode == 0, done.stderr
    found = re.search(r"  throttled ([\d.]+) (us|ms|s) by its control group's quota of 0\.05 CPUs\n", done.stderr)
    assert found, done.stderr
    told = seconds(found[1], found[2])
    # Between the two looks here there is more than the recording.
    assert 0.3 * (after - before) <= told <= after - before + 0.1 and told > 0, (told, before, after, elapsed)
    report = converted(world, path, "-f", "report")
    assert re.search(r"\d\. throttled [\d.]+ s by its control group's quota of 0\.05 CPUs\n", report), report


def test_nothing_is_said_without_a_quota(world):
    with world.running("spinners", 60, 1) as target:
        done = world.fgprof("attach", "-p", target.pid, "-d", "0.5s", "-f", "folded", "-o", "/dev/null")
    assert done.returncode == 0 and "throttled" not in done.stderr, done.stderr

"""Processes that are selected by their control group. Needs root, to make one."""

import contextlib
import os
import time

from harness import Skip, by_root, folded
from test_serve import serving

# Version 2 alone or beside version 1, or a hierarchy of version 1.
ROOTS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup")


@contextlib.contextmanager
def group(name):
    """A new group below the root of a hierarchy, and its path relative to that root."""
    path = f"fgprof-test-{os.getpid()}/{name}"
    for root in ROOTS:
        directory = os.path.join(root, path)
        try:
            os.makedirs(directory)
        except OSError:
            continue
        if not os.path.exists(os.path.join(directory, "cgroup.procs")):
            os.rmdir(directory)
            os.rmdir(os.path.dirname(directory))
            continue
        break
    else:
        raise Skip("no control group may be made")
    try:
        yield directory, "/" + path
    finally:
        until = time.monotonic() + 30
        while os.path.exists(directory) and time.monotonic() < until:
            try:
                os.rmdir(directory)
            except OSError:
                time.sleep(0.1)
        os.rmdir(os.path.dirname(directory))


def move(pid, directory):
    with open(os.path.join(directory, "cgroup.procs"), "w") as file:
        file.write(str(pid))


def sampled(world, *how):
    done = world.fgprof("attach", *how, "-d", "1s", "--processes")
    assert done.returncode == 0, done.stderr
    return {root.rsplit("/", 1)[-1] for root in by_root(folded(done.stdout))}


def test_processes_of_a_group(world):
    with world.running("states", 60) as first, world.running("states", 60) as second, \
            world.running("states", 60), group("redis.service") as (directory, path):
        move(first.pid, directory)
        move(second.pid, directory)
        both = {str(first.pid), str(second.pid)}
        # All but the first are below it, and the last is a part of an id.
        for how in (("--cgroup", directory), ("--cgroup", path), ("--cgroup", os.path.dirname(path)),
                    ("--unit", "redis"), ("--unit", "redis.service"), ("--container", "redis.se")):
            assert sampled(world, *how) == both, how
        move(first.pid, os.path.dirname(os.path.dirname(directory)))
        move(second.pid, os.path.dirname(os.path.dirname(directory)))


def test_profilers_leave_out_their_helpers(world):
    """Processes of one unit: a program, a profiler that serves, and this one."""
    with group("unit") as (directory, path), world.running("states", 60) as target:
        def join():
            move(os.getpid(), directory)
        done = world.fgprof("attach", "--cgroup", path, "-d", "1s", preexec_fn=join)
        assert done.returncode == 1 and "has no process to sample here" in done.stderr, done
        move(target.pid, directory)
        with serving(world, "-p", target.pid, preexec_fn=join) as server:
            done = world.fgprof("attach", "--cgroup", path, "-d", "1s", "--processes", preexec_fn=join)
            assert done.returncode == 0, done.stderr
            names = {root.rsplit("/", 1)[0] for root in by_root(folded(done.stdout))}
            assert names == {"fixture-states", "fgprof-c"}, names


def test_no_such_group(world):
    done = world.fgprof("attach", "--unit", "no-such-unit", "-d", "1s")
    assert done.returncode == 1 and "there is no unit no-such-unit below /sys/fs/cgroup" in done.stderr, done
    done = world.fgprof("attach", "--container", "abc", "-d", "1s")
    assert done.returncode == 1 and "container id abc is too short" in done.stderr, done
    done = world.fgprof("attach", "--unit", "a", "--cgroup", "b", "-d", "1s")
    assert done.returncode == 2 and "give one of --cgroup, --unit and --container, once" in done.stderr, done

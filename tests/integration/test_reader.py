"""The process that reads files of targets: what it may do, and when it ends."""

import contextlib
import os
import signal

from harness import READER, all_children_of, users_build, wait_for
from test_serve import serving

HELD = "inner_hold"  # a function of the target


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def readers_of(pid):
    """The process that starts readers, and its reader."""
    starters = [child for child in all_children_of(pid) if status_of(child)["Name"] == READER]
    assert len(starters) == 1, starters
    readers = all_children_of(starters[0])
    assert len(readers) == 1, readers
    return starters[0], readers[0]


def is_gone(pid):
    with contextlib.suppress(FileNotFoundError):
        return status_of(pid)["State"].startswith("Z")
    return True


@contextlib.contextmanager
def naming(world):
    """A server that has named a profile."""
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        assert HELD in names(server)
        yield server


def names(server):
    return server.text("/debug/fgprof?seconds=1&format=folded")


@users_build
def test_it_has_no_privileges(world):
    with naming(world) as server:
        _, reader = readers_of(server.sampler.pid)
        status = status_of(reader)
        assert status["NoNewPrivs"] == "1", status
        assert status["Seccomp"] == "2", status  # a filter
        for name in "CapInh", "CapPrm", "CapEff":
            assert int(status[name], 16) == 0, status
        for fd in os.listdir(f"/proc/{reader}/fd"):
            place = os.readlink(f"/proc/{reader}/fd/{fd}")
            with open(f"/proc/{reader}/fdinfo/{fd}") as file:
                flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
            is_read_only = flags & os.O_ACCMODE == os.O_RDONLY
            # The vdso is given to it as a copy in memory.
            assert is_read_only or place == "/dev/null" or place.startswith(("socket:", "/memfd:")), (place, flags)


@users_build
def test_another_takes_its_place(world):
    """Names stay whole when it is killed between two profiles."""
    with naming(world) as server:
        _, first = readers_of(server.sampler.pid)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: is_gone(first), "the reader's end")
        assert HELD in names(server)
        text = server.text("/debug/pprof/goroutine?debug=2")
        assert "be_last" in text and "crashed" not in text, text


@users_build
def test_it_ends_with_the_profiler(world):
    for number in signal.SIGKILL, signal.SIGINT:
        with naming(world) as server:
            pids = readers_of(server.sampler.pid)
            server.sampler.send_signal(number)
            server.sampler.wait(60)
            for pid in pids:
                wait_for(lambda pid=pid: is_gone(pid), "the end of the reader and its starter")


def test_it_starts_without_standard_streams(world):
    """Its socket then has the number of one of them."""
    output = world.path("names.folded")
    with world.running("holders", 60) as target:
        done = world.fgprof("attach", "-p", target.pid, "-d", "500ms", "-o", output,
                            preexec_fn=lambda: os.closerange(0, 3))
    with open(output) as file:
        assert done.returncode == 0 and HELD in file.read(), done

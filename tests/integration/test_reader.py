"""The processes that read files of targets, one for names and one for unwinding: what they may do, when they
end, and what happens then."""

import contextlib
import os
import re
import signal
import time

from harness import READER, RATE, all_children_of, users_build, wait_for, wait_for_ticks
from test_serve import serving

HELD = "inner_hold"  # a function of the target


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def readers_of(pid):
    """The process that starts readers and its reader: for names, and for unwinding."""
    starters = sorted(child for child in all_children_of(pid) if status_of(child)["Name"] == READER)
    assert len(starters) == 2, starters
    readers = [all_children_of(starter) for starter in starters]
    assert [len(found) for found in readers] == [1, 1], readers
    return [(starter, found[0]) for starter, found in zip(starters, readers)]


def reader_for_unwinding(pid):
    return readers_of(pid)[1][1]


def is_gone(pid):
    with contextlib.suppress(FileNotFoundError):
        return status_of(pid)["State"].startswith("Z")
    return True


@contextlib.contextmanager
def naming(world):
    """A server that has symbolized a profile."""
    with world.running("holders", 60) as target, serving(world, "-p", target.pid) as server:
        assert HELD in names(server)
        yield server


def names(server):
    return server.text("/debug/fgprof?seconds=1&format=folded")


@users_build
def test_it_has_no_privileges(world):
    with naming(world) as server:
        for _, reader in readers_of(server.sampler.pid):
            status = status_of(reader)
            assert status["NoNewPrivs"] == "1", status
            assert status["Seccomp"] == "2", status  # a filter
            for name in "CapInh", "CapPrm", "CapEff":
                assert int(status[name], 16) == 0, status
            places = [check_file(reader, fd) for fd in os.listdir(f"/proc/{reader}/fd")]
            assert any(place.endswith("-holders") for place in places), places  # it has been asked


def check_file(reader, fd):
    place = os.readlink(f"/proc/{reader}/fd/{fd}")
    with open(f"/proc/{reader}/fdinfo/{fd}") as file:
        flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    is_read_only = flags & os.O_ACCMODE == os.O_RDONLY
    # The vdso is given to it as a copy in memory.
    assert is_read_only or place == "/dev/null" or place.startswith(("socket:", "/memfd:")), (place, flags)
    return place


@users_build
def test_another_takes_its_place(world):
    """Names and stacks stay complete when readers are killed between two profiles."""
    with naming(world) as server:
        for _, first in readers_of(server.sampler.pid):
            os.kill(first, signal.SIGKILL)
            wait_for(lambda pid=first: is_gone(pid), "the reader's end")
        assert HELD in names(server)
        text = server.text("/debug/pprof/goroutine?debug=2")
        assert "be_last" in text and "crashed" not in text, text


@users_build
def test_it_ends_with_the_profiler(world):
    for number in signal.SIGKILL, signal.SIGINT:
        with naming(world) as server:
            pids = [pid for pair in readers_of(server.sampler.pid) for pid in pair]
            server.sampler.send_signal(number)
            server.sampler.wait(60)
            for pid in pids:
                wait_for(lambda pid=pid: is_gone(pid), "the end of the reader and its starter")


@users_build
def test_it_has_the_profilers_share_of_the_cpu(world):
    """A session has a share (sched(7), autogroup). Signals from the terminal go only to the profiler."""
    with naming(world) as server:
        profiler = server.sampler.pid
        for pid in (pid for pair in readers_of(profiler) for pid in pair):
            assert os.getsid(pid) == os.getsid(profiler), pid
            assert os.getpgid(pid) != os.getpgid(profiler), pid


def test_it_starts_without_standard_streams(world):
    """The reader's socket then has the number of one of them."""
    output = world.path("names.folded")
    with world.running("holders", 60) as target:
        done = world.fgprof("attach", "-p", target.pid, "-d", "500ms", "-o", output,
                            preexec_fn=lambda: os.closerange(0, 3))
    with open(output) as file:
        assert done.returncode == 0 and HELD in file.read(), done


# A program that goes on to new code all the time, so that its reader is asked until the end.
NEW_CODE = """
import importlib, time
end = time.monotonic() + 30
for name in ("json", "decimal", "sqlite3", "xml.dom.minidom", "ssl", "ctypes", "lzma", "bz2", "zlib", "hashlib"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        sorted(str(i) for i in range(300))
        time.sleep(0.001)
"""


@users_build
def test_it_is_killed_again_and_again(world):
    """Each question is asked again, and the profile is complete."""
    sampler = world.start("run", "-o", world.path("out.folded"), "--", "python3", "-c", NEW_CODE)
    killed = set()
    wait_for_ticks(sampler)
    while sampler.poll() is None:
        with contextlib.suppress(AssertionError, FileNotFoundError, ProcessLookupError, IndexError):
            reader = reader_for_unwinding(sampler.pid)
            os.kill(reader, signal.SIGKILL)
            killed.add(reader)
        time.sleep(0.05)
    stderr = sampler.stderr.read()
    with open(world.path("out.folded")) as file:
        text = file.read()
    assert sampler.returncode == 0 and len(killed) > 2, (sampler.returncode, killed, stderr)
    assert "could not be read" not in stderr and "not read" not in text, (stderr, text)
    assert float(re.search(r"([\d.]+) % cut", stderr)[1]) < 1, stderr


@users_build
def test_it_hangs(world):
    """Ticks continue, the summary names the module of the last question, and others are unwound."""
    output = world.path("out.folded")
    command = "sleep 1; exec python3 -c 'import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: sum(range(100))'"
    sampler = world.start("run", "-o", output, "--", "sh", "-c", command)
    wait_for_ticks(sampler)
    os.kill(reader_for_unwinding(sampler.pid), signal.SIGSTOP)
    _, stderr = sampler.communicate(timeout=60)
    with open(output) as file:
        text = file.read()
    assert sampler.returncode == 0, stderr
    assert re.search(r"could not be read: .*\(reading it takes too long\)", stderr), stderr
    assert "[truncated: unwind info not read in" in text, text
    late, planned = (int(re.search(rf"(\d+) {what}", stderr)[1]) for what in ("late", "ticks planned"))
    assert planned > 4 * RATE and late < 0.1 * planned, stderr

"""The live view, on a pseudo-terminal."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import folded, has, wait_for

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's other screen
SEQUENCE = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|\([A-Z0-9]|[=>])")


class Terminal:
    """A pseudo-terminal with the profiler in it, and all that it has drawn."""

    def __init__(self, world, *arguments, term="xterm", rows=40, columns=120):
        self.side, other = pty.openpty()
        self.other = other  # kept, so that its modes can be asked for at the end
        self.resize(rows, columns)
        self.before = termios.tcgetattr(other)
        self.drawn = b""

        def take():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.sampler = subprocess.Popen(
            [world.program, *map(str, arguments)], stdin=other, stdout=other,
            stderr=subprocess.PIPE, preexec_fn=take,
            env={**os.environ, "TERM": term, "LC_ALL": "C.UTF-8"})

    def resize(self, rows, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.side], [], [], 0.02)[0]:
            self.drawn += os.read(self.side, 65536)
        return self.drawn

    def text(self):
        return SEQUENCE.sub(b" ", self.read()).decode(errors="replace")

    def shows(self, *words):
        wait_for(lambda: all(word in self.text() for word in words), f"{words} on the screen")

    def press(self, keys):
        """Presses keys; what was drawn before is forgotten."""
        self.read()
        self.drawn = b""
        os.write(self.side, keys.encode())

    def end(self):
        """Waits for the end, and checks that the terminal is as it was."""
        def has_ended():
            self.read()
            return self.sampler.poll() is not None
        wait_for(has_ended, "the end")
        assert termios.tcgetattr(self.other) == self.before, "modes are not restored"
        return self.sampler.returncode


@contextlib.contextmanager
def top(world, target, *arguments, **options):
    """Of this process, or of what the arguments say where there is none."""
    which = ["-p", target.pid] if target else []
    terminal = Terminal(world, "top", *which, *arguments, **options)
    try:
        yield terminal
    finally:
        if terminal.sampler.poll() is None:
            terminal.sampler.kill()
        terminal.sampler.wait()
        terminal.sampler.stderr.close()
        os.close(terminal.side)
        os.close(terminal.other)


def row(terminal, name):
    """The last drawn numbers before a function's name."""
    found = re.findall(r"(\d+\.\d) +(\d+\.\d) +(\d+\.\d\d) +(\d+\.\d\d) +" + name + r"\b",
                       terminal.text())
    return [float(number) for number in found[-1]] if found else None


def test_top_shows_functions_of_known_shares(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_spin", "in_lock", "in_pipe", "threads 5:")
        # Whole redraws give whole rows; by then a second has passed.
        time.sleep(2)
        for name in ("in_sleep", "in_lock", "in_pipe"):
            terminal.press("h")
            terminal.shows("this help")
            terminal.press("h")
            wait_for(lambda: row(terminal, name), name)
            self_percent, total_percent, self_s, total_s = row(terminal, name)
            assert self_percent < 5 and self_s < 0.5, row(terminal, name)
            assert 60 <= total_percent <= 140 and total_s > 1, row(terminal, name)
        terminal.press("q")
        assert terminal.end() == 0
        assert LEAVES in terminal.drawn


def test_top_keys_sort_and_filter(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_pipe")
        terminal.press("/^in_p\r")
        terminal.shows("filter: ^in_p")
        terminal.press("h")
        terminal.shows("this help")
        terminal.press("h")
        terminal.shows("in_pipe")
        assert "in_sleep" not in terminal.text()
        terminal.press("/in_\rn")
        terminal.press("h")
        terminal.shows("this help")
        terminal.press("h")
        terminal.shows("in_lock", "in_pipe", "in_sleep", "in_spin")
        names = re.findall(r"in_[a-z]+", terminal.text().split("FUNCTION")[-1])
        assert names[:4] == ["in_lock", "in_pipe", "in_sleep", "in_spin"], names
        terminal.press("/\rT")
        terminal.shows("RUNNABLE%", "locked", "futex", "clock_nanosleep")


def test_top_survives_resizing(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        for rows, columns in ((3, 10), (1, 1), (200, 400), (24, 80)):
            terminal.resize(rows, columns)
            terminal.press("T")
            terminal.press("hhT")
            time.sleep(0.3)
            terminal.read()
            assert terminal.sampler.poll() is None
        terminal.press("h")
        terminal.shows("this help")
        terminal.press("q")
        assert terminal.end() == 0


def test_top_restores_the_terminal_after_signals(world):
    with world.running("states", 60) as target:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV):
            with top(world, target) as terminal:
                terminal.shows("in_sleep")
                assert ENTERS in terminal.drawn
                terminal.sampler.send_signal(number)
                terminal.end()
                assert terminal.drawn.rindex(LEAVES) > terminal.drawn.rindex(ENTERS)


def test_top_keeps_the_view_of_a_target_that_has_exited(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        target.kill()
        terminal.shows("ENDED")
        terminal.press("h")
        terminal.shows("this help")
        terminal.press("h")
        terminal.shows("in_sleep")
        terminal.press("q")
        assert terminal.end() == 0


def test_top_writes_a_profile(world):
    path = world.path("top.folded")
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        terminal.press("w/nowhere/x.folded\r")
        terminal.shows("No such file or directory")
        terminal.press(f"w{path}.unknown\r")
        terminal.shows("ending names no format")
        terminal.press(f"w{path}\r")
        terminal.shows("written to")
        stacks = folded(open(path).read())
        assert any(has(stack, "in_sleep", "clock_nanosleep") for stack in stacks), stacks
        terminal.press("q")
        assert terminal.end() == 0
    assert not [name for name in os.listdir(world.directory) if name.startswith(".top.folded")]


def test_top_needs_a_terminal(world):
    with world.running("states", 30) as target:
        done = world.fgprof("top", "-p", target.pid)
        assert done.returncode == 1 and "needs a terminal" in done.stderr, done
        with top(world, target, term="dumb") as terminal:
            assert terminal.end() == 1
            assert b"can't draw" in terminal.sampler.stderr.read()


def test_top_of_chosen_threads(world):
    with world.running("states", 60) as target, \
            top(world, target, "--thread", "^(locked|piped)$") as terminal:
        terminal.shows("threads 2:", "in_lock", "in_pipe")
        terminal.press("Th")
        terminal.shows("this help")
        terminal.press("h")
        terminal.shows("locked", "piped")
        assert "spinning" not in terminal.text(), terminal.text()
        terminal.press("q")
        assert terminal.end() == 0
    done = world.fgprof("top", "-p", os.getpid(), "--tid", "1")
    assert done.returncode == 1 and "no thread 1 in" in done.stderr, done


def test_top_of_processes_by_name_and_of_their_children(world):
    name = f"fgto{os.getpid() % 100000}"
    os.symlink("/bin/sh", world.path(name))
    with subprocess.Popen([world.path(name), "-c", "sleep 60 & echo $!; wait"], text=True,
                          stdout=subprocess.PIPE) as target:
        child = int(target.stdout.readline())
        try:
            with top(world, None, "--pgrep", f"^{name}$", "--children") as terminal:
                terminal.shows(f"^{name}$", "threads 2:")
                terminal.press("Th")
                terminal.shows("this help")
                terminal.press("h")  # whole redraws give whole rows
                terminal.shows(str(target.pid), str(child), "clock_nanosleep")
                terminal.press("q")
                assert terminal.end() == 0
        finally:
            os.kill(child, signal.SIGKILL)
            target.kill()

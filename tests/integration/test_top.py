"""The live view, on a pseudo-terminal."""

import contextlib
import fcntl
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import time

from harness import folded, has, users_build, wait_for
from screen import Screen

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"  # xterm's other screen


class Terminal:
    """A pseudo-terminal with the profiler in it, and everything that it has drawn."""

    def __init__(self, world, *arguments, term="xterm", rows=40, columns=120):
        self.side, other = pty.openpty()
        self.screen = Screen(rows, columns)
        self.other = other  # kept to query its modes at the end
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
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.side], [], [], 0.02)[0]:
            data = os.read(self.side, 65536)
            self.drawn += data
            self.screen.feed(data)
        return self.drawn

    def lines(self):
        self.read()
        return self.screen.lines()

    def text(self):
        return "\n".join(self.lines())

    def shows(self, *words):
        wait_for(lambda: all(word in self.text() for word in words), f"{words} on\n{self.text()}")

    def hides(self, *words):
        wait_for(lambda: not any(word in self.text() for word in words),
                 f"no {words} on\n{self.text()}")

    def press(self, keys):
        self.read()
        os.write(self.side, keys.encode())

    def end(self):
        """Waits for the end, and checks that the terminal is restored."""
        def has_ended():
            self.read()
            return self.sampler.poll() is not None
        wait_for(has_ended, "the end")
        assert termios.tcgetattr(self.other) == self.before, "modes are not restored"
        if ENTERS in self.drawn:
            assert self.drawn.rindex(LEAVES) > self.drawn.rindex(ENTERS)
            shown = max(self.drawn.rfind(b"\x1b[?25h"), self.drawn.rfind(b"\x1b[?12l\x1b[?25h"))
            assert shown > self.drawn.rfind(b"\x1b[?25l"), "the cursor is still hidden"
        return self.sampler.returncode


@contextlib.contextmanager
def top(world, target, *arguments, shows_idle=True, **options):
    """Starts `top` on this process, or on what the arguments name if there is none."""
    which = ["-p", target.pid] if target else []
    terminal = Terminal(world, "top", *which, *arguments, **options)
    if shows_idle:
        terminal.press("x")
    try:
        yield terminal
    finally:
        if terminal.sampler.poll() is None:
            terminal.sampler.kill()
        terminal.sampler.wait()
        terminal.sampler.stderr.close()
        os.close(terminal.side)
        os.close(terminal.other)


ROW = re.compile(r" *(\d+\.\d) +(\d+\.\d) ([#=.T? ]{8}) +(\d+\.\d\d) +(\d+\.\d\d) (\S+)")


def rows(terminal):
    """Rows by function: SELF%, TOTAL%, states, SELF s, TOTAL s; in the order of the screen."""
    found = {}
    for line in terminal.lines():
        match = ROW.match(line)
        if match:
            self_percent, total_percent, states, self_s, total_s, name = match.groups()
            found[name] = (float(self_percent), float(total_percent), states, float(self_s),
                           float(total_s))
    return found


def test_top_shows_functions_of_known_shares(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_spin", "in_lock", "in_pipe", "threads 5:")

        def sleepers_have_all_of_a_thread():
            shown = rows(terminal)
            # in_sleep calls sleep_until; what the C library does for the others is their own.
            return all(name in shown and 90 <= shown[name][1] <= 110 and shown[name][4] > 1 and
                       (shown[name][0] < 5 if name == "in_sleep" else 90 <= shown[name][0] <= 110) and
                       shown[name][2] == "........" for name in ("in_sleep", "in_lock", "in_pipe"))
        wait_for(sleepers_have_all_of_a_thread, "three that sleep")
        # Not those of the C library, which they sleep in.
        wait_for(lambda: set(list(rows(terminal))[:4]) <= {"sleep_until", "in_sleep", "in_lock", "in_pipe", "in_spin"},
                 "the program's own functions first")
        wait_for(lambda: re.fullmatch("[#=]{8}", rows(terminal).get("in_spin", ("", "", ""))[2]),
                 "one that has or wants a CPU")
        # What the characters of the bars mean.
        wait_for(lambda: re.search(r"\] # running \d+% .*\. asleep \d+%", terminal.text()), "marks")
        terminal.press("q")
        assert terminal.end() == 0


def test_top_sorts(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        names = ["in_lock", "in_pipe", "in_sleep", "in_spin"]
        terminal.shows(*names)
        terminal.press("/^in_\rn")
        wait_for(lambda: list(rows(terminal)) == names, "order by name")
        for key, column in (("s", 0), ("s", 3), ("t", 1), ("t", 4)):
            terminal.press(key)

            def is_sorted():
                values = [row[column] for row in rows(terminal).values()]
                return len(values) >= 3 and values == sorted(values, reverse=True)
            wait_for(is_sorted, f"order by column {column}")


def test_top_filters(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_pipe")
        terminal.press("/^in_p\r")
        terminal.hides("in_sleep")
        terminal.shows("filter: ^in_p", "in_pipe")
        # Not a regular expression, so it is searched as text.
        terminal.press("/[\r")
        terminal.hides("in_pipe")
        terminal.shows("filter: [", "searched as plain text")
        # A slip of the keys is taken back, an answer given up leaves what was.
        terminal.press("/in_pX\x7fi\r")
        terminal.shows("filter: in_pi", "in_pipe")
        terminal.press("/zzz")
        terminal.shows(": zzz")
        terminal.press("\x1b")
        terminal.hides("zzz")
        terminal.shows("filter: in_pi", "in_pipe")
        terminal.press("/\r")
        terminal.hides("filter:")
        terminal.shows("in_sleep")


def test_top_shows_threads_and_one_threads_functions(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_pipe")
        terminal.press("T")
        terminal.shows("CPU WAIT%", "locked", "futex", "clock_nanosleep")
        terminal.press("/futex\r")
        terminal.hides("clock_nanosleep")
        terminal.press("\r")
        terminal.shows("functions of thread", "locked")
        terminal.press("/\r")
        terminal.shows("in_lock")
        terminal.hides("in_sleep", "in_pipe")
        terminal.press("\x1b")
        terminal.shows("functions of all threads", "in_lock", "in_sleep", "in_pipe")


def waits(terminal):
    """Rows by resource: WAITERS, WAIT%, WAIT s, OWNER."""
    found = {}
    for line in terminal.lines():
        match = re.match(r" *(\d+) +(\d+\.\d) +(\d+\.\d\d) (\S.*?)  +(\S.*?)\s*$", line)
        if match:
            waiters, part, time_s, name, owner = match.groups()
            found[name] = (int(waiters), float(part), float(time_s), owner)
    return found


def test_top_shows_what_threads_wait_for(world):
    with world.running("locks", 60, world.path("locked")) as target, top(world, target) as terminal:
        terminal.shows("pthread_mutex_lock")
        terminal.press("W")
        terminal.shows("what threads wait for", "WAITERS", "W waits")
        # Two threads wait for a lock of the main thread all the time, one for no known owner.
        wait_for(lambda: "mutex held" in waits(terminal) and
                 waits(terminal)["mutex held"][0] == 2 and
                 180 <= waits(terminal)["mutex held"][1] <= 220 and
                 waits(terminal)["mutex held"][2] > 2, "two waiters")
        rows = waits(terminal)
        assert rows["mutex held"][3] == "fixture-locks" and rows["mutex first"][3] == "cycle-a", rows
        assert rows["semaphore semaphore"][0] == 1, rows
        assert rows["semaphore semaphore"][3] == "not known", rows
        parts = [row[1] for row in rows.values()]
        assert parts == sorted(parts, reverse=True), rows
        terminal.press("/cycle-a\r")
        terminal.hides("mutex held")
        terminal.shows("mutex first")
        terminal.press("/\rW")
        terminal.shows("functions of all threads")


def test_top_leaves_out_waiting_and_idle_threads(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep", "in_spin")
        terminal.press("i")
        terminal.shows("on CPU only", "in_spin")
        terminal.hides("in_sleep", "in_lock", "in_pipe")
        terminal.press("i")
        terminal.shows("in_sleep")
        terminal.press("x")
        terminal.shows("all threads except idle ones", "in_spin")
        terminal.hides("in_sleep", "in_pipe")
        terminal.press("x")
        terminal.shows("in_sleep")


def test_top_opens_without_idle_threads(world):
    """A thread that waits for a lock is not idle."""
    with world.running("states", 60) as target, top(world, target, shows_idle=False) as terminal:
        terminal.shows("all threads except idle ones", "in_spin", "in_lock")
        terminal.hides("in_sleep", "in_pipe")
        terminal.press("x")
        terminal.shows("in_sleep", "in_pipe", "in_spin")


def time_in_sleep(terminal):
    """TOTAL s of in_sleep, from a completely drawn screen: it stays the same for a while."""
    seen = [None]

    def is_still():
        time.sleep(0.1)
        seen.append(rows(terminal).get("in_sleep"))
        return seen[-1] and seen[-1] == seen[-2]
    wait_for(is_still, "in_sleep")
    return seen[-1][4]


def test_top_holds_and_counts_anew(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        wait_for(lambda: rows(terminal).get("in_sleep", [0] * 5)[4] >= 2, "two seconds")
        terminal.press(" ")
        terminal.shows("HELD")
        held = time_in_sleep(terminal)
        time.sleep(1.5)  # two views come in this time
        assert time_in_sleep(terminal) == held
        terminal.press(" ")
        terminal.hides("HELD")
        wait_for(lambda: time_in_sleep(terminal) > held, "it goes on")
        before = time_in_sleep(terminal)
        terminal.press("r")
        wait_for(lambda: rows(terminal).get("in_sleep", [0] * 5)[4] < before, "less than before")
        terminal.shows("in_sleep")


def test_top_scrolls(world):
    with world.running("states", 60) as target, top(world, target, rows=12) as terminal:
        terminal.shows("rows 1-6 of")
        terminal.press("n")  # the order is the same from now on
        for keys, first in (("\x1bOB", 2), ("\x1bOB\x1bOB", 4), ("\x1bOA", 3), ("\x1b[6~", 9),
                            ("\x1b[5~", 3), ("\x1bOH", 1)):
            terminal.press(keys)
            terminal.shows(f"rows {first}-")
        terminal.press("\x1bOF")
        wait_for(lambda: re.search(r"-(\d+) of \1$", terminal.text(), re.MULTILINE), "the end")
        terminal.press("T\x1bOB\x1bOB\r")
        terminal.shows("functions of thread")


def test_top_help_names_all_keys(world):
    with world.running("states", 60) as target, top(world, target, rows=24, columns=80) as terminal:
        terminal.shows("in_sleep")
        terminal.press("h")
        terminal.shows("s t n", "/ f", "T  ", "Enter", "Esc", "W  ", "x  ", "i  ", "r  ", "w  ", "space",
                       "PgDn", "h ?", "q  quit")
        assert "~" not in terminal.text()
        terminal.press("\x1b")
        terminal.shows("in_sleep")


def test_top_has_room_for_names_in_small_windows(world):
    with world.running("states", 60) as target:
        for size in ((24, 80), (10, 40), (60, 200)):
            with top(world, target, rows=size[0], columns=size[1]) as terminal:
                terminal.shows("in_")
                terminal.press("/in_\r")
                terminal.shows("in_sleep", "in_lock")
                terminal.press("T/\r")
                terminal.shows("locked")
                terminal.press("q")
                assert terminal.end() == 0


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


def test_top_ends_at_control_c(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        terminal.press("\x03")
        assert terminal.end() == 0


def test_top_ends_when_its_terminal_is_gone(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        os.close(terminal.other)
        os.close(terminal.side)
        terminal.sampler.wait(timeout=20)
        # Descriptors for later code to close.
        terminal.side, terminal.other = os.open("/dev/null", os.O_RDWR), os.open("/dev/null",
                                                                                 os.O_RDWR)


def test_top_leaves_the_terminal_alone_where_it_cannot_attach(world):
    class Nobody:
        pid = 4194304 + 1  # more than the highest possible id
    with top(world, Nobody, shows_idle=False) as terminal:
        assert terminal.end() == 1
        assert not terminal.drawn
        assert b"process" in terminal.sampler.stderr.read()


@users_build  # the sanitizers end the program if there is none
def test_top_restores_the_terminal_where_memory_is_out(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        resource.prlimit(terminal.sampler.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        for keys in ("T", "x", "/in\r", "h"):
            terminal.press(keys)
            time.sleep(0.5)  # altogether, two views come
        terminal.press("q")
        assert terminal.end() in (0, 1)


def test_top_keeps_the_view_of_a_target_that_has_exited(world):
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        target.kill()
        terminal.shows("ENDED")
        terminal.press("h")
        terminal.shows("this help")
        terminal.press("h")
        terminal.hides("this help")
        terminal.shows("in_sleep")
        terminal.press("q")
        assert terminal.end() == 0


def test_top_writes_a_profile(world):
    path = world.path("top.folded")
    with world.running("states", 60) as target, top(world, target) as terminal:
        terminal.shows("in_sleep")
        terminal.press("w/nowhere/x.folded\r")
        terminal.shows("not written", "No such file")
        terminal.press(f"w{path}.unknown\r")
        terminal.shows("ending names no format")
        terminal.press("w" + world.path("top.speedscope.json") + "\r")
        terminal.shows("which speedscope shows")
        terminal.press(f"w{path}\r")
        terminal.shows("written to")
        stacks = folded(open(path).read())
        assert any(has(stack, "in_sleep", "clock_nanosleep") for stack in stacks), stacks
        page = world.path("top.html")
        terminal.press(f"w{page}\r")
        wait_for(lambda: os.path.exists(page), "the page")
        terminal.shows(f"written to {page}")
        assert "</html>" in open(page).read()
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

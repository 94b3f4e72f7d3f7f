"""What the integration tests share: starting fixtures and the profiler, reading profiles."""

import collections
import contextlib
import ctypes
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

RATE = 99
PERIOD = 1 / RATE
# The limit for what hangs: nothing that works takes this long, even if others use the CPUs.
HANGS_S = 300


class Skip(Exception):
    """The reason why this machine can't show what the test checks."""


class Missing(Skip):
    """Something that scripts/setup installs is missing, which is a failure after scripts/setup has run."""


def need(*programs):
    """Raises Missing unless all of these programs are installed. Each belongs to a package that
    scripts/setup lists (test_scripts.py)."""
    for program in programs:
        # Servers are in /usr/sbin, which is not in the PATH of every user.
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            raise Missing(f"no {program}")


def need_file(name, *patterns):
    """Returns the first file that matches one of the patterns; raises Missing if there is none."""
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not found:
        raise Missing(f"no {name}")
    return found[0]


def need_flamegraph():
    return need_file("flamegraph.pl", "/usr/share/perl5/*/*/flamegraph.pl")


def flame_graph(path):
    """Returns what flamegraph.pl draws of a file of folded stacks."""
    return tool("perl", need_flamegraph(), path)


def alone(test):
    """Marks a test that other load on the machine would disturb: it runs alone."""
    test.is_alone = True
    return test


def is_alone(test):
    return getattr(test, "is_alone", False)


def is_of_users_build(test):
    return getattr(test, "is_of_users_build", False)


def users_build(test):
    """Marks a test of the build that users get: under the sanitizers it would measure these, or take too long
    for checks that other tests make there."""
    test.is_of_users_build = True
    return test


class World:
    """The programs under test, in one build directory, and a directory for files."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.program = os.path.join(self.build, "fgprof-c")
        self.source = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
        self.is_sanitized = "FGPROF_SANITIZE:BOOL=ON" in open(
            os.path.join(self.build, "CMakeCache.txt")).read()
        self._directory = tempfile.TemporaryDirectory(prefix="fgprof-test-")
        self.directory = self._directory.name
        self._started = []
        os.chmod(self.directory, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills the profilers that a failed test may have left behind."""
        for sampler in self._started:
            if sampler.poll() is None:
                sampler.kill()
                sampler.wait()
        self._directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory, name)

    def fixture(self, name):
        return os.path.join(self.build, "tests/fixtures", "fixture-" + name)

    def fgprof(self, *arguments, **options):
        """Runs the profiler to its end. Returns it with returncode, stdout and stderr."""
        options.setdefault("timeout", HANGS_S)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([self.program, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **options)

    def start(self, *arguments, **options):
        """Starts the profiler and returns immediately."""
        sampler = subprocess.Popen([self.program, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self._started.append(sampler)
        return sampler

    def running(self, name, *arguments, program=None, **options):
        """A fixture that has reported that it is ready; it is ended with the context. `program`: a copy to
        run instead, so that other tests do not mistake it for theirs."""
        return ready(program or self.fixture(name), *arguments, **options)

    def attach(self, target, *arguments, duration="2s", **options):
        """Profiles a running process; fails if that fails."""
        done = self.fgprof("attach", "-p", target.pid, "-d", duration, *arguments, **options)
        assert done.returncode == 0, done.stderr
        return done


@contextlib.contextmanager
def ready(*command, **options):
    """A program that has reported that it is ready; it is ended with the context."""
    target = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, **options)
    try:
        line = target.stdout.readline()
        assert line == "ready\n", f"{command[0]} said {line!r}"
        yield target
    finally:
        if target.poll() is None:
            target.kill()
        for file in target.stdin, target.stdout:
            if file:
                file.close()
        target.wait()


def folded(text):
    """Folded lines as {(frame, ...): count}; every line must be one."""
    stacks = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(.*\S) (\d+)", line)
        assert match, f"not a folded line: {line!r}"
        stack = tuple(match[1].split(";"))
        assert stack not in stacks, f"twice: {line!r}"
        stacks[stack] = int(match[2])
    return stacks


def by_root(stacks):
    """Counts by root frame."""
    counts = collections.Counter()
    for stack, count in stacks.items():
        counts[stack[0]] += count
    return counts


def has(stack, *names):
    """Whether the stack has these frames, in this order, possibly with others in between."""
    frames = iter(stack)
    return all(any(name in frame for frame in frames) for name in names)


def wait_for(condition, what, seconds=60):
    """Waits until the condition is true, and fails if it stays false: the limit is far longer than usual,
    because a busy machine may be ten times slower."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.005)


def end(sampler):
    """Ends a profiler as Ctrl-C does. Returns what it wrote to stdout and stderr."""
    sampler.send_signal(signal.SIGINT)
    stdout, stderr = sampler.communicate(timeout=HANGS_S)
    assert sampler.returncode == 0, stderr
    return stdout, stderr


def threads_of(pid):
    """The process's threads as in /proc: PID/task/TID."""
    return [f"{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


def thread_named(pid, name):
    """The thread with this name, as in /proc; None if there is none."""
    def has_name(thread):
        try:
            return status_field(thread, "Name") == name
        except OSError:
            return False
    return next(filter(has_name, threads_of(pid)), None)


READER = "fgprof-reader"  # the name of the profiler's own child, which starts readers
HTTP, PUSH = "fgprof-http", "fgprof-push"  # and of those that speak HTTP, as a server and as a client


def all_children_of(pid):
    found = []
    for thread in threads_of(pid):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{thread}/children") as file:  # it has ended
            found += map(int, file.read().split())
    return found


def children_of(pid):
    """The process's children, without the profiler's helpers."""
    return [child for child in all_children_of(pid) if not is_helper(child)]


def is_helper(pid):
    """Whether it is a helper, or a child of the profiler that has not set its own name yet."""
    try:
        return status_field(pid, "Name") in (READER, HTTP, PUSH, "fgprof-c")
    except FileNotFoundError:
        return False


def signal_service(pid, number):
    """Sends a signal to the process and its descendants, as systemctl(1) does: the descendants come first."""
    for child in all_children_of(pid):
        signal_service(child, number)
    os.kill(pid, number)


def is_sampling(sampler):
    """Whether the profiler has its sampling thread."""
    return thread_named(sampler.pid, "fgprof-sampler") is not None


def wait_until_sampling(sampler):
    wait_for(lambda: is_sampling(sampler), "the sampling thread")


@contextlib.contextmanager
def soaking(world, kind, rate_hz=300):
    """A soaking program, which removes its files when it ends."""
    with world.running("soak", kind, rate_hz, stdin=subprocess.PIPE) as target:
        try:
            yield target
        finally:
            target.stdin.close()
            target.wait(HANGS_S)


def soak_until(target, least, kind):
    """Waits until a soaking program has made and ended this many things."""
    def are_enough():
        target.stdin.write("\n")
        target.stdin.flush()
        return json.loads(target.stdout.readline())["count"] >= least
    wait_for(are_enough, f"{least} {kind}", seconds=180)


def kept_open(pid):
    """(KiB of memory of its own, open files) of a process."""
    return int(status_field(pid, "RssAnon").split()[0]), len(os.listdir(f"/proc/{pid}/fd"))


def wait_for_switches(thread, times, what):
    """Waits until the thread has gone to sleep this many times more."""
    def switches():
        return int(status_field(thread, "voluntary_ctxt_switches"))
    end = switches() + times
    wait_for(lambda: switches() >= end, what)


def wait_for_ticks(sampler):
    """Waits until the profiler has looked at its processes a few times more. It sleeps after each
    time, and a few times before that if it waits for threads to stop."""
    wait_until_sampling(sampler)
    wait_for_switches(thread_named(sampler.pid, "fgprof-sampler"), 30, "ticks")


def running_s(thread):
    """For how long the thread has been on a CPU."""
    return int(open(f"/proc/{thread}/schedstat").read().split()[0]) / 1e9


def wait_until_running(thread, ticks):
    """Waits until the thread has run for this many ticks more: about as often as the profiler, which is
    sampling, has found it running."""
    end_s = running_s(thread) + ticks * PERIOD
    wait_for(lambda: running_s(thread) >= end_s, "running time")


def wait_until_sampled(pid, name):
    """Waits until the profiler, which is sampling, has found the thread with this name running a
    few times more."""
    wait_until_running(thread_named(pid, name), 20)


def status(pid):
    """{key: value} of the process's status, which is read once."""
    return {key: value.strip() for key, value in
            (line.split(":", 1) for line in open(f"/proc/{pid}/status", errors="replace"))}


def switches_in(fields):
    return sum(int(fields[key]) for key in ("voluntary_ctxt_switches",
                                            "nonvoluntary_ctxt_switches"))


def context_switches(pid):
    """{thread: how often it was switched out}."""
    return {thread: switches_in(status(thread)) for thread in threads_of(pid)}


def is_asleep(thread):
    """Whether the thread is asleep, and not just about to be: a thread that loses its CPU on the way there
    also shows S."""
    return (status_field(thread, "State")[0] == "S"
            and open(f"/proc/{thread}/syscall").read() != "running\n")


def wait_until_asleep(*pids, but=()):
    """Waits until all threads are asleep where they stay, and no longer on their way there; threads named in
    `but` compute."""
    def sleepers():
        """{thread: how often it was switched out}; None for a thread that is not asleep."""
        threads = {thread: status(thread) for pid in pids for thread in threads_of(pid)}
        return {thread: switches_in(fields) if fields["State"][0] == "S" else None
                for thread, fields in threads.items() if fields["Name"] not in but}

    def are_still():
        before = sleepers()
        time.sleep(0.1)
        return (None not in before.values() and sleepers() == before
                and all(is_asleep(thread) for thread in before))
    wait_for(are_still, "sleep")


def wait_until_stopped(pid):
    """Waits until a SIGSTOP has reached all threads: the process counts as stopped when its first
    thread is, while others may still compute."""
    wait_for(lambda: all(status_field(thread, "State")[0] == "T" for thread in threads_of(pid)),
             "the stop")


def ticks_planned(stderr):
    return int(re.search(r"(\d+) ticks planned", stderr)[1])


def ticks_late(stderr):
    return int(re.search(r"(\d+) late", stderr)[1])


def late_share(stderr):
    """The share of ticks that were late. The profiler did not run then, and can't know what came and went
    meanwhile."""
    return ticks_late(stderr) / ticks_planned(stderr)


UNAME26 = 0x0020000  # sys/personality.h


def limit_on_an_old_kernel(what, limit):
    """For preexec_fn: sets a limit, and makes the kernel report version 2.6."""
    resource.setrlimit(what, limit)
    assert ctypes.CDLL(None).personality(UNAME26) >= 0


def pauses(stderr):
    """How many stops of threads the summary reports."""
    match = re.search(r"running threads were paused (\d+) times", stderr)
    assert match or re.search("no thread was found running|sampled by the kernel", stderr), stderr
    return int(match[1]) if match else 0


def status_field(pid, key):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].strip()
    raise AssertionError(key)


def tool(*command, **options):
    """Runs a reader of profiles; fails if it fails. Returns its stdout."""
    need(command[0])
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=HANGS_S, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()

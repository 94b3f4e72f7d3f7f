"""Starts the programs to be measured, the profilers, and the tools that they are compared with; leaves
nothing running.

Each process is killed by its id, and each wait has a limit."""

import collections
import contextlib
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What a tool would otherwise ask a network server for.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
ENVIRONMENT["LC_ALL"] = "C.UTF-8"
# Where Debian keeps servers, and postgres's programs.
ENVIRONMENT["PATH"] = ":".join([os.environ["PATH"], "/usr/sbin",
                                *sorted(glob.glob("/usr/lib/postgresql/*/bin"))])

ANSWER_S = 120

Usage = collections.namedtuple("Usage", "status wall_s cpu_s memory_mib stdout stderr timed_out")
Summary = collections.namedtuple(
    "Summary", "elapsed_s planned taken late threads samples cut_percent pauses pause_words")


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def build(source, name="build-bench", target="bench", without=""):
    """Builds a target in a directory of the source tree, which is returned."""
    directory = os.path.join(source, name)
    progress(f"building in {name}")
    for command in (["cmake", "-S", source, "-B", directory, "-DCMAKE_BUILD_TYPE=Release",
                     "-DBUILD_TESTING=OFF", f"-DFGPROF_WITHOUT={without}"],
                    ["cmake", "--build", directory, "--target", target, "--parallel",
                     str(os.cpu_count())]):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=1200)
    return directory


def build_without(source, *corrections):
    """The path of a program that lacks these corrections (FGPROF_WITHOUT in CMakeLists.txt)."""
    name = "-".join(["build-bench-without", *corrections])
    return os.path.join(build(source, name, "fgprof-c", ";".join(corrections)), "fgprof-c")


class World:
    """The programs that were built, a directory for files, and everything that was started."""

    def __init__(self, source, build, options):
        self.source = source
        self.build = build
        self.options = options
        self.is_quick = options.quick
        self.seed = options.seed
        self.fgprof = os.path.join(build, "fgprof-c")
        self.directory = tempfile.mkdtemp(prefix="fgprof-bench-")
        os.chmod(self.directory, 0o755)
        self.started = []

    def program(self, name):
        return os.path.join(self.build, "bench", "bench-" + name)

    def path(self, name):
        return os.path.join(self.directory, name)

    def has(self, *tools):
        return all(shutil.which(tool, path=ENVIRONMENT["PATH"]) for tool in tools)

    def pick(self, full, quick):
        return quick if self.is_quick else full

    def chosen(self, names):
        """Those of a part's programs that are to be measured."""
        return [name for name in names if not self.options.only or name in self.options.only]

    def resumed(self, name, measure):
        """The result of `measure`, in a form that JSON has; with --resume, its earlier result if there is
        one."""
        if not self.options.resume:
            return json.loads(json.dumps(measure()))
        os.makedirs(self.options.resume, exist_ok=True)
        path = os.path.join(self.options.resume, re.sub(r"[^\w.=-]+", "_", name) + ".json")
        if not os.path.exists(path):
            found = json.dumps(measure())
            with open(path, "w") as file:
                file.write(found)
        with open(path) as file:
            return json.load(file)

    def end_all(self):
        for process in reversed(self.started):
            process.end()
        self.started.clear()

    def close(self):
        self.end_all()
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextlib.contextmanager
    def target(self, name, *arguments):
        target = Target(self, self.program(name), *arguments)
        try:
            yield target
        finally:
            target.end()

    def run(self, *command, timeout_s=60, **options):
        """Runs a command to its end and returns its cost."""
        return Measured(self, *command, **options).wait(timeout_s)

    def attach(self, pids, *arguments, fgprof=None):
        """Starts fgprof-c, or another build of it, on these processes. Its profile is not kept."""
        pids = ",".join(map(str, pids)) if isinstance(pids, list) else str(pids)
        return Measured(self, fgprof or self.fgprof, "attach", "-p", pids, "-F", "99",
                        "-o", self.path("profile.folded"), *arguments)


class Target:
    """A program of bench/targets, ready to be sampled."""

    def __init__(self, world, *command):
        world.started.append(self)
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.pid = self.process.pid
        line = self._read()
        if line != "ready\n":
            raise RuntimeError(f"{command[0]} said {line!r} and not that it is ready")

    def _read(self):
        if not select.select([self.process.stdout], [], [], ANSWER_S)[0]:
            raise RuntimeError("a target does not answer")
        return self.process.stdout.readline()

    def mark(self, command=""):
        """What the target has counted so far, or its answer to a command."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self._read())

    def end(self):
        if self.process.poll() is not None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Measured:
    """A running command, whose cost is known when it has ended."""

    def __init__(self, world, *command, keeps_stdout=False, **options):
        world.started.append(self)
        self._stdout = tempfile.TemporaryFile()
        self._stderr = tempfile.TemporaryFile()
        report_fd, child_fd = os.pipe()
        self._report = os.fdopen(report_fd)
        self.process = subprocess.Popen(
            [world.program("measure"), str(child_fd), *map(str, command)], pass_fds=[child_fd],
            stdin=subprocess.DEVNULL, stderr=self._stderr, env=ENVIRONMENT,
            stdout=self._stdout if keeps_stdout else subprocess.DEVNULL, **options)
        os.close(child_fd)
        self.pid = int(self._report.readline())

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, timeout_s):
        """Waits for its end, or kills it after a time. Returns a Usage."""
        timed_out = False
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.end()
        line = self._report.readline()
        self._report.close()
        status, wall_ns, user_us, system_us, memory_kib = map(int, line.split() or [-9] + 4 * [0])
        texts = []
        for file in (self._stdout, self._stderr):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return Usage(status, wall_ns / 1e9, (user_us + system_us) / 1e6, memory_kib / 1024, *texts,
                     timed_out)

    def end(self):
        """Asks it to end, then forces it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            self.signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)


def cpu_s(pid):
    """The CPU time of a process's threads so far, from the kernel's schedstat (ns)."""
    return sum(thread[0] for thread in schedstats(pid)) / 1e9


def schedstats(pid):
    """(ns on a CPU, ns waiting for one, number of turns on one) of each thread."""
    threads = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
                threads.append(tuple(map(int, file.read().split())))
    return threads


def summary_of(usage):
    """What fgprof-c reported at its end."""
    ticks = re.search(r"([\d.]+) s at \d+ Hz: (\d+) ticks planned, (\d+) taken, (\d+) late",
                      usage.stderr)
    counts = re.search(r"(\d+) threads seen, (\d+) samples, \d+ distinct stacks; ([\d.]+) % cut",
                       usage.stderr)
    if usage.status or not ticks or not counts:
        raise RuntimeError(f"fgprof-c ended with {usage.status} and said: {usage.stderr}")
    pauses = re.search(r"paused (\d+) times: (.*); [\d.]+ % of their (?:running )?time", usage.stderr)
    is_sampled = "sampled by the kernel" in usage.stderr
    return Summary(float(ticks[1]), int(ticks[2]), int(ticks[3]), int(ticks[4]), int(counts[1]),
                   int(counts[2]), float(counts[3]), int(pauses[1]) if pauses else 0,
                   pauses[2] if pauses else "none: the kernel sampled" if is_sampled
                   else "none was found running")


# One snapshot of all threads by each peer that makes snapshots.
SNAPSHOTS = {
    "gdb": ["gdb", "-nx", "-batch", "-ex", "thread apply all bt", "-p"],
    "eu-stack": ["eu-stack", "-p"],
}


def snapshot(world, tool, pid, timeout_s=60):
    """Makes a peer take one snapshot. Returns its Usage and how many stacks it printed."""
    usage = world.run(*SNAPSHOTS[tool], pid, timeout_s=timeout_s, keeps_stdout=True)
    return usage, len(re.findall(r"^#0 ", usage.stdout, re.MULTILINE))

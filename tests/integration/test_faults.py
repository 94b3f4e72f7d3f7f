"""One call fails: each allocation and each system call of short runs, one at a time.

A library that is preloaded (tests/tools/faults) first lists the call sites of a calm run, each a
function and the stack that it is called from. Then there is a run for a site, in which the first call
from there fails. Whatever fails: the profiler neither crashes nor hangs, the target goes on, and there
is either a whole output or none and one line that says why.

FGPROF_FAULTS=all fails each site by each error; without it, each of a sample. FGPROF_FAULTS_TABLE=FILE
writes what they did as a table, a row for each scenario; a scenario that is run again replaces its row.
bench/results/faults.md is of all sites:

    FGPROF_FAULTS=all FGPROF_FAULTS_TABLE=bench/results/faults.md python3 tests/integration/run.py BUILD faults
"""

import collections
import concurrent.futures
import contextlib
import datetime
import errno
import fcntl
import gzip
import http.client
import json
import os
import queue
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import time

from harness import Skip, folded, status_field, threads_of, users_build

IS_ALL = os.environ.get("FGPROF_FAULTS") == "all"
SEED = os.environ.get("FGPROF_FAULTS_SEED", "1")
TABLE = os.environ.get("FGPROF_FAULTS_TABLE")
# Sites of a scenario in a short run.
SAMPLE = 14
SAMPLE_SANITIZED = 5 # the same under the sanitizers, where all takes longer
AT_ONCE = 3
# Faults for each set of targets, which live for less than ten minutes.
PART = 400
# Nothing hangs for a second: the machine may be busy.
HANGS_S = 60
# A function's errors, the likely first. 0: it transfers half.
ERRORS = {
    "malloc": [errno.ENOMEM],
    "open": [errno.EMFILE, errno.EACCES, errno.EINTR],
    "fcntl": [errno.EINVAL],
    "ioctl": [errno.ENOMEM],
    "fopen": [errno.EMFILE],
    "opendir": [errno.EMFILE],
    "readdir": [errno.EIO],
    "getdelim": [errno.EIO],
    "read": [errno.EIO, errno.EINTR, 0],
    "pread": [errno.EIO, 0],
    "write": [errno.ENOSPC, errno.EINTR, 0],
    "recv": [errno.ECONNRESET, errno.EAGAIN, 0],
    "send": [errno.EPIPE, errno.EAGAIN, 0],
    "sendmsg": [errno.EPIPE, errno.EAGAIN],
    "process_vm_readv": [errno.EFAULT, errno.ENOMEM, 0],
    "readlink": [errno.EACCES],
    "getrandom": [errno.ENOSYS],
    "mmap": [errno.ENOMEM],
    "stat": [errno.EACCES],
    "poll": [errno.EINTR],
    "epoll": [errno.ENOSPC],
    "socket": [errno.EMFILE],
    "accept": [errno.EMFILE, errno.ECONNABORTED],
    "sockopt": [errno.ENOBUFS],
    "eventfd": [errno.EMFILE],
    "disk": [errno.ENOSPC],
    "access": [errno.EACCES],
    "wait": [errno.EINTR],
    "pthread_create": [errno.EAGAIN],
    "spawn": [errno.EAGAIN],
    "ptrace": [errno.EPERM, errno.ESRCH],
    "syscall": [errno.EPERM, errno.EMFILE],
}

# What a run does whose call failed, but for what is wrong. The last one: see OTHERS_ABORT.
CLEAN_ERROR, COUNTED_GAP, NOTHING, OTHERS_ABORTED = OUTCOMES = (
    "clean error", "counted gap", "nothing", "abort by others")
GAP = re.compile(r"lost|not sampled|left out|could not|no memory|memory|skipped|missed|unseen|cut short")

Site = collections.namedtuple("Site", "function hash error lasting")


def name_of(site):
    error = errno.errorcode[site.error] if site.error else "half"
    return f"{site.function}:{site.hash}:{error}{'+' if site.lasting else ''}"


class Faulty:
    """Runs the profiler with the library, each time in a new directory."""

    def __init__(self, world, scenario, number, site=None):
        self.world = world
        self.directory = world.path(f"{scenario}-{number}")
        os.mkdir(self.directory)
        self.log = world.path(f"{scenario}-{number}.log")
        self.environment = {
            **os.environ, "FAULT_LOG": self.log, "FAULT_PROGRAM": "fgprof-c",
            "LD_PRELOAD": os.path.join(world.build, "tests/tools/libinject-faults.so"),
            "ASAN_OPTIONS": "verify_asan_link_order=0:exitcode=99", "UBSAN_OPTIONS": "exitcode=99",
            # The loader's own, of libraries that are loaded when they are asked for.
            "LSAN_OPTIONS": "suppressions=" + os.path.join(os.path.dirname(__file__), "loader.supp")}
        self.is_lasting = site is not None and site.lasting
        if site:
            lasting = "+" if site.lasting else ""
            self.environment["FAULT"] = f"{site.function}:{site.hash}:{site.error}{lasting}"

    def path(self, name):
        return os.path.join(self.directory, name)

    def said(self):
        """The text that the library has written: zeroes follow."""
        with open(self.log, "rb") as log:
            return log.read().partition(b"\0")[0].decode()

    def has_failed(self):
        return self.said() != ""

    def sites(self):
        return [tuple(line.split()) for line in self.said().splitlines()]

    @contextlib.contextmanager
    def start(self, *arguments):
        with subprocess.Popen([self.world.program, *map(str, arguments)], env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as started:
            try:
                yield started
            finally:
                if started.poll() is None:
                    started.kill()

    def finish(self, started):
        """Returns what it printed to standard output and error."""
        try:
            return started.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            stacks = subprocess.run(["gdb", "-p", str(started.pid), "-batch", "-ex",
                                     "thread apply all backtrace 20"], stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True).stdout
            raise AssertionError(f"it hangs:\n{stacks}")

    def run(self, *arguments):
        """Returns the exit status and what was printed to standard output and error."""
        with self.start(*arguments) as started:
            stdout, stderr = self.finish(started)
            return started.returncode, stdout, stderr


def check_whole(path, faulty):
    """Whether the file is complete, by its format."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".gz"):
        assert gzip.decompress(data)
    elif path.endswith(".folded"):
        assert data.endswith(b"\n") or not data
        folded(data.decode())
    elif path.endswith(".json"):
        json.loads(data)
    elif path.endswith(".html"):
        assert data.rstrip().endswith(b"</html>")
    elif path.endswith(".fgprof"):
        done = faulty.world.fgprof("convert", path)
        assert done.returncode == 0, done.stderr
        folded(done.stdout)


def complaints(stderr):
    """The lines that say what went wrong: not the summary, whose first line says for how long, nor what
    goes on and was written."""
    return [line for line in stderr.splitlines()
            if re.match(r"fgprof-c: .{10}", line) and
            not re.match(r"fgprof-c: ([\d.]+ s at |wrote |\S+ is still running: )", line)]


def check_complaint(stderr):
    said = complaints(stderr)
    assert said, f"no reason was given: {stderr!r}"
    assert len(said) == 1, f"more than one reason was given: {stderr}"


def outcome_of(has_failed, said):
    return CLEAN_ERROR if has_failed else COUNTED_GAP if GAP.search(said) else NOTHING


def check_outcome(faulty, path, code, stderr, failed=(1,)):
    """Either a complete file, or none and a reason; nothing else is left behind. Sampling that ended early
    has both. Returns which it is."""
    assert code == 0 or code in failed, f"it ended with {code}: {stderr}"
    left = os.listdir(faulty.directory)
    if code:
        check_complaint(stderr)
    if code == 0 or "sampling ended early" in stderr:
        assert left == [os.path.basename(path)], f"it left {left}: {stderr}"
        check_whole(path, faulty)
    else:
        assert not left and "fgprof-c: wrote" not in stderr, f"it ended with {code} and left {left}: {stderr}"
    return outcome_of(code, stderr)


class Target:
    """Threads that sleep and one that computes, whose progress is visible."""

    def __init__(self, process, name, progress, recording):
        self.pid = process.pid
        self.name = name
        self.progress = progress
        self.recording = recording

    def count(self):
        with open(self.progress, "rb") as file:
            return int.from_bytes(file.read(8), "little")

    def check(self):
        before, end = self.count(), time.monotonic() + HANGS_S
        while self.count() == before:
            assert time.monotonic() < end, "the target no longer computes"
            time.sleep(0.001)
        for thread in threads_of(self.pid):
            state = status_field(thread, "State")
            assert state[0] in "RS", f"a thread of the target is left in {state}"
            tracer = status_field(thread, "TracerPid")
            assert tracer == "0", f"a thread of the target is still traced by {tracer}"


def check_counts(path, stderr):
    """Each of the target's four threads has about a sample for each tick; if not, the summary says so."""
    with open(path, encoding="utf-8") as file:
        counts = collections.Counter()
        for stack, count in folded(file.read()).items():
            counts[stack[0]] += count
    planned = int(re.search(r"(\d+) ticks planned", stderr)[1])
    is_whole = len(counts) == 4 and all(abs(count - planned) <= 3 for count in counts.values())
    assert is_whole or GAP.search(stderr), f"nothing is said of what lacks: {counts} of {planned}\n{stderr}"


def attach_folded(faulty, target):
    path = faulty.path("out.folded")
    code, _, stderr = faulty.run("attach", "-p", target.pid, "-d", "0.1s", "-F", "200", "--threads=tid",
                                 "-o", path)
    outcome = check_outcome(faulty, path, code, stderr)
    if code == 0:
        check_counts(path, stderr)
    return outcome


def attach_ptrace(faulty, target):
    path = faulty.path("out.pb.gz")
    code, _, stderr = faulty.run("attach", "--pgrep", f"^{target.name}$", "-d", "0.1s", "-F", "200",
                                 "--thread", "^s", "--capture=ptrace", "--children", "-o", path)
    return check_outcome(faulty, path, code, stderr)


def dump(faulty, target):
    path = faulty.path("out.json")
    code, _, stderr = faulty.run("dump", "-p", target.pid, "--json", "-o", path)
    return check_outcome(faulty, path, code, stderr)


def run(faulty, target):
    path = faulty.path("out.folded")
    code, _, stderr = faulty.run("run", "-o", path, "--", faulty.world.fixture("workers"), 0.15, 1, 2)
    return check_outcome(faulty, path, code, stderr, failed=(125, 126))


def convert_to(ending):
    def convert(faulty, target):
        path = faulty.path("out" + ending)
        code, _, stderr = faulty.run("convert", target.recording, "-o", path)
        return check_outcome(faulty, path, code, stderr)
    convert.__name__ = "convert_to" + ending.replace(".", "_")
    return convert


def next_line(started):
    """The next line from standard error, or the rest at the end. Reads no more than that: communicate() reads
    the rest."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([started.stderr], [], [], HANGS_S)
        assert ready, f"it says no more than {line}"
        if not (byte := os.read(started.stderr.fileno(), 1)):
            break
        line += byte
    return line.decode()


def lines_until(started, begin):
    """Reads up to the first line that begins like this, or to the end. Returns what was read, and whether
    there is such a line."""
    said = ""
    while line := next_line(started):
        said += line
        if line.startswith(begin):
            return said, True
    return said, False


def record(faulty, target):
    with faulty.start("record", "-p", target.pid, "-o", faulty.directory, "-F", "200") as started:
        said, is_recording = lines_until(started, "fgprof-c: recording ")
        if is_recording:
            started.send_signal(signal.SIGUSR1)
            said += next_line(started) # of the file
            started.send_signal(signal.SIGINT)
        _, rest = faulty.finish(started)
        code = started.returncode
    said += rest
    assert code in (0, 1), f"it ended with {code}: {said}"
    wrong = [line for line in complaints(said)
             if not re.match(r"fgprof-c: (recording|wrote|1 file|\d+ files) ", line)]
    files = os.listdir(faulty.directory)
    assert wrong or (code == 0 and len(files) == 1), f"no reason was given: {files} {said}"
    for name in files:
        assert name.startswith("fgprof-"), f"it left {name}: {said}"
        check_whole(faulty.path(name), faulty)
    return outcome_of(code or wrong, said)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("fgprof", timeout=HANGS_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANGS_S)
        self.sock.connect(self.path)


def is_alive(started):
    """Whether it has not exited, and is not about to, as when sampling has ended."""
    try:
        started.wait(1)
        return False
    except subprocess.TimeoutExpired:
        return True


def ask(path, what):
    """Returns the status and the body; None if there was no answer."""
    connection = Connection(path)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def ask_served(faulty, target, *paths, options=()):
    """Asks a server for each path; the last one must be answered even if an earlier one was not."""
    path = faulty.path("socket")
    with faulty.start("serve", "-p", target.pid, "--listen", "unix:" + path, "-F", "200", *options) as started:
        said, is_serving = lines_until(started, "fgprof-c: serving ")
        is_refused = False
        if is_serving:
            for what in paths:
                answer = ask(path, what)
                is_refused = is_refused or not answer or answer[0] != 200
                if answer and answer[0] == 200:
                    assert gzip.decompress(answer[1]) if what.endswith("seconds=1") else answer[1]
                elif answer:
                    assert answer[0] in (403, 500, 503) and answer[1], answer
            # What failed once fails no later request.
            assert (answer and answer[0] == 200) or faulty.is_lasting or not is_alive(started), answer
            started.send_signal(signal.SIGINT)
        _, rest = faulty.finish(started)
        code = started.returncode
    said += rest
    assert code in (0, 1), f"it ended with {code}: {said}"
    assert code == 0 or said.startswith("fgprof-c: "), said
    assert not os.listdir(faulty.directory), os.listdir(faulty.directory)
    return outcome_of(code or is_refused, said)


def serve(faulty, target):
    return ask_served(faulty, target, "/debug/fgprof?seconds=1", "/metrics", "/metrics")


def serve_kept(faulty, target):
    """Requests other things from a server: a page, a dump, the threads' creators."""
    return ask_served(faulty, target, "/debug/fgprof?last=1s&format=html", "/debug/pprof/goroutine?debug=2",
                      "/debug/pprof/threadcreate?debug=1", "/metrics", "/metrics", options=("--keep", "1s"))


def can_last(function, error):
    """Whether the error of this function may well occur repeatedly."""
    return (function == "malloc" or (function, error) in
            {("open", errno.EMFILE), ("write", errno.ENOSPC), ("syscall", errno.EPERM),
             ("process_vm_readv", errno.EFAULT), ("ptrace", errno.EPERM)})


def sites_to_fail(faulty, sample):
    """Each site with each error of its function; without FGPROF_FAULTS=all a sample that includes each
    function."""
    every = [Site(function, hash, error, lasting) for function, hash in faulty.sites()
             for error in ERRORS[function] for lasting in (False, True)
             if not lasting or can_last(function, error)]
    if IS_ALL:
        return every
    chance = random.Random(SEED)
    chance.shuffle(every)
    functions = collections.Counter()
    # The second of a function comes after the first of all others.
    order = []
    for site in every:
        functions[site.function] += 1
        order.append((functions[site.function], site))
    return [site for _, site in sorted(order, key=lambda item: item[0])[:sample]]


@contextlib.contextmanager
def target_of(world, number):
    # So that no test beside this one finds it by its name.
    name = f"fault{os.getpid()}-{number}"
    progress, recording = world.path(f"{name}.progress"), world.path(f"{name}.fgprof")
    program = shutil.copy(world.fixture("workers"), world.path(name))
    with world.running("workers", 590, 1, 2, progress, program=program) as process:
        world.attach(process, "-o", recording, duration="0.2s")
        yield Target(process, name, progress, recording)


# What the libraries of others do about it: glibc's regcomp (2.36) frees twice if memory is short,
# libmicrohttpd ends the program if it can't wake its own threads, and AddressSanitizer if a thread
# lacks memory (by SIGILL, if several threads do).
OTHERS_ABORT = re.compile(r"\(regcomp\+|Fatal error in GNU libmicrohttpd|AddressSanitizer: CHECK failed")


def fail_one(world, scenario, target, number, site):
    """Returns what the run did, None if the call was not reached; and what was wrong, if anything."""
    faulty = Faulty(world, scenario.__name__, number, site)
    try:
        outcome = scenario(faulty, target)
        target.check()
        # One without privileges: the others go on.
        assert "crash by signal" not in faulty.said(), "a process of it crashed"
    except Exception as error:
        place = faulty.said()
        if re.search(f"it ended with ({-signal.SIGABRT}|{-signal.SIGILL}|99):", str(error)) and \
                OTHERS_ABORT.search(str(error) + place):
            target.check()
            return OTHERS_ABORTED, None
        return "wrong", f"{scenario.__name__} {name_of(site)}: {type(error).__name__} {error}\n{place}"
    return outcome if faulty.has_failed() else None, None


def table_head(world):
    version = world.fgprof("--version").stdout.split()[-1]
    commit = subprocess.run(["git", "-C", world.source, "rev-parse", "--short", "HEAD"],
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    which = "each by each error" if IS_ALL else "**a sample of them**: it was run without FGPROF_FAULTS=all"
    return f"""# Calls that fail, one at a time

Written by `tests/integration/run.py BUILD faults`, with FGPROF_FAULTS_TABLE.

- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC
- fgprof-c: {version}, commit {commit}
- system: kernel {os.uname().release} {os.uname().machine}

Call sites: {which}. A call that fails leads to a *clean error*: a line that says why, and
an exit or HTTP status of an error, with no output that is not whole; or to a *counted gap*: whole output
that says what it lacks; or to *nothing*: output as without the fault. *Abort by others*: glibc's regcomp
or libmicrohttpd ended the program. What is *wrong* is named by the test.

"""


def write_row(world, scenario, sites, outcomes):
    """Adds the scenario's row to the table of failed calls. Other tests may write theirs at the same time."""
    kinds = collections.Counter(site.function for site, outcome in zip(sites, outcomes) if outcome)
    counts = collections.Counter(outcomes)
    columns = "failed", *OUTCOMES, "wrong", "kinds of call"
    cells = (sum(kinds.values()), *(counts[outcome] for outcome in (*OUTCOMES, "wrong")),
             ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    with open(TABLE, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        rows = {line.split()[1]: line for line in file if re.match(r"\| \w+ +\| +\d", line)}
        rows[scenario] = f"| {scenario} | {' | '.join(map(str, cells))} |\n"
        file.truncate(0)
        file.write(table_head(world) + f"| scenario | {' | '.join(columns)} |\n" +
                   "| --- " + "| ---: " * (len(columns) - 1) + "| --- |\n" +
                   "".join(rows[name] for name in sorted(rows)))


def calm_run(world, scenario):
    """A run without faults, which logs the sites of all calls."""
    calm = Faulty(world, scenario.__name__, "calm")
    with target_of(world, 0) as target:
        assert scenario(calm, target) != CLEAN_ERROR, "it fails without a fault"
    return calm


def fail_each(world, scenario, numbered_sites):
    with contextlib.ExitStack() as stack:
        targets = queue.SimpleQueue()
        for number in range(AT_ONCE):
            targets.put(stack.enter_context(target_of(world, number)))

        def on_a_target(item):
            target = targets.get()
            try:
                return fail_one(world, scenario, target, *item)
            finally:
                targets.put(target)

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(on_a_target, numbered_sites))


def check_scenario(world, scenario, sample=SAMPLE):
    sites = sites_to_fail(calm_run(world, scenario), sample)
    assert sites, "no call was seen"
    numbered = list(enumerate(sites))
    results = [result for first in range(0, len(numbered), PART)
               for result in fail_each(world, scenario, numbered[first:first + PART])]
    wrong = [what for _, what in results if what]
    outcomes = [outcome for outcome, _ in results]
    reached = sum(outcome is not None for outcome in outcomes)
    if TABLE:
        write_row(world, scenario.__name__, sites, outcomes)
    print(f"{scenario.__name__}: {len(sites)} faults, {reached} reached, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)
    # Some calls are made only by chance, such as the growth of a buffer.
    assert reached >= len(sites) / 2, f"{reached} of {len(sites)}"


def test_a_file_that_is_not_on_the_disk_was_not_written(world):
    """The summary does not claim that it was written after the error. The first call creates the file."""
    with target_of(world, 0) as target:
        for number in "n2", "n3":
            faulty = Faulty(world, "disk", number, Site("disk", number, errno.ENOSPC, False))
            attach_folded(faulty, target)
            assert faulty.has_failed()


@users_build
def test_no_thread_is_left_stopped(world):
    """The first stops of a command, each of whose calls fails once: the command ends."""
    reached = 0
    for number in range(1, 9):
        faulty = Faulty(world, "stop", number, Site("ptrace", f"n{number}", errno.EPERM, False))
        path = faulty.path("out.folded")
        code, _, stderr = faulty.run("run", "-F", "400", "--capture=ptrace", "-o", path, "--",
                                     world.fixture("workers"), 0.15, 1, 2)
        check_outcome(faulty, path, code, stderr, failed=(125, 126))
        reached += faulty.has_failed()
    assert reached >= 4, reached


@users_build
def test_calls_of_attach_fail(world):
    check_scenario(world, attach_folded)


@users_build
def test_calls_of_attach_with_stops_fail(world):
    check_scenario(world, attach_ptrace)


@users_build
def test_calls_of_dump_fail(world):
    check_scenario(world, dump)


@users_build
def test_calls_of_run_fail(world):
    check_scenario(world, run)


@users_build
def test_calls_of_record_fail(world):
    check_scenario(world, record)


@users_build
def test_calls_of_serve_fail(world):
    check_scenario(world, serve)


@users_build
def test_calls_of_a_server_that_keeps_fail(world):
    check_scenario(world, serve_kept)


def test_calls_of_processes_without_privileges_fail_too(world):
    """Recordings are read in such a process, so anything that differs between these formats happens there."""
    with target_of(world, 0) as target:
        sites = {}
        for ending in ".folded", ".html":
            faulty = Faulty(world, "calm", ending)
            assert convert_to(ending)(faulty, target) != CLEAN_ERROR
            sites[ending] = len(faulty.sites())
    assert sites[".html"] > 2 * sites[".folded"] > 0, sites


CONVERTED = ".folded", ".html", ".pb.gz", ".otlp.gz", ".speedscope.json", ".txt", ".report"


@users_build
def test_calls_of_convert_fail(world):
    for ending in CONVERTED:
        check_scenario(world, convert_to(ending))


def test_nothing_leaks_where_a_call_fails(world):
    """A run that ends with an error frees everything, too: LeakSanitizer and others check a few."""
    if not world.is_sanitized:
        raise Skip("needs a build with the sanitizers")
    for scenario in (attach_folded, attach_ptrace, dump, run, record, serve, serve_kept,
                     *map(convert_to, CONVERTED)):
        check_scenario(world, scenario, SAMPLE_SANITIZED)

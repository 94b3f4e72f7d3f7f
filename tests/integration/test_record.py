"""A recorder of the last seconds, which writes them on a signal and by triggers. The triggers look for a
function that the fixture is in only when it is told to, or a lock that is only held then: nothing that a busy
machine does makes one fire."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import time
import urllib.request

from harness import (HANGS_S, alone, end, folded, is_asleep, kept_open, need, signal_service, soak_until, soaking, status_field,
                     thread_named, tool, users_build, wait_for)
from page import Page
from webdriver import Browser

NAME = re.compile(r"fgprof-([\w.%-]*)-(\d+)-\d{8}T\d{6}Z(-\d+)?(\.\w[\w.]*)")
SIGTIMEDWAIT = "128"  # rt_sigtimedwait on x86-64
STALL = "any in in_stall for 200ms"


class Recorder:
    """A recorder that has said that it records."""

    def __init__(self, world, *arguments, command="record", directory=None, **options):
        self.world = world
        self.directory = directory or world.path(f"files-{time.monotonic_ns()}")
        if not directory:
            os.mkdir(self.directory)
        self.sampler = world.start(command, "-o", self.directory, *arguments, **options)
        self.said = self.next_line()
        assert self.said.startswith("fgprof-c: recording "), (self.said, self.sampler.stderr.read())

    def next_line(self):
        return self.sampler.stderr.readline()

    def next_file(self):
        """Waits until a file is written. Returns its path and the reason."""
        said = self.next_line()
        match = re.fullmatch(r"fgprof-c: wrote (\S+): (.+)\n", said)
        assert match and NAME.fullmatch(os.path.basename(match[1])), said
        assert os.path.dirname(match[1]) == self.directory, said
        return match[1], match[2]

    def files(self):
        return sorted(os.listdir(self.directory))

    def ask(self):
        self.sampler.send_signal(signal.SIGUSR1)

    def ends(self, count):
        """Ends it, after this many files in total."""
        stdout, stderr = end(self.sampler)
        files = "1 file was" if count == 1 else f"{count} files were"
        assert (stdout, stderr) == ("", f"fgprof-c: {files} written to {self.directory}\n"), stderr

    def report(self, path):
        return json.loads(self.world.fgprof("report", "--json", path).stdout)


@contextlib.contextmanager
def recording(world, *arguments, **options):
    recorder = Recorder(world, *arguments, **options)
    try:
        yield recorder
    finally:
        if recorder.sampler.poll() is None:
            recorder.sampler.kill()
        recorder.sampler.communicate()


@contextlib.contextmanager
def stalling(world, *arguments, **options):
    """The fixture, and a recorder of it."""
    with world.running("stall", 500, stdin=subprocess.PIPE) as target, \
            recording(world, "-p", target.pid, *arguments, **options) as recorder:
        yield target, recorder


def tell(target, line):
    """Returns when the fixture has done it."""
    target.stdin.write(line + "\n")
    target.stdin.flush()
    assert target.stdout.readline() == line + "\n"


def tid(target, name):
    return int(thread_named(target.pid, name).rsplit("/", 1)[1])


def longest_in(world, path, function):
    """The longest time in ms that a thread was in the function without interruption, from speedscope's
    JSON."""
    scope = json.loads(tool(world.program, "convert", path, "-f", "speedscope"))
    frames = {i for i, frame in enumerate(scope["shared"]["frames"]) if frame["name"].startswith(function)}
    longest = 0
    for profile in scope["profiles"]:
        assert profile["unit"] == "nanoseconds", profile["unit"]
        stretch = 0
        for stack, weight in zip(profile["samples"], profile["weights"]):
            stretch = stretch + weight if frames & set(stack) else 0
            longest = max(longest, stretch)
    return longest / 1e6


def wait_for_polls(recorder, count=2):
    """Waits until triggers have been judged a few times more."""
    thread = thread_of(recorder, "fgprof-triggers")
    for _ in range(count):
        before = switches(thread)
        wait_for(lambda: switches(thread) > before, "a poll")
        time.sleep(1.1)


def thread_of(recorder, name):
    """The recorder's thread, which sets its own name when it starts."""
    wait_for(lambda: thread_named(recorder.sampler.pid, name), name)
    return thread_named(recorder.sampler.pid, name)


def switches(thread):
    return int(status_field(thread, "voluntary_ctxt_switches"))


def stall_on(target):
    """Makes the fixture stall for longer than the test takes, and waits until it has for a while: at
    work it would have woken."""
    target.stdin.write("stall 400000\n")
    target.stdin.flush()
    thread = thread_named(target.pid, "worker")
    def is_still():
        before = switches(thread)
        time.sleep(1)
        return is_asleep(thread) and switches(thread) == before
    wait_for(is_still, "the stall")


def test_a_stall_is_in_the_file_that_it_caused(world):
    with stalling(world, "--trigger", STALL) as (target, recorder):
        worker = tid(target, "worker")
        wait_for_polls(recorder)
        assert not recorder.files()
        tell(target, "stall 600")
        path, reason = recorder.next_file()
        match = re.fullmatch(rf'{STALL}: thread "worker"/{worker} in in_stall for (\d+) ms \(at sleep_until\)',
                             reason) or re.fullmatch(r".* for ([\d.]+) s \(at sleep_until\)", reason)
        assert match, reason
        report = recorder.report(path)
        assert report["recording"]["reason"] == reason, report
        assert report["recording"]["command"].startswith("fgprof-c record"), report
        text = world.fgprof("report", path).stdout
        assert f"\n  reason: {reason}\n" in text and "in_stall" in text, text
        assert longest_in(world, path, "in_stall") >= 200
        folded = tool(world.program, "convert", path, "-f", "folded", "-t")
        assert re.search(r"^worker;.*work;in_stall;sleep_until;clock_nanosleep", folded, re.M), folded
        # It went on for a while perhaps, but it was one.
        wait_for_polls(recorder)
        assert recorder.files() == [os.path.basename(path)]
        name = NAME.fullmatch(os.path.basename(path))
        assert name.groups() == ("fixture-stall", str(target.pid), None, ".fgprof"), path
        recorder.ends(1)


def test_the_end_of_the_stall_is_in_the_file(world):
    """The file is written some time after the trigger fires, or immediately if sampling ends before."""
    with stalling(world, "--trigger", STALL, "--after", "6s") as (target, recorder):
        tell(target, "stall 5000")  # longer than it takes to be seen twice
        path, reason = recorder.next_file()
        assert re.fullmatch(r".* for ([\d.]+ s|\d+ ms) \(at sleep_until\)", reason), reason
        assert longest_in(world, path, "in_stall") > 4900, tool(world.program, "report", path)
        recorder.ends(1)
    for ending in "end", None:
        with stalling(world, "--trigger", STALL, "--after", "50s") as (target, recorder):
            tell(target, "stall 1000")
            wait_for_polls(recorder)
            assert not recorder.files()
            if ending:
                target.stdin.write(ending + "\n")
                target.stdin.flush()
            else:
                recorder.sampler.send_signal(signal.SIGTERM)
            path, _ = recorder.next_file()
            assert longest_in(world, path, "in_stall") > 900
            recorder.sampler.communicate(timeout=HANGS_S)


def test_one_that_goes_on_is_told_once(world):
    with stalling(world, "--trigger", STALL, "--cooldown", "100ms") as (target, recorder):
        tell(target, "stall 5000")
        path, _ = recorder.next_file()
        wait_for_polls(recorder)
        assert recorder.files() == [os.path.basename(path)]
        tell(target, "stall 600")
        assert recorder.next_file()[0] != path
        wait_for_polls(recorder)
        recorder.ends(2)


def test_a_thread_that_is_blocked(world):
    """By the thread's name: the first thread is never blocked."""
    with stalling(world, "--trigger", "thread ^fixture blocked 200ms", "--trigger",
                  "thread ^work blocked 200ms") as (target, recorder):
        tell(target, "stall 1000") # which is no lock
        wait_for_polls(recorder)
        tell(target, "lock 1000")
        path, reason = recorder.next_file()
        assert re.fullmatch(r'thread \^work blocked 200ms: thread "worker"/\d+ blocked for .* '
                            r'\(at wait_for_lock\), waiting for mutex g_lock, which '
                            rf'"fixture-stall"/{target.pid} holds \(at sleep_until\)', reason), reason
        assert longest_in(world, path, "wait_for_lock") >= 200
        recorder.ends(1)


def test_conditions_must_hold_together(world):
    """The second trigger fires only once the file exists that its command looks for."""
    both = STALL + " and cpu below 50% and command test -e go"
    directory = world.path("where-it-runs")
    os.mkdir(directory)
    for has_file in False, True:
        if has_file:
            open(os.path.join(directory, "go"), "w").close()
        with stalling(world, "--trigger", STALL + " and cpu above 50%", "--trigger", both,
                      cwd=directory) as (target, recorder):
            wait_for_polls(recorder)
            tell(target, "stall 1500")
            if has_file:
                reason = recorder.next_file()[1]
                assert re.fullmatch(both + r": thread .* in in_stall for .*; \d+ % of a CPU used; "
                                    "the command exited with 0", reason), reason
            wait_for_polls(recorder)
            recorder.ends(int(has_file))


def test_a_command_is_asked(world):
    flag = world.path("flag")
    with stalling(world, "--trigger", f"command echo polled; test -e {flag} # and no more") as (_, recorder):
        wait_for_polls(recorder)
        assert not recorder.files()
        open(flag, "w").close()
        assert recorder.next_file()[1].endswith("# and no more: the command exited with 0")
        recorder.ends(1)


def test_a_command_that_hangs_holds_nothing_up(world):
    """The command is killed after a while, with everything that it has started, and run again."""
    pid_file = world.path("pids")

    def asked():
        return [int(pid) for pid in open(pid_file).read().split()] if os.path.exists(pid_file) else []

    def is_gone(group):
        rows = subprocess.run(["ps", "-eo", "pgid=,stat="], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        # What was killed may be a zombie until init takes it.
        return all(state.startswith("Z") for pgid, state in map(str.split, rows) if int(pgid) == group)
    # A process group of its own: $$ is its id.
    with stalling(world, "--trigger", f"command echo $$ >> {pid_file}; sleep 300 & wait") as (_, recorder):
        wait_for(lambda: len(asked()) == 1, "the command")
        recorder.ask()
        assert recorder.next_file()[1] == "SIGUSR1"
        assert len(asked()) == 1 and not is_gone(asked()[0])
        wait_for(lambda: len(asked()) == 2, "the command's end")
        assert is_gone(asked()[0])
        recorder.ends(1)
    wait_for(lambda: is_gone(asked()[1]), "the end of the last one")


def test_a_signal_to_the_whole_service(world):
    """systemctl kill signals the helpers too: the file still has names."""
    with stalling(world) as (_, recorder):
        signal_service(recorder.sampler.pid, signal.SIGUSR1)
        path, reason = recorder.next_file()
        assert reason == "SIGUSR1"
        stacks = folded(world.fgprof("convert", path, "-f", "folded").stdout)
        assert any("at_work" in stack for stack in stacks), stacks
        recorder.ends(1)


def test_without_standard_error(world):
    """Some daemons close it. Messages do not end up in another file."""
    directory = world.path("unsaid")
    os.makedirs(directory)
    with world.running("holders", 60) as target:
        recorder = subprocess.Popen(
            [world.program, "record", "-p", str(target.pid), "-o", directory, "--trigger", "command sleep 1"],
            preexec_fn=lambda: os.close(2))
        try:
            wait_for(lambda: os.listdir(directory), "a file")
        finally:
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(HANGS_S) == 0


def test_cpus(world):
    """Twenty threads that compute want more CPUs than there are, and use all that they get."""
    with world.running("spinners", 500, 20) as target, \
            recording(world, "-p", target.pid, "--trigger", "runnable 20%", "--cooldown", "100ms") as recorder:
        assert re.fullmatch(r"runnable 20%: threads waited for a CPU \d+ % of the time they wanted one",
                            recorder.next_file()[1])
    with world.running("spinners", 500, 1) as target, \
            recording(world, "-p", target.pid, "--trigger", "cpu below 0.1%", "--trigger", "cpu above 400%",
                      "--trigger", "cpu above 1%") as recorder:
        assert re.fullmatch(r"cpu above 1%: \d+ % of a CPU used", recorder.next_file()[1])


def test_rates_are_of_the_last_second(world):
    """Rates over everything that is kept would not make the trigger fire yet: the file shows them."""
    with world.running("phases", 500, stdin=subprocess.PIPE) as target, \
            recording(world, "-p", target.pid, "--keep", "10m", "--trigger", "cpu below 10%") as recorder:
        used_s = cpu_seconds(target.pid)
        wait_for(lambda: cpu_seconds(target.pid) > used_s + 3, "it to compute", HANGS_S)
        assert not recorder.files()
        target.stdin.write("x")  # from now on it sleeps
        target.stdin.flush()
        path, reason = recorder.next_file()
        assert re.fullmatch(r"cpu below 10%: \d+ % of a CPU used", reason), reason
        running, all_time = (
            sum(folded(world.fgprof("convert", path, *arguments).stdout).values()) for arguments in (["--on-cpu"], []))
        # There are two threads.
        assert running / (all_time / 2) > 0.1, (running, all_time)
        recorder.ends(1)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_deadlock(world):
    with world.running("ring", 500, 2, 0) as target, \
            recording(world, "-p", target.pid, "--trigger", "deadlock", "--cooldown", "100ms") as recorder:
        path, reason = recorder.next_file()
        assert re.fullmatch(r'deadlock: deadlock since .*"ring-0" .*"ring-1".*', reason) or \
            re.fullmatch(r'deadlock: deadlock since .*"ring-1" .*"ring-0".*', reason), reason
        assert reason in world.fgprof("report", path).stdout
        wait_for_polls(recorder)
        recorder.ends(1)


def test_the_end_of_the_process(world):
    """Events since the last poll are seen too."""
    with stalling(world, "--trigger", "exit and " + STALL) as (target, recorder):
        stall_on(target)
        target.kill()
        path, reason = recorder.next_file()
        assert reason.startswith(f'exit and {STALL}: the processes have ended; thread "worker"'), reason
        assert longest_in(world, path, "in_stall") >= 200
        stdout, stderr = recorder.sampler.communicate(timeout=HANGS_S)
        assert recorder.sampler.returncode == 0 and not stdout
        assert stderr == f"fgprof-c: 1 file was written to {recorder.directory}\n"
    # Ended by a signal, the recorder has seen no end.
    with stalling(world, "--trigger", "exit") as (_, recorder):
        recorder.ends(0)


def test_signals_and_the_number_of_files(world):
    """A cooldown does not delay signals, and signals do not delay a trigger. Only our own files are
    removed."""
    with stalling(world, "--trigger", STALL, "--max-files", "3", "--cooldown", "1h") as (target, recorder):
        others = ["fgprof-x-1-20200101T000000Z.fgprof.bak", "notes.fgprof"]
        for name in others + ["fgprof-x-1-20200101T000000Z.fgprof"]:  # of a run before
            open(os.path.join(recorder.directory, name), "w").close()
        os.symlink("notes.fgprof", os.path.join(recorder.directory, "fgprof-x-1-20000101T000000Z.fgprof"))
        others = sorted(others + ["fgprof-x-1-20000101T000000Z.fgprof"])
        written = []
        for _ in range(4):
            recorder.ask()
            path, reason = recorder.next_file()
            assert reason == "SIGUSR1"
            written.append(os.path.basename(path))
        tell(target, "stall 600")
        path, reason = recorder.next_file()
        assert reason.startswith(STALL), reason
        written.append(os.path.basename(path))
        wait_for(lambda: len(recorder.files()) == 6, "the oldest to go")
        assert recorder.files() == sorted(others + written[-3:])
        tell(target, "stall 600")  # in the cooldown
        wait_for_polls(recorder)
        assert recorder.files() == sorted(others + written[-3:])
        recorder.ends(5)


def test_formats_of_its_files(world):
    for name, ending in ("pprof", ".pb.gz"), ("html", ".html"), ("report", ".report"), ("text", ".txt"), \
            ("speedscope", ".speedscope.json"), ("folded", ".folded"):
        with stalling(world, "-f", name) as (_, recorder):
            wait_for_samples(recorder)
            recorder.ask()
            path, _ = recorder.next_file()
            assert NAME.fullmatch(os.path.basename(path))[4] == ending, path
            contents = open(path, "rb").read()
            if name in ("html", "report", "text"):
                assert b"SIGUSR1" in contents, contents[:500]
            elif name == "pprof":
                need("go")
                comments = tool("go", "tool", "pprof", "-comments", path)
                assert "reason: SIGUSR1" in comments, comments
            else:
                assert b"at_work" in contents, contents
            recorder.ends(1)


def wait_for_samples(recorder):
    """Waits until the worker of the fixture was sampled."""
    thread = thread_of(recorder, "fgprof-sampler")
    before = switches(thread)
    wait_for(lambda: switches(thread) > before + 50, "samples")


def limit_files():
    """As with a full disk: no file may have more than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))


def test_a_disk_that_is_full(world):
    with stalling(world, preexec_fn=limit_files) as (_, recorder):
        wait_for_samples(recorder)
        recorder.ask()
        assert recorder.next_line() == (f"fgprof-c: no file can be written to {recorder.directory}: "
                                        "File too large; recording continues\n")
        recorder.ask()
        wait_for(lambda: has_answered(recorder), "the second try")
        # There is room again.
        resource.prlimit(recorder.sampler.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        recorder.ask()
        recorder.next_file()  # without another complaint
        assert len(recorder.files()) == 1
        recorder.ends(1)


def has_answered(recorder):
    """Whether no SIGUSR1 is pending, and the thread that takes them waits for the next one."""
    pending = int(status_field(recorder.sampler.pid, "ShdPnd"), 16)
    call = open(f"/proc/{thread_of(recorder, 'fgprof-sigusr1')}/syscall").read().split()[0]
    return not pending & 1 << signal.SIGUSR1 - 1 and call == SIGTIMEDWAIT


def test_a_directory_that_goes_away(world):
    with stalling(world) as (_, recorder):
        os.rename(recorder.directory, recorder.directory + "-moved")
        complaint = (f"fgprof-c: no file can be written to {recorder.directory}: "
                     "No such file or directory; recording continues\n")
        recorder.ask()
        assert recorder.next_line() == complaint
        os.rename(recorder.directory + "-moved", recorder.directory)
        recorder.ask()
        recorder.next_file()
        wait_for(lambda: has_answered(recorder), "old files to be looked for there")
        os.rename(recorder.directory, recorder.directory + "-moved")
        recorder.ask()
        assert recorder.next_line() == complaint  # it had worked meanwhile
        os.rename(recorder.directory + "-moved", recorder.directory)
        recorder.ends(1)


def test_no_directory_at_the_start(world):
    with world.running("stall", 500, stdin=subprocess.PIPE) as target:
        file = world.path("a-file")
        open(file, "w").close()
        for directory, why in (world.path("none"), "No such file or directory"), (file, "Not a directory"):
            for command in "record", "serve":
                done = world.fgprof(command, "-p", target.pid, "-o", directory)
                assert done.returncode == 1 and done.stderr == (
                    f"fgprof-c: files can't be written to {directory}: {why}: give a directory with -o DIR\n"), done
        for arguments, status, said in (
                (["record"], 2, "fgprof-c: no directory given for the files: use -o DIR\n"),
                (["serve", "--trigger", "exit"], 2, "fgprof-c: no directory given for the files: use -o DIR\n"),
                (["record", "-o", "."] + ["--keep", "0s"], 2,
                 "fgprof-c: bad time to keep '0s': give a time such as 60s or 5m\n"),
                (["record", "-o", ".", "--max-files", "0"], 2,
                 "fgprof-c: bad number of files '0': give a whole number, 1 to 1000000\n")):
            done = world.fgprof(arguments[0], "-p", target.pid, *arguments[1:])
            assert (done.returncode, done.stderr) == (status, said), done


def test_bad_triggers(world):
    for trigger, said in (
            ("any blokked 2s", "at character 5: give 'in FUNCTION for TIME' or 'blocked TIME'"),
            ("thread io in f for soon", "at character 20: give a time such as 300ms or 2s"),
            ("cpu over 5%", "at character 5: give 'above N%' or 'below N%'"),
            ("", "at character 1: give thread NAME, any, runnable, cpu, deadlock, exit or command CMD, with "
                 "their values"),
            ("any blocked 90s", "it takes longer than is kept: give --keep a longer time")):
        done = world.fgprof("record", "-p", 1, "-o", world.directory, "--trigger", "exit", "--trigger", trigger)
        assert (done.returncode, done.stderr) == (2, f"fgprof-c: bad trigger '{trigger}': {said}\n"), done


def test_the_next_process_of_a_name(world):
    """Each process has its own files; the recorder continues."""
    called = f"stall{os.getpid()}"
    os.symlink(world.fixture("stall"), world.path(called))
    def running():
        return world.running("stall", 500, stdin=subprocess.PIPE, program=world.path(called))
    with running() as first, recording(world, "--pgrep", f"^{called}$", "--wait", "--trigger", "exit",
                                       "--cooldown", "1ms") as recorder:
        tell(first, "stall 1")
        first.kill()
        first.wait()
        assert f"-{first.pid}-" in recorder.next_file()[0]
        with running() as second:
            assert f"{called} ({second.pid})" in recorder.next_line()
            tell(second, "stall 1")
            second.kill()
            second.wait()
            assert f"-{second.pid}-" in recorder.next_file()[0]
        recorder.ends(2)


def test_beside_a_server(world):
    """serve writes the same files. Without --keep it keeps a minute for them."""
    directory = world.path("beside")
    os.mkdir(directory)
    with world.running("stall", 500, stdin=subprocess.PIPE) as target:
        server = world.start("serve", "-p", target.pid, "--listen", "127.0.0.1:0", "-o", directory,
                             "--trigger", STALL)
        url = re.search(r"at (http://\S+)", server.stderr.readline())[1]
        tell(target, "stall 600")
        said = re.fullmatch(rf"fgprof-c: wrote (\S+): {STALL}: thread .*\n", server.stderr.readline())
        assert said and longest_in(world, said[1], "in_stall") >= 200
        with urllib.request.urlopen(url + "debug/fgprof?last=60s&format=folded", timeout=HANGS_S) as answer:
            assert b"in_stall" in answer.read()
        stdout, stderr = end(server)
        assert (stdout, stderr) == ("", ""), stderr
        assert os.listdir(directory) == [os.path.basename(said[1])]
        done = world.fgprof("serve", "-p", target.pid, "-o", directory, "--trigger", "any blocked 61s")
        assert done.returncode == 2 and "it takes longer than is kept" in done.stderr, done


def test_the_reason_is_in_the_head_of_the_page(world):
    with stalling(world, "-f", "html") as (_, recorder):
        wait_for_samples(recorder)
        recorder.ask()
        path = recorder.next_file()[0]
        recorder.ends(1)
    browser = Browser()
    try:
        page = Page(browser, path)
        assert page.browser.text("#kind") == "SIGUSR1"
        assert not browser.console()
    finally:
        browser.close()


@alone
@users_build
def test_many_short_processes_of_many_programs(world):
    """A small compiler farm: once 200 programs have been seen, neither memory nor open files grow."""
    with soaking(world, "farm") as target, \
            recording(world, "-p", target.pid, "--children", "--keep", "2s", "-f", "text") as recorder:
        def look(processes):
            soak_until(target, processes, "processes")
            return kept_open(recorder.sampler.pid)
        early_kb, early_files = look(2500)
        late_kb, late_files = look(4000)
        recorder.ask()
        path, _ = recorder.next_file()
        recorder.ends(1)
    with open(path, encoding="utf-8") as file:
        programs = set(re.findall(r'"process":"(tool-\d+)"', file.read()))
    print(f"{late_kb - early_kb} KiB more than {early_kb}, {late_files - early_files} files, {len(programs)} programs")
    assert len(programs) > 30, programs
    assert late_kb - early_kb < 2500 and late_files - early_files < 300, (early_kb, late_kb, early_files, late_files)

"""What the machine may do to samples by the kernel: CPUs that go away, limits, privileges, namespaces,
threads that end, and a profiler that is killed."""

import contextlib
import errno
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import (HANGS_S, RATE, Skip, alone, by_root, children_of, context_switches, end, folded, has,
                     late_share, need, pauses, ready, running_s, status, switches_in, thread_named, threads_of,
                     ticks_late, ticks_planned, users_build, wait_for, wait_for_ticks, wait_until_asleep,
                     wait_until_sampled, wait_until_sampling)
from test_capture import (in_spin, need_kernel_samples, need_record, only_threads, refuse_events,
                          refuse_record)
from test_containers import INSIDE, ROOTLESS, check_possible, command, container, inside, tree
from test_extremes import transfers
from test_lifecycle import SLEEPERS, check_outcomes

# Sets a file of the kernel's when its input ends, however the test ends.
SET_BACK = 'read _; until echo "$2" > "$1"; do sleep 0.1; done'
# So many times more the profiler is killed than usual.
KILLS_FACTOR = int(os.environ.get("FGPROF_KILLS_FACTOR", "1"))
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@contextlib.contextmanager
def set_back(path, value):
    with subprocess.Popen(["sh", "-c", SET_BACK, "sh", path, value], stdin=subprocess.PIPE):
        yield


@contextlib.contextmanager
def a_cpu_to_take():
    """Yields a CPU and the file that switches it off (0) and on (1). It is on again at the end."""
    cpu = max(os.sched_getaffinity(0))
    path = f"/sys/devices/system/cpu/cpu{cpu}/online"
    if len(os.sched_getaffinity(0)) < 2 or not os.access(path, os.W_OK):
        raise Skip("no CPU may be taken offline")
    with set_back(path, "1"):
        yield cpu, path


def switch(path, value):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        raise Skip(f"{path} may not be set: {error.strerror}")


def spinning(pid):
    return [thread for thread in threads_of(pid) if status(thread)["Name"] == "spinning"]


def tid_of(thread):
    return int(thread.rsplit("/", 1)[1])


def kernel_samples(stderr):
    match = re.search(r"sampled by the kernel while running: (\d+) samples", stderr)
    return int(match[1]) if match else 0


def events_open(pid):
    """How many perf events the process has open."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links.count("anon_inode:[perf_event]")


def wait_for_end_of_event(pid, events):
    """Waits until fewer events are open than before: meanwhile, a thread that now waits for the other CPU may
    get one."""
    counts = [events]

    def has_ended():
        counts.append(events_open(pid))
        return counts[-1] < max(counts)

    wait_for(has_ended, "the end of the CPU's event")


def sample_while_a_cpu_is_away(world, away_s):
    """Two threads compute; one of two CPUs goes away and comes back. Then the other one has a thread of its
    own again."""
    options = "--threads=tid", "--state", "--capture=kernel"
    with a_cpu_to_take() as (cpu, path), world.running("workers", 100, 2, 0) as target:
        pinned, free = spinning(target.pid)
        samplers = [world.start("attach", "-p", target.pid, *options),
                    world.start("attach", "-p", target.pid, "--tid", tid_of(pinned), *options)]
        for sampler in samplers:
            wait_for_ticks(sampler)
        ran_before_s = running_s(pinned)
        switch(path, "0")
        wait_for(lambda: running_s(pinned) > ran_before_s + away_s, "the thread on another CPU")
        switch(path, "1")
        os.sched_setaffinity(tid_of(pinned), {cpu})
        os.sched_setaffinity(tid_of(free), set(range(cpu)))
        ran_back_s = running_s(pinned)
        wait_for(lambda: running_s(pinned) > ran_back_s + 3, "the thread on the CPU that is back")
        ran_s = running_s(pinned) - ran_before_s
        (stdout, stderr), (_, of_pinned) = map(end, samplers)
    planned, stacks = ticks_planned(stderr), folded(stdout)
    for root, count in by_root(stacks).items():
        assert abs(count - planned) <= 2, (root, count, planned)
    for thread in pinned, free:
        assert any(str(tid_of(thread)) in stack[0] and has(stack, "in_spin", "[running]")
                   for stack in stacks), stacks
    # It is noticed within a second or two. What runs there meanwhile is stopped instead.
    assert kernel_samples(of_pinned) > 0.25 * ran_s * RATE, (ran_s, of_pinned)


def first_free_fd(pid):
    """The number that the next file gets, for example that of an event that was closed."""
    used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    return next(fd for fd in range(len(used) + 1) if fd not in used)


@alone
@users_build
def test_a_cpu_comes_back_and_no_more_files_may_be_open(world):
    need_kernel_samples(world)
    with a_cpu_to_take() as (cpu, path), world.running("workers", 100, 1, 0) as target:
        (thread,) = spinning(target.pid)
        sampler = world.start("attach", "-p", target.pid, "--capture=kernel")
        wait_for_ticks(sampler)
        events = events_open(sampler.pid)
        switch(path, "0")
        wait_for_end_of_event(sampler.pid, events)
        before = resource.prlimit(sampler.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(sampler.pid, resource.RLIMIT_NOFILE, (first_free_fd(sampler.pid), before[1]))
        switch(path, "1")
        os.sched_setaffinity(tid_of(thread), {cpu})
        ran_before_s = running_s(thread)
        wait_for(lambda: running_s(thread) > ran_before_s + 2, "the thread on the CPU that is back")
        events = events_open(sampler.pid)
        resource.prlimit(sampler.pid, resource.RLIMIT_NOFILE, before)
        wait_for(lambda: events_open(sampler.pid) > events, "an event of the CPU that is back")
        stdout, stderr = end(sampler)
    assert "  1 thread ran for long without being sampled by the kernel, and was stopped then\n" in stderr
    assert in_spin(stdout) > 0


@alone
@users_build
def test_a_cpu_goes_away_and_comes_back(world):
    need_kernel_samples(world)
    sample_while_a_cpu_is_away(world, away_s=1)


@alone
@users_build
def test_a_cpu_is_away_for_a_moment(world):
    """As when a machine is suspended: the CPU is back before anyone notices."""
    need_kernel_samples(world)
    sample_while_a_cpu_is_away(world, away_s=0)


def check_workers(stacks, stderr):
    """Two threads compute, sampled by the kernel, and one sleeps. Nothing else is in the profile."""
    planned, counts = ticks_planned(stderr), by_root(stacks)
    assert kernel_samples(stderr) and pauses(stderr) <= 2, stderr
    assert len(counts) == 4 and all(abs(count - planned) <= 2 + planned / 10
                                    for count in counts.values()), (counts, stderr)
    names = {root.split("/")[0].removeprefix("fixture-") for root in counts}
    assert names == {"workers", "spinning", "sleeping"}, names
    for root, count in counts.items():
        work = {"spinning": "in_spin", "sleeping": "in_sleep"}.get(root.split("/")[0], "main")
        there = sum(n for stack, n in stacks.items() if stack[0] == root and has(stack, work))
        assert there > count / 2, (root, stacks)


def test_the_kernel_samples_a_container_from_outside(world):
    need_kernel_samples(world)
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            with container(root, ["/workers", "60", "2", "1"], how) as pid:
                done = world.fgprof("attach", "-p", pid, "-d", "1s", "--threads=tid",
                                    "--capture=kernel")
            assert done.returncode == 0, done.stderr
            check_workers(folded(done.stdout), done.stderr)


def test_the_kernel_samples_inside_a_container(world):
    """The container has its own process ids, and no /sys. Other threads that compute, inside, or outside with
    the same id, are not mixed up with the sampled ones."""
    need_kernel_samples(world)
    script = "/workers 30 2 1 >/tmp/said & pid=$!; /program 30 >/dev/null & " \
             "until [ -s /tmp/said ]; do sleep 0.01; done; " \
             "exec /fgprof-c attach -p $pid -d 1s --threads=tid --capture=kernel"
    with tree(world) as root:
        stacks, stderr = inside(root, ["/bin/sh", "-c", ": >/tmp/said; " + script])
    check_workers(stacks, stderr)


def test_a_container_where_the_kernel_may_not_sample(world):
    """The CAP_PERFMON of root in a user namespace does not count."""
    with tree(world) as root:
        check_possible(root, ROOTLESS)
        words = ["/fgprof-c", "run", "--threads=tid", "--", "/workers", "1", "2", "1"]
        done = subprocess.run(command(root, words, ROOTLESS), capture_output=True, text=True,
                              timeout=60, check=False)
        demanded = subprocess.run(command(root, [*words[:2], "--capture=kernel", *words[2:]], ROOTLESS),
                                  capture_output=True, text=True, timeout=60, check=False)
    if int(open(PARANOID, encoding="ascii").read()) < 2:
        raise Skip("perf_event_paranoid permits it")
    assert done.returncode == 0, done.stderr
    assert re.search(r"the kernel may not sample running threads \(Permission denied\), so they were "
                     r"stopped; CAP_PERFMON .*in the initial user namespace would help, or: sudo sysctl kernel.perf_event_paranoid=1", done.stderr)
    assert in_spin(done.stdout.replace("ready\n", "")) > 0, done.stdout
    assert demanded.returncode == 125 and "does not permit sampling" in demanded.stderr, demanded


def test_a_time_namespace(world):
    """The kernel's times differ from those that the profiler sees by a day."""
    need_kernel_samples(world)
    need("unshare")
    with world.running("workers", 60, 2, 1) as target:
        for offset in 86400, -1:
            in_it = ["unshare", "--time", f"--monotonic={offset}", "--fork", "--kill-child"]
            if subprocess.run([*in_it, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
                raise Skip("time namespaces are not permitted")
            done = subprocess.run([*in_it, world.program, "attach", "-p", str(target.pid), "-d", "1s",
                                   "--threads=tid", "--capture=kernel"], capture_output=True,
                                  text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            check_workers(folded(done.stdout), done.stderr)


# A process whose second thread takes over its id by executing a program, when both have computed.
TAKES_OVER = """
import os, sys, threading, time
def compute():
    end = time.thread_time() + 1.5
    while time.thread_time() < end:
        pass
def take_over():
    compute()
    os.execv(sys.argv[1], sys.argv[1:])
threading.Thread(target=take_over).start()
compute()
time.sleep(100)
"""


def test_a_thread_that_takes_over_its_process_has_an_event(world):
    """The event of the thread that had this id before has ended."""
    need_kernel_samples(world)
    done = world.fgprof("run", "-F", "1000", "--capture=kernel", "-o", world.path("over.folded"), "--",
                        sys.executable, "-c", TAKES_OVER, world.fixture("spinners"), "2", "1",
                        preexec_fn=only_threads)
    assert done.returncode == 0 and "each thread has its own event" in done.stderr, done.stderr
    assert pauses(done.stderr) < 100, done.stderr
    assert any(has(stack, "main", "in_spin")
               for stack in folded(open(world.path("over.folded"), encoding="utf-8").read()))


def test_events_of_processes_that_have_exited_are_closed(world):
    """Their parent does not wait for them: they stay zombies, while the parent is still sampled."""
    need_kernel_samples(world)
    count = 10
    script = f"for i in $(seq {count}); do {world.fixture('spinners')} 0.5 1 & done; exec sleep 100"
    sampler = world.start("run", "--children", "--capture=kernel", "-o", "/dev/null", "-f", "folded",
                          "--", "sh", "-c", script, preexec_fn=only_threads)
    wait_for(lambda: children_of(sampler.pid), "the command")
    (command_pid,) = children_of(sampler.pid)
    most = 0

    def are_all_dead():
        nonlocal most
        most = max(most, events_open(sampler.pid))
        children = children_of(command_pid)
        return len(children) == count and all(
            status(child)["State"][0] == "Z" for child in children)

    wait_for(are_all_dead, "the processes' end")
    # The command itself may keep those that it had as a shell.
    wait_for(lambda: events_open(sampler.pid) <= 2, "the events' end")
    os.kill(command_pid, signal.SIGTERM)
    _, stderr = sampler.communicate(timeout=HANGS_S)
    assert most > 2 and "each thread has its own event" in stderr, (most, stderr)


@alone
@users_build
def test_threads_with_events_that_hardly_live(world):
    """The threads compute for 0.1 to 1 ms: many end before they have an event, or before it is mapped."""
    need_kernel_samples(world)
    for life_us in 100, 300, 1000:
        out = world.path("lives.folded")
        sampler = world.start("run", "-F", "1000", "-o", out, "--threads=tid", "--capture=kernel", "--",
                              world.fixture("churn"), 2, life_us, 300, 0, "running",
                              preexec_fn=only_threads)
        most = 0
        while sampler.poll() is None:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                most = max(most, events_open(sampler.pid))
            time.sleep(0.01)
        stdout, stderr = sampler.communicate(timeout=HANGS_S)
        assert sampler.returncode == 0 and "sampled by the kernel" in stderr, stderr
        births, lived_s = map(float, re.search(r"(\d+) threads lived ([\d.]+) s\n", stdout).groups())
        counts = by_root(folded(open(out, encoding="utf-8").read()))
        planned = ticks_planned(stderr)
        # The command counts from its exec on, which takes some milliseconds on a busy machine.
        assert 0.95 * planned <= max(counts.values()) <= planned + 2, (counts.most_common(3), planned)
        found_s = (sum(counts.values()) - max(counts.values())) / 1000
        unseen = late_share(stderr)
        # The fixture measures a life from before the thread is created.
        assert 0.5 - unseen < found_s / lived_s < 1.6 + unseen, (found_s, stdout, stderr)
        # Not one for each thread that there was: a busy machine leaves them open for somewhat longer.
        assert births > 100 and most < max(60, births / 10), (births, most)


def test_a_process_with_events_that_is_killed(world):
    """The process is killed while it is sampled: the profile has its time up to then."""
    need_kernel_samples(world)
    with world.running("workers", 60, 20, 5) as target:
        sampler = world.start("attach", "-p", target.pid, "-F", "1000", "--capture=kernel",
                              preexec_fn=only_threads)
        wait_for_ticks(sampler)
        wait_for(lambda: events_open(sampler.pid) >= 10, "events")
        target.kill()
        stdout, stderr = sampler.communicate(timeout=HANGS_S)
    assert sampler.returncode == 0 and "each thread has its own event" in stderr, stderr
    assert in_spin(stdout) > 0 and "26 threads seen" in stderr, stderr


def limited(files, before=lambda: None):
    """For preexec_fn: limits how many files may be open."""
    def limit():
        before()
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    return limit


def only_threads_and_no_record():
    only_threads()
    refuse_record()


def number_in(pattern, stderr):
    match = re.search(pattern, stderr)
    assert match, (pattern, stderr)
    return int(match[1])


def test_too_few_files_for_the_events_of_all_threads(world):
    """Some threads have events, the others are stopped. The summary says both, and the profile is
    complete."""
    need_kernel_samples(world)
    with world.running("workers", 60, 30, 1) as target:
        # A quarter of the files may be events.
        done = world.attach(target, "--threads=tid", preexec_fn=limited(96, only_threads_and_no_record))
    help_of_limit = re.escape(" (Too many open files); a higher limit on open files (ulimit -n) would help")
    with_event = number_in(r"  (\d+) threads were sampled by the kernel", done.stderr)
    without = number_in(r"  (\d+) threads were stopped while they ran, as there could be no events for "
                        "them" + help_of_limit, done.stderr)
    assert 1 < with_event < 30 and 1 < without < 30, done.stderr
    # Each runs for a thirtieth of the time, and waits for a CPU otherwise.
    assert number_in(r"  (\d+) threads' waits for a CPU are counted where they ran, as there could be no "
                     "events for them" + help_of_limit, done.stderr) <= 30
    stacks = folded(done.stdout)
    assert "modules could not be read" not in done.stderr, done.stderr
    for thread, count in by_root(stacks).items():
        assert abs(count - ticks_planned(done.stderr)) <= 2, (thread, count, done.stderr)


def test_too_few_files_for_events_of_switches(world):
    """The events of CPUs take no more files than they need, and modules can still be opened."""
    need_kernel_samples(world)
    with world.running("spinners", 60, 12) as target:
        done = world.attach(target, preexec_fn=limited(40, refuse_record))
    assert kernel_samples(done.stderr) and "could not be read" not in done.stderr, done.stderr
    assert number_in(r"  (\d+) threads' waits for a CPU are counted where they ran, as there could be no "
                     r"events for them \(Too many open files\)", done.stderr) >= 2, done.stderr
    stacks = folded(done.stdout)  # a thread may still be at its start
    assert sum(count for stack, count in stacks.items() if has(stack, "in_spin")) >= 0.99 * sum(stacks.values()), stacks


def test_far_too_few_files(world):
    """The profiler fails, or says what is missing. It never assumes that the process has ended."""
    with world.running("workers", 200, 2, 1) as target:
        for files in range(6, 28):
            done = world.fgprof("attach", "-p", target.pid, "-d", "200ms", "-o",
                                world.path(f"{files}.folded"), preexec_fn=limited(files))
            assert done.returncode in (0, 1) and "open files" in done.stderr, (files, done)
            assert done.returncode or ticks_planned(done.stderr) >= 0.2 * RATE - 2, (files, done)


@users_build
def test_a_process_ends_while_no_more_files_may_be_open(world):
    """Whether its parent waits for it or not, the recording ends with the process. LeakSanitizer would have
    to open files at the end."""
    for is_waited_for in True, False:
        with world.running("workers", 60, 2, 1) as target:
            sampler = world.start("attach", "-p", target.pid)
            wait_for_ticks(sampler)
            hard = resource.prlimit(sampler.pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(sampler.pid, resource.RLIMIT_NOFILE, (3, hard))
            wait_until_sampled(target.pid, "spinning")
            os.kill(target.pid, signal.SIGKILL)
            if is_waited_for:
                target.wait()
            stdout, stderr = sampler.communicate(timeout=60)
        assert sampler.returncode == 0 and folded(stdout), (is_waited_for, stderr)
        # Names are read at the end, by another process, from files that are open.
        assert any(has(stack, "spin") for stack in folded(stdout)), (stdout, stderr)


def test_the_machine_has_too_many_files_open(world):
    for error, remedy in ((errno.ENFILE, "system-wide limit on open files (fs.file-max)"),
                          (errno.EMFILE, "limit on open files (ulimit -n)")):
        with world.running("spinners", 60, 1) as target:
            done = world.attach(target, duration="500ms", preexec_fn=lambda: refuse_events(error))
        assert (f"the kernel may not sample running threads ({os.strerror(error)}), so they were "
                "stopped") in done.stderr, done.stderr
        assert f"; a higher {remedy} would help" in done.stderr, done.stderr
        assert in_spin(done.stdout) > 0, done.stdout


@alone
@users_build
def test_more_threads_than_may_have_events_of_switches(world):
    need_kernel_samples(world)
    # At equal rights some machines let the profiler have a CPU beside them once in seconds.
    with world.running("workers", 60, 80, 0, preexec_fn=lambda: os.nice(19)) as target:
        done = world.attach(target, "--capture=kernel", duration="2s", preexec_fn=refuse_record)
    assert 0 < number_in(r"  (\d+) threads?' waits for a CPU are counted where they ran, as there could be "
                         r"no events for them \(the limit on events is reached\)\n", done.stderr) <= 16, done.stderr
    assert in_spin(done.stdout) > 0


def attach_as_nobody(program, target, *options):
    done = subprocess.run([program, "attach", "-p", str(target.pid), "-d", "600ms", "--threads=tid",
                           *options], capture_output=True, text=True, timeout=HANGS_S, check=False,
                          **NOBODY)
    return done.returncode, done.stdout, done.stderr


def for_nobody(world):
    """Copies of the profiler and of a target that an ordinary user may run."""
    if os.geteuid():
        raise Skip("only root may set it")
    copies = world.path("fgprof-c"), world.path("workers")
    for file, copy in zip((world.program, world.fixture("workers")), copies):
        shutil.copy(file, copy)
    return copies


@alone
def test_each_level_of_perf_event_paranoid(world):
    """As an ordinary user: up to level 0 CPUs have events; at 1 threads have; from 2 on there are none."""
    need_kernel_samples(world)
    program, fixture = for_nobody(world)
    before = open(PARANOID, encoding="ascii").read().strip()
    with set_back(PARANOID, before), ready(fixture, 100, 2, 1, **NOBODY) as target:
        for level in -1, 0, 1, 2, 3, 4:
            switch(PARANOID, str(level))
            if level in (1, 2):
                grown = attach_as_nobody(program, target, "--kind", "growth")
                assert grown[0] == 0, grown
                assert ("pages that system calls touched first, such as read(2), are missing; "
                        in grown[2]) == (level == 2), (level, grown)
            demanded = attach_as_nobody(program, target, "--capture=kernel")
            if level < 2:
                status_of, stdout, stderr = demanded
                assert status_of == 0 and kernel_samples(stderr), stderr
                assert ("each thread has its own event" in stderr) == (level == 1), (level, stderr)
                check_workers(folded(stdout), stderr)
                continue
            assert demanded[0] == 1 and "sudo sysctl kernel.perf_event_paranoid=1" in demanded[2], demanded
            status_of, stdout, stderr = attach_as_nobody(program, target)
            assert status_of == 0, stderr
            assert ("the kernel may not sample running threads (Permission denied), so they were "
                    "stopped") in stderr, stderr
            needed = r"CAP_PERFMON \(if that is not enough, CAP_SYS_ADMIN\)" if level > 2 else "CAP_PERFMON"
            assert re.search(f"; {needed} would help, or: sudo sysctl kernel.perf_event_paranoid=1\n", stderr), stderr
            assert pauses(stderr) > 0 and in_spin(stdout) > 0, stderr
            assert all(abs(count - ticks_planned(stderr)) <= 2
                       for count in by_root(folded(stdout)).values()), (stdout, stderr)


@alone
def test_each_level_of_ptrace_scope(world):
    """As an ordinary user: from level 1 on only commands that the profiler starts can be sampled, and from 2
    on nothing."""
    if not os.path.exists(YAMA):
        raise Skip("a kernel without Yama")
    program, fixture = for_nobody(world)
    before = open(YAMA, encoding="ascii").read().strip()
    with set_back(YAMA, before), ready(fixture, 100, 2, 1, **NOBODY) as target:
        for level in 0, 1, 2:
            switch(YAMA, str(level))
            status_of, stdout, stderr = attach_as_nobody(program, target)
            if level:
                refusal = f"not permitted to trace process {target.pid}: kernel.yama.ptrace_scope is {level}"
                assert status_of == 1 and refusal in stderr, (level, stderr)
            else:
                assert status_of == 0 and in_spin(stdout) > 0, (level, stdout, stderr)
            started = subprocess.run([program, "run", "-f", "folded", "-o", "/dev/null", "--", fixture, "1", "2", "1"],
                                     capture_output=True, text=True, timeout=HANGS_S, check=False, **NOBODY)
            assert (started.returncode == 0) == (level < 2), (level, started.stderr)
            done = world.attach(target, duration="300ms")
            assert in_spin(done.stdout) > 0, (level, done.stdout, done.stderr)


class Encoding:
    """Compresses a file through pipes, in several threads."""

    def __init__(self, path):
        self.reader = subprocess.Popen(["cat", path], stdout=subprocess.PIPE)
        self.encoder = subprocess.Popen(["xz", "-1", "-T2", "--block-size=1MiB", "-c"],
                                        stdin=self.reader.stdout, stdout=subprocess.PIPE)
        self.reader.stdout.close()
        self.hash = hashlib.sha256()
        self.listener = threading.Thread(target=self._listen)
        self.listener.start()

    def _listen(self):
        while piece := self.encoder.stdout.read(1 << 16):
            self.hash.update(piece)

    def pids(self):
        return f"{self.reader.pid},{self.encoder.pid}"

    def is_running(self):
        return self.reader.poll() is None and self.encoder.poll() is None

    def kill(self):
        self.reader.kill()
        self.encoder.kill()

    def end(self):
        """Waits for its end. Returns the output's hash, and how the two ended."""
        ends = self.reader.wait(HANGS_S), self.encoder.wait(HANGS_S)
        self.listener.join(HANGS_S)
        self.encoder.stdout.close()
        return self.hash.hexdigest(), *ends


def kill_profilers(world, encoding, options, moments):
    """Samples the encoder, again and again, and kills the profiler after each of these times. Returns how
    many were killed."""
    killed = 0
    for moment_s in moments:
        if not encoding.is_running():
            break
        sampler = subprocess.Popen([world.program, "attach", "-p", encoding.pids(), "-q", "-o",
                                    "/dev/null", "-f", "folded", *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment_s)
        killed += sampler.poll() is None
        sampler.kill()
        sampler.wait()
    return killed


def check_killed_profilers(world, count, *options):
    """Whatever the profiler does when it is killed: the encoder writes the same bytes, and ends normally."""
    need("xz")
    source = world.path("source")
    random_words = random.Random(1)
    words = ["%x" % random_words.randrange(1 << random_words.randrange(8, 40)) for _ in range(20000)]
    with open(source, "w", encoding="ascii") as file:
        for _ in range(8):
            file.write(" ".join(random_words.choices(words, k=200000)))
    expected = Encoding(source).end()
    assert expected[1:] == (0, 0), expected
    moments, killed, encodings = random.Random(2), 0, 0
    while killed < count:
        encoding = Encoding(source)
        try:
            killed += kill_profilers(world, encoding, options,
                                     (moments.uniform(0, 0.3) for _ in range(count - killed)))
            assert encoding.end() == expected, (killed, encodings)
        finally:
            encoding.kill()
        encodings += 1
    print(f"{killed} profilers were killed, {encodings} encodings were whole")


def test_profilers_that_are_killed_change_no_encoding(world):
    check_killed_profilers(world, 30 * KILLS_FACTOR, "-F", "1000")


def test_profilers_that_stop_and_are_killed_change_no_encoding(world):
    check_killed_profilers(world, 15 * KILLS_FACTOR, "-F", "1000", "--capture=ptrace")


SLEEP_S = 9


def sample_beside_sleepers(world, capture):
    """32 threads sleep in calls that a stop would disturb, and six in the middle of a transfer, while others
    compute and are sampled by the kernel: no sleeper is woken in 2,000 ticks."""
    need_kernel_samples(world)
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        sleepers = [stack.enter_context(world.running("sleepers-" + name, SLEEP_S)) for name in SLEEPERS]
        still = [stack.enter_context(world.running("transfers", 100, "still")) for _ in range(2)]
        busy = stack.enter_context(world.running("workers", 100, 2, 0))
        asleep = [target.pid for target in sleepers + still]
        wait_until_asleep(*asleep)
        before = [context_switches(pid) for pid in asleep]
        sampler = world.start("attach", "-p", ",".join(map(str, [*asleep, busy.pid])), "-F", "1000",
                              "--capture=" + capture, "--threads=tid")
        wait_until_sampling(sampler)
        ticker = thread_named(sampler.pid, "fgprof-sampler")
        until = begin + SLEEP_S - 1.5
        wait_for(lambda: (int(status(ticker)["voluntary_ctxt_switches"]) > 2300
                          or time.monotonic() > until), "ticks")
        after = [context_switches(pid) for pid in asleep]
        stdout, stderr = end(sampler)
        lines = [line for target in sleepers for line in target.stdout.read().splitlines()]
        transferred = [transfers(target) for target in still]
    assert after == before and sum(map(len, before)) == 4 * 8 + 2 * 4, (before, after)
    assert kernel_samples(stderr) and pauses(stderr) <= 2, stderr
    check_outcomes(lines, SLEEP_S)
    for calls, short, failed in (numbers for report in transferred for numbers in report.values()):
        assert calls >= 1 and short == failed == 0, transferred
    assert any(has(stack, "in_epoll_wait") for stack in folded(stdout))
    if number_in(r"(\d+) taken", stderr) < 2000:
        raise Skip("the machine is too slow for 2,000 ticks in this time")


@alone
@users_build
def test_sleepers_beside_kernel_samples(world):
    sample_beside_sleepers(world, "auto")


@alone
@users_build
def test_sleepers_beside_kernel_samples_alone(world):
    sample_beside_sleepers(world, "kernel")


def check_whole(stdout, stderr, threads):
    """With --threads=tid: each of these threads has its time."""
    planned, counts = ticks_planned(stderr), by_root(folded(stdout))
    assert len(counts) == threads and all(abs(count - planned) <= 2 for count in counts.values()), (counts, stderr)


# The files of the kernel's types, where libbpf looks for them.
NO_BTF = ("mount --make-rprivate / && mount --bind /dev/null /sys/kernel/btf/vmlinux && "
          "for file in /boot/vmlinux-$(uname -r) /lib/modules/$(uname -r)/build/vmlinux; do "
          "[ ! -e $file ] || mount --bind /dev/null $file || exit; done; ")


def test_a_kernel_without_btf(world):
    """Sampling goes on without the record of switches, and one line says so."""
    need_record(world)
    need("unshare")
    in_it = ["unshare", "--mount", "sh", "-c", NO_BTF + 'exec "$@"', "sh"]
    if subprocess.run([*in_it, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("mount namespaces are not permitted")
    with world.running("workers", 60, 1, 1) as target:
        attach = [*in_it, world.program, "attach", "-p", str(target.pid), "-d", "1s", "--threads=tid"]
        done, demanded = (subprocess.run([*attach, *options], capture_output=True, text=True, timeout=HANGS_S,
                                         check=False) for options in ((), ("--capture=record",)))
    assert done.returncode == 0 and done.stderr.count("switches") == 1, done.stderr
    assert re.search(r"\n  the kernel may not record switches \(Operation not supported\), so threads were observed "
                     r"after the tick: .*; Linux 5.15 or later \(on aarch64 5.18\) with BTF would help\n",
                     done.stderr), done.stderr
    assert "\n  captured by looks at /proc and kernel samples\n" in done.stderr, done.stderr
    check_whole(done.stdout, done.stderr, threads=3)
    assert demanded.returncode == 1 and not demanded.stdout and demanded.stderr.count("\n") == 1, demanded
    assert demanded.stderr.endswith("may not record switches (Operation not supported); Linux 5.15 or later (on "
                                    "aarch64 5.18) with BTF would help; or run without --capture=record\n"), demanded


LOG = "fgprof-bpf.log"


def attach_refused(world, target, *options, in_directory):
    """The kernel's verifier refuses the profiler's programs."""
    environment = {**os.environ, "LD_PRELOAD": world.fixture("refused.so")}
    return world.fgprof("attach", "-p", target.pid, "-d", "500ms", *options, cwd=in_directory, env=environment)


@users_build
def test_a_verifier_that_refuses(world):
    """One line says so, and how to find out more; with --verbose the verifier's log is in a file."""
    need_record(world)
    directory, other = world.path("here"), world.path("other")
    os.mkdir(directory)
    log = os.path.join(directory, LOG)
    with world.running("workers", 60, 1, 1) as target:
        brief = attach_refused(world, target, "--threads=tid", in_directory=directory)
        assert os.listdir(directory) == [], brief
        with open(other, "w", encoding="ascii") as file:
            file.write("not followed")
        os.symlink(other, log)
        verbose = attach_refused(world, target, "--verbose", "--threads=tid", in_directory=directory)
        text = open(log, encoding="ascii").read()
        assert os.listdir(directory) == [LOG] and not os.path.islink(log)
        assert open(other, encoding="ascii").read() == "not followed"
        os.unlink(log)
        demanded = attach_refused(world, target, "-v", "--capture=record", in_directory=directory)
        assert open(log, encoding="ascii").read() == text
        os.unlink(log)
        demanded_briefly = attach_refused(world, target, "--capture=record", in_directory=directory)
        nowhere = attach_refused(world, target, "-v", in_directory="/proc")
        permitted = world.attach(target, "-v", duration="500ms", cwd=directory)
        assert os.listdir(directory) == []
    for done in brief, verbose:
        assert done.returncode == 0 and done.stderr.count("switches") == 1, done.stderr
        check_whole(done.stdout, done.stderr, threads=3)
    said = r"\n  the kernel may not record switches \(Permission denied\), so threads were observed after the tick: "
    assert re.search(said + ".*; --verbose writes the kernel's log to a file\n", brief.stderr), brief.stderr
    assert re.search(said, verbose.stderr) and "--verbose" not in verbose.stderr, verbose.stderr
    for done in verbose, demanded:
        assert done.stderr.endswith(f"\nfgprof-c: wrote {LOG}, which says why the kernel refused BPF programs\n"), done
    # In the verifier's own words: the instruction, and what is wrong with it.
    assert "-- BEGIN PROG LOAD LOG --" in text and "r0 = r9\nR9 !read_ok\n" in text, text
    for done in demanded, demanded_briefly:
        assert done.returncode == 1 and "may not record switches (Permission denied)" in done.stderr, done
    assert "; --verbose writes the kernel's log to a file; or run without --capture=record\n" in \
           demanded_briefly.stderr, demanded_briefly
    assert nowhere.returncode == 0 and f"\nfgprof-c: {LOG} can't be written here: " in nowhere.stderr, nowhere
    assert "switches (" not in permitted.stderr and LOG not in permitted.stderr, permitted.stderr


# Measured: 1.6 beside the first of these two targets, 1.2 beside the second.
MEMORY_RATIO = 3


def end_and_memory(sampler):
    """Returns what it wrote, and the maximum of its memory that was seen, in KiB."""
    most = [0]

    def watch():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            while sampler.poll() is None:
                most.append(int(status(sampler.pid).get("VmHWM", "0 kB").split()[0]))
                time.sleep(0.02)
    watcher = threading.Thread(target=watch)
    watcher.start()
    stdout, stderr = sampler.communicate(timeout=HANGS_S)
    watcher.join()
    assert sampler.returncode == 0, stderr
    return stdout, stderr, max(most)


def attach_to_many(world, target, seconds, *options):
    return world.start("attach", "-p", target.pid, "-d", f"{seconds}s", "--threads=tid", *options)


@alone
@users_build
def test_threads_that_switch_as_often_as_they_can(world):
    """With such threads around, the profiler ends, with little more memory than usual. If it is delayed, the
    summary says what it did not see."""
    need_record(world)
    pairs = 8
    with world.running("workers", 60, 0, 2 * pairs) as target:
        *_, usual_kib = end_and_memory(attach_to_many(world, target, 2))
    with world.running("pingpong", 60, pairs) as target:
        switched = sum(context_switches(target.pid).values())
        stdout, stderr, most_kib = end_and_memory(attach_to_many(world, target, 2))
        switched = sum(context_switches(target.pid).values()) - switched
        sampler = attach_to_many(world, target, 4, "-F", 999)
        wait_for_ticks(sampler)
        os.kill(sampler.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(sampler.pid, signal.SIGCONT)
        _, held_up, held_up_kib = end_and_memory(sampler)
    assert switched > 100 * ticks_planned(stderr), (switched, stderr)
    assert max(most_kib, held_up_kib) < MEMORY_RATIO * usual_kib, (usual_kib, most_kib, held_up_kib)
    check_whole(stdout, stderr, threads=2 * pairs + 1)
    assert ticks_late(held_up) > 0, held_up
    assert number_in(r"  (\d+) waits came too fast to be counted where they were\n", held_up) > 0


@alone
@users_build
def test_thousands_of_threads_that_all_move(world):
    """The profiler ends, with little more memory than for as many sleeping threads. Late ticks are counted
    and reported: it can't look at all threads within a millisecond."""
    kib = []
    for sleep_ms in 100000, 1000:
        with world.running("movers", 100, 10000, sleep_ms) as target:
            threads = int(status(target.pid)["Threads"])
            if threads < 4000:
                raise Skip(f"only {threads} threads may run")
            stdout, stderr, most_kib = end_and_memory(attach_to_many(world, target, 3, "-F", 999))
            moved = sum(switches > 1 for switches in context_switches(target.pid).values())
        kib.append(most_kib)
    assert moved >= threads - 1, (moved, threads)
    assert kib[1] < MEMORY_RATIO * kib[0], kib
    planned, taken, late = map(int, re.search(r"(\d+) ticks planned, (\d+) taken, (\d+) late", stderr).groups())
    assert late > 0 and taken + late == planned, stderr
    counts = by_root(folded(stdout))
    assert len(counts) == threads and sum(counts.values()) >= 0.99 * threads * planned, stderr


def test_a_target_outside_of_our_namespaces(world):
    """The profiler says what can't be sampled, and does not touch it."""
    need("unshare")
    if os.geteuid():
        raise Skip("needs root")
    with world.running("workers", 60, 1, 1) as target:
        # Its first thread sleeps, once it has left its CPU: proc(5), syscall.
        wait_for(lambda: open(f"/proc/{target.pid}/syscall").read().startswith("202 "), "its sleep")
        before = switches_in(status(target.pid))
        for how, said in ((["--user", "--map-root-user"], "not permitted to trace process"),
                          (["--pid", "--fork"], "/proc belongs to another PID namespace")):
            if subprocess.run(["unshare", *how, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
                raise Skip("such namespaces are not permitted")
            done = subprocess.run(["unshare", *how, world.program, "attach", "-p", str(target.pid), "-d",
                                   "300ms"], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1 and said in done.stderr and not done.stdout, done
        assert switches_in(status(target.pid)) == before

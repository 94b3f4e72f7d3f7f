"""Where resident memory grows, for programs that touch their own memory and know how much."""

import contextlib
import errno
import os
import re
import signal
import subprocess
import threading

from harness import Skip, end, folded, ready, status_field, tool, wait_until_sampling
from test_capture import CAP_PERFMON, refuse_events, refuse_record

PAGE = 4096
PAGES = 200 * PAGE
# A command in a PID namespace of its own, which ends with us.
INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
# Of what is told whole, and of what is so much at once that only some of it is.
WHOLE, SAMPLED = 0.03, 0.35


def skip_unless_seen(world):
    done = world.fgprof("run", "--kind", "growth", "-o", world.path("seen.folded"), "--", "true")
    if "perf_event_paranoid" in done.stderr or "perf events" in done.stderr:
        raise Skip("the kernel does not permit to see page faults")


def may_unshare():
    return subprocess.run([*INSIDE, "true"], stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def growing(world, fixture="growth"):
    with ready(world.fixture(fixture), stdin=subprocess.PIPE) as target:
        yield target


def truth_of(lines):
    return {name: int(size) for name, size in (line.split() for line in lines)}


def ask(target, what):
    """Makes the fixture touch memory. Returns how much stays resident: {function: bytes}."""
    target.stdin.write(what + "\n")
    target.stdin.flush()
    lines = []
    while (line := target.stdout.readline()) != "done\n":
        assert line, "the fixture has ended"
        lines.append(line)
    return truth_of(lines)


def by_function(stacks, truth):
    return {name: sum(count for stack, count in stacks.items() if name in stack) for name in truth}


def check(shown, truth, tolerance):
    for name, size in truth.items():
        # The function's own code is memory, too, and comes with that around it.
        code = 16 * PAGE if tolerance < SAMPLED else 0
        assert -tolerance * max(size, PAGES) <= shown[name] - size <= tolerance * max(size, PAGES) + code, \
            (name, shown, truth)


def record_attached(world, target, what, *options, **how):
    """Returns the path of a recording, the true figures, and the summary."""
    path = world.path("growth.fgprof")
    sampler = world.start("attach", "-p", target.pid, "--kind", "growth", "-o", path, *options, **how)
    wait_until_sampling(sampler)
    truth = ask(target, what)
    _, stderr = end(sampler)
    return path, truth, stderr


def test_memory_is_that_of_who_touched_it_first(world):
    """Even in a statically linked program; none of them has an allocator that we know."""
    skip_unless_seen(world)
    def record(fixture):
        with growing(world, fixture) as target:
            path, truth, _ = record_attached(world, target, "slow")
        assert len(truth) == 8 and sum(size > 0 for size in truth.values()) == 4, truth
        check(by_function(folded(world.fgprof("convert", path).stdout), truth), truth, WHOLE)
    for fixture in "growth", "growth-static":
        record(fixture)


def test_a_command_from_its_first_instruction_on(world):
    skip_unless_seen(world)
    path = world.path("growth.folded")
    done = world.fgprof("run", "--kind", "growth", "-o", path, "--", world.fixture("growth"), "slow")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0] == "ready" and lines[-1] == "done", lines
    truth = truth_of(lines[1:-1])
    with open(path) as file:
        check(by_function(folded(file.read()), truth), truth, SAMPLED)


@contextlib.contextmanager
def others_fault(world):
    """Other programs fault as much as they can."""
    with growing(world) as other:
        stop = threading.Event()

        def keep_busy():
            while not stop.is_set():
                ask(other, "brief")
        thread = threading.Thread(target=keep_busy)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def test_faults_of_others_take_nothing(world):
    """Neither in our namespace nor in a PID namespace of our own, in which other processes have no ids."""
    skip_unless_seen(world)
    path = world.path("growth.folded")
    command = [world.program, "run", "--kind", "growth", "-o", path, "--", world.fixture("growth"), "slow"]
    def record(way):
        with others_fault(world):
            done = subprocess.run([*way, *command], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done
        truth = truth_of(done.stdout.splitlines()[1:-1])
        with open(path) as file:
            check(by_function(folded(file.read()), truth), truth, SAMPLED)
    for way in [[], INSIDE] if may_unshare() else [[]]:
        record(way)


def test_another_profiler_takes_nothing(world):
    """Another profiler starts later, in its own PID namespace: the kernel then gives our faults its ids."""
    skip_unless_seen(world)
    if not may_unshare():
        raise Skip("no PID namespace can be made")
    paths = [world.path(name) for name in ("ours.folded", "others.folded")]
    other_command = [*INSIDE, world.program, "run", "--kind", "growth", "-o", paths[1], "--",
                     world.fixture("growth")]
    with growing(world) as target:
        sampler = world.start("attach", "-p", target.pid, "--kind", "growth", "-o", paths[0])
        wait_until_sampling(sampler)
        with ready(*other_command, stdin=subprocess.PIPE) as other:
            truths = [ask(program, "slow") for program in (target, other)]
            other.stdin.close()
            assert other.wait() == 0
        end(sampler)
    for path, truth in zip(paths, truths):
        with open(path) as file:
            check(by_function(folded(file.read()), truth), truth, WHOLE)


def test_much_at_once_is_sampled(world):
    """Of 50,000 pages in some 20 ms a few hundred are reported."""
    skip_unless_seen(world)
    with growing(world) as target:
        path, truth, _ = record_attached(world, target, "fast")
    check(by_function(folded(world.fgprof("convert", path).stdout), truth), truth, SAMPLED)


def test_huge_pages_weigh_what_they_are(world):
    skip_unless_seen(world)
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
        if "[never]" in file.read():
            raise Skip("the kernel has no huge pages")
    check_huge_pages(world)


def check_huge_pages(world):
    with growing(world) as target:
        path, truth, _ = record_attached(world, target, "huge")
        with open(f"/proc/{target.pid}/smaps_rollup") as file:
            huge_kb = next(int(line.split()[1]) for line in file if line.startswith("AnonHugePages"))
    if huge_kb << 10 < truth["touch_huge"]:
        raise Skip("the kernel had no huge pages left")
    check(by_function(folded(world.fgprof("convert", path).stdout), truth), truth, 0)
    # A fault each, not one for each small page, and one of the code.
    faults, _ = faults_and_bytes(world, path, "touch_huge")
    assert faults - (truth["touch_huge"] >> 21) in (0, 1), faults


def faults_and_bytes(world, path, function):
    """As `go tool pprof` reads them."""
    pprof = world.path("growth.pb.gz")
    assert world.fgprof("convert", path, "-o", pprof).returncode == 0
    found = []
    for kind, unit in ("faults", "count"), ("rss", "B"):
        said = tool("go", "tool", "pprof", "-sample_index=" + kind, "-unit=" + unit, "-top",
                    "-focus=" + function, pprof)
        assert "Type: " + kind in said, said
        line = next(line.split() for line in said.splitlines() if line.endswith(" " + function))
        found.append(int(line[0].rstrip("B")))
    return tuple(found)


def test_pprof_has_bytes_and_faults(world):
    skip_unless_seen(world)
    with growing(world) as target:
        path, truth, _ = record_attached(world, target, "slow")
    faults, size = faults_and_bytes(world, path, "touch_kept")
    check({"touch_kept": size}, {"touch_kept": truth["touch_kept"]}, WHOLE)
    assert abs(faults / (PAGES / PAGE) - 1) < WHOLE, faults


def test_without_events_of_cpus_faults_are_counted(world):
    """As in a container: a fixed fraction of each thread's faults is reported."""
    skip_unless_seen(world)
    with growing(world) as target:
        path, truth, _ = record_attached(world, target, "slow",
                                         preexec_fn=lambda: refuse_events(errno.EACCES, True))
    shown = by_function(folded(world.fgprof("convert", path).stdout), truth)
    # One in 23 at first: some 8 samples of each function.
    for name in "touch_kept", "touch_first":
        assert truth[name] * 0.3 < shown[name] < truth[name] * 2, (name, shown, truth)
    # The same addresses are touched again, of which not all is seen.
    assert shown["touch_unmapped"] < PAGES / 2 and shown["touch_again"] == 0, shown


def test_without_bpf_faults_are_counted_and_that_is_said(world):
    """Every nth fault is counted, as without events of CPUs."""
    skip_unless_seen(world)
    said = r"\n  the kernel may not choose pages \(Operation not permitted\), so one in so many page faults was " \
           r"recorded: .*\n"
    with growing(world) as target:
        done = record_attached(world, target, "slow", preexec_fn=refuse_record)
        assert re.search(said, done[2]), done
        done = record_attached(world, target, "slow")
        assert not re.search(said, done[2]) or os.geteuid(), done


def test_what_could_not_be_recorded_is_said(world):
    """The profiler is stopped while more faults come than there is room for."""
    skip_unless_seen(world)
    with growing(world) as target:
        sampler = world.start("attach", "-p", target.pid, "--kind", "growth", "-o",
                              world.path("growth.folded"), preexec_fn=lambda: refuse_events(errno.EACCES, True))
        wait_until_sampling(sampler)
        sampler.send_signal(signal.SIGSTOP)
        try:
            ask(target, "fast")
        finally:
            sampler.send_signal(signal.SIGCONT)
        # The kernel says how many were lost when it tells the next one.
        ask(target, "slow")
        _, stderr = end(sampler)
    lost = re.search(r"\n  (\d+) more could not be recorded, as they came too fast\n", stderr)
    assert lost and int(lost[1]) > 100, stderr
    assert re.search(r": \d+ page faults\n", stderr), stderr


def test_refusal_is_said_before_a_command_starts(world):
    with growing(world) as target:
        is_able = not os.geteuid() and int(status_field("self", "CapEff"), 16) >> CAP_PERFMON & 1
        refused = "although the capability is there" if is_able else "CAP_PERFMON"
        for error, said in ((errno.EACCES, refused), (errno.EPERM, refused),
                            (errno.ENOSYS, "this kernel has no perf events"),
                            (errno.EMFILE, "ulimit -n")):
            output, mark = world.path("out.folded"), world.path("was-started")
            for arguments in (["run", "--kind", "growth", "-o", output, "--", "touch", mark],
                              ["attach", "--kind", "growth", "-o", output, "-p", target.pid]):
                done = world.fgprof(*arguments, preexec_fn=lambda error=error: refuse_events(error))
                status = 125 if arguments[0] == "run" else 1
                assert done.returncode == status and said in done.stderr, done
                assert done.stderr.count("\n") == 1, done
            assert not os.path.exists(output) and not os.path.exists(mark)

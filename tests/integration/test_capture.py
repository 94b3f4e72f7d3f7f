"""How running threads are observed: sampled by the kernel, or stopped if the kernel does not permit that."""

import ctypes
import errno
import os
import re
import signal
import struct
import subprocess

from harness import (HANGS_S, Skip, alone, by_root, folded, has, need, pauses, ticks_planned, users_build,
                     status_field, wait_for, wait_for_ticks, wait_until_asleep)

SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS = 0x7fff0000, 0x00050000, 0x80000000
# linux/filter.h: load a word, jump if equal, return a constant.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
# struct seccomp_data: int nr at 0, uint64_t args[6] at 16.
NUMBER_AT, FIRST_AT, SECOND_AT = 0, 16, 24
# perf_event_open(attr, pid, ...); ptrace(request, ...).
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PTRACE = {"x86_64": 101, "aarch64": 117}
BPF = {"x86_64": 321, "aarch64": 280}
PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}
PTRACE_SEIZE = 0x4206
PR_CAPBSET_DROP = 24
# linux/capability.h
CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39


def refuse(calls, answer, only=None):
    """Makes the calling process unable to make a system call, as containers do by seccomp(2).
    `only`: with this argument, (its place, its value)."""
    skip_to_end = 3 if only else 1
    program = [(LOAD, 0, 0, NUMBER_AT),
               (JUMP_IF_EQUAL, 0, skip_to_end, calls[os.uname().machine])]
    if only:
        program += [(LOAD, 0, 0, only[0]), (JUMP_IF_EQUAL, 0, 1, only[1])]
    program += [(RETURN, 0, 0, answer), (RETURN, 0, 0, SECCOMP_RET_ALLOW)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    filter_program = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0) == 0


def refuse_events(error, only_of_cpus=False):
    refuse(PERF_EVENT_OPEN, SECCOMP_RET_ERRNO | error,
           (SECOND_AT, 0xffffffff) if only_of_cpus else None)


def only_threads():
    """For preexec_fn: then there is an event for each thread."""
    refuse_events(errno.EACCES, only_of_cpus=True)


def refuse_record():
    """For preexec_fn: then there is no record of switches."""
    refuse(BPF, SECCOMP_RET_ERRNO | errno.EPERM)


def die_of_events():
    """Makes the calling process die if it opens a perf event."""
    refuse(PERF_EVENT_OPEN, SECCOMP_RET_KILL_PROCESS)


def refuse_stops():
    """Makes the calling process unable to stop threads. LeakSanitizer would otherwise stop its own."""
    refuse(PTRACE, SECCOMP_RET_ERRNO | errno.EPERM, (FIRST_AT, PTRACE_SEIZE))


def give_up(*capabilities):
    """Makes programs that root executes in this process lack these capabilities."""
    libc = ctypes.CDLL(None)
    for capability in capabilities:
        assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def refuse_process_vm():
    """Makes the calling process die if it reads another one's memory by process_vm_readv(2)."""
    refuse(PROCESS_VM_READV, SECCOMP_RET_KILL_PROCESS)


def need_kernel_samples(world):
    """Skips the test if the kernel does not permit samples of other processes."""
    done = world.fgprof("run", "--capture=kernel", "-f", "folded", "-o", "/dev/null", "--", "true")
    if "does not permit" in done.stderr or "can't start sampling" in done.stderr:
        raise Skip("the kernel does not permit perf events")


BPF_IS_FILTERED = "; a seccomp filter or security module refuses it, although the capabilities are there: " \
                  "a container needs a seccomp profile that permits bpf"


def in_spin(stdout):
    stacks = folded(stdout)
    return sum(count for stack, count in stacks.items() if any("spin" in frame for frame in stack))


def check_pauses(stderr, threads):
    """Only a thread that waits for a CPU from the start is stopped, once."""
    assert pauses(stderr) <= threads, stderr


def need_record(world):
    """Skips the test if the kernel does not permit a record of switches."""
    need_kernel_samples(world)
    done = world.fgprof("run", "-f", "folded", "-o", "/dev/null", "--", "true")
    if "may not record switches" in done.stderr:
        raise Skip("the kernel does not permit BPF programs that trace")


def test_the_frame_pointer_of_a_sleeper(world):
    """The record of the thread's last switch has it, by BPF or by an event: no stop is safe in epoll_wait."""
    if os.uname().machine != "x86_64":
        raise Skip("on aarch64 this program's frames are found without it")
    need_kernel_samples(world)
    with world.running("epoll_loop", 600) as target:
        stopped = folded(world.attach(target, "--state", "--capture=ptrace").stdout)
        by_event = folded(world.attach(target, "--state", "--capture=kernel", duration="4s",
                                       preexec_fn=refuse_record).stdout)
        by_record = world.attach(target, "--state", "--capture=kernel")

    def share_whole(of):
        asleep = {stack: count for stack, count in of.items() if stack[-1] == "[epoll_wait]"}
        return sum(count for stack, count in asleep.items()
                   if has(stack, "main", "wait_on")) / sum(asleep.values())
    # One that falls asleep when it is to be stopped has all its registers.
    assert any("frame pointer not known" in stack[0] for stack in stopped), stopped
    assert share_whole(by_event) > 2 * share_whole(stopped), (stopped, by_event)
    # On a busy machine a late look may have to do without the record.
    if "captured by switch record" in by_record.stderr:
        assert share_whole(folded(by_record.stdout)) > 0.8, by_record


def test_registers_that_one_stop_has_shown(world):
    """A thread is stopped once, in a call that survives it, and then known as long as it sleeps on. On aarch64
    that is so for its link register, too, which read-write locks and timed ones do not save."""
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        done = world.attach(target, "-t", duration="3s", preexec_fn=refuse_record)
    for name in "rdlock", "wrlock", "timedlock":
        stacks = {stack: count for stack, count in folded(done.stdout).items() if stack[0] == name}
        whole = sum(count for stack, count in stacks.items() if has(stack, "start_thread", "in_" + name))
        # On an emulated machine it takes a second until all have had their stop.
        assert whole > 0.3 * sum(stacks.values()) > 0, (name, stacks, done.stderr)


def test_the_summary_says_what_captured(world):
    need_record(world)
    with world.running("epoll_loop", 600) as target:
        for options, captured in (((), "switch record and kernel samples"),
                                  (("--capture=kernel",), "switch record and kernel samples"),
                                  (("--capture=record",), "switch record and kernel samples"),
                                  (("--capture=ptrace",), "looks at /proc and stops")):
            done = world.attach(target, *options, duration="500ms")
            assert f"\n  captured by {captured}\n" in done.stderr, (options, done.stderr)
            assert "may not record switches" not in done.stderr, done.stderr
        demanded = world.fgprof("attach", "-p", target.pid, "-d", "1s", "--capture=record",
                                preexec_fn=refuse_record)
        done = world.attach(target, "--state", duration="1s", preexec_fn=refuse_record)
        stopped = world.attach(target, duration="500ms",
                               preexec_fn=lambda: (refuse_events(errno.EACCES), refuse_record()))
    assert demanded.returncode == 1 and demanded.stderr == (
        f"fgprof-c: the kernel may not record switches (Operation not permitted){BPF_IS_FILTERED}; or run without "
        "--capture=record\n"), demanded
    assert "\n  captured by looks at /proc and kernel samples\n" in done.stderr, done.stderr
    assert re.search(r"\n  the kernel may not record switches \(Operation not permitted\), so threads were observed "
                     "after the tick: shares of waits below about 300 us may be off by 4 percentage points, "
                     rf"and by 30 for Python, with --kernel, or beyond 16 busy threads{BPF_IS_FILTERED}\n", done.stderr), done.stderr
    assert ": shares of waits below about 300 us, and of work below 100 us, may be off by 6 percentage points, at 999 Hz by 10" \
           in stopped.stderr, stopped.stderr
    asleep = sum(count for stack, count in folded(done.stdout).items() if stack[-1] == "[epoll_wait]")
    assert asleep > 0, done.stdout


def test_samples_that_are_not_filtered_are_said(world):
    need_record(world)
    said = "\n  the kernel may not filter samples (Operation not permitted), so those of other processes were " \
           "dropped when they were read, which costs more\n"
    with world.running("spinners", 30, 1) as target:
        for prepare in None, refuse_record:
            done = world.attach(target, duration="1s", preexec_fn=prepare)
            assert (said in done.stderr) == bool(prepare), done.stderr
            assert "sampled by the kernel" in done.stderr and in_spin(done.stdout), done


def test_the_capabilities_that_lack_are_said(world):
    need_record(world)
    if os.geteuid():
        raise Skip("only root can give capabilities up")
    with world.running("spinners", 30, 1) as target:
        for lacking, said in (((CAP_BPF,), "; CAP_BPF would help\n"),
                              ((CAP_BPF, CAP_PERFMON), "; CAP_BPF and CAP_PERFMON would help\n")):
            done = world.attach(target, duration="1s",
                                preexec_fn=lambda lacking=lacking: give_up(CAP_SYS_ADMIN, *lacking))
            recorded = re.search(r"\n  the kernel may not record switches .*\n", done.stderr)
            assert recorded and recorded[0].endswith(said), done.stderr
            assert ("may not sample running threads" in done.stderr) == (CAP_PERFMON in lacking), done.stderr


def test_process_vm_readv_is_not_needed(world):
    """Containers refuse this call, or kill its caller."""
    with world.running("sleepers-O2-omit", 30) as target:
        for capture in "auto", "ptrace":
            done = world.attach(target, f"--capture={capture}", duration="1s", preexec_fn=refuse_process_vm)
            assert " 0.00 % cut" in done.stderr, done.stderr
            assert any(has(stack, "main") for stack in folded(done.stdout)), done.stdout


def test_running_threads_are_not_paused(world):
    need_kernel_samples(world)
    with world.running("spinners", 30, 3) as target:
        done = world.attach(target, "-t", "--capture=kernel")
    check_pauses(done.stderr, 3)
    assert re.search(r"threads? (was|were) sampled by the kernel while running: \d+ samples, "
                     r"without a pause", done.stderr), done.stderr
    assert " 0.00 % cut" in done.stderr, done.stderr
    stacks = folded(done.stdout)
    assert all(has(stack, "spin") for stack in stacks if "spinning" in stack[0]), stacks


def test_kernel_samples_are_the_default(world):
    need_kernel_samples(world)
    with world.running("spinners", 30, 1) as target:
        done = world.attach(target, duration="1s")
    assert "sampled by the kernel" in done.stderr, done.stderr


def test_threads_are_stopped_if_asked(world):
    with world.running("spinners", 30, 1) as target:
        done = world.attach(target, "--capture=ptrace", duration="1s")
    assert "sampled by the kernel" not in done.stderr, done.stderr
    assert "may not sample" not in done.stderr, done.stderr
    assert pauses(done.stderr), done.stderr
    assert in_spin(done.stdout) > 0


def test_a_refusal_is_said_and_threads_are_stopped(world):
    is_able = not os.geteuid() and int(status_field("self", "CapEff"), 16) >> CAP_PERFMON & 1
    filtered = "; a seccomp filter or security module refuses it"
    # Only the kernel's own refusal, EACCES, is one of capabilities.
    lacking = {errno.EPERM: filtered + ": a container needs CAP_PERFMON, or a seccomp profile that permits "
                                       "perf_event_open",
               errno.EACCES: "; CAP_PERFMON.* would help, or: sudo sysctl kernel.perf_event_paranoid=1",
               errno.ENOSYS: ""}
    able = {errno.EPERM: filtered + ", although the capability is there: a container needs a seccomp profile that "
                                    "permits perf_event_open",
            errno.EACCES: "; a security module refuses it, although the capability is there",
            errno.ENOSYS: ""}

    def prepare(error, is_lacking):
        if is_lacking and is_able:
            give_up(CAP_SYS_ADMIN, CAP_PERFMON)
        refuse_events(error)
    for error in errno.EPERM, errno.EACCES, errno.ENOSYS:
        for is_lacking in (True, False) if is_able else (True,):
            with world.running("spinners", 30, 1) as target:
                done = world.attach(target, duration="1s", preexec_fn=lambda: prepare(error, is_lacking))
            remedy = (lacking if is_lacking else able)[error]
            assert re.search(rf"the kernel may not sample running threads \({os.strerror(error)}\), so they were "
                             rf"stopped{remedy}\n", done.stderr), (remedy, done.stderr)
            assert pauses(done.stderr), done.stderr
            assert in_spin(done.stdout) > 0


def test_a_refusal_of_what_was_demanded_is_an_error(world):
    path = world.path("demanded.folded")
    for command in ["run", "--", "true"], ["attach", "-p", os.getpid(), "-d", "1s"]:
        done = world.fgprof(command[0], "--capture=kernel", "-o", path, *command[1:],
                            preexec_fn=lambda: refuse_events(errno.EACCES))
        assert done.returncode not in (0, 2), done.stderr
        assert "the kernel does not permit sampling running threads" in done.stderr, done.stderr
        assert "; or run without --capture=kernel\n" in done.stderr and not os.path.exists(path), done.stderr


def test_threads_have_events_where_cpus_may_have_none(world):
    need_kernel_samples(world)
    with world.running("spinners", 30, 3) as target:
        done = world.attach(target, "-t", "--capture=kernel",
                            preexec_fn=lambda: refuse_events(errno.EACCES, only_of_cpus=True))
    assert "each thread has its own event" in done.stderr, done.stderr
    check_pauses(done.stderr, 3)
    assert in_spin(done.stdout) > 0


def test_an_unknown_way_is_an_error(world):
    done = world.fgprof("attach", "--capture=magic", "-p", os.getpid())
    assert done.returncode == 2 and "give auto, kernel, ptrace or record" in done.stderr, done.stderr


@users_build
def test_lost_samples_are_said(world):
    """The rings hold samples for half a second: a profiler that does not read them for longer loses some."""
    need_kernel_samples(world)
    with world.running("spinners", 60, 2) as target:
        sampler = world.start("attach", "-p", target.pid, "-F", 1000, "--capture=kernel")
        wait_for_ticks(sampler)
        spent_before = process_running_s(target.pid)
        sampler.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: process_running_s(target.pid) > spent_before + 2, "the spinners to run on")
        finally:
            # The target's end could not be waited for while a stopped profiler traces a thread of it.
            sampler.send_signal(signal.SIGCONT)
        wait_for(lambda: process_running_s(target.pid) > spent_before + 2.5, "the spinners to run on")
        sampler.send_signal(signal.SIGINT)
        stdout, stderr = sampler.communicate(timeout=HANGS_S)
    assert re.search(r"the kernel dropped \d+ records, because too many came at once", stderr), stderr
    planned = ticks_planned(stderr)
    for root, count in by_root(folded(stdout)).items():
        assert abs(count - planned) <= 2, (root, count, planned)


def process_running_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@alone
def test_rings_fit_the_memory_that_may_be_locked(world):
    """Root's rings share the limit with those of its other processes, so there may be no room left."""
    need("setpriv")
    need_kernel_samples(world)
    if os.geteuid() != 0:
        raise Skip("only root can give up CAP_IPC_LOCK")
    with world.running("spinners", 30, 2) as target:
        done = subprocess.run(
            ["setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock", "prlimit",
             "--memlock=0", world.program, "attach", "-p", str(target.pid), "-d", "1s",
             "-F", "1000"], capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0 and in_spin(done.stdout) > 0, done.stderr
    assert ("sampled by the kernel" in done.stderr
            or "a higher limit on locked memory (ulimit -l) would help" in done.stderr), done.stderr


def test_new_threads_and_processes_are_sampled(world):
    need_kernel_samples(world)
    done = world.fgprof("run", "--children", "--processes", "--capture=kernel", "--", "sh", "-c",
                        f"{world.fixture('spinners')} 1 2 & {world.fixture('spinners')} 1 1; wait")
    assert done.returncode == 0, done.stderr
    check_pauses(done.stderr, 6)
    roots = {stack[0] for stack in folded(done.stdout) if any("spin" in frame for frame in stack)}
    assert len(roots) == 2, roots

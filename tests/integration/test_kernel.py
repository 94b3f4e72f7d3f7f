"""The kernel functions that threads are in."""

import collections
import os
import re
import signal
import subprocess

from harness import (Skip, alone, context_switches, folded, has, need, pauses, threads_of, tool,
                     users_build, wait_until_asleep)
from test_capture import need_kernel_samples, need_record


def skip_unless_permitted():
    try:
        if not open("/proc/thread-self/stack").read():
            raise Skip("this kernel shows no stacks")
    except OSError as error:
        raise Skip(f"the kernel's stacks: {error.strerror}")


def functions_of(thread):
    """The functions that the kernel itself reports, leaf first."""
    return tuple(line.split("] ")[1].split("+")[0] for line in open(f"/proc/{thread}/stack"))


def kernel_part(stack):
    """The kernel's frames, leaf first, without the mark; they are together at the leaf."""
    marked = [frame.endswith("_[k]") for frame in stack]
    assert marked == sorted(marked), stack
    return tuple(frame.removesuffix("_[k]") for frame in reversed(stack) if frame.endswith("_[k]"))


def test_sleeping_threads(world):
    skip_unless_permitted()
    with world.running("sleepers-O2-omit", 60) as target:
        wait_until_asleep(target.pid)
        truth = {int(thread.split("/")[-1]): functions_of(thread)
                 for thread in threads_of(target.pid)}
        before = context_switches(target.pid)
        done = world.attach(target, "--threads=tid", "--kernel", duration="1s")
        assert context_switches(target.pid) == before
    stacks = folded(done.stdout)
    found = {int(stack[0].split("/")[-1]): kernel_part(stack) for stack in stacks}
    assert len(found) == len(stacks) and found == truth, (found, truth)
    assert pauses(done.stderr) == 0, done.stderr
    functions = {function for stack in truth.values() for function in stack}
    for call in "epoll_wait", "futex", "semtimedop":
        assert any(call in function for function in functions), (call, functions)


def test_threads_in_each_state(world):
    skip_unless_permitted()
    with world.running("states", 30) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        done = world.attach(target, "-t", "--kernel", "--state", duration="1s")
        without = world.attach(target, "-t", duration="300ms")
    assert "_[k]" not in without.stdout, without.stdout
    for stack, count in folded(done.stdout).items():
        functions = kernel_part(stack[:-1])
        if stack[-1] == "[runnable]":
            assert not functions, stack
        if stack[0] == "locked" and stack[-1] == "[mutex mutex]" and functions:
            assert functions[0].startswith("futex_"), stack
        if stack[0] == "piped" and functions:
            assert has(stack, "in_pipe", "read", "do_syscall_64", "vfs_read", "[read]"), stack
    asleep = {stack[0]: stack for stack in folded(done.stdout) if kernel_part(stack[:-1])}
    assert {"locked", "piped", "sleeping"} <= set(asleep), done.stdout


def skip_unless_named(world):
    """Skips the test where running threads have no kernel frames."""
    skip_unless_permitted()
    need_kernel_samples(world)
    with open("/proc/kallsyms") as file:
        if not any(line.split()[1] in "Tt" and int(line.split()[0], 16) for line in file):
            raise Skip("/proc/kallsyms hides addresses")


def running_under(stacks, function):
    """{kernel functions, leaf first: how often} of the running stacks that have this function."""
    parts = collections.Counter()
    for stack, count in stacks.items():
        if stack[-1] == "[running]" and function in stack:
            parts[kernel_part(stack[:-1])] += count
    return parts


def share(parts, condition):
    return sum(count for part, count in parts.items() if condition(part)) / max(parts.total(), 1)


def test_running_threads(world):
    skip_unless_named(world)
    with world.running("in_kernel", 60) as target:
        wait_until_asleep(target.pid, but=["zeroes", "copies"])
        done = world.attach(target, "--kernel", "--state", "--capture=kernel", "-F", "499",
                            duration="3s")
        without = world.attach(target, "--state", "--capture=kernel", duration="500ms")
        stopped = world.attach(target, "--kernel", "--state", "--capture=ptrace", duration="500ms")
    assert "kernel frames" not in done.stderr, done.stderr
    stacks = folded(done.stdout)
    asleep = [kernel_part(stack[:-1]) for stack in stacks if "in_wait" in stack]
    assert len(asleep) == 1 and len(asleep[0]) > 3, asleep
    zeroes, copies = running_under(stacks, "in_zeroes"), running_under(stacks, "in_copies")
    assert zeroes.total() > 50 and copies.total() > 50, done.stdout
    # The same way into the kernel as that of a thread that sleeps in the same call.
    way_in = asleep[0][-2:]
    assert share(zeroes, lambda part: part[-2:] == way_in) > 0.8, (way_in, zeroes)
    assert share(zeroes, lambda part: "vfs_read" in part) > 0.8, zeroes
    assert share(copies, lambda part: "vfs_write" in part or "vfs_read" in part) > 0.6, copies
    assert share(copies, lambda part: part) > 0.7, copies
    # No interrupt that took a sample is in it.
    assert not any("perf_" in function for part in zeroes + copies for function in part), done.stdout
    assert not any(running_under(folded(without.stdout), "in_zeroes")), without.stdout
    assert "_[k]" not in without.stdout, without.stdout
    assert not any(running_under(folded(stopped.stdout), "in_zeroes")), stopped.stdout
    assert "running threads have no kernel frames, because they were stopped" in stopped.stderr, \
        stopped.stderr


def leaves_by_perf(world, target):
    """{leaf function: share} of the thread that copies, by perf's own samples."""
    path = world.path("perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-a", "-g", "-o",
                             path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    done = world.attach(target, "--kernel", "-F", "997", "--capture=kernel", "--state", duration="4s")
    perf.send_signal(signal.SIGINT)
    assert perf.wait(60) in (0, -signal.SIGINT), perf.stderr.read()
    perf.stderr.close()
    leaves, wants_leaf = collections.Counter(), False
    for line in tool("perf", "script", "-i", path, "-F", "comm,ip,sym").splitlines():
        if not line.startswith((" ", "\t")):
            wants_leaf = line.strip() == "copies"
        elif wants_leaf and line.strip():
            leaves[line.split()[1]] += 1
            wants_leaf = False
    return leaves, done


@alone
def test_as_perf_sees_it(world):
    """Which function a running thread is in, by us and by perf at the same time."""
    skip_unless_named(world)
    need("perf")
    with world.running("in_kernel", 60) as target:
        theirs, done = leaves_by_perf(world, target)
    ours = collections.Counter()
    for part, count in running_under(folded(done.stdout), "in_copies").items():
        ours[part[0] if part else ""] += count
    assert theirs.total() > 300 and ours.total() > 300, (theirs, ours)
    functions = [function for function, count in theirs.items() if count > 0.05 * theirs.total()]
    assert functions, theirs
    for function in functions:
        wanted, got = theirs[function] / theirs.total(), ours[function] / ours.total()
        if ours[function]:  # user functions are not among ours
            assert abs(wanted - got) < 0.1, (function, wanted, got)
    assert share(ours, lambda leaf: leaf in theirs) > 0.8, (theirs, ours)


def test_hidden_symbols(world):
    """Without CAP_SYSLOG /proc/kallsyms may show no addresses."""
    skip_unless_named(world)
    setting = ["setpriv", "--bounding-set", "-syslog", "--inh-caps", "-syslog"]
    shown = subprocess.run([*setting, "grep", "-m1", "-i", " t ", "/proc/kallsyms"],
                           stdout=subprocess.PIPE, text=True)
    if os.geteuid() != 0 or shown.returncode or int(shown.stdout.split()[0], 16):
        raise Skip("/proc/kallsyms shows addresses without CAP_SYSLOG")
    with world.running("in_kernel", 60) as target:
        wait_until_asleep(target.pid, but=["zeroes", "copies"])
        done = subprocess.run([*setting, world.program, "attach", "-p", str(target.pid), "-d", "500ms",
                               "--kernel", "--state", "--capture=kernel"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "because /proc/kallsyms hides addresses; CAP_SYSLOG" in done.stderr, done.stderr
    stacks = folded(done.stdout)
    assert not any(running_under(stacks, "in_zeroes")), done.stdout
    assert any(kernel_part(stack[:-1]) for stack in stacks if "in_wait" in stack), done.stdout


def test_in_the_other_formats(world):
    skip_unless_permitted()
    path = world.path("kernel.pb.gz")
    with world.running("states", 30) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        world.attach(target, "--kernel", "-o", path, duration="500ms")
        text = world.attach(target, "--kernel", "-f", "text", duration="500ms").stdout
    raw = tool("go", "tool", "pprof", "-raw", path)
    mappings = raw[raw.index("\nMappings\n"):]
    number = re.search(r"^(\d+): \S+ \[kernel\.kallsyms\] +\[FN\]$", mappings, re.M)[1]
    assert re.search(r"^1: \S+ \S*fixture-states ", mappings, re.M), mappings
    assert re.search(rf"^ +\d+: 0x0 M={number} vfs_read ", raw, re.M), raw
    traces = tool("go", "tool", "pprof", "-traces", path)
    assert re.search(r"\n +vfs_read\n(?: +.+\n)+? +in_pipe\n", traces), traces
    assert re.search(r"^#\t0x1\t+vfs_read$", text, re.M), text
    text_path = world.path("kernel.txt")
    with open(text_path, "w") as file:
        file.write(text)
    tool("go", "tool", "pprof", "-raw", text_path)


# What threads of `wakes` wait in, most of the time for some milliseconds, by a part of a function's name.
SHORT_SLEEPS = {"pipe": "pipe_read", "event": "eventfd_read", "tcp": "tcp_recvmsg", "cond": "futex_wait",
                "sem": "futex_wait", "futex": "futex_wait", "signal": "sigtimedwait", "nobody": "nanosleep"}


@users_build
def test_sleeps_that_are_over_when_they_are_looked_at(world):
    """The record has their functions, without those through which every thread sleeps."""
    need_record(world)
    skip_unless_permitted()
    skip_unless_named(world)
    path = world.path("short.folded")
    done = world.fgprof("run", "-F", "499", "-t", "--state", "--kernel", "--capture=record", "-o", path, "--",
                        world.fixture("wakes"), 3)
    assert done.returncode == 0, done.stderr
    found, functions = collections.defaultdict(collections.Counter), set()
    for stack, count in folded(open(path).read()).items():
        if stack[0] in SHORT_SLEEPS and stack[-1] not in ("[running]", "[runnable]") and {"wait_always", "wait_for_nobody"} & set(stack):
            own = kernel_part(stack[:-1])
            found[stack[0]][any(SHORT_SLEEPS[stack[0]] in function for function in own)] += count
            functions |= set(own)
    assert set(found) == set(SHORT_SLEEPS), found
    for thread, parts in found.items():
        assert parts[True] >= 0.9 * sum(parts.values()), (thread, found)
    assert not functions & {"schedule", "__schedule", "schedule_timeout", "finish_task_switch"}, functions


def test_running_threads_in_the_other_formats(world):
    skip_unless_named(world)
    paths = {name: world.path(f"running.{name}") for name in ("pb.gz", "speedscope.json", "html", "txt")}
    recording = world.path("running.fgprof")
    with world.running("in_kernel", 30) as target:
        world.attach(target, "--kernel", "--capture=kernel", "-o", recording, duration="1s")
        dump = world.fgprof("dump", "-p", target.pid, "--kernel").stdout
    for name, path in paths.items():
        form = ["-f", "text"] if name == "txt" else []
        done = world.fgprof("convert", recording, *form, "-o", path)
        assert done.returncode == 0, done.stderr
    traces = tool("go", "tool", "pprof", "-traces", paths["pb.gz"]).split("-----------+")
    assert any(has(trace.splitlines(), "vfs_read", "do_syscall_64", "in_zeroes")
               for trace in traces), traces
    assert '"vfs_read"' in open(paths["speedscope.json"]).read()
    assert "vfs_read" in open(paths["html"]).read()
    assert re.search(r"^#\t0x1\t+vfs_read$", open(paths["txt"]).read(), re.M)
    running = [thread for thread in dump.split("\n\n") if "in_zeroes" in thread or "in_copies" in thread]
    assert running and any("[kernel]" in thread for thread in running), dump


def test_without_privilege(world):
    if os.geteuid() != 0:
        raise Skip("not root")
    for setting in ["--bounding-set", "-sys_admin"], ["--reuid", "65534", "--regid", "65534",
                                                     "--clear-groups"]:
        started = world.path("started")
        for command, status in ((["attach", "-p", "1", "-d", "1s"], 1),
                                (["run", "--", "touch", started], 125)):
            done = subprocess.run(["setpriv", *setting, world.program, command[0], "--kernel",
                                   *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
            assert done.returncode == status and not done.stdout, done
            assert done.stderr == ("fgprof-c: not permitted to read the kernel's stacks: run as root "
                                   "with CAP_SYS_ADMIN, or without --kernel\n"), done.stderr
        # Refused before anything was done.
        assert not os.path.exists(started)

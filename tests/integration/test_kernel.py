"""The kernel functions that sleeping threads are in."""

import os
import re
import subprocess

from harness import Skip, context_switches, folded, has, pauses, threads_of, tool, wait_until_asleep


def skip_unless_permitted():
    try:
        if not open("/proc/thread-self/stack").read():
            raise Skip("this kernel shows no stacks")
    except OSError as error:
        raise Skip(f"the kernel's stacks: {error.strerror}")


def functions_of(thread):
    """What the kernel itself reports, leaf first."""
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
        if stack[-1] in ("[running]", "[runnable]"):
            assert not functions, stack
        if stack[0] == "locked" and stack[-1] == "[mutex mutex]" and functions:
            assert functions[0].startswith("futex_"), stack
        if stack[0] == "piped" and functions:
            assert has(stack, "in_pipe", "read", "do_syscall_64", "vfs_read", "[read]"), stack
    asleep = {stack[0]: stack for stack in folded(done.stdout) if kernel_part(stack[:-1])}
    assert {"locked", "piped", "sleeping"} <= set(asleep), done.stdout


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

"""Stacks are complete, in order, named, and the same as gdb's."""

import os
import re
import shutil
import signal
import subprocess

from harness import (HANGS_S, Skip, folded, has, need, ready, tool, wait_until_asleep,
                     wait_until_stopped)

WAITS = {
    "sleeping": ("in_sleep", "nanosleep"),
    "spinning": ("in_spin",),
    "locked": ("in_lock", "lock"),
    "piped": ("in_pipe", "read"),
}


def test_running_and_blocked_threads(world):
    with world.running("states", 300) as target:
        stacks = folded(world.attach(target, "-t").stdout)
    for thread, names in WAITS.items():
        of_thread = {stack: count for stack, count in stacks.items() if stack[0] == thread}
        right = sum(count for stack, count in of_thread.items()
                    if has(stack, "start_thread", "run", *names))
        assert right and right >= 0.99 * sum(of_thread.values()), of_thread
    assert any(stack[0] == "fixture-states" and has(stack, "_start", "main", "sleep_until")
               for stack in stacks)
    assert not any("[truncated" in frame for stack in stacks for frame in stack), stacks


def test_threads_that_have_not_run_yet(world):
    done = world.fgprof("run", "-d", "1s", "--", world.fixture("newborn"), 2)
    stacks = folded(done.stdout)
    new = {stack: count for stack, count in stacks.items() if has(stack, "clone3")}
    whole = sum(count for stack, count in new.items() if len(stack) == 1 or has(stack, "main"))
    assert any(len(stack) == 1 for stack in new), stacks
    assert whole + sum(count for stack, count in new.items() if has(stack, "start_thread")) == \
        sum(new.values()), stacks


def test_threads_on_another_stack(world):
    with world.running("stacks", 300) as target:
        stacks = folded(world.attach(target).stdout)
    for begin, end in (("asleep_on_alternate", "in_handler"),
                       ("spinning_on_alternate", "spin_in_handler")):
        of_leaf = {stack: count for stack, count in stacks.items() if end in stack}
        right = sum(count for stack, count in of_leaf.items() if has(
            stack, "start_thread", begin, "on_alternate", "interrupted", "handle", end))
        assert right and right >= 0.99 * sum(of_leaf.values()), of_leaf
    # The place from which the context was entered is not below it: it was left, as a coroutine is
    # left.
    assert any("in_fiber" in stack[:2] and has(stack, "sleep_until") for stack in stacks), stacks
    assert not any("[truncated" in frame for stack in stacks for frame in stack), stacks


def test_a_stack_that_could_not_be_followed_is_forgotten(world):
    """Three stacks in a row are more than are copied; two are not, even for a thread that was seen
    with three before."""
    done = world.fgprof("run", "--", world.fixture("nested"), 3)
    of_first = {stack: count for stack, count in folded(done.stdout).items()
                 if "in_first_handler" in stack and "in_second_handler" not in stack}
    right = sum(count for stack, count in of_first.items()
                if has(stack, "_start", "main", "interrupted", "handle_first", "in_first_handler"))
    assert right and right >= 0.9 * sum(of_first.values()), done


def test_no_frame_of_the_profiler(world):
    for _ in range(10):
        done = world.fgprof("run", "-F", 1000, "--lines", "--", world.fixture("states"), 0.05)
        assert done.returncode == 0, done.stderr
        for stack in folded(done.stdout):
            for frame in stack:
                assert not re.search(r"fgprof|posix_spawn|__spawn|recorder|vfork", frame), stack


def gdb_stacks(pid, *settings):
    """{tid: [function, ...]}, leaf first."""
    need("gdb")
    commands = [part for command in (*settings, "thread apply all bt") for part in ("-ex", command)]
    out = subprocess.run(["gdb", "-batch", "-nx", *commands, "-p", str(pid)], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         timeout=HANGS_S).stdout
    stacks, tid = {}, None
    for line in out.splitlines():
        thread = re.match(r"Thread \d+ \(.*?(?:LWP|process) (\d+)\)?", line)
        frame = re.match(r"#\d+ +(?:0x[0-9a-f]+ (?:\[PAC\] )?in )?(.+?)(?:@\S+)?(?: \(|$)", line)
        if thread:
            tid = int(thread[1])
            stacks[tid] = []
        elif frame and tid:
            stacks[tid].append(frame[1].removesuffix(".abi0"))
    return stacks


def plain(name):
    """One name for all aliases of a function in the C library: read, __GI___libc_read; clone3,
    __clone3; _IO_file_sync, _IO_new_file_sync."""
    name = re.sub(r"^_*(GI_+)?(libc_)?", "", name.removesuffix("_[i]"))
    return name.replace("IO_new_", "IO_")


def test_agrees_with_gdb(world):
    with world.running("states", 60) as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_until_stopped(target.pid)
        stacks = folded(world.attach(target, "--threads=tid", duration="500ms").stdout)
        judge = gdb_stacks(target.pid)
    assert len(judge) == 5, judge
    for tid, frames in judge.items():
        ours = [stack for stack in stacks if stack[0].endswith(f"/{tid}")]
        assert len(ours) == 1, ours
        mine = [plain(frame) for frame in reversed(ours[0][1:])]
        frames = [plain(frame) for frame in frames]
        # gdb ends at main unless told otherwise.
        mine = mine[:len(frames)] if frames[-1] == "main" else mine
        assert mine == frames, f"ours {mine}\ngdb  {frames}"


def test_deep_recursion_is_whole(world):
    # 5,000 frames need far more stack than the first copy takes.
    with world.running("deep", 300, 5000) as target:
        stacks = folded(world.attach(target, "--max-depth", 10000, duration="500ms").stdout)
    for stack in stacks:
        assert stack.count("recurse") == 5001 and stack[0] == "_start", (len(stack), stack[:3])


def test_a_cut_stack_says_so(world):
    with world.running("deep", 300, 3000) as target:
        wait_until_asleep(target.pid)
        default = world.attach(target, duration="500ms")
        hundred = world.attach(target, "--max-depth", 100, duration="500ms")
    for done, depth in (default, 1024), (hundred, 100):
        for stack in folded(done.stdout):
            frames = [frame for frame in stack if not frame.endswith("_[i]")]
            assert frames[0] == "[truncated: max depth]" and len(frames) == depth + 1, len(frames)
            assert "nanosleep" in stack[-1]
        assert "100.00 % cut" in done.stderr, done.stderr


def test_without_symbols(world):
    with world.running("nosymbols", 300) as target:
        done = world.attach(target, "-t", duration="1s")
    stacks = folded(done.stdout)
    assert any(has(stack, "sleeping", "start_thread", "[fixture-nosymbols]", "nanosleep")
               for stack in stacks), stacks
    assert re.search(r"[1-9][\d.]* % with an unnamed frame", done.stderr), done.stderr


def test_lines(world):
    with world.running("states", 300) as target:
        stacks = folded(world.attach(target, "--lines", duration="1s").stdout)
    source = open(os.path.join(world.source, "tests/fixtures/states.c")).read().splitlines()
    line = source.index("    pthread_mutex_lock(&mutex);") + 1
    assert any(f"in_lock (states.c:{line})" in frame for stack in stacks for frame in stack), stacks


def test_several_processes(world):
    with world.running("states", 300) as one, world.running("deep", 300, 10) as two:
        done = world.fgprof("attach", "-p", f"{one.pid},{two.pid}", "-d", "1s")
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert any("in_spin" in stack for stack in stacks)
    assert any(stack.count("recurse") == 11 for stack in stacks)


def test_debug_information_that_was_split_off(world):
    plain, debug = world.path("split"), world.path("split.debug")
    shutil.copy(world.fixture("states"), plain)
    tool("objcopy", "--only-keep-debug", plain, debug)
    tool("objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
         "--add-gnu-debuglink=" + debug, plain)
    with ready(plain, 60) as target:
        done = world.attach(target, "--lines", duration="500ms")
        assert "in_lock (states.c:" in done.stdout, done.stdout
        # A FIFO with that name is not waited for.
        os.unlink(debug)
        os.mkfifo(debug)
        done = world.attach(target, duration="500ms")
        assert "[split]" in done.stdout, done


def test_linked_by_lld(world):
    need("ld.lld")
    program = world.path("lld")
    tool("gcc", "-O1", "-g", "-fno-inline", "-D_GNU_SOURCE", "-fuse-ld=lld", "-pthread",
         world.source + "/tests/fixtures/states.c", "-o", program)
    # Until it ends: it may take long to begin.
    done = world.fgprof("run", "-t", "--", program, 3)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    for thread, names in WAITS.items():
        assert any(has(stack, thread, "start_thread", "run", *names) for stack in stacks), thread
    assert " 0.00 % cut" in done.stderr, done.stderr


def test_asleep_in_a_page_fault(world):
    """The registers that such a thread does not show are those of its last stop, in the same call."""
    done = world.fgprof("run", "--state", "--", world.fixture("faulting"), 3)
    if done.returncode == 77:
        raise Skip("no userfaultfd")
    assert done.returncode == 0, done.stderr
    stacks = {stack: count for stack, count in folded(done.stdout).items()
              if "compute_and_fault" in stack}
    asleep = sum(count for stack, count in stacks.items()
                 if stack[-1] not in ("[running]", "[runnable]"))
    assert asleep > 0.2 * sum(stacks.values()), stacks
    assert all(has(stack, "start_thread", "caller_of_unknown_room", "compute_and_fault")
               for stack in stacks), stacks

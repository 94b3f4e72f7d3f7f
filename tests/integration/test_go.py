"""Programs of Go: names and whole stacks, also where all symbols and debug information are gone."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess

from harness import Skip, folded, has, status_field, users_build, wait_for
BUILDS = {
    "plain": [],
    "stripped": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie"],
    "pie-stripped": ["-buildmode=pie", "-ldflags=-s -w"],
}
SERVER = ("main.(*server).handle",) * 6
# What each goroutine that computes is in.
COMPUTING = {
    ("runtime.goexit", "main.compute") + SERVER + ("main.busy",),
    ("runtime.goexit", "main.computeInlined", "main.mix_[i]"),
    ("runtime.goexit", "main.computeGeneric", "main.generic[...]", "main.busy"),
}
# Where a stack may end.
FIRST_FRAMES = ("runtime.goexit", "runtime.mstart", "runtime.clone", "runtime.mcall", "runtime.morestack",
                "runtime.rt0_go")


def build(world, name, options):
    go = shutil.which("go")
    if not go:
        raise Skip("no go")
    source = os.path.join(world.source, "tests/fixtures", name)
    program = world.path(name)
    environment = dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local",
                       GO111MODULE="off", CGO_ENABLED="1")
    # The first test fills the cache of what is compiled, and the others wait for it.
    with open(world.build + "/go.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([go, "build", *options, "-o", program, "."], cwd=source, timeout=300,
                              env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return program


@contextlib.contextmanager
def running(program):
    target = subprocess.Popen([program, "60"], stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        yield target
    finally:
        target.kill()
        target.stdout.close()
        target.wait()


def profile(world, name, options, duration="3s"):
    with running(build(world, name, options)) as target:
        done = world.attach(target, duration=duration)
    stacks = folded(done.stdout)
    on_the_move = 0
    for stack, count in stacks.items():
        # A thread that has not run yet, but for its birth in libc, has no first frame there.
        if stack[-1] == "__clone3":
            continue
        # Some instructions of the switch to a goroutine are on its stack, but not in its code. And
        # while a thread works for a goroutine on its own stack, the collector may move the
        # goroutine's, of which only the runtime knows where to (shrinkstack, in its stack.go). Of a
        # thread that sleeps in a page fault the frame pointer is not known.
        if "truncated" in stack[0] and (len(stack) == 2 and "gogo" in stack[1] or
                                        stack[1] == "runtime.systemstack" or
                                        "frame pointer not known" in stack[0]):
            on_the_move += count
            continue
        assert stack[0] in FIRST_FRAMES, stack
        assert not any(frame.startswith("[") for frame in stack), stack
    assert on_the_move <= 0.005 * sum(stacks.values()), stacks
    return stacks


def check_goroutines(world, options):
    # Long enough to find what is seldom done.
    stacks = profile(world, "go", options, "5s")
    assert COMPUTING <= set(stacks), set(stacks)
    # A system call in a goroutine, and threads without one.
    for names in (("runtime.goexit", "main.readPipe", "main.read", "syscall.read"),
                  ("runtime.mcall", "runtime.park_m", "runtime.schedule"),
                  ("runtime.mstart", "runtime.sysmon")):
        assert any(has(stack, *names) for stack in stacks), (names, set(stacks))
    # What the runtime does on the thread's stack for a goroutine.
    for function in ("main.makeGarbage", "runtime.gcBgMarkWorker"):
        assert any(has(stack, "runtime.goexit", function, "runtime.systemstack", "runtime.gc")
                   for stack in stacks), (function, set(stacks))


def test_go(world):
    check_goroutines(world, BUILDS["plain"])


@users_build
def test_go_stripped(world):
    check_goroutines(world, BUILDS["stripped"])


@users_build
def test_go_pie(world):
    check_goroutines(world, BUILDS["pie"])


@users_build
def test_go_pie_stripped(world):
    check_goroutines(world, BUILDS["pie-stripped"])


def check_c(world, options, is_stripped):
    stacks = profile(world, "go-cgo", options)
    for function, call in (("sleep_in_c", "nanosleep"), ("poll_in_c", "poll"),
                           ("compute_in_c", "compute_in_c"), ("call_back", "main.busy")):
        names = ["runtime.goexit", f"main._Cfunc_{function}", "runtime.cgocall",
                 "runtime.asmcgocall", f"Cfunc_{function}"]
        if function == "call_back":
            names += ["crosscall2", "runtime.cgocallback", "main.calledBack"]
        if is_stripped:
            call = names.pop() if function == "compute_in_c" else call
        assert any(has(stack, *names, call) for stack in stacks), (names, call, set(stacks))


@users_build
def test_go_calls_c(world):
    check_c(world, BUILDS["plain"], False)


@users_build
def test_go_calls_c_stripped(world):
    check_c(world, BUILDS["stripped"], True)


def test_go_calls_c_pie_stripped(world):
    check_c(world, BUILDS["pie-stripped"], True)


def gdb_stacks(pid):
    """{tid: [function, ...], leaf first} by gdb."""
    done = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set backtrace past-main on", "-ex",
                           "thread apply all bt", "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=100)
    stacks, current = {}, None
    for line in done.stdout.splitlines():
        thread = re.match(r"Thread \d+ .*LWP (\d+)", line)
        frame = re.match(r"#\d+ +(?:0x[0-9a-f]+ in )?(.+?) \(", line)
        if thread:
            current = stacks.setdefault(thread[1], [])
        elif frame and current is not None:
            current.append(re.sub(r"\.abi0$", "", frame[1]))
    return stacks


def test_go_as_by_gdb(world):
    """Of a stopped process. gdb goes on by what it finds at the end of a thread's own stack, where
    the runtime came to it from a goroutine, and knows no signal handler of Go's: from there on it is
    not asked."""
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    compared = 0
    with running(build(world, "go", BUILDS["plain"])) as target:
        for _ in range(5):
            target.send_signal(signal.SIGSTOP)
            wait_for(lambda: status_field(target.pid, "State")[0] == "T", "the stop")
            theirs = gdb_stacks(target.pid)
            done = world.attach(target, "--threads=tid", duration="0.3s")
            target.send_signal(signal.SIGCONT)
            for stack in folded(done.stdout):
                tid = re.search(r"(\d+)\D*$", stack[0])[1]
                ours = [re.sub(r"_\[i\]$", "", frame) for frame in reversed(stack[1:])]
                gdb = [re.sub(r"\[go\.shape.*?\]", "[...]", frame) for frame in theirs[tid]]
                ends = [i for i, frame in enumerate(ours)
                        if frame in ("runtime.systemstack", "runtime.mcall", "runtime.mstart",
                                     "runtime.clone", "runtime.sigtramp")]
                last = ends[0] + 1 if ends else len(ours)
                assert ours[:last] == gdb[:last], (ours, gdb)
                compared += 1
    assert compared >= 20, compared

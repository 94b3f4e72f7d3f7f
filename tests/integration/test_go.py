"""Go programs: names and complete stacks, even without any symbols or debug information."""

import fcntl
import json
import os
import re
import signal
import subprocess

from harness import HANGS_S, folded, has, need, ready, tool, users_build, wait_until_stopped
from test_stacks import gdb_stacks
BUILDS = {
    "plain": [],
    "stripped": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie"],
    "pie-stripped": ["-buildmode=pie", "-ldflags=-s -w"],
}
SERVER = ("main.(*server).handle",) * 6
# The function that each computing goroutine is in.
COMPUTING = {
    ("runtime.goexit", "main.compute") + SERVER + ("main.busy",),
    ("runtime.goexit", "main.computeInlined", "main.mix_[i]"),
    ("runtime.goexit", "main.computeGeneric", "main.generic[...]", "main.busy"),
}
ROUNDS_MAX = 10
# Where a stack may end.
FIRST_FRAMES = ("runtime.goexit", "runtime.mstart", "runtime.clone", "runtime.mcall", "runtime.morestack",
                "runtime.rt0_go")


def minor_version(go):
    version = subprocess.run([go, "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.search(r"\bgo1\.(\d+)", version)[1])


def build(world, name, options, go="go"):
    need(go)
    source = os.path.join(world.source, "tests/fixtures", name)
    program = world.path(name)
    environment = dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local",
                       GO111MODULE="off", CGO_ENABLED="1")
    # The first test fills the compile cache, and the others wait for it.
    with open(world.build + "/go.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([go, "build", *options, "-o", program, "."], cwd=source, timeout=2 * HANGS_S,
                              env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return program


def runs_of(world, kept):
    """[stack, ...] of a recording: each as often as a thread came to it, however long it stayed or
    waited there for a CPU."""
    path = world.path("runs.speedscope.json")
    done = world.fgprof("convert", kept, "-o", path)
    assert done.returncode == 0, done.stderr
    with open(path) as file:
        document = json.load(file)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    return [tuple(names[frame] for frame in stack)
            for profile in document["profiles"] for stack in profile["samples"]]


def is_cut(stack):
    """Some instructions of the switch to a goroutine run on its stack, but are not in its code.
    While a thread works for a goroutine on its own stack, the collector may move the goroutine's
    stack, and only the runtime knows where to (shrinkstack, in its stack.go). If a thread sleeps
    in a page fault, its frame pointer is not known. A signal handler that lasts for microseconds
    hides the stack that it left, and when that is asked for it is over."""
    return stack[0].startswith("[truncated")


def is_before_go(stack):
    """A thread that C has just created, which has not reached Go yet."""
    return stack[:2] == ("__clone3", "start_thread") and not any(
        frame.startswith("runtime.") for frame in stack)


def profile(world, target, duration, unnamed=()):
    """The stacks of threads, which must all be right, and complete except for a few. `unnamed` are the files
    whose code may be without a name."""
    kept = world.path("go.fgprof")
    world.attach(target, "-o", kept, "--no-goroutines", duration=duration)
    done = world.fgprof("convert", kept, "-f", "folded")
    assert done.returncode == 0, done.stderr
    stacks, runs = set(folded(done.stdout)), runs_of(world, kept)
    for stack in stacks:
        # A thread that has not run since its birth in libc has no first frame there.
        if stack[-1] == "__clone3" or is_cut(stack) or is_before_go(stack):
            continue
        assert stack[0] in FIRST_FRAMES, stack
        assert not any(frame.startswith("[") and frame not in unnamed for frame in stack), stack
    cut = [stack for stack in runs if is_cut(stack)]
    assert runs and len(cut) <= 1 + 0.005 * len(runs), (cut, len(runs))
    return stacks


def check_seen(world, program, wanted, whole=frozenset(), unnamed=()):
    """Profiles a program until everything expected has been seen: if other programs use the CPUs, rare
    actions take long to occur. Each of `wanted` is frames of a stack, in this order; each of `whole` is all
    frames of one."""
    seen = set()

    def missing():
        return [*(whole - seen), *(names for names in wanted
                                   if not any(has(stack, *names) for stack in seen))]
    with ready(program, 300) as target:
        for _ in range(ROUNDS_MAX):
            seen |= profile(world, target, "3s", unnamed)
            if not missing():
                break
    assert not missing(), (missing(), seen)


def check_goroutines(world, options):
    check_seen(world, build(world, "go", options), [
        # A system call in a goroutine, and threads without one.
        ("runtime.goexit", "main.readPipe", "main.read", "syscall.read"),
        ("runtime.mcall", "runtime.park_m", "runtime.schedule"),
        ("runtime.mstart", "runtime.sysmon"),
        # What the runtime does for a goroutine on the thread's stack.
        ("runtime.goexit", "main.makeGarbage", "runtime.systemstack", "runtime.gc"),
        ("runtime.goexit", "runtime.gcBgMarkWorker", "runtime.systemstack", "runtime.gc"),
    ], whole=COMPUTING)


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


def is_exported(program, function):
    """Whether a stripped program still has the function's name, according to binutils."""
    return re.search(rf" T \w*{function}$", tool("nm", "-D", program), re.MULTILINE) is not None


def check_c(world, options, is_stripped):
    """The C of a stripped program has names only if the file exports them. Up to Go 1.19 the linker
    exports all of C; Go 1.26 exports what is marked with //export (both in cmd/link/internal/ld/lib.go,
    hostlink)."""
    program = build(world, "go-cgo", options)
    unnamed = ["[go-cgo]"] if is_stripped and not is_exported(program, "Cfunc_call_back") else []
    wanted = []
    for function, call in (("sleep_in_c", "nanosleep"), ("poll_in_c", "poll"),
                           ("compute_in_c", "compute_in_c"), ("call_back", "main.busy")):
        names = ["runtime.goexit", f"main._Cfunc_{function}", "runtime.cgocall",
                 "runtime.asmcgocall", *(unnamed or [f"Cfunc_{function}"])]
        if function == "call_back":
            names += ["crosscall2", "runtime.cgocallback", "main.calledBack"]
        if is_stripped:
            call = names.pop() if function == "compute_in_c" else call
        wanted.append((*names, call))
    check_seen(world, program, wanted, unnamed=unnamed)


@users_build
def test_go_calls_c(world):
    check_c(world, BUILDS["plain"], False)


@users_build
def test_go_calls_c_stripped(world):
    check_c(world, BUILDS["stripped"], True)


def test_go_calls_c_pie_stripped(world):
    check_c(world, BUILDS["pie-stripped"], True)


def test_go_as_by_gdb(world):
    """Of a stopped process. gdb goes on by what it finds at the end of a thread's own stack, where
    the runtime came to it from a goroutine, and knows no signal handler of Go's: from there on it is
    not asked."""
    compared = 0
    with ready(build(world, "go", BUILDS["plain"]), 300) as target:
        for _ in range(5):
            target.send_signal(signal.SIGSTOP)
            wait_until_stopped(target.pid)
            theirs = gdb_stacks(target.pid, "set backtrace past-main on")
            done = world.attach(target, "--threads=tid", "--no-goroutines", duration="0.3s")
            target.send_signal(signal.SIGCONT)
            for stack in folded(done.stdout):
                tid = int(re.search(r"(\d+)\D*$", stack[0])[1])
                ours = [re.sub(r"_\[i\]$", "", frame) for frame in reversed(stack[1:])]
                gdb = [re.sub(r"\[go\.shape.*?\]", "[...]", frame) for frame in theirs[tid]]
                ends = [i for i, frame in enumerate(ours)
                        if frame in ("runtime.systemstack", "runtime.mcall", "runtime.mstart",
                                     "runtime.clone", "runtime.sigtramp")]
                last = ends[0] + 1 if ends else len(ours)
                assert ours[:last] == gdb[:last], (ours, gdb)
                compared += 1
    assert compared >= 20, compared

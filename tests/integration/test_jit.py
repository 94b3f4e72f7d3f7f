"""Code that processes generate, and name in perf maps and jitdumps."""

import contextlib
import glob
import os
import re
import subprocess

from harness import RATE, Skip, alone, children_of, folded, has, need, ticks_late, tool, wait_for

JIT_SCRIPT = """
function busyNamedFunction(n) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += Math.sqrt(i) % 7;
    return sum;
}
function callsIt() { return busyNamedFunction(200000); }
const end = Date.now() + 1000 * Number(process.argv[2]);
for (let i = 0; Date.now() < end; i++) {
    callsIt();
    if (i == 100) console.log('ready');
}
"""


def run_fixture(world, *arguments, options=(), seconds=2):
    """Profiles the fixture from its start to its end. Returns its main stacks and the profiler."""
    done = world.fgprof("run", *options, "--", world.fixture("jit"), seconds, *arguments)
    assert done.returncode == 0, done.stderr
    stacks = {stack: count for stack, count in folded(done.stdout).items()
              if has(stack, "run_generated")}
    assert stacks, done.stdout
    return stacks, done


def remove_maps(name):
    """Removes the maps with this name whose processes have gone."""
    for path in glob.glob("/tmp/perf-*.map"):
        pid = re.search(r"\d+", path)[0]
        with contextlib.suppress(FileNotFoundError):
            if not os.path.exists(f"/proc/{pid}") and name in open(path, errors="replace").read():
                os.unlink(path)


def count_of(stacks, name):
    return sum(count for stack, count in stacks.items() if name in stack)


@alone
def test_replaced_code_has_both_names(world):
    stacks, done = run_fixture(world, "replaced")
    total = sum(stacks.values())
    first = count_of(stacks, "first function_[j]")
    second = count_of(stacks, "second function_[j]")
    # Each has half of the time, except for a tick or two in which the change was not seen yet, and
    # for late ticks: their time goes to the next sample, which is of what ran then.
    late = ticks_late(done.stderr)
    assert abs(first - second) < 0.2 * total + 2 * late and first + second > 0.9 * total, (stacks, done)
    whole = [stack for stack in stacks if stack[-1].endswith("function_[j]")]
    assert whole and all(stack[0] == "_start" and stack[-2] == "run_generated" for stack in whole), stacks


def test_a_late_perf_map(world):
    try:
        stacks, done = run_fixture(world, "late", seconds=1)
    finally:
        # The fixture leaves it behind, so it is there after the exit.
        remove_maps("late function")
    assert count_of(stacks, "late function_[j]") > 0.8 * sum(stacks.values()), stacks


def test_generated_code_without_a_frame_pointer(world):
    if os.uname().machine != "x86_64":
        raise Skip("the fixture's code is for x86-64")
    stacks, done = run_fixture(world, "bare", seconds=1)
    whole = sum(count for stack, count in stacks.items() if stack[0] == "_start" and
                stack[-3:] == ("run_generated", "framed caller_[j]", "bare leaf_[j]"))
    assert whole > 0.8 * sum(stacks.values()), stacks


def test_a_linked_perf_map_is_refused(world):
    stacks, done = run_fixture(world, "linked", seconds=1)
    assert "linked function" not in done.stdout, done.stdout
    assert count_of(stacks, "[unknown]") > 0.8 * sum(stacks.values()), stacks
    assert "a perf map or jitdump was not read" in done.stderr, done.stderr


@alone
def test_a_jitdump_with_lines(world):
    stacks, done = run_fixture(world, "dump", world.directory, options=["--lines"], seconds=4)
    total = sum(stacks.values())
    moving = sum(count for stack, count in stacks.items()
                 if re.fullmatch(r"moving function \(made\.lua:[78]\)_\[j\]", stack[-1]))
    other = count_of(stacks, "other function_[j]")
    # A quarter of the time, a quarter, and half.
    room = 0.1 * total + ticks_late(done.stderr)
    assert abs(moving - 0.75 * total) < room and abs(other - 0.25 * total) < room, (stacks, done)
    assert moving + other > 0.9 * total, (stacks, done)


def test_jit_in_pprof(world):
    path = world.path("jit.pb.gz")
    done = world.fgprof("run", "-o", path, "--", world.fixture("jit"), 3, "replaced")
    assert done.returncode == 0, done.stderr
    raw = tool("go", "tool", "pprof", "-raw", path)
    assert re.search(r"^\d+: 0x\w+/0x\w+/0x0 \[jit\]  \[FN\]$", raw, re.M), raw[-2000:]
    top = tool("go", "tool", "pprof", "-top", path)
    for name in "first function", "second function":
        assert name in top, top


def test_jit_in_text(world):
    path = world.path("jit.txt")
    done = world.fgprof("run", "-o", path, "--", world.fixture("jit"), 3, "replaced")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^#\t0x\w+\s+second function\+0x[0-9a-f]$", open(path).read(), re.M)


def inner_pid(outer):
    """The only child of the process."""
    wait_for(lambda: children_of(outer), "the child")
    (pid,) = children_of(outer)
    return pid


def test_perf_map_of_a_pid_namespace(world):
    # It has its own /tmp, so that the file is alone there; it is process 1 there.
    command = ["unshare", "-p", "-f", "-m", "--mount-proc", "sh", "-c",
               f"exec 9<{world.fixture('jit')}; mount -t tmpfs none /tmp || exit 9; "
               "exec /proc/self/fd/9 600 replaced"]
    if os.geteuid() != 0:
        raise Skip("namespaces need root")
    target = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if target.stdout.readline() != "ready\n":
            raise Skip(f"no namespaces: {target.stderr.read().strip()}")
        pid = inner_pid(target.pid)
        done = world.fgprof("attach", "-p", pid, "-d", "1s")
        os.kill(pid, 9)
    finally:
        target.kill()
        target.communicate()
    assert done.returncode == 0, done.stderr
    # Starts once it has generated its code.
    stacks = {stack: count for stack, count in folded(done.stdout).items()
              if has(stack, "run_generated")}
    assert stacks and count_of(stacks, "first function_[j]") > 0.8 * sum(stacks.values()), done


def profile_node(world, *flags, run=False, options=()):
    """Profiles node. Returns its JavaScript stacks."""
    need("node")
    script = world.path("busy.js")
    with open(script, "w") as file:
        file.write(JIT_SCRIPT)
    if run:
        done = world.fgprof("run", *options, "--", "node", *flags, script, "4", cwd=world.directory)
    else:
        target = subprocess.Popen(["node", *flags, script, "300"], stdout=subprocess.PIPE, text=True,
                                  cwd=world.directory)
        try:
            assert target.stdout.readline() == "ready\n"
            done = world.attach(target, *options, duration="1s")
        finally:
            target.kill()
            target.communicate()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"/tmp/perf-{target.pid}.map")
    assert done.returncode == 0, done.stderr
    stacks = {stack: count for stack, count in folded(done.stdout).items()
              if has(stack, "v8::Function::Call")}
    assert stacks, done.stdout
    return stacks, done


def test_node_perf_map(world):
    for flags in ["--perf-basic-prof"], ["--perf-basic-prof-only-functions"]:
        stacks, done = profile_node(world, *flags)
        total = sum(stacks.values())
        busy = sum(count for stack, count in stacks.items()
                   if re.search(r"busyNamedFunction .*_\[j\]$", stack[-1]))
        assert busy > 0.8 * total, stacks
        whole = sum(count for stack, count in stacks.items() if stack[0] == "_start")
        assert whole > 0.95 * total, stacks


def test_node_interpreted_frames(world):
    stacks, done = profile_node(world, "--perf-basic-prof", "--interpreted-frames-native-stack")
    total = sum(stacks.values())
    both = sum(count for stack, count in stacks.items()
               if stack[0] == "_start" and has(stack, "callsIt", "busyNamedFunction"))
    assert both > 0.5 * total, stacks


def test_node_jitdump(world):
    stacks, done = profile_node(world, "--perf-prof", run=True, options=["--lines"])
    busy = sum(count for stack, count in stacks.items()
               # V8 does not always write the whole name of the script, and then there are no lines;
               # node 18 names no columns.
               if re.search(r"busyNamedFunction \S+busy\.js:\d+(:\d+)?( \(busy\.js:\d+\))?_\[j\]$",
                            stack[-1]))
    assert busy > 0.6 * sum(stacks.values()), stacks


JAVA_PROGRAM = """
public class Busy {
    static double busyNamedMethod(int n) {
        double sum = 0;
        for (int i = 1; i < n; i++) sum += Math.sqrt(i) % 7;
        return sum;
    }
    static double callsIt() { return busyNamedMethod(200000); }
    public static void main(String[] arguments) {
        double sum = 0;
        long end = System.nanoTime() + 1000000000L * Integer.parseInt(arguments[0]);
        for (int i = 0; System.nanoTime() < end; i++) {
            sum += callsIt();
            if (i == 200) System.out.println("ready");
        }
        if (sum == 42) System.out.println(sum);
    }
}
"""


def compiled_java(world):
    """The directory of the compiled program."""
    need("javac", "jcmd")
    directory = world.path("java")
    if not os.path.exists(directory):
        os.mkdir(directory)
        with open(directory + "/Busy.java", "w") as file:
            file.write(JAVA_PROGRAM)
        tool("javac", "-d", directory, directory + "/Busy.java")
    return directory


def test_java_perf_map(world):
    directory = compiled_java(world)
    # The JVM writes its map when it ends.
    done = world.fgprof("run", "-t", "--", "java", "-XX:+UnlockDiagnosticVMOptions",
                        "-XX:+DumpPerfMapAtExit", "-XX:+PreserveFramePointer",
                        "-XX:CompileCommand=quiet",
                        "-XX:CompileCommand=dontinline,Busy.busyNamedMethod",
                        "-cp", directory, "Busy", "3", timeout=120)
    remove_maps("Busy.busyNamedMethod")
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    busy = {stack: count for stack, count in stacks.items()
            if has(stack, "Busy.busyNamedMethod(int)_[j]")}
    assert sum(busy.values()) > 0.5 * RATE, stacks  # for a compiler that gets a CPU late
    # main itself is interpreted, and so has no name of its own.
    whole = sum(count for stack, count in busy.items()
                if has(stack, "clone", "JavaMain", "Interpreter_[j]", "Busy.busyNamedMethod"))
    assert whole > 0.95 * sum(busy.values()), busy


def test_java_without_frame_pointers(world):
    # Compiled at the first call, for good: what is compiled after jcmd's map has no name.
    target = subprocess.Popen(["java", "-Xcomp", "-XX:-TieredCompilation", "-XX:CompileCommand=quiet",
                               "-XX:CompileCommand=compileonly,Busy.*",
                               "-XX:CompileCommand=dontinline,Busy.busyNamedMethod",
                               "-cp", compiled_java(world), "Busy", "300"],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        tool("jcmd", target.pid, "Compiler.perfmap")
        done = world.attach(target, "-t", duration="2s")
    finally:
        target.kill()
        target.communicate()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/perf-{target.pid}.map")
    # Compiled code saves and uses the frame pointer like any register: its instructions lead on.
    busy = {stack: count for stack, count in folded(done.stdout).items()
            if has(stack, "double Busy.busyNamedMethod(int)_[j]")}
    whole = sum(count for stack, count in busy.items() if has(stack, "clone", "JavaMain", "callsIt"))
    assert whole > 0.9 * sum(busy.values()) > RATE, busy

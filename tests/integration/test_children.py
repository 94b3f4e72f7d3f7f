"""Descendants of the sampled processes, `--processes`, and `--pgrep`."""

import os
import re
import signal
import subprocess
import time

from harness import (PERIOD, alone, by_root, folded, has, need, status_field, ticks_late,
                     ticks_planned, tool, users_build, wait_for, wait_for_ticks,
                     wait_until_sampling)
from test_serve import serving


def pids(line):
    words = line.split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def shares(stacks):
    """{pid: (name, samples)} by the processes' root frames."""
    return {int(root.rpartition("/")[2]): (root.rpartition("/")[0], count)
            for root, count in by_root(stacks).items()}


def seconds_of(stacks, function):
    return PERIOD * sum(count for stack, count in stacks.items() if has(stack, function))


def elapsed(stderr):
    return float(re.search(r"fgprof-c: ([\d.]+) s at", stderr)[1])


def check_tree(stacks, relatives, duration, births=0):
    """Each process is there for the whole time, except until all were born, in its own function and in no
    other."""
    found = shares(stacks)
    functions = {relatives[way]: f"sleep_in_{way}"
                 for way in ("parent", "fork", "spawn", "thread", "orphan")}
    for pid, function in functions.items():
        assert pid in found, (function, found)
        assert 0.85 * duration - births < found[pid][1] * PERIOD < 1.15 * duration, (
            function, found, duration, births)
        own = {s: c for s, c in stacks.items() if s[0].endswith(f"/{pid}")}
        assert any(has(stack, function) for stack in own), (function, own)
        for other in functions.values():
            assert other == function or not any(has(stack, other) for stack in own), (other, own)
    assert found[relatives["fork"]][0] == "by fork", found
    assert found[relatives["spawn"]][0] == "by spawn", found
    return found


def test_children_that_are_there_before(world):
    with world.running("family", "tree", 100) as target:
        relatives = pids(target.stdout.readline())
        sampler = world.start("attach", "-p", target.pid, "--children", "--processes")
        wait_for_ticks(sampler)
        # A descendant whose parent has gone still is one.
        os.kill(relatives["middle"], signal.SIGKILL)
        wait_for_ticks(sampler)
        sampler.send_signal(signal.SIGINT)
        stdout, stderr = sampler.communicate(timeout=60)
        assert sampler.returncode == 0, stderr
        found = check_tree(folded(stdout), relatives, elapsed(stderr))
        assert 0 < found[relatives["middle"]][1] < found[target.pid][1], found
        assert len(found) == 6, found
        del relatives["middle"]
        # After the end none of them is traced.
        for pid in relatives.values():
            assert re.search(r"TracerPid:\s0", open(f"/proc/{pid}/status").read())
        without = world.attach(target, "--processes", duration="1s")
        assert set(shares(folded(without.stdout))) == {target.pid}, without.stdout


def test_children_that_are_born_meanwhile(world):
    out = world.path("tree.folded")
    begin = time.monotonic()
    sampler = world.start("run", "--children", "--processes", "-o", out, "--",
                          world.fixture("family"), "tree", 60)
    assert sampler.stdout.readline() == "ready\n"
    births = time.monotonic() - begin
    relatives = pids(sampler.stdout.readline())
    try:
        for _ in range(3):
            wait_for_ticks(sampler)
        os.kill(relatives["middle"], signal.SIGKILL)
        for _ in range(3):
            wait_for_ticks(sampler)
        # Sampling ends when the command exits.
        os.kill(relatives["parent"], signal.SIGTERM)
        sampler.wait(timeout=60)
    finally:
        for way in "fork", "spawn", "thread", "orphan":
            os.kill(relatives[way], signal.SIGKILL)
    _, stderr = sampler.communicate(timeout=60)
    assert sampler.returncode == 128 + signal.SIGTERM, stderr
    check_tree(folded(open(out).read()), relatives, elapsed(stderr), births)
    assert re.search(r"6 processes seen", stderr), stderr


def test_a_child_of_vfork_that_executes_a_program(world):
    """The child runs in its parent's memory, which still exists when the child has its own."""
    out = world.path("vfork.folded")
    sampler = world.start("run", "--children", "--processes", "-o", out, "--",
                          world.fixture("family"), "vfork", 2)
    assert sampler.stdout.readline() == "ready\n"
    child = pids(sampler.stdout.readline())["vfork"]
    times, stderr = sampler.communicate(timeout=60)
    assert sampler.returncode == 0, stderr
    executed, in_program, ended = (int(word) / 1e9 for word in times.split())
    own = {s: c for s, c in folded(open(out).read()).items() if s[0] == f"by spawn/{child}"}
    before, after = (seconds_of(own, function) for function in ("by_vfork", "sleep_in_spawn"))
    # Goes by its own clock; if a tick came late, it is not known what was before it.
    slack = 0.2 + ticks_late(stderr) * PERIOD
    assert abs(before - executed) < slack, (before, times, own, stderr)
    assert abs(after - (ended - in_program)) < slack, (after, times, own, stderr)
    others = sum(own.values()) * PERIOD - before - after
    assert others < in_program - executed + slack, (others, times, own, stderr)


@alone
@users_build
def test_short_lived_children_make_up_their_time(world):
    """Samples of many children that live for three ticks each add up to their lifetime, within a sixth:
    chance decides which of them a tick finds."""
    out = world.path("short.folded")
    sampler = world.start("run", "--children", "--processes", "-o", out, "--",
                          world.fixture("family"), "short", 300, 30)
    lines, stderr = sampler.communicate(timeout=120)
    assert sampler.returncode == 0, stderr
    said = pids(lines.splitlines()[1])
    lived = said["lived"] / 1e9
    found = shares(folded(open(out).read()))
    total = PERIOD * sum(count for pid, (_, count) in found.items() if pid != said["parent"])
    # What a late tick finds may have been born at any time before it.
    slack = lived / 6 + ticks_late(stderr) * PERIOD
    assert len(found) > 100 and abs(total - lived) < slack, (len(found), total, lived, stderr)


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s*(\d+)", open(f"/proc/{pid}/status").read())[1])


def test_files_and_memory_stay_bounded(world):
    """A thousand children one after the other: hardly more files are open than for one, and of each only its
    stacks and the mappings that they are in are kept."""
    with world.running("family", "short", 1150, 12) as target:
        sampler = world.start("attach", "-p", target.pid, "--children", "-o",
                              world.path("bounded.folded"))
        wait_until_sampling(sampler)
        born = lambda: int(open("/proc/loadavg").read().split()[-1])  # noqa: E731
        first = born()
        files, memory = [], []
        while target.poll() is None and sampler.poll() is None:
            try:
                files.append(open_files(sampler.pid))
                memory.append((born() - first, resident_kib(sampler.pid)))
            except (OSError, TypeError):
                break
            time.sleep(0.05)
        _, stderr = sampler.communicate(timeout=60)
    assert sampler.returncode == 0, stderr
    seen = int(re.search(r"(\d+) processes seen", stderr)[1])
    # Enough of the many are seen; each lives for about a tick.
    assert seen > (ticks_planned(stderr) - ticks_late(stderr)) / 5, stderr
    # Some 55 of them are those of one program and of the record of switches. Those of processes that
    # have ended are closed some at a time.
    assert max(files) < 300, max(files)
    if not world.is_sanitized:
        settled = memory[len(memory) // 3][1]
        assert memory[-1][1] - settled < 512 + 4 * seen, (settled, memory[-1], seen)


PART = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
struct part%d { int a; double b[%d]; char c; };
static double step(const struct part%d *part, int n) {
    double sum = part->a;
    for (int i = 0; i < n; i++) sum += part->b[i %% %d] * sqrt(i + sum);
    return sum;
}
double part%d(int n) {
    struct part%d part = {n, {%s}, 'x'};
    char text[64];
    snprintf(text, sizeof text, "%%g", step(&part, n));
    return strtod(text, NULL) + (double)strlen(text);
}
"""
PARTS = 20


def make_project(directory):
    """A program with this many sources, and its output."""
    os.makedirs(directory)
    for i in range(PARTS):
        n = i + 3
        values = ", ".join(str(k + 0.5) for k in range(n))
        with open(f"{directory}/part{i}.c", "w") as file:
            file.write(PART % (i, n, i, n, i, i, values))
    with open(f"{directory}/main.c", "w") as file:
        file.write("#include <stdio.h>\n" + "".join(f"double part{i}(int);\n" for i in range(PARTS)) +
                   "int main(void) {\n" +
                   "".join(f'    printf("%g\\n", part{i}({i}));\n' for i in range(PARTS)) +
                   "    return 0;\n}\n")
    objects = " ".join(["main.o"] + [f"part{i}.o" for i in range(PARTS)])
    with open(f"{directory}/Makefile", "w") as file:
        file.write("CFLAGS = -O2 -g\n"
                   f"program: {objects}\n\t$(CC) -o $@ $^ -lm\n"
                   "clean:\n\trm -f *.o program\n")


def test_a_build_under_run(world):
    need("make", "gcc")
    directory = world.path("project")
    make_project(directory)
    build = ["make", "-s", "-C", directory, "-j2", "CC=gcc"]
    subprocess.run(build, check=True, timeout=120)
    said = tool(f"{directory}/program")
    binary = open(f"{directory}/program", "rb").read()
    subprocess.run([*build[:4], "clean"], check=True, timeout=60)

    out = world.path("build.pb.gz")
    done = world.fgprof("run", "--children", "-o", out, "--", *build, timeout=300)
    assert done.returncode == 0, done.stderr
    assert tool(f"{directory}/program") == said
    assert open(f"{directory}/program", "rb").read() == binary
    tags = tool("go", "tool", "pprof", "-tags", out)
    # cc1 for each source; make and the linker.
    names = re.search(r" process: Total.*?\n((?:.+\n)+)", tags)[1]
    assert re.search(r": cc1$", names, re.M) and re.search(r": make$", names, re.M), tags
    ids = re.search(r" pid: Total.*?\n((?:.+\n)+)", tags)[1]
    assert len(ids.splitlines()) > PARTS, tags


def test_the_shell_that_started_us(world):
    """The shell's descendants without the profiler, which is one of them."""
    out = world.path("shell.folded")
    script = ("sleep 100 & until read -r name < /proc/$!/comm && [ $name = sleep ]; do :; done; "
              f"{world.program} attach -p $$ --children --processes -d 1s -q -o {out}; "
              "status=$?; kill $!; exit $status")
    done = subprocess.run(["bash", "-c", script], timeout=60, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    found = shares(folded(open(out).read()))
    assert sorted(name for name, _ in found.values()) == ["bash", "sleep"], found


def test_a_command_ends_without_what_it_leaves(world):
    out = world.path("left.folded")
    sampler = world.start("run", "--children", "--processes", "-o", out, "--", "sh", "-c",
                          "sleep 100 >/dev/null 2>&1 & echo $!; read line", stdin=subprocess.PIPE)
    left = int(sampler.stdout.readline())
    try:
        wait_for(lambda: open(f"/proc/{left}/comm").read() == "sleep\n", "its program")
        wait_for_ticks(sampler)
        sampler.communicate("end\n", timeout=50)
        assert sampler.returncode == 0
        assert shares(folded(open(out).read()))[left][0] == "sleep"
        assert re.search(r"TracerPid:\s0", open(f"/proc/{left}/status").read())
    finally:
        os.kill(left, signal.SIGKILL)


def test_attach_ends_with_the_last_descendant(world):
    """The parent exits first; its child exits when it reads a line."""
    fifo = world.path("fifo")
    os.mkfifo(fifo)
    out = world.path("last.folded")
    with subprocess.Popen(["sh", "-c", "timeout 100 cat \"$0\" & echo $!; exec cat", fifo], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        sampler = world.start("attach", "-p", parent.pid, "--children", "--processes", "-o", out)
        wait_for_ticks(sampler)
        parent.stdin.close()
        wait_for(lambda: status_field(parent.pid, "State").startswith("Z"), "the parent's end")
        wait_for_ticks(sampler)
        assert sampler.poll() is None
        with open(fifo, "w", encoding="ascii"):
            pass
        _, stderr = sampler.communicate(timeout=60)
        assert sampler.returncode == 0, stderr
        found = shares(folded(open(out).read()))
        assert found[child][1] > found[parent.pid][1] > 0, found


def test_one_process_has_a_label_only_where_asked(world):
    out = world.path("one.pb.gz")
    with world.running("states", 10) as target:
        for options, is_there in ([], False), (["--processes"], True):
            world.attach(target, *options, "-o", out, duration="500ms")
            tags = tool("go", "tool", "pprof", "-tags", out)
            assert (f": {target.pid}\n" in tags and " pid: Total" in tags) == is_there, tags


def test_pgrep(world):
    name = f"fgpg{os.getpid() % 100000}"
    programs = [world.path(name + ending) for ending in ("a", "b")]
    for program in programs:
        os.symlink("/bin/sleep", program)
    targets = [subprocess.Popen([program, "100"]) for program in programs]
    try:
        wait_for(lambda: all(open(f"/proc/{t.pid}/comm").read().startswith(name) for t in targets),
                 "their names")
        run = lambda *arguments: world.fgprof(  # noqa: E731
            "attach", *arguments, "-d", "300ms", "--processes")
        for pattern, wanted in ((name, 2), (f"^{name}a$", 1), (f"{name}[b]", 1), (name + "(a|b)", 2)):
            done = run("--pgrep", pattern)
            assert done.returncode == 0, done.stderr
            found = shares(folded(done.stdout))
            assert len(found) == wanted and set(found) <= {t.pid for t in targets}, found
        both = run("-p", targets[0].pid, "--pgrep", name)
        assert set(shares(folded(both.stdout))) == {t.pid for t in targets}, both
        none = run("--pgrep", f"^{name}$")
        assert none.returncode == 1 and "no process's name matches" in none.stderr, none
        bad = run("--pgrep", "(")
        assert bad.returncode == 1 and "bad name '('" in bad.stderr, bad
        # The profiler's own name, which no other process has here, does not match the profiler itself.
        os.symlink(world.program, world.path(name + "own"))
        own = subprocess.run([world.path(name + "own"), "attach", "--pgrep", f"^{name}own$"],
                             stderr=subprocess.PIPE, text=True, timeout=60)
        assert own.returncode == 1 and "no process's name matches" in own.stderr, own
        readers = run("--pgrep", "^fgprof-reader$")
        assert readers.returncode == 1 and "no process's name matches" in readers.stderr, readers
        with serving(world, "-p", targets[0].pid):
            speakers = run("--pgrep", "^fgprof-http$")
            assert speakers.returncode == 1 and "no process's name matches" in speakers.stderr, speakers
    finally:
        for target in targets:
            target.kill()
            target.wait()

"""Heap profiles: of programs that count their own allocations, of leaks, of all kinds of stacks, of real
programs, and with agents that misbehave."""

import contextlib
import json
import math
import os
import re
import signal
import stat
import subprocess
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree

from harness import (Skip, end, folded, has, need, ready, tool, wait_for, wait_for_ticks,
                     wait_until_sampling)

ALLOCATORS = "malloc", "calloc", "realloc", "memalign", "posix_memalign", "operator new"


def agent(world):
    return os.path.join(world.build, "libfgprof-agent.so")


def with_agent(world, **variables):
    """An environment in which programs have the agent."""
    return {**os.environ, "LD_PRELOAD": agent(world), **variables}


def record(world, *command, kind="heap", options=(), status=0, **arguments):
    """Records a program from its start to its end. Returns the recording and the profiler."""
    path = world.path("heap.fgprof")
    done = world.fgprof("run", "--kind", kind, "-o", path, *options, "--", *command, **arguments)
    assert done.returncode == status, done
    return path, done


def rows_of(world, path):
    """The rows of a recording's text: (objects in use, bytes, objects made, bytes, addresses, functions
    leaf first), as they were sampled."""
    text = world.fgprof("convert", path, "-f", "text").stdout
    rows = []
    for paragraph in text.split("\n\n")[0:]:
        head = re.search(r"^(\d+): (\d+) \[(\d+): (\d+)\] @((?: 0x[0-9a-f]+)*)$", paragraph, re.M)
        if head:
            functions = re.findall(r"^#\t0x[0-9a-f]+\t(\S+?)(?:\+0x[0-9a-f]+)?(?:\t|$)", paragraph, re.M)
            rows.append((*map(int, head.groups()[:4]), head[5].split(), functions))
    assert rows, text
    return rows


def by_function(rows, functions):
    """The samples below each of these functions: {name: (in use, made)}, in objects."""
    counts = {name: (0, 0) for name in functions}
    for in_use, _, made, _, _, frames in rows:
        for name in functions:
            if name in frames:
                counts[name] = counts[name][0] + in_use, counts[name][1] + made
    return counts


def number(pattern, text):
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def losses(stderr):
    """How many allocations and frees a recording says that it missed."""
    return (number(r"(\d+) more could not be recorded", stderr),
            number(r"(\d+) frees? (?:was|were) missed", stderr))


def truth_of(stdout):
    """The output of fixture-heap-sizes: {function: (size, made, freed)}."""
    return {name: tuple(map(int, rest)) for name, *rest in map(str.split, stdout.splitlines())
            if name.startswith("make_")}


def check_count(what, sampled, there, probability, missed, extra):
    """Of `there` objects each was sampled with this probability, of which some are missing, and some
    may be too many."""
    expected = there * probability
    # One more: of 4 objects that are nearly always sampled, one is left out once in 700 runs.
    spread = 1 + 5 * math.sqrt(expected * (1 - probability))
    assert expected - spread - missed <= sampled <= expected + spread + extra, \
        (what, sampled, expected, spread, missed, extra)


def test_profile_is_that_of_a_program_that_counts_itself(world):
    rate = 16 << 10
    path, done = record(world, world.fixture("heap-sizes"), options=("--heap-rate", "16K"))
    truth = truth_of(done.stdout)
    assert len(truth) == 8, done
    missed, frees_missed = losses(done.stderr)
    counts = by_function(rows_of(world, path), truth)
    bytes_made = bytes_estimated = 0
    for name, (size, made, freed) in truth.items():
        probability = -math.expm1(-size / rate)
        check_count(name, counts[name][1], made, probability, missed, 0)
        check_count(name, counts[name][0], made - freed, probability, missed, frees_missed)
        bytes_made += size * made
        bytes_estimated += size * counts[name][1] / probability
    # Some 18,000 samples, of which those of large objects are certain: the spread is 0.4 %.
    samples = sum(made for _, made in counts.values())
    assert samples + missed > 16000, counts
    assert abs(bytes_estimated / bytes_made - 1) < 0.02 + missed / samples, (counts, truth)
    # The formats scale as this does.
    scaled = folded(world.fgprof("convert", path, "--kind", "allocs").stdout)
    for name, (size, made, freed) in truth.items():
        shown = sum(count for stack, count in scaled.items() if name in stack)
        expected = counts[name][1] * size / -math.expm1(-size / rate)
        assert abs(shown - expected) <= 0.001 * expected + 1, (name, shown, expected)


def test_thread_frees_what_another_one_allocated(world):
    """Whichever thread frees it, it is gone: if everything is sampled, the number in use is exact."""
    path, done = record(world, world.fixture("heap-sizes"), options=("--heap-rate", "256K"))
    truth = truth_of(done.stdout)
    missed, frees_missed = losses(done.stderr)
    counts = by_function(rows_of(world, path), truth)
    for name in "make_2097152", "make_8388608":
        size, made, freed = truth[name]
        probability = -math.expm1(-size / (256 << 10))
        check_count(name, counts[name][0], made - freed, probability, missed, frees_missed)
    assert counts["make_8388608"][1] == truth["make_8388608"][1] or missed, counts


LEAKS = {  # of fixture-heap-leaks: how many objects, and how many bytes
    "leak_small": (10, 240), "leak_deep": (4, 20000), "leak_resized": (2, 18000),
    "leak_aligned": (1, 300000)}


def in_use(rows):
    """What is in use, as {the function that allocated it: (objects, bytes)}."""
    leaks = {}
    for objects, size, _, _, _, frames in rows:
        if objects:
            before = leaks.get(frames[0], (0, 0))
            leaks[frames[0]] = before[0] + objects, before[1] + size
    return leaks


def test_what_was_never_freed_is_left(world):
    path, done = record(world, world.fixture("heap-leaks"), options=("--heap-rate", "1"))
    rows = rows_of(world, path)
    assert in_use(rows) == LEAKS, (in_use(rows), done.stderr)
    deep = next(row for row in rows if row[5][0] == "leak_deep")
    assert deep[5][:5] == ["leak_deep"] * 4 + ["main"], deep
    made = by_function(rows, ["make_and_free", "make_and_resize_to_nothing", "leak_resized"])
    assert made == {"make_and_free": (0, 20), "make_and_resize_to_nothing": (0, 40),
                    "leak_resized": (2, 4)}, made
    assert re.search(r"about [\d.]+ KiB of it in use at the end", done.stderr), done.stderr


def test_leaks_are_those_that_memcheck_finds(world):
    need("valgrind")
    out = world.path("memcheck.xml")
    subprocess.run(["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--xml=yes",
                    "--xml-file=" + out, world.fixture("heap-leaks")],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    found = {}
    for error in xml.etree.ElementTree.parse(out).findall("error"):
        if error.findtext("kind") != "Leak_DefinitelyLost":
            continue
        frames = [frame.findtext("fn") for frame in error.find("stack")]
        name = next(frame for frame in frames if frame not in ALLOCATORS)
        objects, size = (int(error.findtext(f"xwhat/leaked{what}")) for what in ("blocks", "bytes"))
        before = found.get(name, (0, 0))
        found[name] = before[0] + objects, before[1] + size
    path, _ = record(world, world.fixture("heap-leaks"), options=("--heap-rate", "1"))
    assert found == in_use(rows_of(world, path)), found


def test_allocators_are_not_shown(world):
    need("g++")
    program = world.path("operators")
    tool("g++", "-std=c++20", "-O1", "-g", "-o", program,
         os.path.join(world.source, "tests/fixtures/heap/operators.cc"))
    path, _ = record(world, program, options=("--heap-rate", "1", "--full-names"))
    rows = rows_of(world, path)
    leaves = {row[5][0] for row in rows}
    assert not [leaf for leaf in leaves if any(name in leaf for name in ALLOCATORS)
                and not leaf.startswith("counted::")], leaves
    sizes = {row[1]: row[5] for row in rows}
    for size, name in (2100, "by_new_array"), (2200, "by_nothrow"), (2560, "by_aligned"):
        assert sizes[size][0].split("(")[0] == name, sizes[size]
    # An operator of a class is code of the program.
    assert [frame.split("(")[0] for frame in sizes[3000][:3]] == \
        ["counted::operator", "by_class", "main"] or "by_class" in str(sizes[3000][:3]), sizes[3000]
    for size, name in (2300, "by_vector"), (2401, "by_string"):
        assert any(frame.startswith(name) for frame in sizes[size]), sizes[size]
    raw = world.path("heap.pb.gz")
    world.fgprof("convert", path, "-o", raw)
    need("go")
    assert "_Znwm" not in tool("go", "tool", "pprof", "-raw", raw)


def check_stacks(world, name):
    """All stacks equal those from backtrace(3), from the caller of `allocate` on."""
    library = os.path.join(world.build, "tests/fixtures/libfixture-heap-late.so")
    path, done = record(world, world.fixture(name), library, options=("--heap-rate", "1"))
    lines = [line.split() for line in done.stdout.splitlines() if line[0].isdigit()]
    expected = {int(size): addresses for size, *addresses in lines}
    assert len(expected) == 7, done
    seen = {row[1]: row for row in rows_of(world, path) if row[1] in expected}
    assert seen.keys() == expected.keys(), (seen.keys(), expected)
    for size, addresses in expected.items():
        row = seen[size]
        assert row[5][0] == "allocate", row
        if size == 5006:
            continue  # backtrace knows nothing of generated code
        # These are return addresses in both.
        assert [address[2:] for address in row[4][1:]] == addresses, (size, row, addresses)
    assert seen[5006][5][-4:-2] == ["in_generated_code", "main"] or \
        "in_generated_code" in seen[5006][5] and "main" in seen[5006][5], seen[5006]
    assert seen[5007][5][:3] == ["allocate", "call_back", "main"], seen[5007]
    assert "0.00 % cut" in done.stderr, done.stderr


def test_stacks_without_frame_pointers(world):
    check_stacks(world, "heap-stacks-omit")


def test_stacks_with_frame_pointers(world):
    check_stacks(world, "heap-stacks-no-omit")


# ---- A process that runs already ----

def check_steady(world, target, *options):
    """The recording of fixture-heap-steady: temporary objects are gone, and an object is kept."""
    path = world.path("steady.fgprof")
    done = world.fgprof("attach", "--kind", "heap", "-p", target.pid, "-d", "2s", "--heap-rate", "1K", "-o", path,
                        *options)
    assert done.returncode == 0, done
    counts = by_function(rows_of(world, path), ["keep", "pass"])
    assert counts["pass"][0] == 0 and counts["pass"][1] > 20, (counts, done.stderr)
    assert counts["keep"][0] == 1 and counts["keep"][1] > 20, (counts, done.stderr)
    return done


def test_attach_to_a_program_with_the_agent_preloaded(world):
    with world.running("heap-steady", 100, env=with_agent(world)) as target:
        check_steady(world, target)
        check_steady(world, target)  # once more: nothing is left of the first time


def test_attach_to_a_program_with_the_agent_linked(world):
    with world.running("heap-steady-linked", 100) as target:
        check_steady(world, target)


def test_attach_to_a_program_that_has_loaded_the_agent(world):
    with world.running("heap-steady", 100, agent(world)) as target:
        check_steady(world, target)


def refused(world, *arguments, status=1):
    """Why a recording was refused immediately."""
    begin = time.monotonic()
    done = world.fgprof(*arguments)
    assert done.returncode == status and done.stdout == "", done
    assert time.monotonic() - begin < 60, done
    return done.stderr


def test_attach_without_the_agent(world):
    with world.running("heap-steady", 300) as target:
        for kind in "heap", "allocs":
            why = refused(world, "attach", "--kind", kind, "-p", target.pid, "-d", "250s")
            assert f"process {target.pid} (fixture-heap-st" in why and "has not loaded the agent" in why, why
            assert "fgprof-c run --kind heap" in why and "--kind growth" in why, why


def test_statically_linked_program(world):
    program = world.fixture("heap-static")
    path = world.path("static.folded")
    begin = time.monotonic()
    done = world.fgprof("run", "--kind", "heap", "-o", path, "--", program, "nothing", "1")
    assert done.returncode == 125 and time.monotonic() > begin + 1, done  # it ran to its end
    assert "is linked statically" in done.stderr and "--kind growth" in done.stderr, done
    assert not os.path.exists(path)
    with subprocess.Popen([program, "nothing", "100"]) as target:
        why = refused(world, "attach", "--kind", "heap", "-p", target.pid, "-d", "250s")
        target.kill()
    assert f"process {target.pid} (fixture-heap-st" in why and "is linked statically" in why, why


def test_program_with_more_rights_than_its_user(world):
    if os.geteuid():
        raise Skip("only root can make a program another user's")
    program = world.path("fixture-setuid")
    tool("cp", world.fixture("heap-steady"), program)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o755 | stat.S_ISUID)
    done = world.fgprof("run", "--kind", "heap", "-o", world.path("out.folded"), "--", program, "1")
    if "no new privileges" in open("/proc/self/status").read() or "nosuid" in done.stderr:
        raise Skip("setuid has no effect here")
    assert done.returncode == 125 and "ready" in done.stdout, done
    assert "more rights than its user" in done.stderr and "LD_PRELOAD" in done.stderr, done


def test_program_with_an_allocator_of_its_own(world):
    path, done = record(world, world.fixture("heap-own"))
    assert "has an allocator of its own" in done.stderr and "--kind growth" in done.stderr, done
    assert ": 0 allocations sampled" in done.stderr, done


def test_one_profiler_at_a_time(world):
    with world.running("heap-steady", 300, env=with_agent(world)) as target:
        first = world.start("attach", "--kind", "heap", "-p", target.pid, "-o", world.path("first.folded"))
        wait_for_ticks(first)
        why = refused(world, "attach", "--kind", "heap", "-p", target.pid, "-d", "250s")
        assert "another profiler records" in why, why
        _, stderr = end(first)
        assert "allocations sampled" in stderr, stderr
        check_steady(world, target)


def test_profiler_that_was_killed(world):
    with world.running("heap-steady", 300, env=with_agent(world)) as target:
        first = world.start("attach", "--kind", "heap", "-p", target.pid, "--heap-rate", "1K", "-o",
                            world.path("first.folded"))
        wait_for_ticks(first)
        first.kill()
        first.wait()
        check_steady(world, target)


# ---- Agents that are not as they should be ----

def told(world, how, **options):
    return world.running("heap-told", how, 300, **options)


def test_agent_of_another_version(world):
    with told(world, "version") as target:
        why = refused(world, "attach", "--kind", "heap", "-p", target.pid, "-d", "250s")
    assert "is not of this version of fgprof-c" in why and "libfgprof-agent.so" in why, why


def test_agent_whose_memory_is_damaged(world):
    for how in "damaged", "open":
        with told(world, how) as target:
            why = refused(world, "attach", "--kind", "heap", "-p", target.pid, "-d", "250s")
        assert f"memory in process {target.pid}" in why and "is damaged" in why, (how, why)


def test_agent_that_lies(world):
    with told(world, "lies") as target:
        done = world.fgprof("attach", "--kind", "heap", "-p", target.pid, "-d", "2s")
        assert target.poll() is None
    assert done.returncode == 1 and "is damaged" in done.stderr, done


def test_agent_in_the_middle_of_a_record(world):
    """One record is given up; the one after it counts."""
    path = world.path("stuck.fgprof")
    with told(world, "stuck") as target:
        done = world.fgprof("attach", "--kind", "heap", "-p", target.pid, "-d", "4s", "-o", path)
    assert done.returncode == 0 and "1 allocation sampled" in done.stderr, done
    assert losses(done.stderr)[0] == 1, done
    assert rows_of(world, path)[0][:4] == (1, 1 << 20, 1, 1 << 20)


def test_program_that_is_killed_in_the_middle_of_a_record(world):
    path = world.path("dies.fgprof")
    with told(world, "dies") as target:
        done = world.fgprof("attach", "--kind", "heap", "-p", target.pid, "-o", path)
    assert done.returncode == 0 and "2 allocations sampled" in done.stderr, done
    assert losses(done.stderr)[0] == 1, done
    assert rows_of(world, path)[0][:2] == (2, 2 << 20)  # what was in use at its end


def test_program_that_executes_another(world):
    """The program's memory is gone, and what it allocated still counts as allocated."""
    path = world.path("execs.fgprof")
    with told(world, "execs") as target:
        done = world.fgprof("attach", "--kind", "heap", "-p", target.pid, "-d", "2s", "-o", path)
    assert done.returncode == 0, done
    assert rows_of(world, path)[0][:4] == (0, 0, 1, 1 << 20)


# ---- Commands ----

def test_processes_that_a_command_starts(world):
    leaks = world.fixture("heap-leaks")
    script = f"{leaks}; {leaks}"
    path, done = record(world, "sh", "-c", script, options=("--children", "--heap-rate", "1"))
    found = in_use(rows_of(world, path))
    assert {name: found.get(name) for name in LEAKS} == \
        {name: (2 * objects, 2 * size) for name, (objects, size) in LEAKS.items()}, found
    assert re.search(r"[34] processes seen", done.stderr), done
    path, done = record(world, "sh", "-c", script, options=("--heap-rate", "1"))
    assert not LEAKS.keys() & in_use(rows_of(world, path)).keys(), done


def test_other_entries_of_ld_preload_stay(world):
    library = os.path.join(world.build, "tests/fixtures/libfixture-heap-late.so")
    done = world.fgprof("run", "--kind", "heap", "-o", world.path("out.folded"), "--", "cat", "/proc/self/maps",
                        env={**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "verify_asan_link_order=0"})
    assert library in done.stdout and agent(world) in done.stdout, done


def test_agent_that_is_not_installed(world):
    alone = world.path("fgprof-c")
    tool("cp", world.program, alone)
    done = subprocess.run([alone, "run", "--kind", "heap", "--", "echo", "ran"], capture_output=True, text=True)
    if "allocations sampled" in done.stderr:
        raise Skip("the agent is installed on this machine")
    assert done.returncode == 125 and done.stdout == "", done
    assert "libfgprof-agent.so" in done.stderr and "install" in done.stderr, done


def test_installed_beside_its_library(world):
    for where in "bin", "lib":
        os.mkdir(world.path(where))
    tool("cp", world.program, world.path("bin/fgprof-c"))
    tool("cp", agent(world), world.path("lib"))
    done = subprocess.run([world.path("bin/fgprof-c"), "run", "--kind", "heap", "--", "cat", "/proc/self/maps"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and world.path("lib/libfgprof-agent.so") in done.stderr, done


def test_path_that_ld_preload_cannot_hold(world):
    os.mkdir(world.path("a b"))
    tool("cp", world.program, agent(world), world.path("a b"))
    done = subprocess.run([world.path("a b/fgprof-c"), "run", "--kind", "heap", "--", "echo", "ran"],
                          capture_output=True, text=True)
    assert done.returncode == 125 and done.stdout == "" and "space or a colon" in done.stderr, done


def test_commands_without_kinds(world):
    for command in "top", "dump", "record", "serve":
        done = world.fgprof(command, "--kind", "heap", "-p", os.getpid())
        assert done.returncode == 2 and f"{command} has no option '--kind'" in done.stderr, done


def test_what_does_not_go_with_objects(world):
    for options, why in (
            (["--thread", "x"], "options that choose threads"), (["--no-idle"], "options that choose threads"),
            (["--tid", "1"], "options that choose threads"), (["--slow", "a>1s"], "--slow"),
            (["--on-cpu"], "--on-cpu and --off-cpu"), (["--off-cpu"], "--on-cpu and --off-cpu"),
            (["--elapsed"], "--elapsed"), (["-f", "speedscope"], "speedscope"),
            (["--heap-rate", "0"], "heap rate"), (["--heap-rate", "2G"], "heap rate"),
            (["--heap-rate", "512k"], "512K")):
        done = world.fgprof("attach", "--kind", "heap", "-p", os.getpid(), *options)
        assert done.returncode == 2 and why in done.stderr, (options, done)


# ---- Serving ----

def ask(url):
    """Returns the status and the body."""
    try:
        with urllib.request.urlopen(url, timeout=300) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read()


@contextlib.contextmanager
def serving(world, target, *options):
    server = world.start("serve", "-p", target.pid, "--listen", "127.0.0.1:0", *options)
    url = re.search(r"http://\S+/", server.stderr.readline())[0]
    yield url + "debug/pprof/"
    end(server)


def test_serve_heap(world):
    need("go")
    with world.running("heap-steady", 300, env=with_agent(world)) as target, \
            serving(world, target, "--heap-rate", "1K") as url:
        wait_for(lambda: b"pass+" in ask(url + "allocs?debug=1")[1], "allocations")
        status, text = ask(url + "heap?debug=1&gc=1")
        assert status == 200 and text.startswith(b"heap profile: 1: 300000 ["), text
        assert re.search(rb"@ heap(_v2)?/1024\n", text), text
        # Of some seconds: what came and went.
        path = world.path("allocs.pb.gz")
        with open(path, "wb") as file:
            file.write(ask(url + "allocs?seconds=2")[1])
        top = tool("go", "tool", "pprof", "-sample_index=alloc_objects", "-top", path)
        made = int(re.search(r"(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+%  pass", top)[1])
        assert 20 < made < 5000, top
        assert "Type: alloc_space" in tool("go", "tool", "pprof", "-top", path)
        with open(path, "wb") as file:
            file.write(ask(url + "heap?seconds=1")[1])
        assert "Type: inuse_space" in tool("go", "tool", "pprof", "-top", path)
        assert b"pass" in ask(url + "allocs?format=folded")[1]
        assert b"<html" in ask(url + "heap?format=html")[1][:100]
        index = ask(url)[1].decode()
        assert re.search(r'href="/debug/pprof/heap\?debug=1".*<dd>1 sampled now', index), index
        assert re.search(r'href="/debug/pprof/allocs\?debug=1".*<dd>\d{2,} sampled now', index), index
        for wrong in "heap?seconds=0", "heap?debug=1&seconds=1", "heap?last=5s", "heap?format=speedscope", \
                "heap?debug=3", "allocs?format=x":
            status, why = ask(url + wrong)
            assert status == 400, (wrong, status, why)
        # Time is served as ever.
        assert ask(url + "profile?seconds=1")[0] == 200


def test_what_is_forgotten_leaves_allocations(world):
    """--keep forgets time, and stacks that only had time."""
    with world.running("heap-steady", 300, env=with_agent(world)) as target, \
            serving(world, target, "--heap-rate", "1K", "--keep", "1s", "--keep-memory", "1") as url:
        wait_for(lambda: b"pass+" in ask(url + "allocs?debug=1")[1], "allocations")

        def made():
            text = ask(url + "allocs?debug=1")[1].decode()
            row = re.search(r"^\d+: \d+ \[(\d+): \d+\] @.*\n#.*\tpass\+.*\n#.*\tmain\+", text, re.M)
            assert row, text
            return int(row[1])
        first = made()
        time.sleep(3)
        assert made() > first + 20


MAPS = """
#include <sys/mman.h>
#include <stdlib.h>
__attribute__((noinline)) void *map_it(void)
{
    void *memory = mmap(NULL, 10 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("" : "+r"(memory));
    return memory;
}
int main(void)
{
    for (int i = 0; i < 8; i++) {
        void *memory = map_it();
        if (i < 5)
            munmap(memory, 10 << 20);
    }
    return 0;
}
"""


def test_memory_that_a_program_maps_itself(world):
    need("gcc")
    source, program = world.path("maps.c"), world.path("maps")
    with open(source, "w") as file:
        file.write(MAPS)
    tool("gcc", "-O1", "-g", "-o", program, source)
    path, _ = record(world, program, options=("--heap-mmap", "--heap-rate", "1M"))
    row = next(row for row in rows_of(world, path) if "map_it" in row[5])
    assert row[:4] == (3, 30 << 20, 8, 80 << 20) and row[5][:2] == ["map_it", "main"], row
    path, done = record(world, program, options=("--heap-rate", "1M"))
    assert ": 0 allocations sampled" in done.stderr, done


def test_serve_without_the_agent(world):
    with world.running("heap-steady", 300) as target, serving(world, target) as url:
        for name in "heap", "allocs", "heap?debug=1", "heap?seconds=1":
            status, why = ask(url + name)
            assert status == 404 and b"has not loaded the agent" in why and b"run --kind heap" in why, (name, status, why)
        assert "the agent is not loaded" in ask(url)[1].decode()


def test_serve_while_another_profiler_records(world):
    with world.running("heap-steady", 300, env=with_agent(world)) as target:
        first = world.start("attach", "--kind", "heap", "-p", target.pid, "-o", world.path("first.folded"))
        wait_until_sampling(first)
        with serving(world, target) as url:
            wait_for(lambda: ask(url + "heap")[0] == 503, "a refusal")
            assert b"another profiler" in ask(url + "heap")[1]
            end(first)
            # It takes its turn.
            wait_for(lambda: ask(url + "heap")[0] == 200, "the agent")


# ---- Real programs ----

def check_real(world, path, done, *functions, cut=0.1):
    """The profile has these functions, and its stacks are complete except for those deeper than the copy."""
    rows = rows_of(world, path)
    frames = {frame for row in rows for frame in row[5]}
    assert set(functions) <= frames, (functions, done.stderr, sorted(frames)[:200])
    samples = sum(row[2] for row in rows)
    roots = sum(row[2] for row in rows
                if row[5] and ("_start" in row[5][-1] or "clone" in row[5][-1] or row[5][-1].startswith("_dl_")))
    shown = number(r"fgprof-c: [\d.]+ s: (\d+) allocations? sampled", done.stderr)
    assert samples == shown > 20, (samples, done.stderr)
    part = float(re.search(r"([\d.]+) % cut", done.stderr)[1]) / 100
    assert part <= cut and roots >= (1 - cut) * samples, (part, roots, samples, done.stderr)


def test_python(world):
    need("/usr/bin/python3")
    script = "import json\nkept = [json.dumps(list(range(i % 500))) for i in range(20000)]\n"
    path, done = record(world, "/usr/bin/python3", "-c", script, options=("--heap-rate", "16K"),
                        env={**os.environ, "PYTHONMALLOC": "malloc"})
    check_real(world, path, done, "_PyEval_EvalFrameDefault", cut=0.3)
    assert b"Traceback" not in done.stderr.encode()


def test_node(world):
    need("node")
    # Stacks through V8's own code need that code, which is read while the program is there.
    script = """
        const kept = [];
        setTimeout(() => { for (let i = 0; i < 300; i++) kept.push(Buffer.allocUnsafeSlow(100000 + i)); }, 1000);
        setTimeout(() => {}, 3000);"""
    path, done = record(world, "node", "-e", script, options=("--heap-rate", "64K"))
    check_real(world, path, done, cut=0.3)
    # The buffers are allocated by a native function, below code that V8 generated.
    made = sum(row[2] for row in rows_of(world, path) if row[3] >= 100000 * row[2])
    assert made + losses(done.stderr)[0] > 200 and made > 20, (made, done.stderr)


def test_redis(world):
    need("redis-server", "redis-benchmark", "redis-cli")
    from servers import free_port, ask as ask_server
    port = free_port()
    path = world.path("redis.fgprof")
    sampler = world.start("run", "--kind", "heap", "--heap-rate", "32K", "-o", path, "--", "redis-server", "--port",
                          port, "--bind", "127.0.0.1", "--save", "", stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: ask_server(port, b"PING\r\n"), "redis")
        tool("redis-benchmark", "-p", str(port), "-t", "set", "-n", "20000", "-r", "100000", "-d", "500", "-q")
    finally:
        subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], check=False)
    stdout, stderr = sampler.communicate(timeout=300)
    assert sampler.returncode == 0, (stdout[-1000:], stderr)
    done = subprocess.CompletedProcess([], 0, stdout, stderr)
    check_real(world, path, done, "processCommand")

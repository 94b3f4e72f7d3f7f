"""Python programs: the functions that users wrote, instead of the interpreter's own."""

import json
import os
import re
import shutil
import subprocess

from harness import HANGS_S, RATE, Missing, Skip, folded, has, need, ready, tool, users_build, wait_for
from test_capture import need_record
from test_serve import serving

# Versions that can be read. The first is Debian 12's; the others are tried where they are.
VERSIONS = ("3.11", "3.9", "3.10", "3.12", "3.13", "3.14", "3.15")
EVALUATION = "_PyEval_EvalFrameDefault"


def interpreter(version):
    """The program itself, not a script that starts it."""
    path = shutil.which(f"python{version}")
    if not path:
        if version == VERSIONS[0]:
            raise Missing(f"no python{version}")
        raise Skip(f"no python{version}")
    done = subprocess.run([path, "-c", "import os; print(os.path.realpath('/proc/self/exe'))"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=HANGS_S)
    if done.returncode:
        raise Skip(f"python{version} does not run")
    found = done.stdout.strip()
    return found if os.path.exists(found) else path  # with a root of its own: scripts/runtimes


def program(world, name):
    return os.path.join(world.source, "tests/fixtures/python", name + ".py")


def faulthandlers_stacks(path):
    """{(function, file, line), ...: leaf first} from the interpreter's output about its own threads. It has
    names without the class or function that contains them."""
    stacks = []
    for line in open(path):
        if line.startswith(("Thread", "Current thread")):
            stacks.append([])
        frame = re.match(r'  File "(.*)", line (\d+) in (.*)\n', line)
        if frame:
            name = re.sub(r"\\x(..)", lambda byte: chr(int(byte[1], 16)), frame[3])
            stacks[-1].append((name, frame[1], int(frame[2])))
    return {tuple(stack) for stack in stacks}


def dumped_stacks(text):
    """The same from a dump, for functions in Python files."""
    stacks = set()
    for thread in text.split("\nthread ")[1:]:
        frames = re.findall(r"^ +(.*) \((.*\.py):(\d+)\)$", thread, re.M)
        stacks.add(tuple((name.rsplit(".", 1)[-1], file, int(line)) for name, file, line in frames))
    return stacks


def check_sleepers(world, version):
    path = world.path("stacks")
    with ready(interpreter(version), program(world, "sleepers"), path) as target:
        done = world.fgprof("dump", "-p", target.pid)
        assert done.returncode == 0, done.stderr
        truth, seen = faulthandlers_stacks(path), dumped_stacks(done.stdout)
        # The main thread went on from writing it to sleeping. Of deep stacks it writes 100 frames.
        truth = {stack for stack in truth if stack[-1][0] != "<module>" and len(stack) < 100}
        assert len(truth) == 7, truth
        assert truth <= seen, (truth - seen, done.stdout)
        deep = max(seen, key=len)
        assert [name for name, _, _ in deep].count("deep") == 201, deep
        assert EVALUATION not in done.stdout, done.stdout
        whole = world.attach(target)
        stacks = folded(whole.stdout)
        native = folded(world.attach(target, "--native").stdout)
    assert "Python functions are not known" not in whole.stderr, whole.stderr
    # Before 3.11 code does not know what it is in.
    bare = (lambda name: name.rsplit(".", 1)[-1]) if version in ("3.9", "3.10") else str
    serve, handle, inner = bare("Server.serve"), bare("Server.handle"), bare("in_unicode.<locals>.größe")
    assert any(has(stack, serve, handle, handle, handle, handle, "sleep") for stack in stacks), stacks
    # C code between Python's is a library's, or the interpreter's: that one goes.
    assert any(has(stack, "from_c", "key", "sleep") for stack in stacks), stacks
    assert any(has(stack, "in_unicode", inner) for stack in stacks), stacks
    # Nothing is between a caller and the constructor, as in tracebacks.
    made = next(stack for stack in stacks if has(stack, "constructor"))
    at = next(i for i, frame in enumerate(made) if "constructor" in frame)
    assert bare("Session.__init__") in made[at + 1] and "sleep" in made[at + 2], made
    assert not any(EVALUATION in stack for stack in stacks), stacks
    assert any(has(stack, EVALUATION, "from_c", EVALUATION, "key") for stack in native), native


def test_sleepers_3_9(world):
    check_sleepers(world, "3.9")


def test_sleepers_3_10(world):
    check_sleepers(world, "3.10")


def test_sleepers_3_11(world):
    check_sleepers(world, "3.11")


def test_sleepers_3_12(world):
    check_sleepers(world, "3.12")


def test_sleepers_3_13(world):
    check_sleepers(world, "3.13")


def test_sleepers_3_14(world):
    check_sleepers(world, "3.14")


def test_sleepers_3_15(world):
    check_sleepers(world, "3.15")


def chain_times(target):
    target.stdin.write("\n")
    target.stdin.flush()
    return [float(text) for text in target.stdout.readline().split()]


def check_chains(world, version, *options):
    with ready(interpreter(version), program(world, "chains"), stdin=subprocess.PIPE) as target:
        before = chain_times(target)
        done = world.attach(target, "--on-cpu", *options, duration="4s")
        after = chain_times(target)
    truth = [b - a for a, b in zip(before, after)]
    stacks = folded(done.stdout)
    counts = [sum(count for stack, count in stacks.items() if chain + "3" in stack) for chain in "ab"]
    mixed = {stack for stack in stacks
             if {"a1", "a2", "a3"} & set(stack) and {"b1", "b2", "b3"} & set(stack)}
    assert not mixed, mixed
    # Each function is called by the one before it, and by no other.
    for stack in stacks:
        for chain in "ab":
            names = [frame for frame in stack if frame in (chain + "1", chain + "2", chain + "3")]
            assert names == [chain + "1", chain + "2", chain + "3"][:len(names)], stack
    share, true_share = counts[0] / sum(counts), truth[0] / sum(truth)
    assert sum(counts) > 20 and abs(share - true_share) < 0.15, (counts, truth, stacks)


@users_build
def test_chains_are_not_mixed_3_9(world):
    check_chains(world, "3.9")


@users_build
def test_chains_are_not_mixed_3_10(world):
    check_chains(world, "3.10")


@users_build
def test_chains_are_not_mixed_3_11(world):
    check_chains(world, "3.11")


@users_build
def test_chains_are_not_mixed_3_12(world):
    check_chains(world, "3.12")


@users_build
def test_chains_are_not_mixed_3_13(world):
    check_chains(world, "3.13")


@users_build
def test_chains_are_not_mixed_3_14(world):
    check_chains(world, "3.14")


@users_build
def test_chains_are_not_mixed_3_15(world):
    check_chains(world, "3.15")


@users_build
def test_chains_of_threads_that_are_stopped(world):
    check_chains(world, "3.11", "--capture=ptrace")


def check_frames_of_running_threads(world, version):
    """If the record is permitted, they are copied when the kernel samples."""
    need_record(world)
    with ready(interpreter(version), program(world, "chains"), stdin=subprocess.PIPE) as target:
        done = world.attach(target, "--on-cpu", "--capture=record", duration="8s")
    sampled = re.search(r"by the kernel while running: (\d+) samples", done.stderr)
    paused = re.search(r"paused (\d+) times", done.stderr)
    # Threads of which the record has nothing yet are stopped; and until the interpreter has been found,
    # samples have no Python frames.
    assert int(sampled[1]) > 20 and (not paused or int(paused[1]) <= 4), done.stderr
    stacks = folded(done.stdout)
    in_python = sum(count for stack, count in stacks.items() if "work" in stack)
    assert in_python > 0.95 * sum(stacks.values()), stacks


@users_build
def test_running_threads_are_not_stopped_for_their_frames(world):
    check_frames_of_running_threads(world, "3.11")


@users_build
def test_running_threads_are_not_stopped_for_their_frames_3_9(world):
    check_frames_of_running_threads(world, "3.9")


def test_other_readers(world):
    """Names, files and lines in pprof and on the page; pprof looks nothing up."""
    need("go")
    source, kept = program(world, "sleepers"), world.path("sleepers.fgprof")
    with ready(interpreter("3.11"), source, world.path("stacks")) as target:
        world.attach(target, "-o", kept)
    done = world.fgprof("convert", kept, "-o", world.path("sleepers.pb.gz"))
    assert done.returncode == 0, done.stderr
    peek = tool("go", "tool", "pprof", "-lines", "-traces", world.path("sleepers.pb.gz"))
    lines = open(source).read().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "time.sleep(LASTS_S)" in text)
    assert f" sleep {source}:{line}" in peek, peek
    assert re.search(r"^ +<module> ", peek, re.M), peek
    page = world.fgprof("convert", kept, "-f", "html")
    assert "Server.handle" in page.stdout, page.stderr


def test_lies(world):
    """Memory that makes no sense: the native stack is shown, and the summary says so."""
    for how in ("circle", "wild", "entries", "code"):
        with world.running("fake_python", 60, how) as target:
            done = world.attach(target, duration="500ms")
        stacks = folded(done.stdout)
        assert all(has(stack, "main") for stack in stacks), (how, stacks)
        assert any(has(stack, "main", EVALUATION) for stack in stacks), (how, stacks)
        assert "Python functions are not known in" in done.stderr, (how, done.stderr)


def test_lengths_without_end(world):
    """The readable part of a name is shown; the profiler does not wait, and takes no memory."""
    with world.running("fake_python", 60, "lengths") as target:
        done = world.attach(target, duration="500ms")
    stacks = folded(done.stdout)
    assert all(stack[-1] == "clock_nanosleep" for stack in stacks), stacks
    assert any(has(stack, "[unknown]", "usleep") for stack in stacks), stacks


def test_an_interpreter_that_is_rewritten_all_the_time(world):
    with world.running("fake_python", 60, "rewritten") as target:
        done = world.attach(target, "-F", "499")
    stacks = folded(done.stdout)
    asleep = sum(count for stack, count in stacks.items() if has(stack, "main", "usleep"))
    assert asleep > 500, stacks
    assert all(has(stack, "main") or has(stack, "rewrite") for stack in stacks), stacks
    assert "Python functions are not known in" in done.stderr, done.stderr


def test_a_build_without_a_gil(world):
    """The summary says so. Everything that is not Python's is shown as usual."""
    preload = "LD_PRELOAD=" + world.fixture("python-free_threaded.so")
    with ready("env", preload, world.fixture("sleepers-O2-omit"), 60) as target:
        done = world.attach(target, duration="500ms")
    assert "Python 3.13 without a GIL is not read" in done.stderr, done.stderr
    assert any(has(stack, "main") for stack in folded(done.stdout)), done.stdout


def test_two_interpreters_in_a_process(world):
    """The interpreter that can be read is shown, and the other one is reported."""
    for name, words in (("new", "Python 3.255 beside another one in its process is not read"),
                        ("free_threaded", "Python 3.13 beside another one in its process is not read")):
        load = "import ctypes, runpy, sys; ctypes.CDLL(sys.argv.pop(1)); runpy.run_path(sys.argv.pop(1))"
        with ready(interpreter("3.11"), "-c", load, world.fixture(f"python-{name}.so"), program(world, "sleepers"),
                   world.path("stacks")) as target:
            done = world.attach(target, duration="500ms")
        assert words in done.stderr, done.stderr
        assert any(has(stack, "Server.serve", "Server.handle", "sleep") for stack in folded(done.stdout)), done.stdout


def test_a_python_that_begins_and_ends(world):
    """From the first instruction to the last one, again and again; and one that waits at its end."""
    python = interpreter("3.11")
    loop = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {python} -c 'import json, threading'; done"
    done = world.fgprof("run", "--children", "-F", "499", "--", "sh", "-c", loop)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert any(has(stack, "_find_and_load") for stack in stacks), stacks
    source = "import atexit, time; atexit.register(time.sleep, 300); atexit.register(print, 'ready', flush=True)"
    with ready(python, "-c", source) as target:
        done = world.attach(target, duration="500ms")
    assert all(has(stack, "main") for stack in folded(done.stdout)), done.stdout
    assert "Python functions are not known in" not in done.stderr, done.stderr


@users_build
def test_the_gil_of_an_interpreter_that_begins_late(world):
    """From 3.12 on the lock is made with the interpreter, which is found before that."""
    source = ("import threading\ndef work():\n for _ in range(100000): sum(range(200))\n"
              "for _ in range(3): threading.Thread(target=work).start()")
    done = world.fgprof("run", "--state", "--", "env", "LD_PRELOAD=" + world.fixture("late.so"), interpreter("3.12"),
                        "-c", source)
    assert done.returncode == 0, done.stderr
    assert any(has(stack, "work") and stack[-1] == "[GIL]" for stack in folded(done.stdout)), done.stdout


def test_an_interpreter_without_sections(world):
    """As a tool that strips everything leaves it, without a table of symbols: it is not recognized, and shown
    like any program."""
    path = world.path("python")
    with open(interpreter("3.11"), "rb") as file:
        image = bytearray(file.read())
    image[0x28:0x30], image[0x3c:0x40] = bytes(8), bytes(4)  # where the sections are, and how many
    with open(path, "wb") as file:
        file.write(image)
    os.chmod(path, 0o755)
    with ready(path, program(world, "sleepers"), world.path("stacks")) as target:
        done = world.attach(target, duration="500ms")
    assert folded(done.stdout), done.stderr


def test_a_version_that_is_not_known(world):
    """The summary says so, and native stacks are shown."""
    with ready(interpreter("3.8"), program(world, "chains"), stdin=subprocess.PIPE) as target:
        done = world.attach(target, duration="500ms")
    assert "Python before 3.9 is not read" in done.stderr, done.stderr
    assert any(EVALUATION in stack for stack in folded(done.stdout)), done.stdout


def check_gil(world, version):
    """One of two threads that compute waits for the other, which is in Python code."""
    kept = world.path("gil.fgprof")
    with ready(interpreter(version), program(world, "chains"), stdin=subprocess.PIPE) as target:
        states = folded(world.attach(target, "--state").stdout)
        world.attach(target, "-o", kept)
    waits = {stack: count for stack, count in states.items() if stack[-1] == "[GIL]"}
    in_python = sum(count for stack, count in waits.items() if has(stack, "work"))
    assert in_python > 0.8 * sum(waits.values()) > 10, states
    report = world.fgprof("report", kept)
    assert re.search(r"\d s +GIL, of thread ", report.stdout), report.stdout
    holders = folded(world.fgprof("convert", kept, "--kind", "mutex", "-f", "folded").stdout)
    run = "run" if version == "3.9" else "Thread.run"
    in_python = sum(count for stack, count in holders.items() if has(stack, run, "work"))
    assert in_python > 0.5 * sum(holders.values()) > 0, holders


@users_build
def test_the_gil_has_an_owner_3_9(world):
    check_gil(world, "3.9")


@users_build
def test_the_gil_has_an_owner_3_11(world):
    check_gil(world, "3.11")


def check_lock(world, version):
    """Threads that wait for a lock are not idle, though one of Python's is a semaphore, as a queue's is."""
    need_record(world)
    kept = world.path("lock.fgprof")
    with ready(interpreter(version), program(world, "lock"), stdin=subprocess.PIPE) as target:
        world.attach(target, "-o", kept)
    report = json.loads(world.fgprof("report", "--json", kept).stdout)
    first = report["findings"][0]
    assert re.match(r"3 threads wait [\d.]+ s for a lock that take takes$", first["text"]), report["findings"]
    assert re.search("> take > (clock_nanosleep|select)$", first["detail"]), report["findings"]
    idle = [path["frames"] for path in report["idle"]["paths"]]
    assert any("Queue.get" in frames for frames in idle), idle
    assert not any("take" in frames for frames in idle), idle


@users_build
def test_a_lock_is_named_first_3_11(world):
    check_lock(world, "3.11")


@users_build
def test_a_lock_is_named_first_3_14(world):
    """Each thread waits for a semaphore of its own."""
    check_lock(world, "3.14")


def test_a_dump_shows_who_holds_the_gil(world):
    """Waits for it are short: usually the thread has moved when the dump is written."""
    with ready(interpreter("3.11"), program(world, "chains"), stdin=subprocess.PIPE) as target:
        for _ in range(40):
            text = world.fgprof("dump", "-p", target.pid).stdout
            waiting = re.search(r'^thread (\d+) .*\[futex, GIL, owner (\d+) ', text, re.M)
            if waiting:
                break
    threads = re.findall(r"^thread (\d+) ", text, re.M)
    assert waiting and waiting[1] != waiting[2] and waiting[2] in threads[1:], text


def test_a_server_of_a_program_that_goes_on(world):
    """A copy of what was counted so far has names, too, and so does the kept part."""
    source = program(world, "sleepers")
    with ready(interpreter("3.11"), source, world.path("stacks")) as target, \
            serving(world, "-p", target.pid, "--keep", "60s") as server:
        wait_for(lambda: "Server.handle" in server.text("/debug/fgprof?last=60s&format=folded"), "a sample")
        for path in ("/debug/fgprof?last=60s&format=folded", "/debug/fgprof?seconds=1&format=folded",
                     "/debug/fgprof?last=60s&format=folded"):
            stacks = folded(server.text(path))
            assert any(has(stack, "Server.serve", "Server.handle", "sleep") for stack in stacks), (path, stacks)
        assert int(re.search(r'fgprof_kept_bytes\{kind="runtime_frames"\} (\d+)', server.text("/metrics"))[1]) > 0


def dumped_tasks(text):
    """{name: (frames from the root on, those that await it)} of the tasks in a dump."""
    tasks = {}
    for paragraph in text.split("\n\n"):
        task = re.match(r'task "(.*)" \[(.*)\]:\n', paragraph)
        if task:
            frames = re.findall(r"^ +(.*) \(.*\.py:(\d+)\)$", paragraph, re.M)
            awaiters = re.search(r"^awaited by (.*)$", paragraph, re.M)
            names = sorted(re.findall(r'"(.*?)"', awaiters[1])) if awaiters else []
            tasks[task[1]] = [[name, int(line)] for name, line in reversed(frames)], names
    return tasks


def check_tasks(world, version):
    path = world.path("truth")
    with ready(interpreter(version), program(world, "tasks"), path, 0) as target:
        done = world.fgprof("dump", "-p", target.pid)
        grouped = world.fgprof("dump", "-p", target.pid, "--group").stdout
        parsed = json.loads(world.fgprof("dump", "-p", target.pid, "--json").stdout)
        sampled = world.attach(target, "--tasks")
        threads = folded(world.attach(target).stdout)
        by_name = folded(world.attach(target, "--tasks", "--label", "task").stdout)
    truth, tasks = json.load(open(path)), dumped_tasks(done.stdout)
    assert done.returncode == 0 and len(truth) == 11, (done.stderr, truth)
    assert f"1 thread, {len(truth) + 2} tasks" in done.stdout, done.stdout
    for name, known in truth.items():
        assert tasks[name][0] == known["frames"], (name, known, tasks)
        # Before 3.14 that is not known.
        assert tasks[name][1] == (known["awaited_by"] or []), (name, known, tasks)
    assert tasks["serving"][0][0][0] == "Shop.serve" and len(tasks["serving"][0]) == 4, tasks
    # Those of equal stacks are together.
    assert re.search(r'^5 @ .*\n(# task .*\n){5}', grouped, re.M) is not None, grouped
    assert {task["name"] for task in parsed["tasks"]} == set(truth) | {"Task-1", "busy"}, parsed
    # Each that waits counts at each tick.
    stacks = folded(sampled.stdout)
    serving = sum(count for stack, count in stacks.items() if stack == ("Shop.serve", "middle", "leaf", "Event.wait"))
    event_loop = sum(count for stack, count in threads.items())
    assert 0.8 * event_loop < serving < 1.2 * event_loop, (stacks, threads)
    assert "task-seconds" in sampled.stderr, sampled.stderr
    assert not any("Shop.serve" in stack for stack in threads), threads
    # Names that asyncio made are no labels.
    assert ("serving", "Shop.serve", "middle", "leaf", "Event.wait") in by_name, by_name
    assert "main" in {stack[0] for stack in by_name}, by_name


def test_tasks_3_11(world):
    check_tasks(world, "3.11")


def test_tasks_3_12(world):
    check_tasks(world, "3.12")


def test_tasks_3_13(world):
    check_tasks(world, "3.13")


def test_tasks_3_14(world):
    check_tasks(world, "3.14")


def test_tasks_3_15(world):
    check_tasks(world, "3.15")


def check_names_of_threads(world, version):
    with ready(interpreter(version), program(world, "named_threads")) as target:
        dump = world.fgprof("dump", "-p", target.pid).stdout
        text = world.attach(target, "-f", "text", duration="0.5s").stdout
    names = {"indexer of größe", "of a class", "renamed", "with a dictionary"}
    assert names | {"Thread-1 (work)"} <= set(re.findall(r'^thread \d+ "(.*?)" \[', dump, re.M)), dump
    # Without its number, as threads that come and go would be so many rows.
    assert names | {"Thread (work)"} <= set(re.findall('"thread":"(.*?)"', text)), text


def test_names_of_threads_3_11(world):
    check_names_of_threads(world, "3.11")


def test_names_of_threads_3_12(world):
    check_names_of_threads(world, "3.12")


def test_names_of_threads_3_13(world):
    check_names_of_threads(world, "3.13")


def test_the_time_of_tasks(world):
    """By the tasks' own clock; chance alone is about half a point."""
    with ready(interpreter("3.11"), program(world, "task_waits"), stdin=subprocess.PIPE) as target:
        before = chain_times(target)
        done = world.attach(target, "--tasks", "--label", "task", duration="8s")
        after = chain_times(target)
    truth = [end - begin for begin, end in zip(before, after)]
    stacks = folded(done.stdout)
    seen = [stacks["alternating", "alternate", name, "sleep"] for name in ("a", "b")]
    shown, known = (100 * times[0] / sum(times) for times in (seen, truth))
    assert abs(shown - known) < 3, (shown, known, stacks)
    # A task runs for little of the time.
    assert 0.95 * 50 * 8 * RATE < sum(seen) < 1.05 * 50 * 8 * RATE, stacks


def test_tasks_that_are_not_read(world):
    """There are none for selected threads, and there is no message about them without asyncio."""
    with ready(interpreter("3.11"), program(world, "tasks"), world.path("truth"), 0) as target:
        chosen = world.attach(target, "--tasks", "--thread", "python")
    with ready(interpreter("3.11"), program(world, "sleepers"), world.path("stacks")) as target:
        without = world.attach(target, "--tasks")
    assert "Shop.serve" not in chosen.stdout and "task" not in chosen.stderr, (chosen.stdout, chosen.stderr)
    assert "task" not in without.stderr, without.stderr

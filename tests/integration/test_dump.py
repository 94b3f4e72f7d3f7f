"""`dump`: every thread once, with what it waits for."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

from harness import (Skip, context_switches, status_field, threads_of, wait_for,
                     wait_until_asleep)
from test_stacks import gdb_stacks, plain


@contextlib.contextmanager
def locks(world):
    """The fixture, and {thread name: tid}."""
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        yield target, {open(f"/proc/{thread}/comm").read().strip(): int(thread.split("/")[-1])
                       for thread in threads_of(target.pid)}


def dump(world, *arguments):
    done = world.fgprof("dump", *arguments)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def headers(text):
    """{name: what stands in its brackets}"""
    found = dict(re.findall(r'^thread \d+ "(.*?)" \[(.*)\]:$', text, re.M))
    assert len(found) == len(re.findall("^thread ", text, re.M)), text
    return found


def test_what_threads_wait_for(world):
    with locks(world) as (target, tids):
        said = headers(dump(world, "-p", target.pid))
        main = f'{target.pid} "fixture-locks"'
    address = "0x[0-9a-f]+"
    expected = {
        "cycle-a": f'futex {address}, mutex, owner {tids["cycle-b"]} "cycle-b"',
        "cycle-b": f'futex {address}, mutex, owner {tids["cycle-a"]} "cycle-a"',
        "outside": f'futex {address}, mutex, owner {tids["cycle-a"]} "cycle-a"',
        "self": f'futex {address}, mutex, owner {tids["self"]} "self" itself',
        "orphan": rf"futex {address}, mutex, owner \d+ \(no thread of the process any more\)",
        "held": f"futex {address}, mutex, owner {main}",
        "robust": f"futex {address}, mutex, owner {main}",
        "inheriting": f"futex {address}, mutex, owner {main}",
        "timedlock": f"futex {address}, mutex, owner {main}, with a timeout",
        "rdlock": f"futex {address}, read-write lock, owner {main}",
        "wrlock": f"futex {address}, read-write lock, held by 1 reader",
        "condition": f"futex {address}, condition variable",
        "semaphore": f"futex {address}, semaphore",
        "join": f'futex {address}, end of a thread: {tids["held"]} "held"',
        "pipe": r"read fd \d+ pipe:\[\d+\]",
        "poll": r"poll fd \d+ pipe:\[\d+\] and 1 more",
        "epoll": r"epoll_wait fd \d+ anon_inode:\[eventpoll\]",
        "accept": r"accept fd \d+ socket:\[\d+\] tcp 127\.0\.0\.1:\d+ listening",
        "recv": r"recvfrom fd \d+ socket:\[\d+\] tcp 127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+",
        "flock": rf"flock fd \d+ {re.escape(world.path('locked'))}",
        "sleep": r"clock_nanosleep of 1234\.5 s",
        "fixture-locks": "clock_nanosleep",
    }
    assert set(said) == set(expected), said
    for name, pattern in expected.items():
        assert re.fullmatch(pattern, said[name]), (name, said[name])


def test_deadlocks(world):
    """Those of the two and of the one, and no other: not of who waits for them from outside."""
    with locks(world) as (target, tids):
        text = dump(world, "-p", target.pid)
        grouped = dump(world, "-p", target.pid, "--group")
        found = json.loads(dump(world, "-p", target.pid, "--json"))
    circles = sorted(sorted(circle) for circle in found["deadlocks"])
    assert circles == sorted([sorted([tids["cycle-a"], tids["cycle-b"]]), [tids["self"]]]), found
    marked = {thread["tid"] for thread in found["threads"] if "deadlock" in thread}
    assert marked == {tids[name] for name in ("cycle-a", "cycle-b", "self")}
    for output, prefix in (text, ""), (grouped, "# "):
        lines = output.splitlines()
        assert lines.count(prefix + "deadlock: 2 threads wait for each other") == 1, output
        assert lines.count(prefix + "deadlock: a thread waits for itself") == 1, output
        assert re.search(rf'^{prefix}\tthread {tids["cycle-a"]} "cycle-a" waits for mutex '
                         rf'0x[0-9a-f]+, held by {tids["cycle-b"]} "cycle-b"$', output, re.M)


def test_sleepers_are_not_woken(world):
    with locks(world) as (target, _):
        before = context_switches(target.pid)
        for option in (), ("--group",), ("--json",):
            dump(world, "-p", target.pid, *option)
        assert context_switches(target.pid) == before


def test_running_threads(world):
    with world.running("workers", 30, 2, 1) as target:
        threads = json.loads(dump(world, "-p", target.pid, "--json"))["threads"]
    assert len(threads) == 4
    spinning = [thread for thread in threads
                if "in_spin" in [frame.get("function") for frame in thread["frames"]]]
    assert len(spinning) == 2, threads
    for thread in spinning:
        assert thread["state"] in ("running", "runnable") and "futex" not in thread, thread


def test_groups(world):
    with world.running("workers", 30, 0, 50) as target:
        wait_until_asleep(target.pid)
        text = dump(world, "-p", target.pid, "-g")
    counts = [int(count) for count in re.findall(r"^(\d+) @( 0x[0-9a-f]+)+$", text, re.M)
              for count in count[:1]]
    assert text.startswith("thread profile: total 51\n") and counts == [50, 1], text
    assert len(re.findall("^# thread ", text, re.M)) == 51
    assert re.search(r"^#\t0x[0-9a-f]+\tin_sleep\+0x[0-9a-f]+\t+\S+/workers\.c:\d+$", text, re.M)
    if shutil.which("go"):
        path = world.path("threads.txt")
        open(path, "w").write(text)
        top = subprocess.run(["go", "tool", "pprof", "-top", path], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=60).stdout
        assert "of 51 total" in top, top


def test_a_dump_of_several_processes(world):
    with world.running("states", 30) as one, world.running("states", 30) as two:
        text = dump(world, "-p", f"{one.pid},{two.pid}")
        threads = json.loads(dump(world, "-p", one.pid, "-p", two.pid, "--json"))["threads"]
    for pid in one.pid, two.pid:
        assert re.search(rf"^process {pid}: \d threads$", text, re.M), text
        assert {thread["tid"] for thread in threads if thread["pid"] == pid} >= {pid}
    assert {thread["pid"] for thread in threads} == {one.pid, two.pid}


def test_dump_agrees_with_gdb(world):
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    with locks(world) as (target, _):
        threads = json.loads(dump(world, "-p", target.pid, "--json"))["threads"]
        judge = gdb_stacks(target.pid)
    assert len(judge) == len(threads)
    for thread in threads:
        # gdb also shows calls that left no frame, tail calls and inlined ones, and ends at main.
        names = [plain(frame["function"]) for frame in thread["frames"]
                 if not frame.get("inlined")]
        wanted = [plain(name) for name in judge[thread["tid"]]]
        if "main" in names:
            names = names[:names.index("main") + 1]
        shown = iter(wanted)
        assert all(name in shown for name in names) and len(names) >= 3, (names, wanted)
        assert names[-3:] == wanted[-3:], (names, wanted)


def test_in_another_pid_namespace(world):
    """An owner's id is that of the namespace, and is told as ours."""
    try:
        inside = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", world.fixture("locks"), "60",
             world.path("locked-inside")], stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise Skip("no unshare")
    try:
        if inside.stdout.readline() != "ready\n":
            raise Skip("no PID namespace may be made")
        pid = int(open(f"/proc/{inside.pid}/task/{inside.pid}/children").read())
        wait_until_asleep(pid)
        tids = {open(f"/proc/{thread}/comm").read().strip(): int(thread.split("/")[-1])
                for thread in threads_of(pid)}
        assert status_field(pid, "NSpid").split()[-1] == "1"
        found = json.loads(dump(world, "-p", pid, "--json"))
    finally:
        inside.send_signal(signal.SIGKILL)
        inside.wait()
        inside.stdout.close()
    owners = {thread["name"]: thread.get("owner") for thread in found["threads"]}
    assert owners["cycle-a"] == tids["cycle-b"] and owners["held"] == pid, owners
    assert len(found["deadlocks"]) == 2, found["deadlocks"]


def test_the_command_line_of_dump(world):
    for arguments, text in (((), "dump -p PID"), (("-p", "x"), "process id"),
                            (("-p", "1", "--group", "--json"), "exclude"),
                            (("-p", "1", "--max-depth", "0"), "depth"),
                            (("-p", "1", "more"), "argument")):
        done = world.fgprof("dump", *arguments)
        assert done.returncode == 2 and text in done.stderr and not done.stdout, done.stderr
    done = world.fgprof("dump", "-p", os.getpid() + 10000000)
    assert done.returncode == 1 and done.stderr and not done.stdout


def test_a_dump_into_a_file(world):
    path = world.path("dump.txt")
    with world.running("states", 30) as target:
        assert dump(world, "-p", target.pid, "-o", path, "--max-depth", 1) == ""
        text = open(path).read()
        assert text.count("[truncated: max depth]") == len(headers(text)) == len(
            threads_of(target.pid)), text
        wait_for(lambda: status_field(target.pid, "TracerPid") == "0", "its release")


def test_a_dump_of_chosen_threads(world):
    with locks(world) as (target, tids):
        assert set(headers(dump(world, "-p", target.pid, "--thread", "^cycle-"))) == {
            "cycle-a", "cycle-b"}
        chosen = dump(world, "-p", target.pid, "--tid", f"{tids['poll']},{tids['pipe']}")
        assert set(headers(chosen)) == {"poll", "pipe"}, chosen
        done = world.fgprof("dump", "-p", target.pid, "--tid", os.getpid())
        assert done.returncode == 1 and f"no thread {os.getpid()}" in done.stderr, done


def test_a_dump_of_processes_by_name_and_of_their_children(world):
    name = f"fgdu{os.getpid() % 100000}"
    program = world.path(name)
    os.symlink("/bin/sh", program)
    with subprocess.Popen([program, "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE,
                          text=True) as target:
        child = int(target.stdout.readline())
        try:
            wait_for(lambda: open(f"/proc/{child}/comm").read() == "sleep\n", "the child's program")
            wait_until_asleep(target.pid, child)
            alone = dump(world, "--pgrep", f"^{name}$")
            assert re.findall(r"^process (\d+)", alone, re.M) == [str(target.pid)], alone
            both = dump(world, "--pgrep", f"^{name}$", "--children")
            assert re.findall(r"^process (\d+)", both, re.M) == [str(target.pid), str(child)], both
            done = world.fgprof("dump", "--pgrep", name + "no")
            assert done.returncode == 1 and "no process's name matches" in done.stderr, done
        finally:
            os.kill(child, signal.SIGKILL)
            target.kill()

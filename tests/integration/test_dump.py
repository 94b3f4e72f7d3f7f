"""`dump`: every thread once, with what it waits for."""

import contextlib
import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

from harness import (Skip, alone, children_of, context_switches, need, ready, status_field, threads_of,
                     tool, wait_for, wait_until_asleep)
from servers import free_port, redis, serving
from test_capture import die_of_events, need_kernel_samples, refuse_events, refuse_stops
from test_stacks import gdb_stacks, plain


# Under load, a thread that would run is not on a CPU for a while.
DUMPS_MAX = 100


@contextlib.contextmanager
def locks(world):
    """The fixture, and {thread name: tid}."""
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        yield target, {open(f"/proc/{thread}/comm").read().strip(): int(thread.split("/")[-1])
                       for thread in threads_of(target.pid)}


def dump(world, *arguments, **options):
    done = world.fgprof("dump", *arguments, **options)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


STRING, NUMBER, HEX, IS_TRUE = "string", "number", "hex", "true"
FRAME_KEYS = {"address": HEX, "module": STRING, "module_address": HEX, "function": STRING,
              "note": STRING, "file": STRING, "line": NUMBER, "offset": NUMBER, "inlined": IS_TRUE,
              "kernel": IS_TRUE}
THREAD_KEYS = {"pid": NUMBER, "tid": NUMBER, "name": STRING, "state": STRING, "evidence": STRING,
               "syscall": STRING, "wait_channel": STRING, "futex": HEX, "lock": STRING, "owner": NUMBER,
               "owner_gone": NUMBER, "readers": NUMBER, "timeout": IS_TRUE, "fd": NUMBER,
               "file": STRING, "fds": NUMBER, "sleep_ns": NUMBER, "polled_fd": NUMBER,
               "polled_file": STRING, "resource": STRING, "resource_name": STRING,
               "owner_process": NUMBER, "owner_process_name": STRING,
               "deadlock": NUMBER, "made_by": STRING, "made_in": STRING, "began_in": STRING}
STATES = {"running", "runnable", "sleeping", "uninterruptible", "stopped", "unknown"}
EVIDENCE = {"asleep", "sampled", "stopped", "waiting", None}


def check_object(item, keys):
    """The object has exactly these keys, each with a value of its kind."""
    kinds = {STRING: lambda value: isinstance(value, str),
             NUMBER: lambda value: type(value) is int and value >= 0,
             HEX: lambda value: re.fullmatch("0x[0-9a-f]+", value),
             IS_TRUE: lambda value: value is True}
    for key, value in item.items():
        assert key in keys and kinds[keys[key]](value), (key, item)


def dump_json(world, *arguments, **options):
    """The dump as JSON, checked for its form."""
    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), f"a key twice: {pairs}"
        return dict(pairs)

    text = dump(world, *arguments, "--json", **options)
    document = json.loads(text, object_pairs_hook=once)
    assert set(document) == {"threads", "deadlocks"}, set(document)
    for thread in document["threads"]:
        check_object({key: value for key, value in thread.items() if key != "frames"}, THREAD_KEYS)
        assert {"pid", "tid", "name", "state", "frames"} <= set(thread), thread
        assert thread["state"] in STATES and len(thread["frames"]) > 0, thread
        assert thread.get("evidence") in EVIDENCE, thread
        for frame in thread["frames"]:
            check_object(frame, FRAME_KEYS)
            assert frame, thread
    tids = {thread["tid"]: thread for thread in document["threads"]}
    assert len(tids) == len(document["threads"]), "a thread twice"
    for number, circle in enumerate(document["deadlocks"], 1):
        for tid, following in zip(circle, circle[1:] + circle[:1]):
            assert tids[tid]["deadlock"] == number and tids[tid]["owner"] == following, document
    return document


def headers_of_all(text):
    return re.findall(r'^thread \d+ ".*?" \[.*\]:$', text, re.M)


def headers(text):
    """{name: what its brackets contain}"""
    found = dict(re.findall(r'^thread \d+ "(.*?)" \[(.*)\]:$', text, re.M))
    assert len(found) == len(re.findall("^thread ", text, re.M)), text
    return found


def test_what_threads_wait_for(world):
    with locks(world) as (target, tids):
        said = headers(dump(world, "-p", target.pid))
        main = f'{target.pid} "fixture-locks"'
        with_addresses = dump(world, "-p", target.pid, "--addresses")
    assert re.fullmatch("futex 0x[0-9a-f]+, mutex second, owner .*",
                        headers(with_addresses)["cycle-a"]), with_addresses
    assert re.search(r"^    0x[0-9a-f]+ \w+\+0x[0-9a-f]+ \(\S+/locks\.c:\d+\)$", with_addresses, re.M)
    expected = {
        "cycle-a": f'futex, mutex second, owner {tids["cycle-b"]} "cycle-b"',
        "cycle-b": f'futex, mutex first, owner {tids["cycle-a"]} "cycle-a"',
        "outside": f'futex, mutex first, owner {tids["cycle-a"]} "cycle-a"',
        "self": f'futex, mutex own, owner {tids["self"]} "self" itself',
        "orphan": rf"futex, mutex orphan, owner \d+ \(no longer a thread of the process\)",
        "held": f"futex, mutex held, owner {main}",
        "robust": f"futex, mutex robust, owner {main}",
        "inheriting": f"futex, mutex inheriting, owner {main}",
        "timedlock": f"futex, mutex held, owner {main}, with a timeout",
        "rdlock": f"futex, read-write lock written, owner {main}",
        "wrlock": "futex, read-write lock read_by_main, held by 1 reader",
        "condition": r"futex, condition variable condition\+0x[0-9a-f]+",
        "semaphore": "futex, semaphore semaphore",
        "join": f'futex, end of a thread: {tids["held"]} "held"',
        "pipe": r"read fd \d+ pipe:\[\d+\], other end in its own process",
        "poll": r"p?poll fd \d+ pipe:\[\d+\] and 1 more",
        "poll-ignored": "p?poll of no fd",
        "epoll": r"epoll_p?wait fd \d+ anon_inode:\[eventpoll\] of no fd",
        "accept": r"accept fd \d+ socket:\[\d+\] tcp 127\.0\.0\.1:\d+ listening",
        "recv": r"recvfrom fd \d+ socket:\[\d+\] tcp 127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+",
        "flock": rf"flock fd \d+ {re.escape(world.path('locked'))}, held by its own process",
        "sleep": r"clock_nanosleep of 1234\.5 s",
        "fixture-locks": "clock_nanosleep",
    }
    if os.uname().machine == "aarch64":
        # These wait in a function that keeps its return address in a register: see docs/limits.md.
        expected |= {"timedlock": "futex held, with a timeout", "rdlock": r"futex written\+0x8",
                     "wrlock": r"futex read_by_main\+0x8"}
    assert set(said) == set(expected), said
    for name, pattern in expected.items():
        assert re.fullmatch(pattern, said[name]), (name, said[name])


IPC = """
import ctypes, struct, sys, threading
libc = ctypes.CDLL(None)
queue, semaphores = [(libc.msgget(0, 0o600), libc.semget(0, 1, 0o600)) for _ in range(3)][-1]
def receive():
    libc.msgrcv(queue, ctypes.create_string_buffer(16), 8, 0, 0)
def acquire():
    libc.semop(semaphores, struct.pack("Hhh", 0, -1, 0), 1)
for function in receive, acquire:
    threading.Thread(target=function, daemon=True).start()
with open(sys.argv[1], "w") as file:
    print(queue, semaphores, file=file)
print("ready", flush=True)
threading.Event().wait(60)
"""


def test_ipc_of_system_v(world):
    """The dump has the number that ipcs(1) shows. The objects go away with their namespace."""
    path = world.path("ids")
    if subprocess.run(["unshare", "--ipc", "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no IPC namespace may be made")
    with ready("unshare", "--ipc", sys.executable, "-c", IPC, path) as target:
        wait_until_asleep(target.pid)
        queue, semaphores = map(int, open(path).read().split())
        text = dump(world, "-p", target.pid)
        report = world.attach(target, "-f", "text", duration="200ms").stdout
    assert queue and semaphores
    for call, name in (("msgrcv", f"System V message queue {queue}"),
                       (r"semop|semtimedop", f"System V semaphores {semaphores}")):
        assert re.search(rf"^thread .* \[({call}) of {name}\]:$", text, re.M), text
        assert f'"resource":"{name}"' in report, report


def test_deadlocks(world):
    """The deadlock of two threads and that of one, and no others: threads that wait for them from outside are
    in none."""
    with locks(world) as (target, tids):
        text = dump(world, "-p", target.pid)
        grouped = dump(world, "-p", target.pid, "--group")
        found = dump_json(world, "-p", target.pid)
    circles = sorted(sorted(circle) for circle in found["deadlocks"])
    assert circles == sorted([sorted([tids["cycle-a"], tids["cycle-b"]]), [tids["self"]]]), found
    marked = {thread["tid"] for thread in found["threads"] if "deadlock" in thread}
    assert marked == {tids[name] for name in ("cycle-a", "cycle-b", "self")}
    for output, prefix in (text, ""), (grouped, "# "):
        lines = output.splitlines()
        assert lines.count(prefix + "deadlock: 2 threads wait for each other") == 1, output
        assert lines.count(prefix + "deadlock: a thread waits for itself") == 1, output
        assert re.search(rf'^{prefix}\tthread {tids["cycle-a"]} "cycle-a" waits for mutex '
                         rf'second, held by {tids["cycle-b"]} "cycle-b"$', output, re.M)


@contextlib.contextmanager
def owners(world):
    """The fixture, and the id of the other process that its threads wait for."""
    directory = world.path("owners")
    os.mkdir(directory)
    try:
        with world.running("owners", 60, directory) as target:
            (other,) = children_of(target.pid)
            wait_until_asleep(target.pid, other)
            yield target.pid, other
    finally:
        shutil.rmtree(directory)


# {what a thread of the fixture waits for: (the kind of it, its owner)}, where an owner is the name of a
# thread, or OTHER for the other process.
OTHER = object()
OWNERS = {
    "outer": ("mutex", "holder"), "middle": ("mutex", "holder"), "inner": ("mutex", "holder"),
    "chain": ("mutex", "link-0"), "link-0": ("mutex", "link-1"), "link-1": ("mutex", "link-2"),
    "rwlock": ("read-write lock", "holder"), "join": ("end of a thread", "holder"),
    "shared": ("mutex", OTHER), "child": ("process", OTHER), "any-child": ("process", OTHER),
    "pipe": ("pipe", OTHER), "full-pipe": ("pipe", OTHER), "fifo": ("FIFO", OTHER),
    "unix": ("unix socket", OTHER), "tcp": ("tcp socket", OTHER), "flock": ("file lock", OTHER),
    "fcntl": ("file lock", OTHER), "poll": ("pipe", OTHER), "select": ("tcp socket", OTHER),
    "epoll": ("unix socket", OTHER),
    "holder": ("signal", None), "link-2": ("signal", None), "fixture-owners": ("sleep", None),
}


def test_owners(world):
    with owners(world) as (pid, other):
        found = dump_json(world, "-p", pid, "-p", other)
        said = headers(dump(world, "-p", f"{pid},{other}"))
    threads = {thread["name"]: thread for thread in found["threads"] if thread["pid"] == pid}
    assert set(threads) == set(OWNERS), set(threads) ^ set(OWNERS)
    for name, (kind, owner) in OWNERS.items():
        thread = threads[name]
        process = other if owner is OTHER else pid if owner else None
        assert thread["resource"] == kind, thread
        assert thread.get("owner_process") == process, (name, process, thread)
        if owner not in (None, OTHER):
            assert thread["owner"] == threads[owner]["tid"], thread
    assert threads["shared"]["owner"] == other, threads["shared"]
    assert found["deadlocks"] == [], found["deadlocks"]
    of_other = f'process {other} "the-other"'
    for name, pattern in {
        "any-child": f"wait4 for {of_other}",
        "pipe": rf"read fd \d+ pipe:\[\d+\], other end in {of_other}",
        "flock": rf"flock fd \d+ {re.escape(world.path('owners/locked'))}, held by {of_other}",
        "epoll": rf"epoll_p?wait fd \d+ anon_inode:\[eventpoll\] of fd \d+ socket:\[\d+\] unix stream, "
                 f"other end in {of_other}",
        "shared": rf'futex, mutex \S+, owner {other} "the-other"',
    }.items():
        assert re.fullmatch(pattern, said[name]), (name, said[name])


def test_equal_resources_have_equal_names(world):
    with owners(world) as (pid, _):
        threads = {thread["name"]: thread for thread in dump_json(world, "-p", pid)["threads"]}
    names = {name: thread["resource_name"] for name, thread in threads.items()}
    assert names["child"] == names["any-child"] == f"process {threads['child']['owner_process']}"
    assert names["poll"] == names["pipe"] and names["select"] == names["tcp"], names
    assert names["epoll"] == names["unix"], names
    assert names["join"] == f"thread {threads['holder']['tid']}", names
    assert len({names[name] for name in ("outer", "middle", "inner", "chain")}) == 4, names


def test_owners_that_are_not_dumped(world):
    """Only the holder of a file lock and a child are known then; nothing is guessed."""
    with owners(world) as (pid, other):
        before = context_switches(pid)
        threads = {thread["name"]: thread for thread in dump_json(world, "-p", pid)["threads"]}
        assert context_switches(pid) == before
    known = {name for name, thread in threads.items() if thread.get("owner_process") == other}
    assert known == {"child", "any-child", "flock", "fcntl"}, known
    for name, (_, owner) in OWNERS.items():
        assert owner is not OTHER or name in known or "owner_process" not in threads[name], name


def test_owners_in_another_pid_namespace(world):
    """The ids in the arguments and the words are those of the namespace."""
    directory = world.path("owners-inside")
    os.mkdir(directory)
    inside = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", world.fixture("owners"), "60", directory],
        stdout=subprocess.PIPE, text=True)
    try:
        if inside.stdout.readline() != "ready\n":
            raise Skip("no PID namespace may be made")
        (pid,) = children_of(inside.pid)
        (other,) = children_of(pid)
        wait_until_asleep(pid, other)
        found = dump_json(world, "-p", pid, "-p", other)
    finally:
        inside.send_signal(signal.SIGKILL)
        inside.wait()
        inside.stdout.close()
    threads = {thread["name"]: thread for thread in found["threads"] if thread["pid"] == pid}
    for name, (_, owner) in OWNERS.items():
        # By an id alone, a thread of another process can't be told in a namespace that is not ours.
        expected = None if name == "shared" else other if owner is OTHER else pid if owner else None
        assert threads[name].get("owner_process") == expected, threads[name]


def functions(thread):
    return [frame.get("function", "") for frame in thread["frames"]]


def test_a_deadlock_of_three_and_who_waits_for_it(world):
    with world.running("ring", 60, 3, 1) as target:
        wait_until_asleep(target.pid)
        found = dump_json(world, "-p", target.pid)
        text = dump(world, "-p", target.pid)
    threads = {thread["name"]: thread for thread in found["threads"]}
    ring = [threads[f"ring-{i}"]["tid"] for i in range(3)]
    assert len(found["deadlocks"]) == 1, found["deadlocks"]
    at = found["deadlocks"][0].index(ring[0])
    assert found["deadlocks"][0][at:] + found["deadlocks"][0][:at] == ring, found["deadlocks"]
    assert threads["outside"]["owner"] == ring[0] and "deadlock" not in threads["outside"]
    lines = text.splitlines()
    assert lines[0] == "deadlock: 3 threads wait for each other" and lines[4] == "", lines[:5]
    assert sorted(re.findall(r'"(.*?)" waits for mutex \S+, held by \d+ "(.*?)"',
                             "\n".join(lines[1:4]))) == [
        ("ring-0", "ring-1"), ("ring-1", "ring-2"), ("ring-2", "ring-0")], lines[:5]
    assert text.count("deadlock") == 1, text


def cpu_of_a_dump(world, thread_count):
    """The CPU time that the profiler used, in seconds: the minimum of three."""
    used = []
    with world.running("ring", 400, 3, thread_count - 4) as target:
        wait_until_asleep(target.pid)
        before = context_switches(target.pid)
        for _ in range(3):
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = headers_of_all(dump(world, "-p", target.pid))
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert len(said) == thread_count, len(said)
            used.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
        assert context_switches(target.pid) == before
    return min(used)


def test_many_threads(world):
    """Ten times as many threads cost about ten times as much, and all of them are there."""
    few, many = cpu_of_a_dump(world, 200), cpu_of_a_dump(world, 2000)
    assert many < 25 * few, (few, many)


def test_sleepers_are_not_woken(world):
    with locks(world) as (target, _):
        before = context_switches(target.pid)
        for option in (), ("--group",), ("--json",):
            dump(world, "-p", target.pid, *option)
        assert context_switches(target.pid) == before


def sampled_dump(world, target, name, *arguments, **options):
    """A dump in which the kernel sampled the thread with this name, as it does unless the thread waits long
    for a CPU. Returns the threads by name."""
    for _ in range(DUMPS_MAX):
        found = dump_json(world, "-p", target.pid, *arguments, **options)["threads"]
        threads = {thread["name"]: thread for thread in found}
        if threads[name].get("evidence") == "sampled":
            return threads
    raise AssertionError(f"never sampled: {threads[name]}")


def test_a_running_thread_is_sampled_without_a_stop(world):
    """Even if it may not be stopped at all. It is listed once, and waits for nothing."""
    need_kernel_samples(world)
    with world.running("states", 120) as target:
        threads = sampled_dump(world, target, "spinning", preexec_fn=refuse_stops)
        thread = threads.pop("spinning")
        assert thread["state"] == "running" and "syscall" not in thread, thread
        assert "in_spin" in functions(thread) and "note" not in thread["frames"][-1], thread
        assert {thread["evidence"] for thread in threads.values()} == {"asleep"}, threads
        refused = dump_json(world, "-p", target.pid, "--capture=ptrace", preexec_fn=refuse_stops)
    (thread,) = [thread for thread in refused["threads"] if thread["name"] == "spinning"]
    assert "evidence" not in thread and "in_spin" not in functions(thread), thread


def test_a_dump_with_an_event_for_each_thread(world):
    need_kernel_samples(world)
    with world.running("states", 120) as target:
        threads = sampled_dump(world, target, "spinning", preexec_fn=lambda: refuse_events(
            errno.EACCES, only_of_cpus=True))
    assert "in_spin" in functions(threads["spinning"]), threads


def test_a_running_thread_is_stopped_if_asked_or_if_it_must_be(world):
    def check(*arguments, **options):
        found = dump_json(world, "-p", target.pid, *arguments, **options)["threads"]
        threads = {thread["name"]: thread for thread in found}
        assert threads["spinning"]["evidence"] == "stopped", threads
        assert "in_spin" in functions(threads["spinning"]), threads
        said = headers(dump(world, "-p", target.pid, *arguments, **options))
        assert said["spinning"] in ("running, paused", "runnable, paused"), said
        assert [text for text in said.values() if "paused" in text] == [said["spinning"]], said
    with world.running("states", 120) as target:
        check("--capture=ptrace")
        check(preexec_fn=lambda: refuse_events(errno.EACCES))
        done = world.fgprof("dump", "-p", target.pid, "--capture=kernel",
                            preexec_fn=lambda: refuse_events(errno.EACCES))
        assert done.returncode == 1 and not done.stdout, done
        assert "the kernel does not permit sampling running threads" in done.stderr, done.stderr


def test_a_dump_of_sleepers_opens_no_event(world):
    """Sleepers need no event, so the dump spends no time on one."""
    with locks(world) as (target, tids):
        found = dump_json(world, "-p", target.pid, preexec_fn=die_of_events)
        assert {thread["tid"] for thread in found["threads"]} == {target.pid, *tids.values()}
    with world.running("states", 30) as target:
        done = world.fgprof("dump", "-p", target.pid, preexec_fn=die_of_events)
        assert done.returncode == -signal.SIGSYS, done


def test_deep_stacks_of_running_threads(world):
    """The kernel's largest sample, of 63 KiB, has room for the first stack, and not for the second."""
    need_kernel_samples(world)

    def check(thread, calls):
        assert functions(thread).count("recurse") == calls + 1, functions(thread)
        assert "main" in functions(thread), functions(thread)
    deepest = "--max-depth", 100000
    with world.running("deep", 120, 2000, "computing") as target:
        check(sampled_dump(world, target, "fixture-deep", *deepest)["fixture-deep"], 2000)
    with world.running("deep", 120, 20000, "computing") as target:
        (thread,) = dump_json(world, "-p", target.pid, *deepest)["threads"]
    assert thread["evidence"] == "stopped", thread
    check(thread, 20000)


def test_running_threads(world):
    with world.running("workers", 30, 2, 1) as target:
        threads = dump_json(world, "-p", target.pid)["threads"]
    assert len(threads) == 4
    spinning = [thread for thread in threads
                if "in_spin" in [frame.get("function") for frame in thread["frames"]]]
    assert len(spinning) == 2, threads
    for thread in spinning:
        assert thread["state"] in ("running", "runnable") and "futex" not in thread, thread


@alone
def test_many_that_want_one_cpu(world):
    """Each thread is there with its stack, which can be read when its turn comes."""
    with world.running("workers", 120, 100, 0) as target:
        for thread in threads_of(target.pid):
            os.sched_setaffinity(int(thread.split("/")[-1]), {min(os.sched_getaffinity(0))})
        threads = dump_json(world, "-p", target.pid)["threads"]
    assert len(threads) == 101
    for thread in threads:
        assert thread["tid"] == target.pid or "in_spin" in functions(thread), thread
        assert (thread["evidence"] == "asleep") == (thread["tid"] == target.pid), thread


def test_groups(world):
    with world.running("workers", 30, 0, 50) as target:
        wait_until_asleep(target.pid)
        text = dump(world, "-p", target.pid, "-g")
    counts = [int(count) for count in re.findall(r"^(\d+) @( 0x[0-9a-f]+)+$", text, re.M)
              for count in count[:1]]
    assert text.startswith("thread profile: total 51\n") and counts == [50, 1], text
    assert len(re.findall("^# thread ", text, re.M)) == 51
    assert re.search(r"^#\t0x[0-9a-f]+\tin_sleep\+0x[0-9a-f]+\t+\S+/workers\.c:\d+$", text, re.M)
    path = world.path("threads.txt")
    open(path, "w").write(text)
    assert "of 51 total" in tool("go", "tool", "pprof", "-top", path)


def test_a_dump_of_several_processes(world):
    with world.running("states", 30) as one, world.running("states", 30) as two:
        text = dump(world, "-p", f"{one.pid},{two.pid}")
        threads = dump_json(world, "-p", one.pid, "-p", two.pid)["threads"]
    for pid in one.pid, two.pid:
        assert re.search(rf"^process {pid}: \d threads$", text, re.M), text
        assert {thread["tid"] for thread in threads if thread["pid"] == pid} >= {pid}
    assert {thread["pid"] for thread in threads} == {one.pid, two.pid}


def test_dump_agrees_with_gdb(world):
    need("gdb")
    with locks(world) as (target, _):
        threads = dump_json(world, "-p", target.pid)["threads"]
        judge = gdb_stacks(target.pid)
    assert len(judge) == len(threads)
    for thread in threads:
        # gdb also shows calls that left no frame, tail calls and inlined ones, and ends at main.
        names = [plain(frame["function"]) for frame in thread["frames"]
                 if "function" in frame and not frame.get("inlined")]
        wanted = [plain(name) for name in judge[thread["tid"]]]
        if "main" in names:
            names = names[:names.index("main") + 1]
        shown = iter(wanted)
        assert all(name in shown for name in names), (names, wanted)
        if os.uname().machine == "aarch64" and any("truncated" in frame.get("note", "") for frame in thread["frames"]):
            continue
        assert len(names) >= 3, (names, wanted)
        assert names[-3:] == wanted[-3:], (names, wanted)


def test_in_another_pid_namespace(world):
    """An owner's id is that of the namespace, and is reported as ours."""
    inside = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", world.fixture("locks"), "60",
         world.path("locked-inside")], stdout=subprocess.PIPE, text=True)
    try:
        if inside.stdout.readline() != "ready\n":
            raise Skip("no PID namespace may be made")
        (pid,) = children_of(inside.pid)
        wait_until_asleep(pid)
        tids = {open(f"/proc/{thread}/comm").read().strip(): int(thread.split("/")[-1])
                for thread in threads_of(pid)}
        assert status_field(pid, "NSpid").split()[-1] == "1"
        found = dump_json(world, "-p", pid)
    finally:
        inside.send_signal(signal.SIGKILL)
        inside.wait()
        inside.stdout.close()
    owners = {thread["name"]: thread.get("owner") for thread in found["threads"]}
    assert owners["cycle-a"] == tids["cycle-b"] and owners["held"] == pid, owners
    assert len(found["deadlocks"]) == 2, found["deadlocks"]


def test_the_command_line_of_dump(world):
    for arguments, text in (((), "give its name or id, as in dump redis-server"), (("-p", "x"), "process id"),
                            (("-p", "1", "--group", "--json"), "combined"),
                            (("-p", "1", "--max-depth", "0"), "depth")):
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
            # Ordered by id; the child's id may be the lower one.
            assert re.findall(r"^process (\d+)", both, re.M) == [
                str(pid) for pid in sorted((target.pid, child))], both
            done = world.fgprof("dump", "--pgrep", name + "no")
            assert done.returncode == 1 and "no process's name matches" in done.stderr, done
        finally:
            os.kill(child, signal.SIGKILL)
            target.kill()


def test_a_dump_of_node(world):
    """Compiled code is named from its perf map; its event loop waits for its descriptor."""
    need("node")
    script = world.path("busy.js")
    with open(script, "w") as file:
        file.write("""
            function busyNamedFunction(n) {
                let sum = 0;
                for (let i = 0; i < n; i++) sum += Math.sqrt(i) % 7;
                return sum;
            }
            let rounds = 0, isIdle = false;
            function goOn() {
                busyNamedFunction(5000000);
                if (++rounds == 10) console.log('ready');
                if (!isIdle) setImmediate(goOn);
            }
            process.stdin.once('data', () => { isIdle = true; console.log('idle'); });
            setTimeout(() => process.exit(), 200000);
            goOn();
            """)
    target = subprocess.Popen(["node", "--perf-basic-prof", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, cwd=world.directory)

    def main_of(dumped):
        return next(thread for thread in dumped["threads"] if thread["tid"] == target.pid)

    def jit_frame(dumped):
        return next((frame for frame in main_of(dumped)["frames"]
                     if "busyNamedFunction" in frame.get("function", "")), None)
    try:
        assert target.stdout.readline() == "ready\n"
        # It is elsewhere for a moment between two rounds.
        busy = next(filter(jit_frame, (dump_json(world, "-p", target.pid) for _ in range(10))))
        text = next(filter(lambda text: "busyNamedFunction" in text,
                           (dump(world, "-p", target.pid) for _ in range(10))))
        target.stdin.write("enough\n")
        target.stdin.flush()
        assert target.stdout.readline() == "idle\n"
        wait_until_asleep(target.pid)
        # Timers wake it now and then.
        idle = next(filter(lambda dumped: "file" in main_of(dumped),
                           (dump_json(world, "-p", target.pid) for _ in range(10))))
    finally:
        target.kill()
        target.communicate()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/tmp/perf-{target.pid}.map")
    main = main_of(busy)
    assert main["state"] in ("running", "runnable"), main
    assert jit_frame(busy)["module"] == "[jit]" and "node::Start" in functions(main), main
    assert re.search(r"busyNamedFunction .* \(\[jit\]\)\n", text), text
    main = main_of(idle)
    assert main["file"] == "anon_inode:[eventpoll]" and "epoll" in main["syscall"], main
    assert "uv_run" in functions(main), main
    for thread in busy["threads"] + idle["threads"]:
        assert "note" not in thread["frames"][-1], thread


def test_a_dump_of_python(world):
    """A dump with a thread that waits for a lock, one that waits for a connection, and one in a sleep."""
    script = ("import socket, sys, threading, time\n"
              "lock, (one, two) = threading.Lock(), socket.socketpair()\n"
              "lock.acquire()\n"
              "for wait in lock.acquire, lambda: one.recv(1), lambda: time.sleep(60):\n"
              "    threading.Thread(target=wait, daemon=True).start()\n"
              "print(one.fileno(), flush=True)\n"
              "sys.stdin.read()\n")
    target = subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        fd = int(target.stdout.readline())
        wait_until_asleep(target.pid)
        before = context_switches(target.pid)
        threads = dump_json(world, "-p", target.pid)["threads"]
        said = headers_of_all(dump(world, "-p", target.pid))
        assert context_switches(target.pid) == before
    finally:
        target.kill()
        target.communicate()
    assert len(threads) == 4 and all(functions(thread)[-1].startswith(("__libc_start", "__clone"))
                                     for thread in threads), threads
    texts = "\n".join(line.split("[", 1)[1] for line in said)
    assert re.search(r"^futex, semaphore \S+\]:$", texts, re.M), said
    assert re.search(rf"^recvfrom fd {fd} socket:\[\d+\] unix stream, "
                     r"other end in its own process\]:$", texts, re.M), said
    assert re.search(r"^(clock_nanosleep|pselect6).*\]:$", texts, re.M), said
    assert re.search(r"^read fd 0 pipe:\[\d+\]\]:$", texts, re.M), said


def test_a_dump_of_redis(world):
    def main_of(threads):
        return next(thread for thread in threads if thread["tid"] == pid)

    def main_waits(threads):
        """The thread wakes up ten times a second, and may do so while it is observed."""
        return main_of(threads).get("file") == "anon_inode:[eventpoll]"
    with redis(world) as (server, _):
        pid = server.pid
        wait_until_asleep(pid, but=("redis-server", "jemalloc_bg_thd"))
        threads = next(filter(main_waits, (dump_json(world, "-p", pid)["threads"]
                                           for _ in range(20))))
        text = dump(world, "-p", pid)
    assert "aeMain" in functions(main_of(threads)), threads
    waiting = [thread for thread in threads if thread["name"].startswith("bio_")]
    assert len(waiting) == 3 and all("bioProcessBackgroundJobs" in functions(thread)
                                     for thread in waiting), threads
    assert len(re.findall(r'"bio_.*" \[futex, condition variable \S+\]:$', text,
                          re.M)) == 3, text


def test_a_dump_of_nginx(world):
    need("nginx")
    port = free_port()
    with open(world.path("nginx.conf"), "w") as file:
        file.write(f"daemon off; pid {world.directory}/nginx.pid; worker_processes 1;\n"
                   "error_log stderr; events {}\n"
                   f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}\n")
    command = ["/usr/sbin/nginx", "-p", world.directory, "-c", world.path("nginx.conf")]
    with serving(command, world.directory, port, b"GET / HTTP/1.0\r\n\r\n") as server:
        pid = server.pid
        worker = children_of(pid)[0]
        wait_until_asleep(pid, worker)
        before = context_switches(worker)
        threads = {thread["tid"]: thread
                   for thread in dump_json(world, "-p", f"{pid},{worker}")["threads"]}
        assert context_switches(worker) == before
    assert threads[pid]["syscall"] == "rt_sigsuspend", threads[pid]
    assert threads[worker]["syscall"] in ("epoll_wait", "epoll_pwait"), threads[worker]
    assert threads[worker]["file"] == "anon_inode:[eventpoll]", threads[worker]
    for thread in threads.values():
        assert "_start" in functions(thread) or "__libc_start" in functions(thread)[-1], thread

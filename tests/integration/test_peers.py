"""Waits for other processes, and on descriptors: the resource, the process that must act, and where that
process was meanwhile, compared with the waiting program's own measurement."""

import collections
import re
import socket

from harness import folded, has, ready
from test_dump import owners
from test_waits import converted, labels_of

RATE_HZ = 250
SECONDS = 4
# The time until the other process is sampled and its descriptors are known, and from one reading of the file
# locks to the next.
PART_OWNED = 0.7


def asked(world, how, *arguments):
    """Samples a process that waits for another one. Returns ({resource: {owner: samples}} of the waiting
    process, what --blame shows, what the report says, the number of samples expected)."""
    path = world.path(how + ".fgprof")
    done = world.fgprof("run", "--children", "-F", RATE_HZ, "-o", path, "--",
                        world.fixture("two_sides"), SECONDS, how, *arguments)
    assert done.returncode == 0, done.stderr
    waited = int(re.search(r"waited (\d+)", done.stdout)[1]) / 1e6
    owned = collections.defaultdict(collections.Counter)
    for count, labels, _ in labels_of(converted(world, path, "-f", "text")):
        if labels["thread"] == "fixture-two_sid" and "resource" in labels:
            owned[re.sub(r"\d+", "N", labels["resource"])][labels.get("owner")] += count
    return (owned, folded(converted(world, path, "--blame")),
            converted(world, path, "-f", "report"), waited * RATE_HZ)


def check(world, resource, call, how, *arguments):
    owned, blamed, report, expected = asked(world, how, *arguments)
    found = owned[resource]["answerer"]
    assert PART_OWNED * expected <= found <= 1.1 * expected, (expected, owned)
    # The owner is seen where it was: three quarters of the time in the slow part.
    in_parts = {part: sum(count for stack, count in blamed.items()
                          if stack[0] == "answerer" and has(stack, part, call))
                for part in ("serve_slowly", "serve_quickly")}
    both = sum(in_parts.values())
    assert both >= 0.9 * found, (in_parts, owned)
    assert 0.65 <= in_parts["serve_slowly"] / both <= 0.85, in_parts
    lines = report[report.index("Blocked by"):].splitlines()
    shown = re.sub(r"\d+", "N", lines[1].split(" s  ", 1)[1])
    begin, is_short, end = shown.partition("...")  # a long path loses its middle
    assert resource.startswith(begin) and resource.endswith(end) and (is_short or begin == resource), lines
    assert "owner was in: " in lines[2] and "serve_slowly" in lines[2], lines
    assert call in lines[3], lines


def test_pipe(world):
    check(world, "pipe to answerer/N", "wait_for_answer", "pipe")


def test_socket_pair(world):
    check(world, "unix stream to answerer/N", "wait_for_answer", "socket")


def test_loopback(world):
    check(world, "tcp N.N.N.N:N to answerer/N", "wait_for_answer", "tcp")


def test_child(world):
    check(world, "process answerer/N", "wait_for_end", "child")


def test_flock(world):
    path = re.sub(r"\d+", "N", world.path("locked"))
    check(world, f"file lock {path} of answerer/N", "wait_for_lock", "flock", world.path("locked"))


def resources(world, pid, *options):
    """{thread: {(wait, resource, owner)}} of the process's threads that sleep all the time."""
    path = world.path("resources.txt")
    done = world.fgprof("attach", "-p", pid, "-d", "1s", "-f", "text", "-o", path, *options)
    assert done.returncode == 0, done.stderr
    found = collections.defaultdict(set)
    for _, labels, _ in labels_of(open(path).read()):
        if "resource" in labels:
            found[labels["thread"]].add((labels["wait"], labels["resource"], labels.get("owner")))
    return found


def test_every_kind(world):
    directory = world.path("owners")
    with owners(world) as (pid, other):
        found = resources(world, f"{pid},{other}")
        alone = resources(world, pid)
    peer = f"the-other/{other}"
    tcp = next(iter(found["tcp"]))[1].split(" to ")[0]
    expected = {
        "child": ("process", f"process {peer}"),
        "any-child": ("process", f"process {peer}"),
        "pipe": ("pipe", f"pipe to {peer}"),
        "full-pipe": ("pipe", f"pipe to {peer}"),
        "poll": ("pipe", f"pipe to {peer}"),
        "fifo": ("FIFO", f"FIFO {directory}/fifo to {peer}"),
        "unix": ("unix socket", f"unix stream to {peer}"),
        "epoll": ("unix socket", f"unix stream to {peer}"),
        "tcp": ("tcp socket", f"{tcp} to {peer}"),
        "select": ("tcp socket", f"{tcp} to {peer}"),
        "flock": ("file lock", f"file lock {directory}/locked of {peer}"),
        "fcntl": ("file lock", f"file lock {directory}/locked of {peer}"),
    }
    assert re.fullmatch(r"tcp 127\.0\.0\.1:\d+", tcp), tcp
    for thread, (kind, resource) in expected.items():
        assert (kind, resource, "the-other") in found[thread], (thread, found[thread])
        assert {owner for _, _, owner in found[thread]} <= {"the-other", None}, found[thread]
        # A process that is not sampled is no owner.
        assert alone[thread], thread
        assert {owner for _, _, owner in alone[thread]} == {None}, (thread, alone[thread])
        assert not any(peer in name for _, name, _ in alone[thread]), alone[thread]


def test_descriptors_without_owner(world):
    with world.running("states", 20) as target:
        found = resources(world, target.pid)
    assert found["piped"] == {("pipe", "pipe within the process", None)}, found
    with world.running("locks", 20, world.path("locked")) as target:
        found = resources(world, target.pid)
    names = {name for thread in found.values() for _, name, _ in thread}
    assert any(re.fullmatch(r"tcp 127\.0\.0\.1:\d+ listening", name) for name in names), names
    assert any(re.fullmatch(r"\d descriptors", name) for name in names), names


def test_remote_end_is_not_sampled(world):
    """A connection to a process that is not sampled is named only after the service."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    code = ("import socket, sys\n"
            f"end = socket.create_connection(('127.0.0.1', {port}))\n"
            "print('ready', flush=True)\nend.recv(1)")
    with ready("python3", "-c", code) as target:
        found = resources(world, target.pid)
    listening.close()
    assert set().union(*found.values()) == {("tcp socket", f"tcp 127.0.0.1:{port}", None)}, found

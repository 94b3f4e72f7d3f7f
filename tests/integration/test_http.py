"""The process that speaks HTTP for `serve`: what it may do, when it ends, and what happens then."""

import contextlib
import http.client
import os
import resource
import signal
import threading

from harness import HANGS_S, HTTP, all_children_of, users_build, wait_for
from test_privileges import NOBODY, need_root
from test_reader import is_gone, status_of
from test_serve import serving


def processes_of(pid):
    """The process that starts the other, and the one that speaks HTTP."""
    starter, = (child for child in all_children_of(pid) if status_of(child)["Name"] == HTTP)
    speaker, = all_children_of(starter)
    return starter, speaker


@contextlib.contextmanager
def answering(world, **options):
    """A server that has answered."""
    with world.running("holders", 60, **options) as target, serving(world, "-p", target.pid, **options) as server:
        assert "fgprof_" in server.text("/metrics")
        yield server


def open_files(pid):
    files = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError): # just closed
            files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return files


def socket_count(pid):
    """Other files come and go while it samples."""
    return sum(file.startswith("socket:") for file in open_files(pid))


def connection_count(pid):
    """Those of its TCP connections that neither side has ended (proc_net_tcp.rst: st is 01)."""
    places = set(open_files(pid))
    with open(f"/proc/{pid}/net/tcp") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return sum(row[3] == "01" and f"socket:[{row[9]}]" in places for row in rows)


@users_build
def test_it_has_no_privileges(world):
    with answering(world) as server:
        _, speaker = processes_of(server.sampler.pid)
        for thread in os.listdir(f"/proc/{speaker}/task"):
            try:
                status = status_of(f"{speaker}/task/{thread}")
            except (FileNotFoundError, ProcessLookupError):
                assert thread != str(speaker)
                continue  # a thread that answered a request has ended
            assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
            for name in "CapInh", "CapPrm", "CapEff":
                assert int(status[name], 16) == 0, status
        # Nothing of the profiler's, and nothing of the target's: sockets, and what wakes its threads.
        places = {os.readlink(f"/proc/{speaker}/fd/{fd}") for fd in os.listdir(f"/proc/{speaker}/fd")}
        assert all(place.startswith(("socket:", "anon_inode:[eventfd]", "pipe:")) or place == "/dev/null"
                   for place in places), places


@users_build
def test_it_ends_where_it_can_answer_nobody(world):
    """Nothing else can start the process that speaks HTTP: what watches the server can start it again."""
    with answering(world) as server:
        starter, _ = processes_of(server.sampler.pid)
        os.kill(starter, signal.SIGKILL)
        _, said = server.sampler.communicate(timeout=HANGS_S)
        assert server.sampler.returncode == 1, said
        assert said == "fgprof-c: can't serve any more: the process that starts fgprof-http has gone\n", said


@users_build
def test_the_profiler_reads_nothing_from_clients(world):
    """The process with privileges does not deal with a client that has connected and sent half a request."""
    with answering(world) as server:
        profiler, (_, speaker) = server.sampler.pid, processes_of(server.sampler.pid)
        before = socket_count(profiler)
        clients = [server.connect() for _ in range(20)]
        for client in clients:
            client.sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localh")
        wait_for(lambda: connection_count(speaker) == 20, "20 connections")
        assert socket_count(profiler) == before
        for client in clients:
            client.sock.sendall(b"ost\r\nConnection: close\r\n\r\n")
            answer = http.client.HTTPResponse(client.sock)
            answer.begin()
            assert answer.status == 200 and b"fgprof_" in answer.read()
            client.close()
        wait_for(lambda: socket_count(profiler) == before, "the end of the answers")
        wait_for(lambda: connection_count(speaker) == 0, "the end of the connections")


@users_build
def test_another_takes_its_place(world):
    """A profile that is being made is lost, and the server continues."""
    with answering(world) as server:
        _, first = processes_of(server.sampler.pid)
        failed = []

        def ask():
            try:
                server.ask("/debug/fgprof?seconds=50")
            except (http.client.HTTPException, OSError) as error:
                failed.append(error)

        asker = threading.Thread(target=ask)
        asker.start()
        wait_for(lambda: len(os.listdir(f"/proc/{first}/task")) >= 3, "the thread of the connection")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: is_gone(first), "its end")
        asker.join(60)
        assert failed, "the profile was not lost"
        said = server.next_line()
        assert said.startswith("fgprof-c: the process that speaks HTTP has ended: it is started again"), said
        assert "fgprof_" in server.text("/metrics")
        assert processes_of(server.sampler.pid)[1] != first
        # The one whose client has gone holds nobody up.
        wait_for(lambda: "inner_hold" in server.text("/debug/fgprof?last=10s&format=folded"), "a profile")


@users_build
def test_a_request_that_the_profiler_cannot_take_is_answered(world):
    with answering(world) as server:
        pid = server.sampler.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            server.fails("/metrics", 503, "no memory or no file for an answer")
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        assert "fgprof_" in server.text("/metrics")


@users_build
def test_it_ends_with_the_profiler(world):
    for number in signal.SIGKILL, signal.SIGINT:
        with answering(world) as server:
            pids = processes_of(server.sampler.pid)
            server.sampler.send_signal(number)
            server.sampler.wait(60)
            for pid in pids:
                wait_for(lambda pid=pid: is_gone(pid), "the end of the process that speaks HTTP")


def test_an_ordinary_user_may_serve(world):
    need_root()
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with answering(world, **user) as server:
        assert "inner_hold" in server.text("/debug/fgprof?seconds=1&format=folded")

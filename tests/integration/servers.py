"""Servers on loopback that end by themselves."""

import contextlib
import re
import signal
import socket
import subprocess

from harness import need, wait_for

END_SECONDS = 100


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port, request):
    """The first part of the server's answer, empty if there is none (yet). A connection proves
    less: a server listens before it is ready."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(request)
            return client.recv(4096)
    except OSError:
        return b""


@contextlib.contextmanager
def serving(command, directory, port, request):
    """The server, once it has answered."""
    server = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.alarm(END_SECONDS))
    try:
        wait_for(lambda: ask(port, request), command[0])
        yield server
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def redis(world):
    """redis-server that has answered, with its port."""
    need("redis-server")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with serving(command, world.directory, port, b"PING\r\n") as server:
        yield server, port


@contextlib.contextmanager
def redis_under_load(world, commands):
    """redis-server, answering what redis-benchmark asks."""
    need("redis-benchmark")
    with redis(world) as (server, port):
        load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-t", commands, "-c", "10",
                                 "-n", "100000000", "-q"], stdout=subprocess.DEVNULL,
                                preexec_fn=lambda: signal.alarm(END_SECONDS))
        try:
            # Commands of the load: more than those that asked before it.
            wait_for(lambda: int(re.search(rb"total_commands_processed:(\d+)",
                                           ask(port, b"INFO stats\r\n"))[1]) > 1000, "the load")
            yield server
        finally:
            load.terminate()
            load.wait()

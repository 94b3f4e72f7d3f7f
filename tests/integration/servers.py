"""Servers on loopback, which are ended automatically."""

import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess

from harness import Skip, need, wait_for

END_SECONDS = 100


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port, request):
    """The first part of the server's answer, empty if there is none (yet). A successful connection proves
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


class Postgres:
    """A cluster in the test's directory, run by a separate user if this is root."""

    def __init__(self, world):
        path = ":".join([os.environ["PATH"], *sorted(glob.glob("/usr/lib/postgresql/*/bin"))])
        for program in "postgres", "initdb", "psql":
            if not shutil.which(program, path=path):
                raise Skip(f"no {program}")
        self.options = {"env": os.environ | {"PATH": path, "LC_ALL": "C.UTF-8"},
                        **({"user": "postgres"} if os.getuid() == 0 else {})}
        self.directory = world.path("postgres")
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o777)
        os.chmod(world.directory, 0o755)
        self.sessions = []

    def start(self, *command, **options):
        return subprocess.Popen(command, cwd=self.directory, text=True, stderr=subprocess.DEVNULL,
                                preexec_fn=lambda: signal.alarm(END_SECONDS), **options, **self.options)

    def ask(self, query):
        return subprocess.run(["psql", "-h", self.directory, "-U", "test", "-Atc", query, "postgres"], cwd=self.directory,
                              text=True, capture_output=True, check=False, **self.options).stdout.strip()

    def session(self, statements):
        """A session that stays open, once it has received as many statements as it can."""
        made = self.start("psql", "-h", self.directory, "-U", "test", "-q", "postgres", stdin=subprocess.PIPE)
        self.sessions.append(made)
        self.tell(made, statements)
        return made

    def tell(self, session, statements):
        session.stdin.write(statements)
        session.stdin.flush()

    def unlock(self):
        self.tell(self.sessions[0], "commit;\n")

    def locks(self, is_granted):
        return self.ask("select count(*) from pg_locks where relation = 'accounts'::regclass and granted = "
                        f"{is_granted} and mode = 'AccessExclusiveLock'")


@contextlib.contextmanager
def postgres(world):
    """The postgres process and the object that runs it."""
    made = Postgres(world)
    initdb = made.start("initdb", "-D", "data", "-U", "test", "-A", "trust", "--no-sync", stdout=subprocess.DEVNULL)
    assert initdb.wait() == 0
    server = made.start("postgres", "-D", "data", "-k", made.directory, "-c", "listen_addresses=", "-c", "fsync=off",
                        stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: made.ask("select 1") == "1", "postgres")
        yield server, made
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()
        for session in made.sessions:
            session.kill()
            session.wait()
            session.stdin.close()


@contextlib.contextmanager
def postgres_with_a_lock(world):
    """A postgres of which one session waits for a table that another has locked: the server, what ends the
    other's transaction, and the sessions' process ids."""
    with postgres(world) as (server, made):
        made.ask("create table accounts (id int)")
        made.session("begin; lock table accounts;\n")
        wait_for(lambda: made.locks(True) == "1", "the lock")
        made.session("begin; lock table accounts;\n")
        wait_for(lambda: made.locks(False) == "1", "the wait")
        pids = [int(made.ask(f"select pid from pg_locks where relation = 'accounts'::regclass and granted = {granted}"))
                for granted in (True, False)]
        yield server, made.unlock, *pids

"""The cost of the live view compared with plain recording of the same processes, in turn: late ticks, CPU and
memory of the profiler itself."""

import contextlib
import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

import programs
import tables
from screen import Screen  # of the integration tests

TITLE = "What the live view costs"
TOOLS = ("redis-server", "redis-benchmark")
IDLE = """import threading, time
for _ in range(100):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
print('ready', flush=True)
time.sleep(3600)"""


def attach(world, pid, seconds):
    """The share of late ticks, and what the profiler used."""
    with tempfile.TemporaryFile("w+") as said:
        sampler = subprocess.Popen([world.fgprof, "attach", "-p", str(pid), "-d", f"{seconds}s",
                                    "-o", "/dev/null", "-f", "folded"], stderr=said,
                                   start_new_session=True)  # as top has: see sched(7), autogroup
        _, status, usage = os.wait4(sampler.pid, 0)
        sampler.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if status:
        raise RuntimeError(text)
    planned, _, late = re.search(r"(\d+) ticks planned, (\d+) taken, (\d+) late", text).groups()
    return int(late) / int(planned), usage


def draw(side, seconds):
    """Reads what the view draws on the pseudo-terminal until it says that it has ended."""
    screen = Screen(30, 100)
    begin, drawn = time.monotonic(), b""
    while not any("ENDED" in line for line in screen.lines()):
        if time.monotonic() > begin + seconds + 30:
            raise RuntimeError("\n".join(screen.lines()))
        if select.select([side], [], [], 0.1)[0]:
            drawn += os.read(side, 65536)
        # Drawing it here takes a CPU from those that are measured: afterwards.
        if time.monotonic() > begin + seconds:
            screen.feed(drawn)
            drawn = b""
    return "\n".join(screen.lines())


def top(world, pid, seconds):
    """The same of the live view, on a pseudo-terminal of 100x30."""
    child, side = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(world.fgprof, [world.fgprof, "top", "-p", str(pid), "-d", f"{seconds}s"])
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    text = draw(side, seconds)
    os.write(side, b"q")
    with contextlib.suppress(OSError):  # the end of the terminal
        while os.read(side, 65536):  # so that it is not held up by what it still writes
            pass
    _, status, usage = os.wait4(child, 0)
    os.close(side)
    if status:
        raise RuntimeError(text)
    taken, late = re.search(r"ticks (\d+), (\d+) late", text).groups()
    return int(late) / (int(taken) + int(late)), usage


def compare(world, name, pid):
    """Rows of medians."""
    rounds, seconds = world.pick((3, 10), (1, 2))
    found = {attach: [], top: []}
    for number in range(rounds):
        programs.progress(f"  {name}, round {number + 1} of {rounds}")
        for how, runs in found.items():
            late, usage = how(world, pid, seconds)
            runs.append((late, (usage.ru_utime + usage.ru_stime) / seconds, usage.ru_maxrss))
    plain, live = ([statistics.median(column) for column in zip(*runs)] for runs in found.values())
    return [[f"{name}: {title}", write(plain[column]), write(live[column]),
             f"{live[column] / plain[column]:.2f}" if plain[column] else "-"]
            for column, (title, write) in enumerate([
                ("late ticks", tables.percent), ("CPU of the profiler", tables.percent),
                ("memory", lambda kib: f"{kib / 1024:.1f} MiB")])]


@contextlib.contextmanager
def started(*command, **options):
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def idle_rows(world):
    with started(sys.executable, "-c", IDLE, stdout=subprocess.PIPE) as idle:
        idle.stdout.readline()
        return compare(world, "100 idle threads", idle.pid)


def redis_rows(world):
    socket = world.path("redis")
    with started("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir",
                 world.directory, stdout=subprocess.DEVNULL) as redis:
        while not os.path.exists(socket) and redis.poll() is None:
            time.sleep(0.05)
        with started("redis-benchmark", "-s", socket, "-l", "-q", "-c", "20", "-t", "set,get,lpush",
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            return compare(world, "redis-server under redis-benchmark", redis.pid)


def report(world):
    rows = idle_rows(world)
    if world.has(*TOOLS):
        rows += redis_rows(world)
    rounds, seconds = world.pick((3, 10), (1, 2))
    return f"""The same processes are recorded by `attach` and shown by `top` in turn, {rounds} times {seconds} s
each; medians. *CPU* is of one CPU.

{tables.table(["", "attach", "top", "ratio"], rows)}"""

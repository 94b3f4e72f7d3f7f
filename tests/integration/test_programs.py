"""Real programs of Debian's."""

import os
import re
import shutil
import socket
import subprocess
import time

from harness import Skip, alone, by_root, folded, has, ticks_planned, wait_for


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@alone
def test_redis_under_load(world):
    if not shutil.which("redis-server"):
        raise Skip("no redis-server")
    port = free_port()
    server = subprocess.Popen(
        ["timeout", "60", "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
        cwd=world.directory, stdout=subprocess.DEVNULL)
    load = None
    try:
        wait_for(lambda: answers(port), "redis")
        load = subprocess.Popen(["timeout", "50", "redis-benchmark", "-p", str(port), "-t", "get,set",
                                 "-c", "10", "-n", "100000000", "-q"], stdout=subprocess.DEVNULL)
        pid = int(open(f"/proc/{server.pid}/task/{server.pid}/children").read().split()[0])
        time.sleep(0.5)
        done = world.fgprof("attach", "-p", pid, "-d", "3s", "-t")
    finally:
        for process in load, server:
            if process:
                process.terminate()
                process.wait()
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    counts = by_root(stacks)
    assert "redis-server" in counts and sum(name.startswith("bio_") for name in counts) == 3, counts
    planned = ticks_planned(done.stderr)
    for name in counts:
        if name == "redis-server" or name.startswith("bio_"):
            assert abs(counts[name] - planned) <= 3, (counts, planned)
    main = {stack: count for stack, count in stacks.items() if stack[0] == "redis-server"}
    assert all(stack[1] == "_start" and "main" in stack for stack in main), main
    for names in (("aeMain", "epoll_wait"), ("aeMain", "write"), ("readQueryFromClient",)):
        assert any(has(stack, *names) for stack in main), names
    assert float(re.search(r"([\d.]+) % cut", done.stderr)[1]) == 0, done.stderr


def test_python(world):
    script = ("import threading, time\n"
              "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
              "print('ready', flush=True)\n"
              "end = time.time() + 20\n"
              "while time.time() < end: sum(range(1000))\n")
    target = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        done = world.attach(target, duration="2s")
    finally:
        target.kill()
        target.stdout.close()
        target.wait()
    stacks = folded(done.stdout)
    total, planned = sum(stacks.values()), ticks_planned(done.stderr)
    assert abs(total - 2 * planned) <= 4, (total, planned)
    evaluating = sum(count for stack, count in stacks.items()
                     if has(stack, "Py_RunMain", "_PyEval_EvalFrameDefault"))
    assert evaluating > 0.9 * planned, stacks
    whole = sum(count for stack, count in stacks.items() if "[truncated" not in stack[0])
    assert whole >= 0.99 * total, stacks

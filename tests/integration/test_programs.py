"""Real programs from Debian."""

import os
import subprocess

from harness import alone, by_root, folded, has, late_share, ticks_planned
from servers import redis_under_load


@alone
def test_redis_under_load(world):
    with redis_under_load(world, "get,set") as server:
        done = world.fgprof("attach", "-p", server.pid, "-F", 1000, "-d", "3s", "-t")
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    counts = by_root(stacks)
    assert "redis-server" in counts and sum(name.startswith("bio_") for name in counts) == 3, counts
    planned = ticks_planned(done.stderr)
    for name in counts:
        if name == "redis-server" or name.startswith("bio_"):
            assert abs(counts[name] - planned) <= 3, (counts, planned)
    main = {stack: count for stack, count in stacks.items()
            if stack[0] == "redis-server" and "not observed in time" not in stack[1]}
    torn = {stack: count for stack, count in main.items() if not (stack[1] == "_start" and "main" in stack)}
    assert not torn, (torn, done.stderr)
    # At the end it may have no CPU for a while, or the machine may stall.
    missed = counts["redis-server"] - sum(main.values())
    assert missed <= (0.1 + late_share(done.stderr)) * planned, (missed, done.stderr)
    # On aarch64 epoll_wait jumps to epoll_pwait.
    wait = "epoll_pwait" if os.uname().machine == "aarch64" else "epoll_wait"
    for names in (("aeMain", wait), ("aeMain", "write"), ("readQueryFromClient",)):
        assert any(has(stack, *names) for stack in main), names


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
    # Threads that left their CPU may be shown with the interpreter's own functions.
    evaluating = sum(count for stack, count in stacks.items()
                     if has(stack, "<module>") or has(stack, "Py_RunMain", "_PyEval_EvalFrameDefault"))
    assert evaluating > 0.9 * planned, stacks
    whole = sum(count for stack, count in stacks.items() if "[truncated" not in stack[0])
    assert whole >= 0.99 * total, stacks

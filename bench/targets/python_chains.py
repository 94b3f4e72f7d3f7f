"""python_chains.py THREADS SLEEPERS: threads that compute in two chains of calls that share no function, and
threads that wait in epoll_wait(2), which a stop of the process interrupts (signal(7)). Says "ready", then for
each line of its input what it has counted since: the CPU time of each chain by the thread's own clock,
interrupted calls, and how long the computing threads were delayed."""

import ctypes
import errno
import json
import sys
import threading
import time

LONG_NS = 1000000  # a turn takes a third of it
libc = ctypes.CDLL(None, use_errno=True)
found = {"a_s": 0.0, "b_s": 0.0, "turns": 0, "interrupted": 0, "calls": 0, "held_up_s": 0.0, "longest_s": 0.0}


def a3(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def a2(count):
    return a3(count)


def a1(count):
    return a2(count)


def b3(count):
    total = 0
    for i in range(count):
        total += i + i
    return total


def b2(count):
    return list(map(b3, [count]))


def b1(count):
    return b2(count)


def compute():
    last_ns = time.monotonic_ns()
    while True:
        for name, chain, count in (("a_s", a1, 6000), ("b_s", b1, 2000)):
            begin = time.thread_time()
            chain(count)
            found[name] += time.thread_time() - begin
        now_ns = time.monotonic_ns()
        if now_ns - last_ns > LONG_NS:
            found["held_up_s"] += (now_ns - last_ns) / 1e9
            found["longest_s"] = max(found["longest_s"], (now_ns - last_ns) / 1e9)
        last_ns = now_ns
        found["turns"] += 1


def sleep_inner(fd, event):
    return libc.epoll_wait(fd, event, 1, 2000)


def sleep_outer():
    fd, event = libc.epoll_create(1), ctypes.create_string_buffer(16)
    while True:
        found["calls"] += 1
        if sleep_inner(fd, event) < 0 and ctypes.get_errno() == errno.EINTR:
            found["interrupted"] += 1


threads, sleepers = map(int, sys.argv[1:])
for function in [sleep_outer] * sleepers + [compute] * threads:
    threading.Thread(target=function, daemon=True).start()
print("ready", flush=True)
for _ in sys.stdin:
    print(json.dumps(found), flush=True)
    found.update({"longest_s": 0.0})

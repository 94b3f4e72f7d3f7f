"""Threads that sleep in Python code, and one that computes in two chains of calls that share no
function. Says "ready", then for each line of its input how much it has computed."""

import json
import sys
import threading
import time

SLEEPERS = 8
LASTS_S = 600
turns = 0


def sleep_inner():
    time.sleep(LASTS_S)


def sleep_outer():
    sleep_inner()


def a3():
    return sum(i * i for i in range(20))


def a2():
    return a3()


def a1():
    return a2()


def b3():
    return sum(i + i for i in range(20))


def b2():
    return b3()


def b1():
    return b2()


def compute():
    global turns
    while True:
        a1()
        b1()
        turns += 1


for _ in range(SLEEPERS):
    threading.Thread(target=sleep_outer, daemon=True).start()
threading.Thread(target=compute, daemon=True).start()
print("ready", flush=True)
for _ in sys.stdin:
    print(json.dumps({"turns": turns}), flush=True)

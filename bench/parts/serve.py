"""The cost of an idle server over an hour."""

import time

import programs
import tables

TITLE = "serve: what it costs to stay"
TOOLS = ()
THREADS = 1000
RATES = [99, 19]
MOMENTS_S = 65  # by then it has the moments of the last minute, and each new one replaces another


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def report(world):
    seconds = world.pick(3600, 2)
    with world.target("idle", THREADS, "asleep") as target:
        servers = {rate: programs.Measured(world, world.fgprof, "serve", "-p", target.pid, "-F", rate,
                                           "--listen", "127.0.0.1:0") for rate in RATES}
        time.sleep(world.pick(MOMENTS_S, 1))
        begin_s = time.monotonic()
        before = {rate: (programs.cpu_s(server.pid), resident_kib(server.pid)) for rate, server in servers.items()}
        for minute in range(seconds // 60):
            programs.progress(f"  minute {minute + 1} of {seconds // 60}")
            time.sleep(60)
        time.sleep(seconds % 60)
        rows = []
        for rate, server in servers.items():
            cpu_s, kib = before[rate]
            used = (programs.cpu_s(server.pid) - cpu_s) / (time.monotonic() - begin_s)
            rows.append([f"{rate} Hz", tables.percent(used), f"{kib / 1024:.1f} MiB",
                         f"{resident_kib(server.pid) / 1024:.1f} MiB"])
            server.end()
    return f"""{tables.count(THREADS)} threads that sleep, a third each in futex, poll and read, and that nobody asks about,
served for {seconds} s at two rates at once. *CPU* is of one CPU. *Memory* is what is resident, once the
moments of the last minute are there, and at the end.

{tables.table(["rate", "CPU", "memory after a minute", "at the end"], rows)}
"""

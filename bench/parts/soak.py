"""What grows while things come and go: memory, open files, and CPU time for each tick."""

import os
import re
import signal
import subprocess
import time
import urllib.request

import programs
import tables

TITLE = "Things that come and go, for long"
TOOLS = ()
RATE_HZ = 300
KEEP = "2s"
WARM_UP_S = 8, 2
KINDS = ["threads", "named", "processes", "programs", "libraries", "plugins", "upgrades", "code", "labels", "locks", "sockets"]


class Server:
    """A serving fgprof-c, and what it uses."""

    def __init__(self, world, program, pid):
        world.started.append(self)
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--keep", KEEP, "--children", "-p", str(pid)],
            stderr=subprocess.PIPE, text=True, env=programs.ENVIRONMENT)
        self.url = re.search(r" at (http://\S+)", self.process.stderr.readline())[1]

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read().decode()

    def look(self):
        """KiB of memory of its own, open files, s of CPU time and ticks so far, and KiB that are kept.
        A profile is made first, so that what that needs is there each time."""
        pid = self.process.pid
        self.get("debug/fgprof?last=1s&format=text")
        with open(f"/proc/{pid}/status") as file:
            kib = int(re.search(r"RssAnon:\s+(\d+)", file.read())[1])
        metrics = self.get("metrics")
        ticks = float(re.search(r"^fgprof_ticks_total (\S+)$", metrics, re.M)[1])
        kept = sum(map(int, re.findall(r"^fgprof_kept_bytes\S+ (\d+)$", metrics, re.M))) / 1024
        return kib, len(os.listdir(f"/proc/{pid}/fd")), programs.cpu_s(pid), ticks, kept

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()


def look_after(target, server, seconds):
    """The server's figures when so much time has passed, and how many things there were."""
    time.sleep(seconds)
    return target.mark()["count"], server.look()


def measure(world, target, program):
    """Bytes and open files for each 1,000 things, and CPU time of a tick at first and at last."""
    server = Server(world, program, target.pid)
    seconds = world.pick(*WARM_UP_S)
    begin = look_after(target, server, 0)[1]
    first_count, first = look_after(target, server, seconds)
    last_count, last = look_after(target, server, 2 * seconds)
    server.end()
    thousands = (last_count - first_count) / 1000
    return [f"{last_count:,}", f"{last[0] / 1024:.1f} MiB",
            f"{(last[0] - first[0]) / thousands:,.0f} KiB",
            f"{(last[4] - first[4]) / thousands:,.0f} KiB",
            f"{(last[1] - first[1]) / thousands:.1f}",
            *(f"{1e6 * (to[2] - of[2]) / (to[3] - of[3]):,.0f} us"
              for of, to in ((begin, first), (first, last)))]


def report(world):
    builds = {"this": world.fgprof}
    if world.options.other:
        builds["other"] = world.options.other
    rows = []
    for kind in world.chosen(KINDS):
        for name, program in builds.items():
            programs.progress(f"  {kind}, {name} build")
            with world.target("soak", kind, RATE_HZ) as target:
                rows.append([kind, *([name] if len(builds) > 1 else []), *measure(world, target, program)])
    header = ["what", *(["build"] if len(builds) > 1 else []), "how many", "memory", "more for 1,000", "of it kept",
              "files for 1,000", "CPU a tick", "later"]
    return f"""`serve --keep {KEEP} --children` of a program with {RATE_HZ} new things of a kind a second, each another one
(tests/fixtures/soak.c). *Memory* is the sampler's own at the end; *more for 1,000*, by how much it grew for
1,000 things, after a warm-up of {world.pick(*WARM_UP_S)} s, in {2 * world.pick(*WARM_UP_S)} s, with what malloc(3)
holds back, which takes tens of thousands of things to settle; *of it kept*, by how much that grew which is counted (fgprof_kept_bytes); *files*, open ones. *CPU a tick* is that of all of its threads
during the warm-up, and later.

{tables.table(header, rows)}"""

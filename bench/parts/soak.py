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
KEEP_MEMORY_MIB = "1"
WARM_UP_S = 8, 2
KINDS = ["threads", "named", "processes", "programs", "libraries", "plugins", "upgrades", "code", "labels", "locks", "sockets"]


class Recorder:
    """An attached fgprof-c without checkpoints, and what it uses."""
    TICKS_HZ = 99
    ARGUMENTS = ["attach", "--keep-memory", KEEP_MEMORY_MIB, "-q", "-f", "folded", "-o", os.devnull]

    def __init__(self, world, program, pid):
        world.started.append(self)
        self.begin = time.monotonic()
        self.process = subprocess.Popen([program, *self.ARGUMENTS, "--children", "-p", str(pid)],
                                        stderr=subprocess.PIPE, text=True, env=programs.ENVIRONMENT)

    def own_kib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"RssAnon:\s+(\d+)", file.read())[1])

    def look(self):
        """KiB of memory of its own, open files, s of CPU time and ticks so far, and KiB that are kept, if it
        reports that."""
        pid = self.process.pid
        return (self.own_kib(), len(os.listdir(f"/proc/{pid}/fd")), programs.cpu_s(pid),
                self.TICKS_HZ * (time.monotonic() - self.begin), 0)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()


class Server(Recorder):
    """A serving fgprof-c."""
    ARGUMENTS = ["serve", "--listen", "127.0.0.1:0", "--keep", KEEP]

    def __init__(self, world, program, pid):
        super().__init__(world, program, pid)
        self.url = re.search(r" at (http://\S+)", self.process.stderr.readline())[1]

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read().decode()

    def look(self):
        """A profile is made first, so that its memory is counted each time."""
        self.get("debug/fgprof?last=1s&format=text")
        metrics = self.get("metrics")
        ticks = float(re.search(r"^fgprof_ticks_total (\S+)$", metrics, re.M)[1])
        kept = sum(map(int, re.findall(r"^fgprof_kept_bytes\S+ (\d+)$", metrics, re.M))) / 1024
        return *super().look()[:3], ticks, kept


def look_after(target, server, seconds):
    """The server's figures after this much time, and how many things there were."""
    time.sleep(seconds)
    return target.mark()["count"], server.look()


def measure(world, target, program, kind_of_sampler):
    """Bytes and open files for each 1,000 things, and CPU time of a tick at first and at last."""
    server = kind_of_sampler(world, program, target.pid)
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


def table_of(world, kind_of_sampler):
    builds = {"this": world.fgprof}
    if world.options.other:
        builds["other"] = world.options.other
    rows = []
    for kind in world.chosen(KINDS):
        for name, program in builds.items():
            programs.progress(f"  {kind}, {kind_of_sampler.ARGUMENTS[0]}, {name} build")
            with world.target("soak", kind, RATE_HZ) as target:
                rows.append([kind, *([name] if len(builds) > 1 else []),
                             *measure(world, target, program, kind_of_sampler)])
    header = ["what", *(["build"] if len(builds) > 1 else []), "how many", "memory", "more for 1,000", "of it kept",
              "files for 1,000", "CPU a tick", "later"]
    return tables.table(header, rows)


def report(world):
    return f"""`serve --keep {KEEP} --children` of a program with {RATE_HZ} new things of a kind a second, each another one
(tests/fixtures/soak.c). *Memory* is the sampler's own at the end; *more for 1,000*, by how much it grew for
1,000 things, after a warm-up of {world.pick(*WARM_UP_S)} s, in {2 * world.pick(*WARM_UP_S)} s, with what malloc(3)
holds back, which takes tens of thousands of things to settle; *of it kept*, by how much that grew which is counted (fgprof_kept_bytes); *files*, open ones. *CPU a tick* is that of all of its threads
during the warm-up, and later.

{table_of(world, Server)}

The same of `attach --keep-memory {KEEP_MEMORY_MIB} --children`, which keeps all since the start in so many MiB.

{table_of(world, Recorder)}"""

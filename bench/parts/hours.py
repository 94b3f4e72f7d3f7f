"""What two samplers use in hours of running beside redis, postgres and a repeated build."""

import glob
import os
import subprocess
import time

import programs
import real_programs
import tables
from parts import soak

TITLE = "Two hours"
TOOLS = ("redis-server", "redis-benchmark", "postgres", "pgbench")
SECONDS = 7200, 30
PARTS = 10
RATE_HZ = 999
KEEP = "60s"
FILES_MAX = 20
SOURCES = 20
TRIGGERS = ["any blocked 500ms", "cpu above 60%", "thread ^cc1 in main for 300ms"]


class Recorder(soak.Recorder):
    """A flight recorder, which writes a file each time that a trigger fires."""
    TICKS_HZ = RATE_HZ

    def __init__(self, world, pids):
        self.directory = world.path("flights")
        os.makedirs(self.directory)
        self.ARGUMENTS = ["record", "-F", RATE_HZ, "--keep", KEEP, "--max-files", FILES_MAX, "-o",
                          self.directory, "--cooldown", world.pick("60s", "1s"), "--after", "1s",
                          *(word for trigger in TRIGGERS for word in ("--trigger", trigger))]
        self.ARGUMENTS = list(map(str, self.ARGUMENTS))
        super().__init__(world, world.fgprof, pids)

    def written(self):
        """How many files there are."""
        return len(glob.glob(os.path.join(self.directory, "fgprof-*")))


class Server(soak.Server):
    ARGUMENTS = ["serve", "--listen", "127.0.0.1:0", "--keep", KEEP, "-F", str(RATE_HZ)]

    def profile_s(self):
        begin = time.monotonic()
        self.get("debug/fgprof?last=60s&format=folded")
        return time.monotonic() - begin


def start_redis(stage, seconds):
    port = real_programs.free_port()
    server = stage.start("redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1", env=programs.ENVIRONMENT)
    stage.await_port(port)
    stage.start("timeout", seconds, "sh", "-c",
                f"while redis-benchmark -p {port} -c 5 -t get,set -n 3000 -q; do sleep 0.5; done")
    return server.pid


def start_postgres(stage, seconds):
    return real_programs.postgres(stage, "-c", 2, "-R", 200, "-T", seconds)[-1]


def start_builds(stage, seconds):
    directory = stage.path("project")
    os.mkdir(directory)
    for i in range(SOURCES):
        with open(os.path.join(directory, f"part{i}.c"), "w") as file:
            file.writelines(f"int f{i}_{j}(int *a, int n) {{ int s = {j}; for (int i = 0; i < n; i++) "
                            f"s ^= a[i] * {j} + s % (a[i] | {i + 1}); return s; }}\n" for j in range(10))
    objects = " ".join(f"part{i}.o" for i in range(SOURCES))
    with open(os.path.join(directory, "Makefile"), "w") as file:
        file.write(f"all.so: {objects}\n\tcc -shared -o $@ $^\n%.o: %.c\n\tcc -fPIC -O2 -c -o $@ $<\n"
                   f"clean:\n\trm -f *.o *.so\n")
    return stage.start("timeout", seconds, "sh", "-c",
                       f"cd {directory}; while make -s -j2; do make -s clean; echo >> builds; sleep 4; done").pid


def builds_of(stage):
    path = os.path.join(stage.path("project"), "builds")
    return os.path.getsize(path) if os.path.exists(path) else 0


def descendants(pid):
    children = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False).stdout
    for child in map(int, children.split()):
        yield child
        yield from descendants(child)


def readers_kib(sampler):
    """Memory of the processes that the sampler has started."""
    total = 0
    for pid in descendants(sampler.process.pid):
        with open(f"/proc/{pid}/status") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))
    return total


def look(server, recorder, stage):
    served, recorded = server.look(), recorder.look()
    return {"serve": served, "record": recorded, "readers": readers_kib(server) + readers_kib(recorder),
            "profile_s": server.profile_s(), "builds": builds_of(stage), "written": recorder.written()}


def row(minutes, before, now):
    ticks = now["serve"][3] - before["serve"][3]
    recorded_ticks = now["record"][3] - before["record"][3]
    return [f"{minutes:.0f} min", f"{now['builds'] * (4 * SOURCES + 4):,}",
            f"{now['serve'][0] / 1024:.1f} MiB", f"{now['serve'][4] / 1024:.1f} MiB", now["serve"][1],
            f"{1e6 * (now['serve'][2] - before['serve'][2]) / ticks:,.0f} us", f"{now['profile_s']:.2f} s",
            f"{now['record'][0] / 1024:.1f} MiB", now["record"][1],
            f"{1e6 * (now['record'][2] - before['record'][2]) / recorded_ticks:,.0f} us",
            now["written"], f"{now['readers'] / 1024:.1f} MiB"]


def measure(world):
    seconds = world.pick(*SECONDS)
    stage = real_programs.Stage()
    try:
        pids = [start(stage, seconds + 600) for start in (start_redis, start_postgres, start_builds)]
        pids = ",".join(map(str, pids))
        server, recorder = Server(world, world.fgprof, pids), Recorder(world, pids)
        rows, begin, before = [], time.monotonic(), look(server, recorder, stage)
        for part in range(PARTS):
            time.sleep(max(0, begin + (part + 1) * seconds / PARTS - time.monotonic()))
            now = look(server, recorder, stage)
            rows.append(row((time.monotonic() - begin) / 60, before, now))
            programs.progress("  " + " ".join(map(str, rows[-1])))
            before = now
        server.end()
        recorder.end()
        return rows
    finally:
        stage.close()


def report(world):
    rows = measure(world)
    header = ["after", "processes", "serve", "kept", "files", "a tick", "profile", "record", "files", "a tick",
              "written", "readers"]
    return f"""`serve --keep {KEEP}` and `record --keep {KEEP} --max-files {FILES_MAX}` with three triggers, both with `--children` and at
{RATE_HZ} Hz, of redis under bursts of redis-benchmark, postgres with 200 transactions a second, and `make -j2` of
{SOURCES} files again and again. *Processes* is how many the builds have started, about; then, of each sampler, its
own memory, what of it is counted (fgprof_kept_bytes), open files, and CPU time for each tick since the line before;
*profile* is how long the last minute takes to be served, *written* how many recordings are in the directory, and
*readers* the memory of the processes that read files for both.

{tables.table(header, rows)}"""

"""Go programs with many waiting goroutines: what reading them costs fgprof-c, and the program."""

import os
import statistics
import subprocess
import time

import programs
import tables

TITLE = "Goroutines"
TOOLS = ["go"]
RATE = 99
PARKED = 0, 1000, 20000
SLEEPING = 20


def build(world):
    program = world.path("goroutines")
    source = os.path.join(world.source, "bench", "targets", "goroutines.go")
    subprocess.run(["go", "build", "-o", program, source], check=True, timeout=600,
                   env=dict(programs.ENVIRONMENT, GO111MODULE="off", GOTOOLCHAIN="local"))
    return program


def commands(world, pid, seconds):
    attach = [world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s", "-F", RATE, "-o", world.path("goroutines.folded")]
    return {"nothing": ["sleep", seconds], "goroutines": attach, "--no-goroutines": [*attach, "--no-goroutines"]}


def parked_samples(path):
    with open(path) as file:
        return sum(int(line.rsplit(" ", 1)[1]) for line in file if "main.park;" in line)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def observe(world, program, parked, tool, seconds):
    """One run: how much of the work was done, and what the tool cost."""
    target = programs.Target(world, program, parked, SLEEPING)
    try:
        time.sleep(1)
        begin_s, work = cpu_s(target.pid), target.mark()["computed"]
        usage = programs.Measured(world, *commands(world, target.pid, seconds)[tool]).wait(seconds + 60)
        work, used_s = target.mark()["computed"] - work, cpu_s(target.pid) - begin_s
    finally:
        target.end()
    found = {"work": work / used_s, "cpu": usage.cpu_s / seconds, "memory": usage.memory_mib}
    if tool == "goroutines" and parked:
        found["seen"] = parked_samples(world.path("goroutines.folded")) / (RATE * seconds * parked)
    return found


def row_of(parked, tool, runs):
    def median(key):
        return statistics.median(run[key] for run in runs[parked, tool])
    lost = statistics.median(1 - run["work"] / base["work"]
                             for run, base in zip(runs[parked, tool], runs[parked, "nothing"]))
    seen = tables.percent(median("seen")) if "seen" in runs[parked, tool][0] else "-"
    return (f"{parked:,}, {tool}", tables.percent(median("cpu")), tables.percent(lost), seen, f"{median('memory'):.0f} MiB")


def report(world):
    seconds, rounds = world.pick((10, 3), (1, 1))
    program = build(world)
    tools = list(commands(world, 0, 0))
    runs = {(parked, tool): [] for parked in PARKED for tool in tools}
    for number in range(rounds):
        for parked, tool in runs:
            programs.progress(f"  {number + 1}: {parked} goroutines, {tool}")
            runs[parked, tool].append(observe(world, program, parked, tool, seconds))
    rows = [row_of(parked, tool, runs) for parked, tool in runs if tool != "nothing"]
    header = ("goroutines that wait", "CPU", "work lost", "seen", "memory")
    return (f"A Go program in which one goroutine computes, {SLEEPING} sleep 10 ms at a time, and so many wait all "
            f"the time; {RATE} Hz, {seconds} s, {rounds} rounds by turns, medians.\n\n"
            "*CPU*: of one CPU, by fgprof-c. *Work lost*: of the goroutine that computes, in a second of the "
            "program's CPU time, against the run with nothing beside it. *Seen*: samples of those that wait, of those there should be. `--no-goroutines` "
            "shows the threads only.\n\n" + tables.table(header, rows))

"""Python programs: fgprof-c beside py-spy, which stops the process for each sample or, with
--nonblocking, reads it while it runs."""

import os
import re
import statistics
import sys
import time

import programs
import tables

TITLE = "Python programs"
TOOLS = ["python3", "py-spy"]
RATE = 99
CHAINS = ({"a1", "a2", "a3"}, {"b1", "b2", "b3"})


def commands(world, pid, seconds, path):
    """{tool: its command}, all including sleeping threads."""
    spy = ["py-spy", "record", "-p", pid, "-d", seconds, "-r", RATE, "--idle", "-f", "raw", "-o", path]
    return {
        "nothing": ["sleep", seconds],
        "fgprof-c": [world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s", "-F", RATE, "-o", path],
        "fgprof-c, stops": [world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s", "-F", RATE, "-o", path,
                            "--capture=ptrace"],
        "py-spy": spy,
        "py-spy --nonblocking": [*spy, "--nonblocking"],
    }


def switches(pid):
    """How often threads that sleep left a CPU: {thread: count}."""
    counts = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as file:
            counts[tid] = sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", file.read())))
    return counts


def stacks_of(path):
    """[(its frames' functions, its count)] of folded stacks; py-spy's frames have files and lines."""
    stacks = []
    with open(path) as file:
        for line in file:
            stack, count = line.rstrip("\n").rsplit(" ", 1)
            stacks.append(({re.sub(r" \(.*", "", frame) for frame in stack.split(";")}, int(count)))
    return stacks


def mixed_share(stacks):
    """Of the samples in one of the chains, how many are in both."""
    in_chains = [(names, count) for names, count in stacks if any(names & chain for chain in CHAINS)]
    mixed = sum(count for names, count in in_chains if all(names & chain for chain in CHAINS))
    return mixed / max(1, sum(count for _, count in in_chains))


def observe(world, tool, seconds):
    """One run: what the tool did to the process, and what it cost."""
    path = world.path("python.folded")
    target = programs.Target(world, sys.executable if not world.has("python3") else "python3",
                             os.path.join(world.source, "bench", "targets", "python_scene.py"))
    try:
        time.sleep(0.5)
        before, begin, work = switches(target.pid), time.monotonic(), target.mark()["turns"]
        command = list(map(str, commands(world, target.pid, seconds, path)[tool]))
        usage = programs.Measured(world, *command).wait(seconds + 60)
        work, elapsed_s = target.mark()["turns"] - work, time.monotonic() - begin
        after = switches(target.pid)
    finally:
        target.end()
    # The thread that computes and the first one, which answers, are the two that switched most.
    woken = sorted(after[tid] - before.get(tid, 0) for tid in after)[:-2]
    found = {"work": work / elapsed_s, "woken": sum(woken) / (RATE * seconds), "cpu": usage.cpu_s / seconds}
    if tool != "nothing":
        stacks = stacks_of(path)
        found["mixed"] = mixed_share(stacks)
        found["asleep"] = sum(count for names, count in stacks if "sleep_inner" in names) / (
            RATE * seconds * 8)
    return found


def report(world):
    seconds, rounds = world.pick((10, 5), (1, 1))
    tools = [tool for tool in commands(world, 0, 0, "") if not tool.startswith("py-spy") or world.has("py-spy")]
    runs = {tool: [] for tool in tools}
    for number in range(rounds):
        for tool in tools:
            programs.progress(f"  {number + 1}: {tool}")
            runs[tool].append(observe(world, tool, seconds))

    def median(tool, key):
        return statistics.median(run[key] for run in runs[tool])
    rows = []
    for tool in tools[1:]:
        lost = statistics.median(1 - run["work"] / base["work"]
                                 for run, base in zip(runs[tool], runs["nothing"]))
        rows.append((tool, f"{median(tool, 'woken'):.2f}", tables.percent(lost), tables.percent(median(tool, "cpu")),
                     tables.percent(median(tool, "asleep")), tables.percent(median(tool, "mixed"))))
    header = ("", "switches of sleepers", "work lost", "CPU", "sleepers seen", "mixed stacks")
    return (f"A program of 8 threads that sleep and one that computes, in two chains of calls that share no "
            f"function; {RATE} Hz, {seconds} s, {rounds} rounds by turns, medians.\n\n"
            "*Switches of sleepers*: how often the threads that sleep left a CPU, a sample, all together; 0: none "
            "was woken. *Work lost*: of the thread that computes, against the run with nothing beside it. *CPU*: of "
            "one CPU, by the tool. *Sleepers seen*: samples in their function, of those there should be. *Mixed "
            "stacks*: samples that are in both chains at once, of those in any.\n\n" + tables.table(header, rows))

"""Python programs: what fgprof-c, py-spy and pystack do to a program, and how much of their output is true by
the program's own clock. Below that, the tests with other releases, which scripts/runtimes writes."""

import os
import re
import statistics
import sys
import time

import programs
import tables

TITLE = "Programs with a runtime of their own"
TOOLS = ["python3", "py-spy", "pystack"]
RATE = 99
SLEEPERS = 8
CHAINS = ({"a1", "a2", "a3"}, {"b1", "b2", "b3"})
MANY_THREADS = 16
MANY_RATE = 999
OTHER_RELEASES = "## Other Debian releases"


def commands(world, pid, seconds, path):
    """{tool: its command}. py-spy and fgprof-c include sleeping threads."""
    attach = [world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s", "-F", RATE, "-o", path]
    spy = ["py-spy", "record", "-p", pid, "-d", seconds, "-r", RATE, "--idle", "-f", "raw", "-o", path]
    stack = f'end=$(($(date +%s) + {seconds})); while [ $(date +%s) -lt $end ]; do pystack remote {{}} {pid} ' \
            f'>>{path}; done'
    return {
        "nothing": ["sleep", seconds],
        "fgprof-c": attach,
        "fgprof-c, stops": [*attach, "--capture=ptrace"],
        "py-spy": spy,
        "py-spy --nonblocking": [*spy, "--nonblocking"],
        "pystack, again and again": ["sh", "-c", stack.format("")],
        "pystack --no-block, again and again": ["sh", "-c", stack.format("--no-block")],
    }


def stacks_of(path):
    """[(names of its frames, count)]: folded stacks, or what pystack prints."""
    with open(path) as file:
        text = file.read()
    if "Traceback for thread" in text:
        return [(set(re.findall(r"^ *\(Python\) File .*, line \d+, in (\S+)", thread, re.M)), 1)
                for thread in text.split("Traceback for thread")[1:]]
    pairs = [line.rsplit(" ", 1) for line in text.splitlines()]
    return [({re.sub(r" \(.*", "", frame) for frame in stack.split(";")}, int(count)) for stack, count in pairs]


def judge(stacks, truth):
    """How many samples there are of chains, how many are in both, and by how much their shares differ from
    the truth; and how many are of sleepers."""
    counts, mixed = [0, 0], 0
    for names, count in stacks:
        is_in = [bool(names & chain) for chain in CHAINS]
        mixed += count * all(is_in)
        counts = [sum_ + count * (one and not all(is_in)) for sum_, one in zip(counts, is_in)]
    share = counts[0] / max(1, sum(counts))
    return {"in_chains": sum(counts) + mixed, "mixed": mixed,
            "wrong": abs(share - truth["a_s"] / (truth["a_s"] + truth["b_s"])),
            "asleep": sum(count for names, count in stacks if "sleep_inner" in names)}


def observe(world, command, seconds, threads):
    """One run: `command` gets the process and a path. Returns the facts about it."""
    path = world.path("runtimes.folded")
    if os.path.exists(path):
        os.unlink(path)
    target = programs.Target(world, "python3" if world.has("python3") else sys.executable,
                             os.path.join(world.source, "bench", "targets", "python_chains.py"), threads, SLEEPERS)
    try:
        time.sleep(0.5)
        before = target.mark()
        usage = programs.Measured(world, *map(str, command(target.pid, path))).wait(seconds + 120)
        after = target.mark()
    finally:
        target.end()
    found = {name: after[name] - before[name] for name in after}
    found.update(longest_s=after["longest_s"], wall_s=usage.wall_s, cpu=usage.cpu_s / usage.wall_s)
    if os.path.exists(path):
        found.update(judge(stacks_of(path), found))
    elif usage.status:
        raise RuntimeError(f"{command(target.pid, path)[0]} ended with {usage.status}: {usage.stderr}")
    return found


def beside_others(world):
    seconds, rounds = world.pick((10, 3), (1, 1))
    tools = [tool for tool in commands(world, 0, 0, "")
             if not tool.startswith(("py-spy", "pystack")) or world.has(tool.split()[0].rstrip(","))]
    runs = {tool: [] for tool in tools}
    for number in range(rounds):
        for tool in tools:
            programs.progress(f"  {number + 1}: {tool}")
            runs[tool].append(observe(
                world, lambda pid, path, tool=tool: commands(world, pid, seconds, path)[tool], seconds, 1))

    def median(tool, value):
        return statistics.median(map(value, runs[tool]))
    rows = []
    for tool in tools:
        row = [tool, f"{median(tool, lambda run: run['interrupted'] / run['wall_s']):.1f}",
               f"{median(tool, lambda run: 1e3 * run['held_up_s'] / run['wall_s']):.1f} ms",
               tables.duration(median(tool, lambda run: run["longest_s"])),
               tables.percent(median(tool, lambda run: run["cpu"])) if tool != "nothing" else ""]
        if tool == "nothing":
            row += 4 * [""]
        else:
            # Each has one thread in a chain and 8 asleep.
            row += [f"{median(tool, lambda run: run['asleep'] / SLEEPERS / run['wall_s']):.1f}",
                    f"{median(tool, lambda run: run['in_chains'] / run['wall_s']):.1f}",
                    *(2 * ["-"] if not median(tool, lambda run: run["in_chains"]) else [
                        tables.points(median(tool, lambda run: run["wrong"])),
                        tables.percent(median(tool, lambda run: run["mixed"] / max(1, run["in_chains"])))])]
        rows.append(row)
    header = ("", "EINTR", "held up", "longest", "CPU", "looks", "in chains", "wrong", "mixed")
    return (f"A Python program of one thread that computes in two chains of calls that share no function, and "
            f"{SLEEPERS} that wait in epoll_wait(2); {RATE} Hz, {seconds} s, {rounds} rounds by turns, medians.\n\n"
            "*EINTR*: interrupted calls a second. *Held up*: how much of each second the thread that computes was "
            "late, by turns that took longer than 1 ms, three times as long as others; *longest*: the longest of these; both also have "
            "what else the machine does, see the first row. *CPU*: of one CPU, by the tool. *Looks*: samples a second "
            f"of each thread that waits, of {RATE}. *In chains*: samples a second of the thread that computes, which "
            "spends some of its time between the chains. *Wrong*: points by which the share of a chain differs from "
            "the program's own clock. *Mixed*: of the samples in chains, those in both.\n\n"
            + tables.table(header, rows))


def many_samples(world):
    """Whether stacks mix the chains, in as many samples as fit into some time."""
    seconds = world.pick(100, 2)
    options = ["-F", MANY_RATE, "-d", f"{seconds}s"]
    rows = []
    for name, more in (("fgprof-c", []), ("fgprof-c, stops", ["--capture=ptrace"])):
        programs.progress(f"  many samples: {name}")
        run = observe(world, lambda pid, path, more=more: [world.fgprof, "attach", "-p", pid, *options, *more, "-o",
                                                           path], seconds, MANY_THREADS)
        rows.append((name, tables.count(run["in_chains"]), tables.count(run["mixed"]), tables.points(run["wrong"])))
    header = ("", "samples in chains", "in both", "wrong")
    return (f"The same of {MANY_THREADS} threads that compute by turns, {MANY_RATE} Hz, {seconds} s: those that wait "
            "for the GIL are in a chain, too, and move each 5 ms. No sample may be in both chains.\n\n"
            + tables.table(header, rows))


def other_releases(world):
    """What scripts/runtimes has written there."""
    path = os.path.join(world.source, "bench", "results", "runtimes.md")
    with open(path) as file:
        _, heading, rest = file.read().partition(OTHER_RELEASES)
    return heading + rest


def report(world):
    return "\n\n".join([beside_others(world), many_samples(world), other_releases(world)])

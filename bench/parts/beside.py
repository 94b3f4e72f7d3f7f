"""fgprof-c beside other tools: what each of them sees, what it does to the process, and what it
needs. The table in README.md is made from this."""

import contextlib
import os
import re
import statistics
import subprocess
import time

import machine
import programs
import tables
from parts import pause, wake

TITLE = "Beside other tools"
COMPARED = ["fgprof-c", "perf record", "offcputime", "eu-stack", "gdb", "Go's fgprof"]
PROGRAM = {"perf record": "perf", "offcputime": "offcputime", "eu-stack": "eu-stack", "gdb": "gdb",
           "Go's fgprof": "go"}
TOOLS = PROGRAM.values()
GO_PACKAGE = "golang-github-felixge-fgprof-dev"
GO_SOURCES = "/usr/share/gocode"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
          "--inh-caps=-all"]
# Calls that a stop does not disturb: signal(7).
RESTARTED = ("poll", "clock_nanosleep")
FAILED = "fails here"
# The state of a thread of the scenes: its row, its inner function, and what that calls meanwhile.
STATES = {
    "running": ("sees a thread that computes", r"runningInner|running_inner", ""),
    "dozing": ("sees one that sleeps 20 ms at a time", r"dozingInner|dozing_inner",
               r"nanosleep|time\.Sleep"),
    "asleep": ("sees one that sleeps all the time", r"asleepInner|asleep_inner", r"read|chanrecv"),
}


def is_there(world, tool):
    if tool == "Go's fgprof" and not os.path.isdir(GO_SOURCES + "/src/github.com/felixge/fgprof"):
        return False
    return tool not in PROGRAM or world.has(PROGRAM[tool])


# Each of these starts a tool that watches a process for a time.


def start_perf(world, pid, seconds, prefix=()):
    data = world.path("perf.data")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(data)
    return programs.Measured(world, *prefix, "perf", "record", "-F", "99", "--call-graph", "dwarf",
                             "-o", data, "-p", pid, "--", "sleep", seconds)


def start_offcputime(world, pid, seconds, prefix=()):
    return programs.Measured(world, *prefix, "offcputime", "-p", pid, f"{seconds:.0f}",
                             keeps_stdout=True)


def start_fgprof(world, pid, seconds, prefix=()):
    return programs.Measured(world, *prefix, world.fgprof, "attach", "-p", pid, "-d", f"{seconds}s",
                             "-o", "-", keeps_stdout=True)


class Go:
    """The scene in Go, which samples itself when it is told to."""

    def __init__(self, world):
        self.world = world
        self.program = world.path("scene-go")
        source = os.path.join(world.source, "bench", "targets", "scene.go")
        environment = dict(programs.ENVIRONMENT, GO111MODULE="off", GOPATH=GO_SOURCES,
                           GOCACHE=world.path("go-cache"), GOFLAGS="")
        subprocess.run(["go", "build", "-o", self.program, source], check=True, env=environment,
                       timeout=300)

    @contextlib.contextmanager
    def target(self):
        target = programs.Target(self.world, self.program)
        try:
            yield target
        finally:
            target.end()


def output_of(world, tool, pid, seconds, prefix=()):
    """What the tool reports about a process that it watches for a time; None if it fails."""
    if tool == "perf record":
        if start_perf(world, pid, seconds, prefix).wait(seconds + 60).status:
            return None
        usage = world.run("perf", "script", "-f", "--no-inline", "-i", world.path("perf.data"),
                          keeps_stdout=True)
    elif tool == "offcputime":
        usage = start_offcputime(world, pid, seconds, prefix).wait(seconds + 60)
    elif tool == "fgprof-c":
        usage = start_fgprof(world, pid, seconds, prefix).wait(seconds + 60)
    else:
        usage = world.run(*prefix, *programs.SNAPSHOTS[tool], pid, keeps_stdout=True)
    return usage.stdout if usage.status == 0 and usage.stdout.strip() else None


def stacks_of(output):
    """An output split into stacks: lines of folded stacks, or else paragraphs or what follows a heading."""
    if re.search(r"^[^ \n]+;.* \d+$", output, re.MULTILINE):
        return output.splitlines()
    return re.split(r"\n\n|^(?=TID )", output, flags=re.MULTILINE)


def how_much(output, state):
    """How much of a thread's stack is in the output, at best, from when it was in its state."""
    _, inner, leaf = STATES[state]
    outer = inner.replace("Inner", "Outer").replace("inner", "outer")
    stacks = [stack for stack in stacks_of(output) if re.search(leaf, stack)]
    has_outer = [stack for stack in stacks if re.search(rf"\b({outer})\b", stack)]
    if any(re.search(rf"\b({inner})\b", stack) for stack in has_outer):
        return "yes"
    if has_outer:
        return "caller missing"
    return "no callers" if any(re.search(rf"\b{state}\b", stack) for stack in stacks) else "no"


def names_owner(world, tool, target, output):
    """Whether the output about the blocked thread contains the id of the mutex's owner."""
    if tool == "fgprof-c":
        output = world.run(world.fgprof, "dump", "-p", target.pid, keeps_stdout=True).stdout
    if output is None:
        return FAILED
    ids = target.mark()
    return "yes" if any(re.search(rf"\b{ids['owner']}\b", stack) for stack in stacks_of(output)
                        if "blocked_outer" in stack) else "no"


def seen(world, tools):
    """The rows of what is seen: {row: {tool: cell}}."""
    rows = {}
    seconds = world.pick(3, 1)
    for program, built in (("scene", ""), ("scene-frame-pointers", ", with frame pointers")):
        with world.target(program) as target:
            for tool in tools:
                if tool == "Go's fgprof":
                    continue
                programs.progress(f"  {program}: {tool}")
                output = output_of(world, tool, target.pid, seconds)
                for state, (words, *_) in STATES.items():
                    rows.setdefault(f"{words}{built}", {})[tool] = \
                        FAILED if output is None else how_much(output, state)
                if program == "scene":
                    rows.setdefault("names the owner of a mutex", {})[tool] = \
                        names_owner(world, tool, target, output)
    return rows


def unprivileged(world, tools):
    """Whether a tool can watch a process of its own user, if that is not root."""
    cells = {}
    prefix = NOBODY if os.getuid() == 0 else []
    os.chmod(world.directory, 0o777)
    target = programs.Target(world, *prefix, world.program("scene"))
    try:
        for tool in tools:
            if tool != "Go's fgprof":
                programs.progress(f"  as an ordinary user: {tool}")
                output = output_of(world, tool, target.pid, 1, prefix)
                cells[tool] = "yes" if output and "running_outer" in output else "no"
    finally:
        target.end()
        os.chmod(world.directory, 0o755)
    return cells


def early_cell(early, snapshots, calls):
    return f"{early / snapshots / calls:.2f}" if early else "0"


def ended_early(world, tools):
    """The share of calls that return early at a snapshot, among those that a stop disturbs."""
    seconds, number = world.pick((10, 20), (2, 2))
    cells = {}
    with world.target("sleepers") as target:
        time.sleep(wake.SETTLE_S)
        for tool in tools:
            if tool == "Go's fgprof":
                continue
            programs.progress(f"  sleepers: {tool}")
            if tool == "fgprof-c":
                watch = wake.under_fgprof(world, target, seconds)
            elif tool in programs.SNAPSHOTS:
                watch = wake.under_snapshots(tool, world, target, number)
            else:
                start = start_perf if tool == "perf record" else start_offcputime
                watch = wake.Watch(target)
                usage = start(world, target.pid, seconds).wait(seconds + 60)
                if usage.status:
                    cells[tool] = FAILED
                    continue
                watch.end(99 * seconds)
            counts = [count for call, count in watch.counts.items()
                      if count is not None and call not in RESTARTED]
            cells[tool] = early_cell(sum(counts), watch.snapshots, len(counts))
    return cells


def go_profile(target, seconds):
    """What the scene in Go counted before and after it sampled itself, and the profile."""
    before = target.mark()
    target.mark("start")
    time.sleep(seconds)
    profile = target.mark("stop")["profile"]
    return before, target.mark(), profile


def under_offcputime(world, target, threads, seconds):
    sampler = start_offcputime(world, target.pid, seconds + 3)
    window = pause.watch_with_cpu(target, sampler, seconds)
    sampler.wait(30)
    window.snapshots = 99 * window.s
    return window


def under_fgprof_go(world, target, threads, seconds):
    target.mark("start")
    time.sleep(pause.SETTLE_S)
    window = pause.watch(target, seconds)
    target.mark("stop")
    window.snapshots, window.sampler_cpu = 99 * window.s, 0
    return window


def pauses(world, tools, go):
    """How long a sample keeps a computing thread from its work."""
    under = {"fgprof-c": pause.under_fgprof, "perf record": pause.under_perf,
             "offcputime": under_offcputime, "eu-stack": pause.under_snapshots("eu-stack"),
             "gdb": pause.under_snapshots("gdb")}
    samplers = [(tool, None, under[tool]) for tool in tools if tool in under]
    repetitions, seconds = world.pick((5, 2), (2, 0.3))
    with pause.two_cpus():
        comparisons, _ = pause.measure(world, lambda: world.target("spin", 1), 1, samplers,
                                       repetitions, seconds)
        if go:
            comparisons += pause.measure(world, go.target, 1,
                                         [("Go's fgprof", None, under_fgprof_go)], repetitions,
                                         seconds)[0]
    cells = {}
    for comparison in comparisons:
        paused_s = comparison.paused_s()
        cells[comparison.name] = tables.duration(paused_s) if paused_s and paused_s > 0 \
            else "not clear of chance"
    return cells


def round_trips(world, tools):
    """How long a round trip of two threads takes, and what each tool adds to it."""
    start = {"fgprof-c": start_fgprof, "perf record": start_perf, "offcputime": start_offcputime}
    repetitions, seconds = world.pick((5, 2), (2, 0.3))
    added = {tool: [] for tool in tools if tool in start}

    def trip_s(target):
        first = target.mark()
        time.sleep(seconds)
        last = target.mark()
        return (last["ns"] - first["ns"]) / 1e9 / (last["trips"] - first["trips"])

    with pause.two_cpus(), world.target("pingpong") as target:
        before = [trip_s(target)]
        for repetition in range(repetitions):
            programs.progress(f"  round trips, round {repetition + 1} of {repetitions}")
            for tool in added:
                sampler = start[tool](world, target.pid, round(seconds + 3))
                time.sleep(1.5)
                during = trip_s(target)
                failed = sampler.wait(60).status
                before.append(trip_s(target))
                if not failed:
                    added[tool].append(during - statistics.mean(before[-2:]))
    return statistics.median(before), {
        tool: f"{statistics.median(values) * 1e6:+.1f} us" if values else FAILED
        for tool, values in added.items()}


def pages(world, tools):
    """Whether the tool itself writes a page that loads nothing. Most write text alone."""
    cells = {tool: "no" for tool in tools}
    with world.target("scene") as target:
        page = world.path("page.html")
        world.run(world.fgprof, "attach", "-p", target.pid, "-d", "1s", "-o", page)
        cells["fgprof-c"] = "yes" if is_whole_page(page) else "no"
        if "perf record" in tools:
            page = world.path("flamegraph.html")
            start_perf(world, target.pid, 1).wait(60)
            usage = world.run("perf", "script", "report", "flamegraph", "-i",
                              world.path("perf.data"), cwd=world.directory)
            missing = "template" in usage.stderr
            cells["perf record"] = "yes" if is_whole_page(page) else \
                "no: lacks a template" if missing else "no"
    return cells


def is_whole_page(path):
    if not os.path.exists(path):
        return False
    with open(path, errors="replace") as file:
        text = file.read()
    loads = r"<(script|link|img)[^>]+(src|href)=[\"']?(https?:|//)"
    return "<html" in text and not re.search(loads, text)


def report(world):
    tools = [tool for tool in COMPARED if is_there(world, tool)]
    go = Go(world) if "Go's fgprof" in tools else None
    rows = seen(world, tools)
    rows["works as an ordinary user"] = unprivileged(world, tools)
    early = ended_early(world, tools)
    if go:
        programs.progress("  Go's fgprof")
        with go.target() as target:
            seconds = world.pick(10, 2)
            before, after, profile = go_profile(target, seconds)
            for state, (words, *_) in STATES.items():
                rows[words]["Go's fgprof"] = how_much(profile, state)
            early["Go's fgprof"] = early_cell(after["early"] - before["early"], 99 * seconds, 1)
            rows["names the owner of a mutex"]["Go's fgprof"] = "yes" if re.search(
                r"^.*blockedOuter.*ownerOuter", profile, re.MULTILINE) else "no"
    rows["calls ended early, a sample"] = early
    rows["pause, a sample"] = pauses(world, tools, go)
    trip_s, rows["added to a round trip"] = round_trips(world, tools)
    rows["writes a page that loads nothing"] = pages(world, tools)
    header = [""] + COMPARED
    table = tables.table(header, [
        [words] + [(cells.get(tool, "-") if tool in tools else tables.NOT_INSTALLED)
                   for tool in COMPARED] for words, cells in rows.items()])
    go_version = f" (version {machine.package_version(GO_PACKAGE)})" if go else ""
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        paranoid = file.read().strip()
    return f"""*Sees*: the program `bench/targets/scene.c` has a thread in each state, two functions deep. "yes":
the tool names both functions. "caller missing": it names the outer one only. "no callers": it shows
the thread, but neither function. The program is built without and with frame pointers, by which
offcputime finds callers; libc is Debian's, which has none. offcputime counts a thread that computes
only while it waits for a CPU. Go's fgprof{go_version} samples the program that it is built into, so it has its
own scene (`bench/targets/scene.go`).

*Names the owner*: what the tool says of a thread that waits for a mutex contains the id of the
thread that holds it. *Ordinary user*: sampling a process of one's own without any capability, with
perf_event_paranoid at {paranoid}. *Calls ended early*: the share of calls that return early, a
sample, of the ten calls below that a stop disturbs (Go: of epoll_wait). *Pause*: how long a sample
keeps one computing thread from its work, measured as by `scripts/bench pause`. *Round trip*: two threads
wake each other over a socket, which takes {trip_s * 1e6:.1f} us; offcputime stops nothing, and its
cost is here.

{table}"""


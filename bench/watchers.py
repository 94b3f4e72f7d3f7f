"""Ways to watch a process for a time and to see what its threads did, as samples in one form.

Each has a name, the kinds of shares that it can show (parts/truth), and whether it samples, or knows every
moment."""

import collections
import os
import re

import programs

# How many of a thread's samples have this stack. Functions are leaf first, without those of the
# kernel and inlined ones. The state is "running", "runnable" or "asleep".
Sample = collections.namedtuple("Sample", "thread functions state count")

# Enough for the few frames of the targets, and for the leaf of any program.
PERF_STACK_BYTES = 1024
TIMEOUT_S = 120


class Failed(Exception):
    """A way that does not work here."""


def require(usage, has_result=True):
    """Raises Failed, with the last line of the program's output, unless it ended well."""
    if usage.status or not has_result:
        said = usage.stderr.strip().splitlines()
        raise Failed(said[-1] if said else f"status {usage.status}, and nothing to show")


class Fgprof:
    kinds = {"running", "wall", "state"}
    samples = True

    def __init__(self, name, program, *options):
        self.name = name
        self.command = [program, "attach", *options]

    def watch(self, world, pid, seconds, rate_hz):
        path = world.path("profile.folded")
        usage = world.run(*self.command, "-p", pid, "-F", rate_hz, "-d", f"{seconds}s", "-t",
                          "--state", "-f", "folded", "-o", path, timeout_s=seconds + TIMEOUT_S)
        require(usage)
        with open(path) as file:
            return [self.sample(line) for line in file]

    @staticmethod
    def sample(line):
        """A line as "server;main;burst_60;[running] 123"."""
        stack, _, count = line.rpartition(" ")
        thread, *frames, state = stack.split(";")
        functions = [frame for frame in reversed(frames) if not frame.endswith(("_[i]", "_[k]"))]
        state = state.strip("[]")
        if state not in ("running", "runnable"):
            state = "asleep"
        return Sample(thread, functions, state, int(count))


class Perf:
    """Samples what runs, by a clock for each CPU: a clock for each thread would make its switches more
    expensive. The server of bursts.c then needs 14 % of its running time to talk, not 6 %."""

    name = "perf"
    kinds = {"running"}
    samples = True

    def __init__(self, call_graph=f"dwarf,{PERF_STACK_BYTES}"):
        self.call_graph = call_graph  # "fp": only the innermost function is right everywhere

    def start(self, world, seconds, rate_hz):
        return programs.Measured(world, "perf", "record", "-B", "-e", "cpu-clock", "-F", rate_hz,
                                 "--call-graph", self.call_graph, "-o", world.path("perf.data"), "-a",
                                 "--", "sleep", seconds)

    def samples_of(self, world, recording, pids):
        """Waits until the recording is over."""
        data = world.path("perf.data")
        require(recording.wait(TIMEOUT_S))
        usage = world.run("perf", "script", "-f", "--no-inline", "--pid", ",".join(map(str, pids)), "-F",
                          "comm,tid,ip,sym", "-i", data, keeps_stdout=True, timeout_s=TIMEOUT_S)
        os.unlink(data)
        require(usage)
        return [self._sample(text) for text in usage.stdout.split("\n\n") if text.strip()]

    def watch(self, world, pid, seconds, rate_hz):
        return self.samples_of(world, self.start(world, seconds, rate_hz), [pid])

    @staticmethod
    def _sample(text):
        """A paragraph: "server 1234 ", then a line as "    55d0c0de1234 burst_60" a frame."""
        heading, *lines = text.strip("\n").split("\n")
        frames = [line.split(None, 1) for line in lines]
        functions = [frame[-1] for frame in frames if not int(frame[0], 16) >> 63]  # the kernel's
        return Sample(heading.rsplit(None, 1)[0].strip(), functions, "running", 1)


class Offcputime:
    """Knows each moment off the CPU: for how long, and with which stack."""

    name = "offcputime"
    kinds = {"off"}
    samples = False

    def watch(self, world, pid, seconds, rate_hz):
        usage = world.run("offcputime", "-p", pid, f"{seconds:.0f}", keeps_stdout=True,
                          timeout_s=seconds + TIMEOUT_S)
        samples = [sample for sample in map(self._sample, usage.stdout.split("\n\n")) if sample]
        require(usage, samples)
        return samples

    @staticmethod
    def _sample(text):
        """A paragraph: a line a frame, leaf first, then "-  server (1234)" and microseconds."""
        found = re.search(r"^\s*-\s+(.*) \(\d+\)\n\s+(\d+)$", text.rstrip(), re.MULTILINE)
        if not found:
            return None
        frames = [line.split()[-1] for line in text[:found.start()].splitlines() if line.strip()]
        return Sample(found[1], frames, "asleep", int(found[2]))


def own(world):
    """fgprof-c in each of its ways to capture, and another build if one was given."""
    ways = [Fgprof("fgprof-c", world.fgprof),
            *(Fgprof(f"--capture={capture}", world.fgprof, f"--capture={capture}")
              for capture in ("kernel", "ptrace"))]
    if world.options.other:
        name = f"without {world.options.without}" if world.options.without else "the other"
        ways.append(Fgprof(name, world.options.other))
    return ways


def others(world):
    return [way for way in (Perf(), Offcputime()) if world.has(way.name)]

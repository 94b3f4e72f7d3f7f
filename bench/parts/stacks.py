"""How accurate the stacks of real programs are: how many reach their thread's first frame, how many of their
frames have names, and whether gdb sees the same.

Servers listen on loopback only, in a directory of their own."""

import collections
import os
import signal
import subprocess
import sys
import time

import compare  # of tests/matrix, as stacks is
import programs
import stacks
import tables
from real_programs import PROGRAMS, Missing, Stage

TITLE = "How true the stacks of real programs are"
TOOLS = ("gdb",)
PROCESSES_MAX = 4
COLUMNS = ["program", "samples", "whole", "named, of those in files with symbols", "named, of all",
           "threads beside gdb", "the same", "frames beside gdb", "the same"]

TEXT = """*Whole* are the samples whose stack reaches its thread's first frame, in a profile of {seconds:g} s
under load. Frames are counted as often as they were sampled. A file *with symbols* has a symbol
table (`.symtab`, or the small one in `.gnu_debugdata`) or a file of debug information is installed
for it; the symbols that a library exports for the dynamic linker are not counted as one, since they
leave most functions out. {rounds} times the process is then stopped by SIGSTOP, so that gdb sees the
same of it, and what both say of each thread is compared frame by frame: address, function, inlined
functions too, and line. A thread is *the same* where all of its frames are. The goals are 99.9 %
whole, 100 % named and 99.5 % the same.

gdb is no judge of code that is made at run time, as node's and java's: it knows neither its frames
nor its names. Nor is it of Go's, where the runtime has gone on to its thread's own stack."""


class Symbols:
    """Which files have them."""

    def __init__(self):
        self._known = {}

    def are_in(self, path):
        if path not in self._known:
            self._known[path] = self._look(path)
        return self._known[path]

    @staticmethod
    def _look(path):
        out = subprocess.run(["readelf", "-nSW", path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, timeout=60).stdout
        build_id = out.partition("Build ID: ")[2].partition("\n")[0].strip()
        debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        return " .symtab " in out or " .gnu_debugdata " in out or (
            bool(build_id) and os.path.exists(debug))


def mappings_of(pid):
    """[(start, end, path), ...]; the path is empty for memory of no file."""
    found = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            words = line.split(None, 5)
            start, end = (int(word, 16) for word in words[0].split("-"))
            found.append((start, end, words[5].strip() if len(words) == 6 else ""))
    return found


def file_of(address, mappings):
    return next((path for start, end, path in mappings if start <= address < end), "")


def count_profile(world, pid, seconds, symbols, totals):
    """A profile under load."""
    sampled, _ = stacks.of_fgprof(world.fgprof, pid, duration=f"{seconds:g}s")
    mappings = mappings_of(pid)
    for counts in sampled.values():
        for stack, count in counts.items():
            is_cut = stack[-1].address is None
            totals["samples"] += count
            totals["whole"] += 0 if is_cut else count
            for frame in stack[:-1] if is_cut else stack:
                is_named = count if frame.name else 0
                has_symbols = symbols.are_in(file_of(frame.address, mappings))
                totals["frames"] += count
                totals["named"] += is_named
                totals["with symbols"] += count if has_symbols else 0
                totals["named with symbols"] += is_named if has_symbols else 0


def is_stopped(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] != "T":
                return False
    return True


def compare_with_gdb(world, pid, aliases, totals):
    """All threads of a process that is stopped."""
    os.kill(pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + 10
        while not is_stopped(pid) and time.monotonic() < end:
            time.sleep(0.01)
        sampled, names = stacks.of_fgprof(world.fgprof, pid, duration="500ms")
        judged, files = stacks.of_gdb(pid)
    finally:
        os.kill(pid, signal.SIGCONT)
    for tid, frames in judged.items():
        # Where a register had to be learned first, the stack was cut until then.
        mine = max(sampled.get(tid, {(): 0}), key=len)
        result = compare.compare(mine, frames, aliases, files)
        totals["gdb threads"] += 1
        totals["same threads"] += not result.differing
        totals["gdb frames"] += result.frames
        totals["same frames"] += result.same
        if world.options.show and result.differing:
            print(f"{pid} {names.get(tid)}", *result.words, "", sep="\n", file=sys.stderr)


def extent(world):
    """The seconds of a profile, and the rounds of comparison with gdb."""
    return world.pick((5, 4), (1, 1))


def measure(world, name, symbols):
    seconds, rounds = extent(world)
    stage = Stage()
    totals = collections.Counter()
    try:
        pids = PROGRAMS[name](stage)[:PROCESSES_MAX]
        time.sleep(1)
        for pid in pids:
            count_profile(world, pid, seconds / len(pids), symbols, totals)
        aliases = stacks.Aliases(stage.directory)
        for round_number in range(rounds):
            time.sleep(0.2)
            compare_with_gdb(world, pids[round_number % len(pids)], aliases, totals)
        return totals
    finally:
        stage.close()


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "-"


def row_of(name, totals):
    return [name, tables.count(totals["samples"]), share(totals["whole"], totals["samples"]),
            share(totals["named with symbols"], totals["with symbols"]),
            share(totals["named"], totals["frames"]), totals["gdb threads"],
            share(totals["same threads"], totals["gdb threads"]), totals["gdb frames"],
            share(totals["same frames"], totals["gdb frames"])]


def report(world):
    rows, symbols = [], Symbols()
    for name in world.chosen(PROGRAMS):
        programs.progress(f"  {name}")
        try:
            rows.append(row_of(name, measure(world, name, symbols)))
        except Missing as program:
            rows.append([name, f"{program} is not installed"] + [""] * (len(COLUMNS) - 2))
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            rows.append([name, "failed"] + [""] * (len(COLUMNS) - 2))
            programs.progress(f"  {name}: {error}")
    seconds, rounds = extent(world)
    return f"{TEXT.format(seconds=seconds, rounds=rounds)}\n\n{tables.table(COLUMNS, rows)}"

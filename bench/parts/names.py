"""How fast profiles are symbolized, and in how much memory.

Makes programs with much debug information: needs twice their size in the temporary directory."""

import os
import re
import statistics
import subprocess

import names_program
import programs
import tables

TITLE = "What naming costs"
TOOLS = ()
DISTINCT = 100000
SECONDS = 2
ROUNDS = 3
TIMEOUT_S = 600


def code_bytes(program):
    headers = subprocess.run(["readelf", "-lW", program], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    return sum(int(line.split()[4], 16) for line in headers.splitlines() if " R E " in line)


def name_all(world, program):
    """Symbolizes distinct addresses, spread over all the code. Returns their number and the Usage."""
    every = max(1, code_bytes(program) // DISTINCT)
    usage = world.run(world.program("name-addresses"), "-q", program, every, timeout_s=TIMEOUT_S,
                      keeps_stdout=True)
    count = int(re.search(r"addresses=(\d+)", usage.stdout)[1])
    named = int(re.search(r"named=(\d+)", usage.stdout)[1])
    if usage.status or named < 0.99 * count:
        raise RuntimeError(usage.stdout + usage.stderr)
    return count, usage


def profile(world, fgprof, program):
    """A profile of the program at work. Returns the seconds from the last tick to the end, and the
    Usage, which includes that of the process that reads names."""
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as target:
        try:
            if target.stdout.readline() != "ready\n":
                raise RuntimeError(f"{program} is not ready")
            usage = world.run(fgprof, "attach", "-q", "-p", target.pid, "-d", f"{SECONDS}s",
                              "-o", world.path("profile.pb.gz"), timeout_s=TIMEOUT_S)
        finally:
            target.kill()
    if usage.status:
        raise RuntimeError(usage.stderr)
    return usage.wall_s - SECONDS, usage


def row_of(world, mib):
    program = names_program.build(world.directory, mib << 20)
    count, all_ = name_all(world, program)
    fgprofs = [world.fgprof, *([world.options.other] if world.options.other else [])]
    shown = []
    for fgprof in fgprofs * ROUNDS:
        seconds, usage = profile(world, fgprof, program)
        shown.append((seconds, usage.cpu_s, usage.memory_mib))
    middles = [[statistics.median(column) for column in zip(*shown[first::len(fgprofs)])]
               for first in range(len(fgprofs))]
    debug = names_program.debug_bytes(program)
    return [f"{os.path.getsize(program) / 1e6:,.0f} MB, {debug / 1e6:,.0f} MB of it debug "
            "information", *(cell for seconds, cpu_s, mib in middles for cell in
                             (tables.duration(seconds), tables.duration(cpu_s), f"{mib:.0f} MiB")),
            tables.count(count), tables.duration(all_.wall_s), tables.duration(all_.cpu_s),
            f"{all_.memory_mib:.0f} MiB"]


def report(world):
    rows = []
    for mib in world.pick([40, 1024], [40]):
        programs.progress(f"  a program with {mib} MiB of debug information")
        rows.append(row_of(world, mib))
    columns = ["Profile written after last tick", "CPU time in all", "Most memory"]
    others = [f"{column}, other build" for column in columns] if world.options.other else []
    return tables.table(["Program", *columns, *others,
                         "Distinct addresses", "Named in", "CPU time", "Most memory"], rows)

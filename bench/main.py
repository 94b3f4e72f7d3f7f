"""Measures fgprof-c, and other programs beside it.

    scripts/bench                     every part, in about five hours
    scripts/bench pause servers       some parts
    scripts/bench --quick PART...     a smoke test: short runs, whose figures mean nothing

Prints each part's report in Markdown and keeps it in bench/results/PART.md, unless it is a smoke
test or of some programs only. The machine should have nothing else to do. Builds by itself, in
build-bench. Progress goes to standard error.
"""

import argparse
import importlib
import os
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path[0] = HERE
# What the tests have, too: pages, a browser, a terminal; stacks by gdb.
sys.path += [os.path.join(SOURCE, "tests", name) for name in ("integration", "matrix")]
sys.dont_write_bytecode = True

import machine  # noqa: E402
import programs  # noqa: E402

# Each is a module of bench/parts, with its TITLE, the TOOLS it runs beside fgprof-c, and report().
PARTS = ["beside", "start", "pause", "wake", "threads", "churn", "unwind", "servers", "load",
         "cost", "names", "stacks", "steps", "page", "top", "truth", "corrections", "switches",
         "owners", "wakers", "python", "runtimes", "goroutines", "labels", "heap", "growth", "serve", "record",
         "soak", "hours", "install"]

SEEDS = 1000000  # so many different ones; the one that is used is in the report

# The Debian packages of programs that are measured beside fgprof-c or load what is sampled.
PACKAGES = {
    "gdb": "gdb", "eu-stack": "elfutils", "perf": "linux-perf",
    "offcputime": "libbpf-tools", "bpftrace": "bpftrace", "go": "golang-go",
    "redis-server": "redis-server", "redis-benchmark": "redis-tools",
    "heaptrack": "heaptrack", "python3": "python3", "jeprof": "libjemalloc-dev", "valgrind": "valgrind", "node": "nodejs",
    "nginx": "nginx-light", "wrk": "wrk",
    "postgres": "postgresql", "pgbench": "postgresql-contrib", "mariadbd": "mariadb-server",
}


def measure(world, name, is_kept):
    """Prints a part's report, and keeps it."""
    part = importlib.import_module("parts." + name)
    for tool in part.TOOLS:
        if not world.has(tool):
            package = PACKAGES.get(tool)
            programs.progress(f"  not installed: {tool}" +
                              (f" (apt-get install {package})" if package else ""))
    heading = machine.heading(world, name, part.TITLE, part.TOOLS)
    report = f"{heading}\n{part.report(world).strip()}\n"
    print(report, flush=True)
    if is_kept:
        path = os.path.join(HERE, "results", name + ".md")
        with open(path, "w") as file:
            file.write(report)
        programs.progress(f"  kept in {os.path.relpath(path)}")


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="short runs: a smoke test")
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM",
                        help="only this program of a part: stacks, steps, truth, corrections, "
                        "unwind, switches")
    parser.add_argument("--seed", type=int, default=int(time.time()) % SEEDS, metavar="NUMBER",
                        help=f"what durations are drawn from, below {SEEDS}: truth, switches")
    parser.add_argument("--load", choices=["idle", "busy"],
                        help="only on a machine that is idle, or busy: truth, corrections")
    parser.add_argument("--resume", metavar="DIRECTORY",
                        help="keep the figures of each run there, and measure only those that are "
                        "not there yet, with the same --seed: truth, corrections, switches")
    parser.add_argument("--show", action="store_true",
                        help="print differences to standard error: stacks, steps")
    parser.add_argument("--other", metavar="PROGRAM",
                        help="another build of fgprof-c, measured by turns with this one: "
                        "start, names, truth, growth, soak")
    parser.add_argument("--without", metavar="CORRECTION",
                        help="the same, a build that lacks one correction (FGPROF_WITHOUT in "
                        "CMakeLists.txt): truth; corrections measures only that one then")
    parser.add_argument("--seconds", type=int, metavar="N",
                        help="how long each run takes: corrections")
    parser.add_argument("--d3", metavar="DIRECTORY",
                        help="where npm has installed d3 and d3-flame-graph: page")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    return options


def main():
    options = parse()
    if options.without:
        options.other = programs.build_without(SOURCE, options.without)
    world = programs.World(SOURCE, programs.build(SOURCE), options)
    is_kept = not (options.quick or options.only or options.load or options.without or options.seconds)
    failed = False
    try:
        for name in PARTS:
            if options.parts and name not in options.parts:
                continue
            programs.progress(f"{name}:")
            try:
                measure(world, name, is_kept)
            except Exception:  # the other parts are still measured
                failed = True
                world.end_all()
                traceback.print_exc()
    finally:
        world.close()
    return 1 if failed else 0


signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit("bench: broken off")

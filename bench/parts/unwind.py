"""The cost of unwinding, how many stacks of real programs are complete, and whether rules and libunwind
agree."""

import time

import programs
import tables
from real_programs import PROGRAMS, Missing, Stage, need

TITLE = "Unwinding real programs under load"
TOOLS = ()
HEADER = ["program", "samples", "cut", "snapshots", "libunwind whole", "of these, rules agree",
          "rules, ns a frame", "libunwind, ns a frame", "ratio"]


def measure(world, name, seconds, snapshots):
    """A row, and the disagreements."""
    stage = Stage()
    need(world.program("compare-unwinders")) # which needs libunwind
    try:
        pids = PROGRAMS[name](stage)
        time.sleep(1)
        summary = programs.summary_of(world.attach(pids, "-d", f"{seconds}s").wait(60))
        judged = world.run(world.program("compare-unwinders"), pids[0], snapshots,
                           keeps_stdout=True, timeout_s=300)
        if judged.status not in (0, 1):
            raise RuntimeError(judged.stderr)
    finally:
        stage.close()
    values = dict(word.split("=") for word in judged.stdout.split())
    rules, libunwind = float(values["rules_ns"]), float(values["libunwind_ns"])
    return [name, summary.samples, f"{summary.cut_percent:.2f} %", values["snapshots"],
            values["libunwind_whole"], values["agree"], f"{rules:.0f}",
            f"{libunwind:.0f}", f"{libunwind / rules:.0f}"], judged.stderr


def report(world):
    seconds, snapshots = world.pick((10, 3000), (1, 300))
    rows, said = [], ""
    for name in world.chosen(PROGRAMS):
        programs.progress(f"  {name}")
        try:
            row, disagreements = measure(world, name, seconds, snapshots)
            if disagreements:
                said += f"\n{name}:\n```\n{disagreements[:3000]}```\n"
        except Missing as program:
            row = [name, f"{program} is not installed"] + [""] * (len(HEADER) - 2)
        rows.append(row)
    return f"""*Cut* is the share of the samples of a {seconds} s profile whose stack does not reach its
thread's first frame. *Snapshots* are then unwound by rules and by libunwind, with its cache for each
process: where libunwind comes to the end, do the rules give the same frames? A frame's cost is that
of snapshots unwound again and again. Servers listen on loopback only, in a directory of their own.

{tables.table(HEADER, rows)}{said}"""

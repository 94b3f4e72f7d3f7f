"""What unwinding itself costs, and how many stacks of real programs are whole: the table of
bench-unwind."""

import os


def report(world):
    usage = world.run(os.path.join(world.source, "scripts/bench-unwind"), world.build, "--compare",
                      world.program("compare-unwinders"), "--snapshots", world.pick(3000, 300),
                      "--seconds", world.pick(10, 1), timeout_s=900, keeps_stdout=True)
    if usage.status:
        raise RuntimeError(usage.stderr)
    return f"""## Unwinding real programs under load

*Cut* is the share of the samples of a 10 s profile whose stack does not reach its thread's first
frame. *Snapshots* are then unwound by rules and by libunwind, with its cache for each process:
where libunwind comes to the end, do the rules give the same frames? *Not by rules* are stacks with
a frame that no rule can say. A frame's cost is that of snapshots unwound again and again.

{usage.stdout}"""

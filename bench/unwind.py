"""What unwinding costs by itself: the program bench-unwind, which prints its own table."""

import os


def report(world):
    title = "## Unwinding\n"
    if not os.path.exists(world.program("unwind")):
        return title + "\nNot built.\n"
    usage = world.run(world.program("unwind"), *(["--quick"] if world.is_quick else []),
                      timeout_s=600, keeps_stdout=True)
    if usage.status:
        return title + f"\nFailed: {usage.stderr}\n"
    return title + "\n" + usage.stdout

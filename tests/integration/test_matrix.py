"""Programs of many forms, judged by gdb; see tests/matrix."""

import os
import sys

from harness import Missing, need, users_build

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../matrix"))

import matrix  # noqa: E402


@users_build
def test_matrix_agrees_with_gdb(world):
    need("gdb", "c++filt")
    rows = matrix.run(world.program, world.directory)
    print(matrix.table(rows))
    found = matrix.faults(rows)
    assert not found, "\n\n".join(found)
    skipped = [row for row in rows if row.skipped]
    if skipped:
        reasons = ", ".join(sorted({row.skipped for row in skipped}))
        raise Missing(f"{reasons}: {len(skipped)} of {len(rows)} configurations were not tested")

"""Programs of many forms, judged by gdb; see tests/matrix."""

import os
import shutil
import sys

from harness import Skip, users_build
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../matrix"))

import matrix  # noqa: E402


@users_build
def test_matrix_agrees_with_gdb(world):
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    rows = matrix.run(world.program, world.directory)
    print(matrix.table(rows))
    found = matrix.faults(rows)
    assert not found, "\n\n".join(found)
    assert sum(not row.skipped for row in rows) >= len(rows) / 3, "hardly a compiler is there"

"""Each format, compared with its golden file: from kept recordings that have something of
everything, one of time and one of objects."""

import difflib
import os
import subprocess

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden")
NOT_RENDERED = {"render", "version-1.fgprof", "no-timelines.fgprof", "recorded-by.fgprof",
                "heap.fgprof", "heap-later.fgprof"}


def test_each_format_is_written_as_before(world):
    rendered = world.path("rendered")
    os.mkdir(rendered)
    subprocess.run([os.path.join(GOLDEN, "render"), world.program, rendered], check=True,
                   timeout=60)
    names = sorted(set(os.listdir(GOLDEN)) - NOT_RENDERED)
    assert names == sorted(os.listdir(rendered)), names
    for name in names:
        texts = [open(os.path.join(folder, name), encoding="utf-8").read().splitlines()
                 for folder in (GOLDEN, rendered)]
        assert texts[0], f"{name} is empty"
        change = "\n".join(difflib.unified_diff(*texts, "golden", "rendered", lineterm=""))
        assert not change, f"{name}:\n{change}"

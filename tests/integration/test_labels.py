"""Labels that threads give themselves: OpenTelemetry's thread context, by fgprof_label.h."""

import os
import re
import subprocess

from harness import (PERIOD, by_root, end, folded, is_sampling, need, tool, users_build,
                     wait_for, wait_for_ticks, wait_until_sampling)

EXECUTABLES = ["pie", "no-pie", "static", "static-pie"]
LIBRARIES = ["global-dynamic", "initial-exec", "tlsdesc"]


def fed(world, name, *arguments):
    """A fixture that ends at the end of its input."""
    return world.running(name, *arguments, stdin=subprocess.PIPE)


def roots(world, target, *arguments):
    """{root frame: samples} of a profile with the route as root frame."""
    done = world.attach(target, "--label", "route", *arguments, duration="1s")
    return by_root(folded(done.stdout)), done.stderr


def check_static(world, kind, *arguments):
    with fed(world, f"labels-{kind}", "stay") as target:
        counts, stderr = roots(world, target, *arguments)
    ticks = int(re.search(r"(\d+) ticks planned", stderr)[1])
    # A thread's first sample may be older than the knowledge of where its labels are.
    for route in "/one", "/two":
        assert ticks - 5 <= counts[route] <= ticks + 1, (counts, stderr)
    # The other two threads have none.
    assert sum(counts.values()) - counts["/one"] - counts["/two"] >= 2 * ticks - 5, counts


def test_labels_in_a_position_independent_executable(world):
    check_static(world, "pie")


def test_labels_in_an_executable_at_a_fixed_place(world):
    check_static(world, "no-pie")


def test_labels_in_a_static_executable(world):
    check_static(world, "static")


def test_labels_in_a_static_position_independent_executable(world):
    check_static(world, "static-pie")


def check_library(world, name, *arguments):
    with fed(world, name, *arguments) as target:
        counts, stderr = roots(world, target)
    ticks = int(re.search(r"(\d+) ticks planned", stderr)[1])
    for route in "/early", "/late":
        assert ticks - 5 <= counts[route] <= ticks + 1, (counts, stderr)
    assert sum(counts.values()) - counts["/early"] - counts["/late"] >= 2 * ticks - 5, counts


def test_labels_in_libraries_that_are_linked(world):
    for model in LIBRARIES:
        check_library(world, f"labels-host-{model}")


def test_labels_in_libraries_that_are_loaded_later(world):
    for model in LIBRARIES:
        check_library(world, "labels-host",
                      os.path.join(world.build, f"tests/fixtures/libfixture-labels-{model}.so"))

"""Goroutines that wait, against the profiles that Go makes of itself at the same time."""

import collections
import os
import re
import subprocess

from harness import context_switches, folded, has, ready, ticks_planned, users_build
from test_go import BUILDS, build

DEBIANS = "/usr/bin/go"
OWN = ("runtime.main", "main.main")  # the main goroutine, which writes Go's profile


def written(target):
    target.stdin.write("\n")
    target.stdin.flush()
    return target.stdout.readline()


def without_runtime(stack):
    """Root first. Go's text leaves out the runtime's functions at the leaf, and at the root the one
    that every goroutine returns to."""
    stack = [re.sub(r"_\[i\]$", "", name) for name in stack if name != "runtime.goexit"]
    while stack and stack[-1].startswith("runtime."):
        stack.pop()
    return tuple(stack)


def gos_stacks(path):
    """{stack, root first: how many goroutines} by the text of runtime/pprof, with debug=1."""
    counts, count, names = collections.Counter(), 0, []
    for line in [*open(path), "\n"]:
        head = re.match(r"(\d+) @", line)
        frame = re.match(r"#\t0x[0-9a-f]+\t(.+)\+0x[0-9a-f]+\t", line)
        if head:
            count, names = int(head[1]), []
        elif frame:
            names.append(frame[1])
        elif line == "\n" and names:
            counts[without_runtime(reversed(names))] += count
            names = []
    return {stack: count for stack, count in counts.items() if OWN[1] not in stack}


def gos_reasons(path):
    """{reason: how many goroutines} by debug=2, but for the main one."""
    heads = re.findall(r"^goroutine (\d+).* \[([^],]*)", open(path).read(), re.M)
    return collections.Counter(reason for number, reason in heads if number != "1")


def check_parked(world, options, each, go="go"):
    truth = world.path("truth")
    with ready(build(world, "goroutines", options, go), 120, each, truth, stdin=subprocess.PIPE) as target:
        assert written(target) == "written\n"
        switches = sum(context_switches(target.pid).values())
        done = world.attach(target, "--state", duration="2s")
        switched = sum(context_switches(target.pid).values()) - switches
        text = world.attach(target, "-f", "text", duration="1s").stdout
        threads = folded(world.attach(target, "--no-goroutines", duration="0.5s").stdout)
    # Nothing is woken or stopped for it; the runtime looks around now and then by itself.
    assert switched < 100, switched
    seen, ticks = folded(done.stdout), ticks_planned(done.stderr)
    seen = {stack: count for stack, count in seen.items() if "main.main" not in stack}
    theirs = gos_stacks(truth + ".1")
    assert len(theirs) >= 60 and sum(theirs.values()) >= 50 * each, theirs
    # The last tick may be a late one.
    scale = sum(seen.values()) / sum(theirs.values())
    assert abs(scale / ticks - 1) < 0.03, (scale, ticks, done.stderr)
    counts, reasons = collections.Counter(), collections.Counter()
    for stack, count in seen.items():
        counts[without_runtime(stack[:-1])] += count / scale
        reasons[stack[-1].strip("[]")] += count / scale
    ours = {stack: round(count) for stack, count in counts.items()}
    differ = sorted(set(ours.items()) ^ set(theirs.items()), key=lambda item: len(item[0]))
    assert not differ, (len(differ), differ[:4], done.stderr)
    assert all(abs(count - round(count)) < 0.02 * round(count) for count in counts.values()), counts
    assert {reason: round(count) for reason, count in reasons.items()} == gos_reasons(truth + ".2"), reasons
    assert '"wait_reason":"chan receive"' in text, text
    assert "goroutine-seconds" in done.stderr, done.stderr
    assert not any(has(stack, "main.shape") for stack in threads), threads
    assert any(has(stack, "runtime.mstart") or has(stack, "runtime.mcall") for stack in threads), threads
    assert not any(has(stack, "runtime.mstart") or has(stack, "runtime.schedule") for stack in seen), seen


def test_goroutines(world):
    check_parked(world, BUILDS["plain"], 4)


def test_goroutines_of_debians_go(world):
    check_parked(world, BUILDS["stripped"], 4, DEBIANS)


def test_goroutines_stripped(world):
    check_parked(world, BUILDS["stripped"], 4)


@users_build
def test_goroutines_pie(world):
    check_parked(world, BUILDS["pie"], 4)


@users_build
def test_goroutines_pie_stripped(world):
    check_parked(world, BUILDS["pie-stripped"], 4)


@users_build
def test_ten_thousand_goroutines(world):
    check_parked(world, BUILDS["plain"], 200)


@users_build
def test_goroutines_at_work(world):
    """Those that compute and sleep by turns: the parts of their time, and all of it."""
    def seconds(target):
        return [float(text) for text in written(target).split()]
    with ready(build(world, "goroutines-at-work", []), 120, stdin=subprocess.PIPE) as target:
        before = seconds(target)
        done = world.attach(target, duration="5s")
        after = seconds(target)
    computed, slept = (b - a for a, b in zip(before, after))
    stacks, ticks = folded(done.stdout), ticks_planned(done.stderr)
    counts = {name: sum(count for stack, count in stacks.items() if name in stack)
              for name in ("main.compute", "main.rest", "main.work")}
    share = counts["main.compute"] / (counts["main.compute"] + counts["main.rest"])
    true_share = computed / (computed + slept)
    assert abs(share - true_share) < 0.06, (share, true_share, done.stdout)
    assert abs(counts["main.work"] / (4 * ticks) - 1) < 0.06, (counts, ticks, done.stdout)

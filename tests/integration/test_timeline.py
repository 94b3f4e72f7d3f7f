"""When threads were where: speedscope's profiles of one thread each, in the order of time."""

import json

from harness import PERIOD, by_root, folded


def recorded(world, *arguments, seconds=3):
    """The file, and its profiles by thread name, as [(frame names, seconds), ...]."""
    path = world.path("timeline.speedscope.json")
    done = world.fgprof("run", *arguments, "-o", path, "--", world.fixture("phases"), seconds)
    assert done.returncode == 0, done.stderr
    document = json.load(open(path))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    threads = {}
    for profile in document["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds", profile["name"]
        assert len(profile["samples"]) == len(profile["weights"]), profile["name"]
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        threads[profile["name"].split("/")[0]] = [
            ([names[frame] for frame in stack], weight / 1e9)
            for stack, weight in zip(profile["samples"], profile["weights"])]
    return document, threads


def phase_of(stack):
    return next((name for name in stack if name in ("in_first", "in_second")), "")


def test_timeline_shows_the_order(world):
    _, threads = recorded(world)
    phases = []
    for stack, seconds in threads["phases"]:
        phase = phase_of(stack)
        if not phase:
            continue
        if phases and phases[-1][0] == phase:
            phases[-1][1] += seconds
        else:
            phases.append([phase, seconds])
    # Where one phase ends, time that is owed to an account may lie behind it.
    order = [phase for phase, seconds in phases if seconds > 0.3]
    assert order == ["in_first", "in_second", "in_first"], phases
    idle = threads["idle"]
    assert sum(s for stack, s in idle if "in_idle" in stack) > 0.9 * sum(s for _, s in idle), idle


def test_timeline_sums_are_those_of_the_samples(world):
    path = world.path("sums.folded")
    done = world.fgprof("run", "-t", "-o", path, "--", world.fixture("phases"), 3)
    assert done.returncode == 0, done.stderr
    ticks = by_root(folded(open(path).read()))
    _, threads = recorded(world)
    for name in "phases", "idle":
        seconds = sum(s for _, s in threads[name])
        assert abs(seconds - ticks[name] * PERIOD) < 0.3, (name, seconds, ticks)


def test_timeline_leaves_gaps_for_what_is_not_kept(world):
    _, threads = recorded(world, "--on-cpu", "--state")
    assert all(stack == [] for stack, _ in threads["idle"]), threads["idle"]
    kept = [stack for stack, _ in threads["phases"] if stack]
    assert kept and all(stack[-1] == "[running]" for stack in kept), kept
    assert sum(s for _, s in threads["phases"]) > 2.5

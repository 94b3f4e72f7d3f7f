"""When threads were where: speedscope's profiles of one thread each, in the order of time."""

import base64
import json
import os
import re
import shutil
import signal
import time

import webdriver
from harness import (PERIOD, Skip, alone, by_root, folded, users_build, wait_for,
                     wait_until_asleep, wait_until_sampling)


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


def order_of(runs, inner):
    """The phases that the thread spent time in `inner` in, in their order, and the runs of that."""
    phases = []
    for stack, seconds in runs:
        phase = phase_of(stack)
        if not phase or inner not in stack:
            continue
        if phases and phases[-1][0] == phase:
            phases[-1][1] += seconds
        else:
            phases.append([phase, seconds])
    # What is owed to an account when a phase ends gets its sample in a later one: some ticks' worth.
    long = [phase for phase, seconds in phases if seconds > 0.1]
    return [phase for i, phase in enumerate(long) if i == 0 or long[i - 1] != phase], phases


def test_timeline_shows_the_order(world):
    _, threads = recorded(world)
    order, phases = order_of(threads["phases"], "sleep_until")
    assert order == ["in_first", "in_second", "in_first"], phases
    idle = threads["idle"]
    assert sum(s for stack, s in idle if "in_idle" in stack) > 0.9 * sum(s for _, s in idle), idle


@alone
def test_timeline_shows_the_order_of_what_runs(world):
    """Where others want the CPU, a time of waiting for it may find its sample far behind."""
    _, threads = recorded(world)
    order, phases = order_of(threads["phases"], "run_until")
    assert order == ["in_first", "in_second", "in_first"], phases


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
    # But for the moment in which it begins.
    assert sum(s for stack, s in threads["idle"] if stack) < 0.1, threads["idle"]
    assert sum(s for stack, s in threads["idle"] if not stack) > 2.5, threads["idle"]
    kept = [stack for stack, _ in threads["phases"] if stack]
    assert kept and all(stack[-1] == "[running]" for stack in kept), kept
    assert sum(s for _, s in threads["phases"]) > 2.5


def test_timeline_of_an_interrupted_recording(world):
    """It is whole up to the moment in which it was interrupted."""
    path = world.path("interrupted.speedscope.json")
    with world.running("workers", 60, 1, 1) as target:
        sampler = world.start("attach", "-p", target.pid, "-o", path)
        wait_until_sampling(sampler)
        time.sleep(1)
        sampler.send_signal(signal.SIGINT)
        _, stderr = sampler.communicate(timeout=60)
    assert sampler.returncode == 0, stderr
    elapsed = float(re.search(r"fgprof-c: ([\d.]+) s at", stderr)[1])
    profiles = json.load(open(path))["profiles"]
    assert sorted(profile["name"].split("/")[0] for profile in profiles) == [
        "fixture-workers", "sleeping", "spinning"]
    for profile in profiles:
        assert abs(sum(profile["weights"]) / 1e9 - elapsed) < 0.06, (profile["name"], stderr)
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])


def test_idle_threads_have_no_timeline(world):
    with world.running("workers", 60, 1, 1) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        for name in "idle.speedscope.json", "idle.fgprof":
            world.attach(target, "--no-idle", "-o", world.path(name), duration="500ms")
    converted = world.path("converted.speedscope.json")
    assert world.fgprof("convert", world.path("idle.fgprof"), "-o", converted).returncode == 0
    for path in world.path("idle.speedscope.json"), converted:
        profiles = json.load(open(path))["profiles"]
        assert [profile["name"].split("/")[0] for profile in profiles] == ["spinning"], path


def imported(page, script, name, data):
    """What speedscope shows of the file, and what it says on the console."""
    # As speedscope's own command does (its bin/cli.mjs): a script that hands the page the file.
    with open(script, "w") as file:
        file.write(f'speedscope.loadFileFromBase64("{name}", '
                   f'"{base64.b64encode(data).decode()}")')
    browser = webdriver.Browser()
    try:
        browser.open(f"{page}#localProfilePath={script}")
        wait_for(lambda: browser.run("return document.title") not in ("", "speedscope"), "a title")
        return browser.run("return document.title"), browser.text("body"), browser.console()
    finally:
        browser.close()


@users_build
def test_speedscope_reads_the_timeline(world):
    page = os.path.join(world.source,
                        "tests/tools/speedscope/node_modules/speedscope/dist/release/index.html")
    if not os.path.exists(page) or not shutil.which("chromedriver"):
        raise Skip("needs npm's speedscope, which scripts/setup installs, and chromium")
    recorded(world)
    title, text, console = imported(page, world.path("load.js"), "timeline.speedscope.json",
                                    open(world.path("timeline.speedscope.json"), "rb").read())
    assert title.startswith("phases/"), title
    assert "phases/" in text and "(1/2)" in text, text
    assert any("Importing as speedscope json file" in line["message"] for line in console)
    assert not [line for line in console if line["level"] == "SEVERE"], console
    # Nobody was sampled: it opens all the same.
    path = world.path("none.speedscope.json")
    with world.running("states", 30) as target:
        world.attach(target, "--thread", "nobody", "-o", path, duration="300ms")
    title, text, console = imported(page, world.path("none.js"), "none.speedscope.json",
                                    open(path, "rb").read())
    assert title.startswith("no thread was sampled"), (title, text)
    assert not [line for line in console if line["level"] == "SEVERE"], console

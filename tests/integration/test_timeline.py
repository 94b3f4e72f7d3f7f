"""When threads were where: speedscope's profiles of one thread each, and the Firefox Profiler's format."""

import base64
import gzip
import json
import os
import re
import subprocess
import time

import webdriver
from harness import (PERIOD, Skip, alone, by_root, end, folded, is_asleep, thread_named,
                     ticks_planned, users_build, wait_for, wait_for_switches, wait_until_asleep,
                     wait_until_running,
                     wait_until_sampling)


# It stays in a step for this many; each thread's context switches tell how many have passed.
STEP_TICKS = 20


def profile_phases(world, path, *arguments):
    """Profiles the fixture while it goes from phase to phase, each time once it was seen there."""
    with subprocess.Popen([world.fixture("phases"), "100"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        def tell():
            target.stdin.write("x")
            target.stdin.flush()

        try:
            assert target.stdout.readline() == "ready\n"
            sampler = world.start("attach", "-p", target.pid, *arguments, "-o", path)
            wait_until_sampling(sampler)
            for phase in range(3):
                if phase:
                    tell()
                wait_until_running(f"{target.pid}/task/{target.pid}", 2 * STEP_TICKS)
                tell()
                wait_for(lambda: is_asleep(target.pid), "sleep")
                # The profiler sleeps until the next tick.
                wait_for_switches(thread_named(sampler.pid, "fgprof-sampler"), STEP_TICKS,
                                  "ticks")
            _, stderr = end(sampler)
        finally:
            target.kill()
    return stderr


def timelines(path):
    """Timelines by thread name, as [(frame names, seconds), ...]."""
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
    return threads


def recorded(world, *arguments):
    """The timelines of the phases, and the summary."""
    path = world.path("timeline.speedscope.json")
    stderr = profile_phases(world, path, *arguments)
    return timelines(path), stderr


def seconds_of(runs):
    return sum(seconds for _, seconds in runs)


def phase_of(stack):
    return next((name for name in stack if name in ("in_first", "in_second")), "")


def order_of(runs, inner):
    """The phases in which the thread spent time in `inner`, in order, and the runs of each."""
    phases = []
    for stack, seconds in runs:
        phase = phase_of(stack)
        if not phase or inner not in stack:
            continue
        if phases and phases[-1][0] == phase:
            phases[-1][1] += seconds
        else:
            phases.append([phase, seconds])
    # What is owed to an account when a phase ends gets its sample in a later one: some ticks'
    # worth.
    long = [phase for phase, seconds in phases if seconds > STEP_TICKS / 4 * PERIOD]
    return [phase for i, phase in enumerate(long) if i == 0 or long[i - 1] != phase], phases


def test_timeline_shows_the_order(world):
    threads, _ = recorded(world)
    order, phases = order_of(threads["phases"], "sleep_until_told")
    assert order == ["in_first", "in_second", "in_first"], phases
    idle = threads["idle"]
    assert seconds_of(run for run in idle if "in_idle" in run[0]) > 0.9 * seconds_of(idle), idle


@alone
def test_timeline_shows_the_order_of_what_runs(world):
    """If other programs want the CPU, time spent waiting for it may get its sample far later, and so may
    running time."""
    threads, _ = recorded(world, "--state")
    running = [run for run in threads["phases"] if run[0] and run[0][-1] == "[running]"]
    order, phases = order_of(running, "run_until_told")
    assert order == ["in_first", "in_second", "in_first"], phases


def test_timeline_sums_are_those_of_the_samples(world):
    kept = world.path("sums.fgprof")
    profile_phases(world, kept)
    folded_path, timeline_path = world.path("sums.folded"), world.path("sums.speedscope.json")
    for path in folded_path, timeline_path:
        done = world.fgprof("convert", "-t", kept, "-o", path)
        assert done.returncode == 0, done.stderr
    ticks, threads = by_root(folded(open(folded_path).read())), timelines(timeline_path)
    for name in "phases", "idle":
        assert abs(seconds_of(threads[name]) - ticks[name] * PERIOD) <= 2 * PERIOD, (name, ticks)


def test_timeline_leaves_gaps_for_what_is_not_kept(world):
    threads, stderr = recorded(world, "--on-cpu", "--state")
    # Except for the moment in which it begins.
    assert seconds_of(run for run in threads["idle"] if run[0]) <= PERIOD, threads["idle"]
    kept = [stack for stack, _ in threads["phases"] if stack]
    assert kept and all(stack[-1] == "[running]" for stack in kept), kept
    for name in "phases", "idle":
        assert abs(seconds_of(threads[name]) - ticks_planned(stderr) * PERIOD) <= 2 * PERIOD, (
            name, threads[name], stderr)


def test_timeline_of_an_interrupted_recording(world):
    """It is complete up to the moment of the interruption."""
    path = world.path("interrupted.speedscope.json")
    with world.running("workers", 60, 1, 1) as target:
        sampler = world.start("attach", "-p", target.pid, "-o", path)
        wait_until_sampling(sampler)
        time.sleep(1)
        _, stderr = end(sampler)
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


def firefox_threads(path):
    """The Firefox Profiler's file: (its threads by name, the whole). Checks the invariants of its tables:
    columns are equally long, numbers refer to existing rows, callers come before callees."""
    with gzip.open(path) as file:
        document = json.load(file)
    shared = document["shared"]
    rows = {"stackTable": ("frame", "frameTable"), "frameTable": ("func", "funcTable"),
            "funcTable": ("name", "stringArray"), "resourceTable": ("lib", "libs")}
    sizes = {name: table["length"] for name, table in shared.items() if isinstance(table, dict)}
    sizes.update(stringArray=len(shared["stringArray"]), libs=len(document["libs"]))
    for name, table in shared.items():
        for column in table if isinstance(table, dict) else []:
            assert column == "length" or len(table[column]) == sizes[name], (name, column)
    for name, (column, referred) in rows.items():
        assert all(0 <= row < sizes[referred] for row in shared[name][column]), (name, column)
    stacks = shared["stackTable"]
    assert all(caller is None or caller < number for number, caller in enumerate(stacks["prefix"]))
    for thread in document["threads"]:
        for table in thread["samples"], thread["markers"]:
            lengths = {len(column) for column in table.values() if isinstance(column, list)}
            assert lengths == {table["length"]}, thread["name"]
        times = thread["samples"]["time"]
        assert times == sorted(times), thread["name"]
    return {thread["name"]: thread for thread in document["threads"]}, document


def firefox_stack(document, node):
    """A stack as its functions, root first, and the category of its leaf."""
    shared, names = document["shared"], []
    frames, functions = shared["frameTable"], shared["funcTable"]
    category = frames["category"][shared["stackTable"]["frame"][node]]
    while node is not None:
        function = frames["func"][shared["stackTable"]["frame"][node]]
        names.insert(0, shared["stringArray"][functions["name"][function]])
        node = shared["stackTable"]["prefix"][node]
    return names, document["meta"]["categories"][category]["name"]


def firefox_runs(document, thread):
    """The thread's runs: [(stack, state, ms, ms on a CPU), ...]; a stack is [] where it is absent."""
    samples = thread["samples"]
    assert samples["weightType"] == "tracing-ms" and samples["length"] % 2 == 0
    runs = []
    for first in range(0, samples["length"], 2):
        stack, weight, time = ([samples[key][at] for at in (first, first + 1)] for key in ("stack", "weight", "time"))
        assert stack[0] == stack[1] and samples["threadCPUDelta"][first] == 0
        assert stack[0] is None or abs(sum(weight) - (time[1] - time[0])) < 1e-5, (weight, time)
        names, state = ([], None) if stack[0] is None else firefox_stack(document, stack[0])
        runs.append((names, state, time[1] - time[0], samples["threadCPUDelta"][first + 1] / 1e6))
    return runs


def test_firefox_has_the_runs_of_the_timeline(world):
    """The same recording as speedscope's JSON is the reference."""
    kept, scope, fox = (world.path("order" + ending) for ending in (".fgprof", ".speedscope.json", ".firefox.json.gz"))
    profile_phases(world, kept)
    for path in scope, fox:
        assert world.fgprof("convert", kept, "-o", path).returncode == 0
    threads, document = firefox_threads(fox)
    expected = timelines(scope)
    assert sorted(threads) == sorted(expected) and document["meta"]["preprocessedProfileVersion"] == 60
    states = set()
    for name, thread in threads.items():
        runs = firefox_runs(document, thread)
        assert [stack for stack, *_ in runs] == [stack for stack, _ in expected[name]], name
        for (stack, state, ms, cpu_ms), (_, seconds) in zip(runs, expected[name]):
            assert abs(ms - 1000 * seconds) < 1e-5, (name, stack, ms, seconds)
            assert cpu_ms == (ms if state == "running" else 0) or abs(cpu_ms - ms) < 1e-5, (state, ms, cpu_ms)
        states |= {state for _, state, *_ in runs}
    assert {"running", "sleeping"} <= states, states
    left = world.path("on_cpu.firefox.json.gz")
    assert world.fgprof("convert", kept, "--on-cpu", "-o", left).returncode == 0
    threads, document = firefox_threads(left)
    for thread in threads.values():
        assert {state for _, state, *_ in firefox_runs(document, thread)} <= {"running", None}
        assert thread["markers"]["length"] == 0
    assert sum(cpu_ms for thread in threads.values() for *_, cpu_ms in firefox_runs(document, thread)) > 0


def test_firefox_has_idle_threads_last(world):
    path = world.path("idle.firefox.json.gz")
    with world.running("states", 30) as target:
        assert world.fgprof("attach", "-p", target.pid, "-d", "1s", "-o", path).returncode == 0
    threads, _ = firefox_threads(path)
    # The main thread began first, and waits for the others.
    assert len(threads) == 5 and next(iter(threads)) == "spinning", list(threads)


def test_firefox_shows_waits_and_owners(world):
    path = world.path("waits.firefox.json.gz")
    with world.running("holders", 30) as target:
        assert world.fgprof("attach", "-p", target.pid, "-d", "2s", "-o", path).returncode == 0
        middle = thread_named(target.pid, "middle").split("/")[-1]
    threads, document = firefox_threads(path)
    assert threads["fixture-holders"]["isMainThread"] and not threads["last"]["isMainThread"]
    waits = [(document["shared"]["stringArray"][name], data, end - begin) for name, data, begin, end in
             zip(*(threads["last"]["markers"][key] for key in ("name", "data", "startTime", "endTime")))]
    assert all(data["type"] == "wait" and ms > 0 for _, data, ms in waits)
    for_second = sum(ms for name, data, ms in waits
                     if name == "mutex" and data.get("for") == "mutex g_second" and data.get("owner") == f"middle/{middle}")
    assert for_second > 0.5 * sum(ms for *_, ms in waits), waits
    done = world.fgprof("attach", "-p", 1, "-o", world.path("x.firefox.json"))
    assert done.returncode == 2 and "end it with .firefox.json.gz" in done.stderr, done


def imported(page, script, name, data):
    """What speedscope shows of the file, and its console messages."""
    # As speedscope's own command does it (its bin/cli.mjs): a script gives the page the file.
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
    if not os.path.exists(page):
        raise Skip("no speedscope, which scripts/setup installs if there is npm")
    recorded(world)
    title, text, console = imported(page, world.path("load.js"), "timeline.speedscope.json",
                                    open(world.path("timeline.speedscope.json"), "rb").read())
    assert title.startswith("phases/"), title
    assert "phases/" in text and "(1/2)" in text, text
    assert any("Importing as speedscope json file" in line["message"] for line in console)
    assert not [line for line in console if line["level"] == "SEVERE"], console
    # No thread was sampled: it opens all the same.
    path = world.path("none.speedscope.json")
    with world.running("states", 30) as target:
        world.attach(target, "--thread", "nobody", "-o", path, duration="300ms")
    title, text, console = imported(page, world.path("none.js"), "none.speedscope.json",
                                    open(path, "rb").read())
    assert title.startswith("no thread was sampled"), (title, text)
    assert not [line for line in console if line["level"] == "SEVERE"], console

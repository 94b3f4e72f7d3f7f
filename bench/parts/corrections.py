"""The effect of each correction of observations: builds that lack one correction are compared in turn with a
build that has all of them (FGPROF_WITHOUT in CMakeLists.txt)."""

import programs
import tables
import watchers
from parts.pause import two_cpus
from parts.truth import worst_text
from parts.truth.account import Row, Run
from parts.truth.runs import loads_of, watch
from parts.truth.scenes import DEFAULT_RATE_HZ, SCENES

TITLE = "What each correction is worth"
TOOLS = ()
# The rate that users have; `scripts/bench truth --without` judges one correction at others.
RATE_HZ = DEFAULT_RATE_HZ
SECONDS = 20
SCENE_KEYS = ["turns", "turns-asleep", "waits", "lock", "crowd", "in-step"]

RECORD, NO_RECORD, PTRACE = "with the record", "perf events, no record", "stops alone"
# What is watched in each case: {case: (what it lacks, arguments, corrections that it has)}.
CASES = {
    RECORD: ([], [], ["varied_periods", "yield"]),
    NO_RECORD: (["record"], [], ["short_sleeps", "switch_events", "missed_sleeps", "varied_periods", "yield"]),
    PTRACE: (["record"], ["--capture=ptrace"], ["visits", "yield"]),
}

TEXT = """The scenes are those of `scripts/bench truth`: programs that keep account of their own time.
Each way of capturing is watched with all corrections that it has, and without each of them, by turns.
Given is the error of the function which is judged worst, in points, with the sd that it has by chance
in brackets, at {rate} Hz. What a correction is worth is the difference between its line and the one of its way.
Durations that are drawn come from the seed {seed} (`--seed`).
"""


def way_of(world, case, correction=None):
    lacking, arguments, _ = CASES[case]
    left_out = [*lacking, *([correction] if correction else [])]
    program = programs.build_without(world.source, *left_out) if left_out else world.fgprof
    name = f"{case}, without {correction}" if correction else case
    return watchers.Fgprof(name, program, *arguments)


def ways_of(world):
    chosen = world.options.without
    return [way_of(world, case, correction) for case, (_, _, corrections) in CASES.items()
            if not chosen or chosen in corrections
            for correction in [None, *(name for name in corrections if chosen in (None, name))]]


def rows_of(world, key, way, load):
    scene, run = SCENES[key], Run(way.name, RATE_HZ, load)
    seconds = world.options.seconds or world.pick(SECONDS, 1)
    programs.progress(f"  {key}: {way.name}, {load}")
    found = world.resumed(f"{key}.{way.name}.{RATE_HZ}.{load}.{seconds}", lambda: watch(
        world, scene, way, run, seconds))
    return [Row(*values)._replace(run=run) for values in found]


def scene_text(world, key, ways):
    loads = loads_of(world)
    cells = [[way.name, *(worst_text([row for row in rows_of(world, key, way, load)
                                      if row.kind == SCENES[key].kinds[0]]) for load in loads)]
             for way in ways]
    header = ["", *loads]
    return f"## {SCENES[key].title}\n\n{tables.table(header, cells)}"


def report(world):
    ways = ways_of(world)
    with two_cpus():
        texts = [scene_text(world, key, ways) for key in world.chosen(SCENE_KEYS)]
    return TEXT.format(seed=world.seed, rate=RATE_HZ) + "\n" + "\n".join(texts)

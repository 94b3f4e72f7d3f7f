"""Runs each scene in each way, and judges the result."""

import contextlib
import time

import programs
import watchers
from parts.truth import account
from parts.truth.account import Row, Run
from parts.truth.scenes import DEFAULT_RATE_HZ, RATE_HZ, SCENES, SEED

SETTLE_S = 0.3
IDLE, BUSY = "idle", "busy"
LOADS = [IDLE, BUSY]
LOAD_PROCESSES = 2


@contextlib.contextmanager
def load(world, name):
    """An idle machine, or processes that keep both CPUs busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(LOAD_PROCESSES if name == BUSY else 0):
            stack.enter_context(world.target("spin", 1))
        yield


def arguments_of(world, scene):
    return [world.seed if argument == SEED else argument for argument in scene.command[1:]]


def watch(world, scene, way, run, seconds):
    """The rows of one run."""
    with load(world, run.load), \
            world.target("truth-" + scene.command[0], *arguments_of(world, scene)) as target:
        time.sleep(SETTLE_S)  # the clock speeds up
        before = target.mark()
        samples = way.watch(world, target.pid, seconds, run.rate_hz)
        after = target.mark()
    account.check(before, after)
    spent = account.spent_in(before, after, scene.threads)
    return [row if way.samples else row._replace(samples=0)
            for kind in scene.kinds if kind in way.kinds
            for row in account.rows_of(run, kind, spent, samples, scene.threads)]


def is_wanted_of_others(way, scene):
    """At the default rate only fgprof-c is measured: without privileges it observes in another way."""
    return scene.others_hz == RATE_HZ or (
        isinstance(way, watchers.Fgprof) and way.name != "--capture=kernel")


def loads_of(world, names=LOADS):
    return [name for name in names if world.options.load in (None, name)]


def planned(world, scene, ways):
    """[(way, run, seconds)]: the first way at each rate, the others at one."""
    loads = loads_of(world, LOADS if scene.is_also_busy else [IDLE])
    first, *others = ways
    turns = [(first, Run(first.name, rate_hz, name), seconds)
             for name in loads for rate_hz, seconds in scene.seconds.items()]
    for way in others:
        if way.kinds & set(scene.kinds) and is_wanted_of_others(way, scene):
            turns += [(way, Run(way.name, scene.others_hz, name), scene.others_s)
                      for name in loads if name == IDLE or scene.others_hz == DEFAULT_RATE_HZ]
    return turns


def watch_scene(world, key, ways):
    """All rows of a scene, and what failed."""
    scene, rows, failures = SCENES[key], [], []
    for way, run, seconds in planned(world, scene, ways):
        programs.progress(f"  {key}: {run.way}, {run.rate_hz} Hz, {run.load}")
        try:
            found = world.resumed(
                f"{key}.{run.way}.{run.rate_hz}.{run.load}",
                lambda: watch(world, scene, way, run, world.pick(seconds, 1)))
            rows += [Row(*values)._replace(run=run) for values in found]
        except watchers.Failed as error:
            failures.append(f"{run.way}, {run.rate_hz} Hz, {run.load}, failed: {error}.")
    return rows, failures

"""The scenes in which profiles are judged: which of the programs of bench/targets/truth, at which rates and
for how long.

A standard deviation below half a point takes 10,000 samples. At 99 Hz that is 100 s of one thread, or 25 s of
four equal ones. Four pairs whose partners sleep need a sixth of both CPUs; a partner that computes needs its
own CPU, so there is only one of these, and it is watched for longer."""

import collections

RATE_HZ = 999
DEFAULT_RATE_HZ = 99
LOW_RATE_HZ = 20
SEED = "SEED"  # stands for the seed of this run

# What is reported of which threads, for how many seconds at each rate. A kind is what a share is of:
# "running" and "wall" time, or wall time by function and "state"; "off" is time off the CPU. `others_s` is
# how long each of the other ways is watched, at RATE_HZ or, if given, at `others_hz`.
Scene = collections.namedtuple(
    "Scene", "title command threads kinds seconds others_s others_hz is_also_busy",
    defaults=[0, RATE_HZ, True])


def _timed(title, command, threads, kinds, seconds, others_s, is_also_busy=False):
    """A scene whose waits end by a timer."""
    return Scene(title, command, threads, kinds, seconds, others_s, RATE_HZ, is_also_busy)


SCENES = {
    "turns": Scene(
        "Waits of 60, 250 and 90 us by turns, until a partner that computes ends them",
        ("partner", "eventfd", "computes", "thread", 1), ["waiter"], ["wall"],
        {LOW_RATE_HZ: 40, DEFAULT_RATE_HZ: 100, RATE_HZ: 8}, 20, DEFAULT_RATE_HZ),
    "turns-asleep": Scene(
        "Waits of 60, 250 and 90 us by turns, until a partner that sleeps ends them, 4 pairs",
        ("partner", "eventfd", "sleeps", "thread", 4), ["waiter"], ["wall"],
        {LOW_RATE_HZ: 30, DEFAULT_RATE_HZ: 25, RATE_HZ: 5}, 10, DEFAULT_RATE_HZ),
    "drawn": Scene(
        "Waits of 20 us to 1 ms for another process that computes, one function for each way to end",
        ("partner", "all", "computes", "process", 1, SEED), ["waiter"], ["wall"],
        {LOW_RATE_HZ: 40, DEFAULT_RATE_HZ: 100, RATE_HZ: 8}, 20, DEFAULT_RATE_HZ),
    "drawn-asleep": Scene(
        "Waits of 20 us to 1 ms for other processes that sleep, one function for each way, 4 pairs",
        ("partner", "all", "sleeps", "process", 4, SEED), ["waiter"], ["wall"],
        {LOW_RATE_HZ: 30, DEFAULT_RATE_HZ: 25, RATE_HZ: 5}, 10, DEFAULT_RATE_HZ),
    "requests": Scene(
        "A client of a server that computes for 50 to 300 us, over loopback TCP",
        ("requests", SEED), ["client"], ["wall"],
        {LOW_RATE_HZ: 40, DEFAULT_RATE_HZ: 100, RATE_HZ: 8}, 20, DEFAULT_RATE_HZ),
    "alike": Scene(
        "4 threads alike, in pairs that compute and wait for each other by turns",
        ("alike", 2), ["alike"], ["wall", "running"],
        {LOW_RATE_HZ: 30, DEFAULT_RATE_HZ: 25, RATE_HZ: 5}, 10, DEFAULT_RATE_HZ),
    "bursts": _timed("Bursts of 60, 30 and 10 us", ("bursts", "steady"), ["server"], ["running"],
                     {DEFAULT_RATE_HZ: 15, RATE_HZ: 10}, 10, True),
    "bursts-mixed": _timed("Bursts of 20 to 500 us, cut in three", ("bursts", "mixed"), ["server"],
                           ["running"], {RATE_HZ: 6}, 6),
    "waits": _timed("Waits of 40, 120 and 400 us by turns, until a timer ends them",
                    ("waits", "steady"), ["waiter"], ["wall", "off"],
                    {LOW_RATE_HZ: 20, DEFAULT_RATE_HZ: 20, RATE_HZ: 10}, 10, True),
    "waits-mixed": _timed("Waits of 30 us to 50 ms at random, until a timer ends them",
                          ("waits", "mixed"), ["waiter"], ["wall", "off"],
                          {DEFAULT_RATE_HZ: 20, RATE_HZ: 10}, 10, True),
    "lock": _timed("A lock that two threads hand back and forth", ("handover",), ["left", "right"],
                   ["running", "wall", "off"], {DEFAULT_RATE_HZ: 20, RATE_HZ: 6}, 6, True),
    "in-step": _timed("A program that repeats itself as often as it is sampled",
                      ("in_step", RATE_HZ), ["worker"], ["running"], {RATE_HZ: 5}, 5),
    "threads-4": _timed("4 threads on two CPUs", ("shares", 4), ["worker"], ["running"],
                        {RATE_HZ: 5}, 5),
    "threads-40": _timed("40 threads on two CPUs", ("shares", 40), ["worker"], ["running"],
                         {RATE_HZ: 5}, 5),
    "crowd": _timed("A thread that is woken and waits for a CPU, beside 4 that compute",
                    ("crowd", 4), ["sleeper"], ["state", "running"],
                    {DEFAULT_RATE_HZ: 40, RATE_HZ: 8}, 8),
}
KINDS = {"running": "running time", "wall": "wall time", "state": "wall time, by state",
         "off": "time off the CPU"}

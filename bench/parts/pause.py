"""What a sampler costs running threads: how often and for how long it keeps them from working, and how much
work they lose."""

import collections
import contextlib
import os
import re
import select
import signal
import statistics
import time

import programs
import tables

TITLE = "Running threads: pauses and lost work"
TOOLS = ("perf", "gdb", "eu-stack")
BUCKET_BITS = 5  # as in targets/spin.c

# The time before a window begins: the sampler has started and had its first ticks.
SETTLE_S = 0.5


class Window:
    """What a target did in one window: the difference between two of its answers."""

    def __init__(self, first, last):
        self.s = (last["ns"] - first["ns"]) / 1e9
        self.chunks_per_s = (last["chunks"] - first["chunks"]) / self.s
        self.gap_s = (last["gap_ns"] - first["gap_ns"]) / 1e9
        self.gaps = {}
        for bucket, number in last["gaps"].items():
            number -= first["gaps"].get(bucket, 0)
            if number:
                self.gaps[int(bucket)] = number
        self.snapshots = None
        self.sampler_cpu = None  # as a share of one CPU
        self.note = None

    @property
    def gap_share(self):
        return self.gap_s / self.s


def bucket_s(bucket):
    """The middle of a bucket of targets/spin.c."""
    power, rest = bucket >> BUCKET_BITS, bucket & ((1 << BUCKET_BITS) - 1)
    return (1 << power) * (1 + (rest + 0.5) / (1 << BUCKET_BITS)) / 1e9


def watch(target, seconds):
    first = target.mark()
    time.sleep(seconds)
    return Window(first, target.mark())


# Each of these measures a window under one sampler.


def under_nothing(world, target, threads, seconds):
    window = watch(target, seconds)
    window.snapshots, window.sampler_cpu = 0, 0
    return window


def watch_with_cpu(target, sampler, seconds):
    """A window, and the CPU time that the sampler used in it."""
    time.sleep(SETTLE_S)
    before_s = programs.cpu_s(sampler.pid)
    window = watch(target, seconds)
    window.sampler_cpu = (programs.cpu_s(sampler.pid) - before_s) / window.s
    return window


def under_fgprof(world, target, threads, seconds, *options):
    # Longer than the window, so that finishing and naming come after it.
    sampler = world.attach(target.pid, "-d", f"{SETTLE_S + seconds + 0.5}s", *options)
    window = watch_with_cpu(target, sampler, seconds)
    summary = programs.summary_of(sampler.wait(30))
    window.snapshots = summary.taken / summary.elapsed_s * window.s
    window.note = summary.pause_words
    return window


def under_fgprof_stops(world, target, threads, seconds):
    return under_fgprof(world, target, threads, seconds, "--capture=ptrace")


def under_bare_stop(world, target, threads, seconds):
    """The minimum that a ptrace sampler must do."""
    sampler = programs.Measured(world, world.program("bare-stop"), target.pid)
    window = watch_with_cpu(target, sampler, seconds)
    sampler.signal(signal.SIGTERM)
    sampler.wait(10)
    window.snapshots = 99 * window.s
    return window


def under_perf(world, target, threads, seconds):
    """perf, told to begin once it is ready, so that its samples cover a known time."""
    control, ready = world.path("perf-control"), world.path("perf-ready")
    os.mkfifo(control)
    os.mkfifo(ready)
    with open(os.open(control, os.O_RDWR), "w") as to_perf, \
            open(os.open(ready, os.O_RDWR), "rb", buffering=0) as from_perf:
        sampler = programs.Measured(world, "perf", "record", "-F", "99", "--call-graph", "dwarf",
                                    "-D", "-1", f"--control=fifo:{control},{ready}",
                                    "-o", world.path("perf.data"), "-p", target.pid)
        to_perf.write("enable\n")
        to_perf.flush()
        if not select.select([from_perf], [], [], 20)[0]:
            raise RuntimeError("perf does not begin: " + sampler.wait(0).stderr)
        begin = time.monotonic()
        window = watch_with_cpu(target, sampler, seconds)
        sampler.signal(signal.SIGINT)
        elapsed_s = time.monotonic() - begin
        usage = sampler.wait(30)
    samples = re.search(r"\((\d+) samples\)", usage.stderr)
    for name in (control, ready, world.path("perf.data")):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    if not samples:
        raise RuntimeError("perf record took no samples: " + usage.stderr)
    window.snapshots = int(samples[1]) / elapsed_s * window.s
    return window


def under_snapshots(tool):
    def under_tool(world, target, threads, seconds):
        """Takes one snapshot after another, for at least as long; the window is exactly that of the
        snapshots."""
        number, cpu_s, begin = 0, 0, time.monotonic()
        first = target.mark()
        while time.monotonic() - begin < seconds:
            usage, stacks = programs.snapshot(world, tool, target.pid)
            if stacks < threads:
                raise RuntimeError(f"{tool} printed {stacks} stacks of {threads}: {usage.stderr}")
            number += 1
            cpu_s += usage.cpu_s
        window = Window(first, target.mark())
        window.snapshots, window.sampler_cpu = number, cpu_s / window.s
        return window

    return under_tool


SAMPLERS = [
    ("nothing", None, under_nothing),
    ("fgprof-c attach -F 99", None, under_fgprof),
    ("the same, --capture=ptrace", None, under_fgprof_stops),
    ("bare ptrace stops at 99 Hz", None, under_bare_stop),
    ("perf record -F 99 --call-graph dwarf", "perf", under_perf),
    ("gdb -batch, in a loop", "gdb", under_snapshots("gdb")),
    ("eu-stack, in a loop", "eu-stack", under_snapshots("eu-stack")),
]


class Comparison:
    """The windows with one sampler, each with the two windows without one next to it."""

    def __init__(self, name, threads):
        self.name = name
        self.threads = threads
        self.windows = []

    def add(self, before, window, after):
        self.windows.append((window, before, after))

    def lost(self):
        """The share of work lost in each window."""
        return [1 - w.chunks_per_s / statistics.mean([b.chunks_per_s, a.chunks_per_s])
                for w, b, a in self.windows]

    def added_gaps(self):
        """For each window, the gaps in it minus those expected without a sampler, as {bucket: number}; and
        the variance of a bucket's sum if gaps came at random. The expected number is for the time that the
        threads ran: a thread that is stopped half of the time sees half of the interrupts."""
        windows, variance = [], collections.Counter()
        for window, *others in self.windows:
            added = collections.Counter(window.gaps)
            variance.update(window.gaps)
            scale = self.ran_s(window) / sum(map(self.ran_s, others))
            for other in others:
                for bucket, number in other.gaps.items():
                    added[bucket] -= number * scale
                    variance[bucket] += number * scale * scale
            windows.append(added)
        return windows, variance

    def ran_s(self, window):
        return self.threads * window.s - window.gap_s

    def paused_s(self):
        """How long a snapshot pauses a thread; None if the added gaps are within chance."""
        added, variance = self.added_gaps()
        shortest = where_clear(added, variance)
        lengths = [sum(number * bucket_s(bucket) for bucket, number in gaps.items()
                       if bucket >= shortest) / window.snapshots / self.threads
                   for (window, *_), gaps in zip(self.windows, added)
                   if shortest is not None and window.snapshots]
        return statistics.median(lengths) if lengths else None

    def gap_cells(self, seconds):
        """Gaps added per second, their median, their p99, and how long a snapshot pauses a
        thread."""
        added, variance = self.added_gaps()
        shortest = where_clear(added, variance)
        if shortest is None:
            return ["not clear of chance", "-", "-", "-"]
        tail = collections.Counter()
        for gaps in added:
            tail.update({bucket: number for bucket, number in gaps.items() if bucket >= shortest})
        paused_s = self.paused_s()
        return [f"{sum(tail.values()) / seconds:.1f} of > {tables.duration(bucket_s(shortest))}",
                tables.duration(bucket_s(quantile(tail, 0.5))),
                tables.duration(bucket_s(quantile(tail, 0.99))),
                tables.duration(paused_s) if paused_s and paused_s > 0 else "-"]

    def row(self):
        seconds = sum(window.s for window, *_ in self.windows)
        snapshots = sum(window.snapshots for window, *_ in self.windows)
        longest = max((max(window.gaps, default=0) for window, *_ in self.windows))
        return [
            self.name,
            f"{snapshots / seconds:.1f}" if snapshots else "-",
            tables.spread(self.lost(), tables.percent),
            *self.gap_cells(seconds),
            tables.duration(bucket_s(longest)) if longest else "-",
            tables.percent(statistics.median(window.sampler_cpu for window, *_ in self.windows)),
        ]


def where_clear(added, variance):
    """The bucket from which on the added gaps differ most from chance; None if they never do. Otherwise the
    many short gaps that come without a sampler would hide a few long ones. Chance is what random gaps would
    give, or the variation from window to window if that is larger: gaps caused by other work on the machine
    come in bursts."""
    sums, at_random, best, best_bucket = [0] * len(added), 0, 4, None
    for bucket in sorted(variance, reverse=True):
        sums = [total + gaps[bucket] for total, gaps in zip(sums, added)]
        at_random += variance[bucket]
        seen = len(sums) * statistics.variance(sums) if len(sums) > 1 else 0
        deviations = sum(sums) / max(at_random, seen) ** 0.5
        if deviations > best:
            best, best_bucket = deviations, bucket
    return best_bucket


def quantile(tail, share):
    """The bucket below which this share of the added gaps lies, counted from the longest down."""
    above, total = 0, sum(tail.values())
    for bucket in sorted(tail, reverse=True):
        above += tail[bucket]
        if above >= (1 - share) * total:
            return bucket
    return min(tail)


HEADER = ["sampler", "snapshots/s", "work lost", "gaps added/s", "median", "p99",
          "paused a snapshot", "longest of all", "sampler's CPU"]


def measure(world, start_target, threads, samplers, repetitions, seconds):
    """The comparisons, one for each sampler, and the longest gap without any."""
    comparisons = [Comparison(name, threads) for name, *_ in samplers]
    with start_target() as target:
        watch(target, 1)  # the clock speeds up
        before = watch(target, seconds)
        longest_without = max(before.gaps, default=0)
        for repetition in range(repetitions):
            programs.progress(f"  {threads} running, round {repetition + 1} of {repetitions}")
            for comparison, (_, _, under) in zip(comparisons, samplers):
                window = under(world, target, threads, seconds)
                after = watch(target, seconds)
                comparison.add(before, window, after)
                longest_without = max(longest_without, max(after.gaps, default=0))
                before = after
    return comparisons, longest_without


def compare(world, threads, repetitions, seconds):
    """The table's rows, and the notes below it."""
    samplers = [s for s in SAMPLERS if not s[1] or world.has(s[1])]
    comparisons, longest_without = measure(world, lambda: world.target("spin", threads), threads,
                                           samplers, repetitions, seconds)
    rows = [comparison.row() for comparison in comparisons]
    rows += [[name] + [tables.NOT_INSTALLED] + [""] * (len(HEADER) - 2)
             for name, tool, _ in SAMPLERS if tool and not world.has(tool)]
    said = [window.note for comparison in comparisons for window, *_ in comparison.windows
            if window.note]
    longest = tables.duration(bucket_s(longest_without))
    return rows, (f"The longest gap without a sampler: {longest}. "
                  f"What fgprof-c said of its pauses in the last round: {said[-1]}.\n")


@contextlib.contextmanager
def two_cpus():
    """Keeps this process, and its children, on two CPUs."""
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cpus)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cpus)


def report(world):
    repetitions, seconds = world.pick((5, 2), (1, 0.3))
    with two_cpus():
        one, of_one = compare(world, 1, repetitions, seconds)
        four, of_four = compare(world, 4, repetitions, seconds)
    return f"""A program computes in equal chunks of about 0.1 us and reads the clock between them. A *gap* is
where two readings are more than 5 us apart. *Work lost* is by how many chunks a second fewer were
done than in the windows before and after, without a sampler; the row "nothing" is the same
comparison without any sampler, which shows how far to trust the others. *Gaps added* are those
more than without, as the difference of the two histograms, from the length on at which they stand
out most from chance; with their median and 99th percentile. *Paused a snapshot* is the sum of
their lengths, a thread and a snapshot. The *sampler's CPU* is what it took of one CPU meanwhile.
Given are medians, in brackets between what the middle half lies. *Bare ptrace stops* are by a
program that only attaches, stops, reads registers and 1 KiB of stack, and detaches: what no sampler
by ptrace can be better than, on this machine at this time. Windows of {seconds} s, {repetitions} a
sampler, all on two CPUs, the sampler too. perf sees only what runs on a CPU, and its snapshots are
of single threads.

## 1 thread on 2 CPUs

{tables.table(HEADER, one)}
{of_one}
## 4 threads on 2 CPUs

Here the threads wait for each other: most gaps are time slices of the others, and a gap that is
added may be one that the scheduler, asked for a CPU by the sampler, makes of another.

{tables.table(HEADER, four)}
{of_four}"""

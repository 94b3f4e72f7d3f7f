"""The kernel's records of when a process's threads left their CPU and came back, by perf.

Tracepoints on all CPUs, filtered to these threads in the kernel, disturb them least: an event for each thread
makes its switches more expensive."""

import bisect
import collections
import os
import re
import signal
import time

import programs
import watchers

# User frames of a departure: libc's, which has no frame pointers, and some of the program.
FRAMES = 6
READY_S = 20
ENDS_S = 60
SAME_SWITCH_NS = 20000
LEAVING_NS = 5000
UNKNOWN_MAX = 0.02  # of the time for which a thread is watched
RUNNING, RUNNABLE, ASLEEP = "running", "runnable", "asleep"

# A time off the CPU. `waking_ns` is when another CPU decided to wake the thread (sched_waking), `woken_ns`
# when it was in its CPU's queue (sched_wakeup), from when on the kernel's account has it waiting for that
# CPU; both are `out_ns` if it only lost its CPU. Functions are leaf first. If `in_ns` is None, it has not
# come back in the log.
Departure = collections.namedtuple("Departure", "out_ns waking_ns woken_ns in_ns functions")


def _any_of(field, tids):
    return " || ".join(f"{field} == {tid}" for tid in tids)


def record(world, tids, path):
    """Starts perf. It records when this returns."""
    # Only those that leave have a call chain that is of use.
    ready = world.path("switch-log-ready")
    perf = programs.Measured(
        world, "perf", "record", "-a", "-B", "-k", "CLOCK_MONOTONIC", "-m", "4M",
        "-e", f"sched:sched_switch/call-graph=fp,max-stack={FRAMES}/",
        "--filter", _any_of("prev_pid", tids),
        "-e", "sched:sched_switch/call-graph=no/", "--filter", _any_of("next_pid", tids),
        "-e", "sched:sched_waking/call-graph=no/", "--filter", _any_of("pid", tids),
        "-e", "sched:sched_wakeup/call-graph=no/", "--filter", _any_of("pid", tids),
        "--user-callchains", "-o", path,
        "--", "sh", "-c", f"touch {ready}; exec sleep {ENDS_S + 60}")
    end = time.monotonic() + READY_S
    while not os.path.exists(ready):
        if perf.process.poll() is not None or time.monotonic() > end:
            perf.end()
            raise watchers.Failed("perf does not record switches")
        time.sleep(0.01)
    os.unlink(ready)
    return perf


def stop(perf):
    perf.signal(signal.SIGINT)
    usage = perf.wait(ENDS_S)
    if usage.timed_out:
        raise watchers.Failed("perf does not end")


_SWITCH = re.compile(r"\s(\d+)\.(\d{9}): sched:sched_switch: .*? prev_pid=(\d+) prev_prio=\d+ "
                     r"prev_state=(\S+) ==> .*? next_pid=(\d+) ")
_WAKE = re.compile(r"\s(\d+)\.(\d{9}): sched:sched_(waking|wakeup): .*? pid=(\d+) ")


class Log:
    """What the threads were doing at any time of the log."""

    def __init__(self, world, path, tids):
        self._open, self._waking_ns = {}, {}
        self._leaves = self._lost_wakes = 0
        self.departures = {tid: [] for tid in tids}
        self.is_lossy = False
        usage = world.run("perf", "script", "-f", "--ns", "--no-inline", "-F",
                          "tid,time,event,trace,ip,sym", "-i", path, keeps_stdout=True,
                          timeout_s=watchers.TIMEOUT_S)
        watchers.require(usage)
        self.is_lossy = "lost" in usage.stderr.lower()
        for paragraph in self._paragraphs(usage.stdout):
            self._read(*paragraph)
        for tid, departure in self._open.items():
            self.departures[tid].append(departure)
        self.unwoken = self._lost_wakes / max(1, self._leaves)
        self._outs = {tid: [departure.out_ns for departure in departures]
                      for tid, departures in self.departures.items()}

    @staticmethod
    def _paragraphs(text):
        """(heading, [function, ...]): a line such as "1234 5.000000001: sched:sched_switch: ...", then a line
        such as "    55d0c0de1234 wait_60" for each frame."""
        heading, functions = None, []
        for line in text.splitlines():
            if " sched:" in line:
                if heading:
                    yield heading, functions
                heading, functions = line, []
            elif line.strip():
                functions.append(line.split(None, 1)[-1])
        if heading:
            yield heading, functions

    def _read(self, heading, functions):
        wake = _WAKE.search(heading)
        if wake:
            self._note_wake(int(wake[4]), wake[3], int(wake[1] + wake[2]))
            return
        switch = _SWITCH.search(heading)
        if not switch:
            return
        ns, previous, following = int(switch[1] + switch[2]), int(switch[3]), int(switch[5])
        if previous in self.departures:
            is_asleep = not switch[4].startswith("R")
            known = self._open.get(previous)
            # A switch between two of the threads is there twice, once by each event, which read the clock one
            # after the other.
            is_same = (known and known.in_ns is None and known.waking_ns in (None, known.out_ns) and
                       ns - known.out_ns < SAME_SWITCH_NS)
            if is_same:
                ns, functions = known.out_ns, functions or list(known.functions)
            elif known:
                self._close(previous, known, ns)
            # Another CPU may wake it while it is leaving.
            is_woken = ns - self._waking_ns.get(previous, 0) < LEAVING_NS
            woken_ns = ns if is_woken or not is_asleep else None
            self._open[previous] = Departure(ns, woken_ns, woken_ns, None, tuple(functions))
        departure = self._open.get(following)
        if departure and departure.in_ns is None and departure.out_ns < ns:
            self._open[following] = self._woken_by(departure, ns)._replace(in_ns=ns)

    def _note_wake(self, tid, kind, ns):
        departure = self._open.get(tid)
        if kind == "waking":
            self._waking_ns[tid] = ns
        if not departure:
            return
        if departure.waking_ns is None:
            departure = departure._replace(waking_ns=ns)
        if departure.woken_ns is None and kind == "wakeup":
            departure = departure._replace(woken_ns=ns)
        self._open[tid] = departure

    @staticmethod
    def _woken_by(departure, ns):
        """perf lacks some wakeups: then the thread was in the queue when the waker said so, or at `ns`."""
        waking_ns = ns if departure.waking_ns is None else departure.waking_ns
        woken_ns = waking_ns if departure.woken_ns is None else departure.woken_ns
        return departure._replace(waking_ns=waking_ns, woken_ns=woken_ns)

    def _close(self, tid, departure, ns):
        """The thread has left again. perf lacks returns from an idle CPU; the time of the wakeup is enough to
        distinguish sleep from the rest."""
        self._leaves += 1
        self._lost_wakes += departure.waking_ns is None
        self.departures[tid].append(self._woken_by(departure, ns))

    def bounds_ns(self, tid):
        """The time for which everything is known."""
        known = self.departures[tid]
        return (known[0].out_ns, known[-1].out_ns) if known else (0, 0)

    def is_known(self, tid, begin_ns, end_ns):
        """Whether nearly all is known of that time."""
        known_ns = self.bounds_ns(tid)
        return (known_ns[0] < begin_ns + (end_ns - begin_ns) * UNKNOWN_MAX and
                known_ns[1] > end_ns - (end_ns - begin_ns) * UNKNOWN_MAX)

    def keep(self, tids):
        """Forgets the other threads."""
        self.departures = {tid: self.departures[tid] for tid in tids}

    def nearest(self, tid, out_ns):
        """The number of the departure that began next to that time."""
        outs = self._outs[tid]
        number = bisect.bisect_left(outs, out_ns)
        later = outs[number] - out_ns if number < len(outs) else out_ns
        earlier = out_ns - outs[number - 1] if number else out_ns
        return number if later < earlier else number - 1

    def at(self, tid, ns, woken="woken_ns"):
        """(state, the number of the last departure) at a time. `woken` is the field that says when it was
        woken."""
        number = bisect.bisect_right(self._outs[tid], ns) - 1
        departure = self.departures[tid][number]
        if departure.in_ns is not None and departure.in_ns <= ns:
            return RUNNING, number
        woken_ns = getattr(departure, woken)
        if woken_ns is not None and woken_ns <= ns:
            return RUNNABLE, number
        return ASLEEP, number

    def asleep_ns(self, begin_ns, end_ns):
        """{tid: Counter of ns asleep by departure's functions} in a part of the log."""
        spent = {}
        for tid, departures in self.departures.items():
            counter = spent[tid] = collections.Counter()
            for departure in departures:
                woken_ns = end_ns if departure.woken_ns is None else departure.woken_ns
                ns = min(woken_ns, end_ns) - max(departure.out_ns, begin_ns)
                if ns > 0:
                    counter[departure.functions] += ns
        return spent

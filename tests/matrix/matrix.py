#!/usr/bin/env python3
"""The target matrix: many kinds of programs, with gdb as the judge.

    tests/matrix/matrix.py BUILD_DIRECTORY [--show] [WORD...]

Builds each program in every way for which there is a compiler and a linker, lets its threads reach
their places, and compares each thread's stack in fgprof-c and gdb, frame by frame and name by name,
including inlined functions. Prints a table. WORDs select rows; --show prints stacks that differ.
"""

import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import compare  # noqa: E402
import configurations  # noqa: E402
import disagreements  # noqa: E402
import stacks  # noqa: E402

READY_S = 200
BUILD_S = 600  # with Go's own library, on a busy machine
SPUN_NS = 1000000  # of CPU time, after which a spinning thread has reached its place, and a thread
                   # that has printed that it is ready would be asleep
ROUNDS_MAX = 15
ROUND_MS_MAX = 1600
# What a thread shows if it could not be stopped in time: nothing, or the result of an earlier stop
# that was to be repeated with more of its stacks.
TOO_LATE = {"[truncated: thread not observed in time]", "[truncated: stack unreadable]"}
NOT_KNOWN = "[truncated: frame pointer not known"

# A row of the table. threads: {name: compare.Result}.
Row = collections.namedtuple("Row", "title skipped failed threads seconds",
                             defaults=(None, None, {}, 0))


def read(*parts):
    with open(os.path.join("/proc", *map(str, parts))) as file:
        return file.read()


def run_ns(pid, tid):
    return int(read(pid, "task", tid, "schedstat").split()[0])


def is_settled(pid, tid, run_before_ns):
    """Whether a thread has reached its place: after running for long enough, it was not on its way
    to sleep."""
    state = read(pid, "task", tid, "stat").rpartition(")")[2].split()[0]
    return state in "SDT" or run_ns(pid, tid) - run_before_ns > SPUN_NS


def wait_until_settled(pid):
    """Waits until all threads are in their places, after they have printed that they are there."""
    end = time.monotonic() + READY_S
    before = None
    runs_ns = {tid: run_ns(pid, tid) for tid in os.listdir(f"/proc/{pid}/task")}
    while time.monotonic() < end:
        tids = os.listdir(f"/proc/{pid}/task")
        switches = [read(pid, "task", tid, "schedstat").split()[2] for tid in tids
                    if read(pid, "task", tid, "stat").rpartition(")")[2].split()[0] in "SD"]
        if before == switches and all(is_settled(pid, tid, runs_ns.get(tid, 0)) for tid in tids):
            return
        before = switches
        time.sleep(0.02)
    raise RuntimeError(f"{pid} does not come to rest")


def build(configuration, directory):
    """Returns the program's path. Raises an error with the compiler's output."""
    path = os.path.join(directory, re.sub(r"\W+", "-", configuration.title))
    for command in configuration.commands:
        words = [word.replace("@", path) for word in command]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=BUILD_S, cwd=os.path.join(HERE, "programs"),
                              env=configurations.environment(directory))
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}")
    return path


def is_part(stack, other):
    """Whether the stack is the other one, cut: expected while the frame pointer is still being
    learned."""
    return (stack is not other and stack[-1].address is None
            and stack[-1].name.startswith(NOT_KNOWN)
            and other[:len(stack) - 1] == stack[:-1])


def whole_ones(found):
    return [stack for stack in found if stack[-1].name not in TOO_LATE
            and not any(is_part(stack, other) for other in found)]


def sample(fgprof, target, configuration):
    """({tid: [stack, ...]}, {tid: name}) by fgprof-c. With many running threads, and others that
    preempt them, a thread may be missing at first: tries again until it has had its turn."""
    tids = set(map(int, os.listdir(f"/proc/{target.pid}/task")))
    for round_number in range(ROUNDS_MAX):
        found, names = stacks.of_fgprof(fgprof, target.pid, *configuration.options,
                                        duration=f"{min(100 << round_number, ROUND_MS_MAX)}ms")
        found = {tid: whole_ones(counts) for tid, counts in found.items()}
        if all(found.get(tid) for tid in tids):
            break
    names = {tid: "main" if tid == target.pid else name for tid, name in names.items()}
    return found, names


def judge(fgprof, program, configuration, aliases):
    """{thread's name: compare.Result}"""
    # nice, so that spinning threads leave the CPUs to the observers.
    # Go's scheduler signals threads that compute for long. That is visible now and then, and is not
    # what is compared here.
    target = subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "GODEBUG": "asyncpreemptoff=1"},
                              preexec_fn=lambda: os.nice(19))
    try:
        line = target.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"{configuration.title} said {line!r}")
        stand_in = configuration.judge and configuration.judge.replace("@", program)
        if configuration.stop:
            its, files = stacks.of_gdb(target.pid, stand_in, configuration.stop)
        if not configuration.only:
            wait_until_settled(target.pid)
        mine, names = sample(fgprof, target, configuration)
        if not configuration.stop:
            its, files = stacks.of_gdb(target.pid, stand_in)
    finally:
        target.kill()
        target.stdout.close()
        target.wait()
    results = {}
    for tid, frames in sorted(its.items()):
        if configuration.only and all(frame.name != configuration.only for frame in frames):
            continue
        found = mine.get(tid) or [()]
        if len(found) != 1:
            texts = ["\n".join(map(compare.text_of, stack)) for stack in found]
            raise RuntimeError(f"{configuration.title}: {names[tid]} does not stay where it is:\n" +
                               "\n\n".join(texts))
        name = names.get(tid, f"thread {tid}")
        name = name if name not in results else f"{name} {len(results)}"
        results[name] = compare.compare(found[0], frames, aliases, files, configuration.may_be_cut)
    return results


def row_of(fgprof, directory, configuration, aliases):
    begin = time.monotonic()
    missing = [tool for tool in configuration.tools if not shutil.which(tool)]
    if missing:
        return Row(configuration.title, f"no {', '.join(missing)}")
    try:
        program = build(configuration, directory)
        threads = judge(fgprof, program, configuration, aliases)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return Row(configuration.title, failed=str(error))
    return Row(configuration.title, None, None, threads, time.monotonic() - begin)


def run(fgprof, directory, words=()):
    """The rows, in order. Two at a time: one is compiled while the other's threads are awaited."""
    chosen = [one for one in configurations.ALL
              if not words or any(word in one.title for word in words)]
    aliases = stacks.Aliases(directory)
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        return list(pool.map(lambda one: row_of(fgprof, directory, one, aliases), chosen))


def table(rows):
    width = max(len(row.title) for row in rows)
    lines = [f"{'program and configuration':{width}} threads frames   same differ  known    cut      s"]
    for row in rows:
        if row.skipped:
            lines.append(f"{row.title:{width}} skipped: {row.skipped}")
            continue
        if row.failed:
            lines.append(f"{row.title:{width}} FAILED")
            continue
        results = row.threads.values()
        known = sum(result.differing for name, result in row.threads.items()
                    if disagreements.find(row.title, name))
        lines.append(f"{row.title:{width}} {len(results):7} {sum(r.frames for r in results):6} "
                     f"{sum(r.same for r in results):6} {sum(r.differing for r in results):6} "
                     f"{known:6} {sum(r.is_cut for r in results):6} {row.seconds:6.1f}")
    return "\n".join(lines)


def faults(rows):
    """The differences from the list, as text."""
    found = []
    for row in rows:
        if row.failed or not row.skipped and not row.threads:
            found.append(f"{row.title}: failed: {row.failed or 'no thread was compared'}")
        for name, result in row.threads.items():
            known = disagreements.find(row.title, name)
            if result.differing and not known:
                found.append(f"{row.title}: {name}: differs:\n" + "\n".join(result.words))
            if known and not result.differing:
                found.append(f"{row.title}: {name}: agrees, though it is listed: {known.why}")
    return found


def main():
    arguments = sys.argv[1:]
    show = "--show" in arguments
    arguments = [word for word in arguments if word != "--show"]
    with tempfile.TemporaryDirectory(prefix="fgprof-matrix-") as directory:
        rows = run(os.path.join(arguments[0], "fgprof-c"), directory, arguments[1:])
    print(table(rows))
    for row in rows if show else []:
        for name, result in row.threads.items():
            if result.differing:
                print(f"\n{row.title}: {name}", *result.words, sep="\n")
    found = faults(rows)
    print(*found, sep="\n\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

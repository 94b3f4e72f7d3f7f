"""Waiting goroutines, compared with the profiles that Go makes of itself at the same time."""

import collections
import json
import os
import re
import shutil
import subprocess
import sys

from harness import HANGS_S, Skip, alone, context_switches, folded, has, late_share, need, ready, ticks_planned, users_build, wait_for
from test_go import BUILDS, build, minor_version
from receiver import Otlp
from test_serve import serving

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
    """{reason: how many goroutines} from debug=2, except the main one."""
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
    # Some are found a tick later than others.
    differ = [(stack, counts[stack], theirs[stack]) for stack in {*counts, *theirs}
              if abs(counts[stack] - theirs[stack]) > max(0.5, 0.01 * theirs[stack])]
    assert not differ, (len(differ), differ[:4], done.stderr)
    assert all(abs(count - round(count)) < 0.02 * round(count) for count in counts.values()), counts
    assert {reason: round(count) for reason, count in reasons.items()} == gos_reasons(truth + ".2"), reasons
    assert re.search('"route":"/search", .*"user":"42", "wait":"channel", "wait_reason":"chan receive"}', text), text
    assert text.count('"route"') == 1, text
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


def gos_dump(path):
    """{id: (reason, [(function, file, line), ...: leaf first, without the runtime's], creator)} by
    debug=2."""
    goroutines = {}
    for text in open(path).read().split("\n\n"):
        head = re.match(r"goroutine (\d+).* \[([^],]*)", text)
        frames = re.findall(r"^(\S.*)\([^()]*\)\n\t(.*):(\d+)", text, re.M)
        creator = re.search(r"^created by (\S+)(?: in goroutine (\d+))?\n\t(.*):(\d+)", text, re.M)
        goroutines[int(head[1])] = (head[2], [frame for frame in frames if not frame[0].startswith("runtime.")],
                                    creator and creator.groups())
    return goroutines


def dumps(text):
    """The same from a dump."""
    goroutines = {}
    for part in text.split("\n\n"):
        head = re.match(r"goroutine (\d+) \[([^],]*)", part)
        if head:
            frames = re.findall(r"^    (\S.*) \((.*?):(\d+)(?:, inlined)?\)$", part, re.M)
            creator = re.search(r"^created by (\S+) \((.*):(\d+)\)(?: in goroutine (\d+))?$", part, re.M)
            goroutines[int(head[1])] = (
                head[2], [frame for frame in frames if not frame[0].startswith("runtime.")],
                creator and (creator[1], creator[4], creator[2], creator[3]))
    return goroutines


def check_dump(world, options, each, go="go"):
    truth = world.path("truth")
    with ready(build(world, "goroutines", options, go), 120, each, truth, stdin=subprocess.PIPE) as target:
        assert written(target) == "written\n"
        done = world.fgprof("dump", "-p", target.pid)
        grouped = world.fgprof("dump", "-p", target.pid, "--group")
        document = json.loads(world.fgprof("dump", "-p", target.pid, "--json").stdout)
        threads = world.fgprof("dump", "-p", target.pid, "--no-goroutines")
    ours, theirs = dumps(done.stdout), gos_dump(truth + ".2")
    assert len(theirs) >= 50 * each + 10, theirs
    # The first one writes Go's own, and then waits in a system call.
    assert re.search(r"^goroutine 1 \[syscall, on thread \d+\]$", done.stdout, re.M), done.stdout
    assert ours.pop(1) and theirs.pop(1)
    differ = [(number, ours.get(number), theirs.get(number)) for number in set(ours) | set(theirs)
              if ours.get(number) != theirs.get(number)]
    assert not differ, (len(differ), differ[:2])
    groups = [int(count) for count in re.findall(r"^(\d+) @", grouped.stdout, re.M)]
    assert groups.count(each) >= 50 and sum(groups) == len(ours) + 1, grouped.stdout
    assert {row["goroutine"]: row["state"] for row in document["goroutines"] if row["goroutine"] != 1} == {
        number: state for number, (state, _, _) in ours.items()}
    assert "runtime.stopm" not in done.stdout and "runtime.stopm" in threads.stdout, threads.stdout
    assert "goroutine " not in threads.stdout, threads.stdout


def test_dump_of_goroutines(world):
    check_dump(world, BUILDS["plain"], 3)


@users_build
def test_dump_of_goroutines_stripped(world):
    check_dump(world, BUILDS["pie-stripped"], 3)


def test_dump_of_goroutines_of_debians_go(world):
    check_dump(world, BUILDS["plain"], 3, DEBIANS)


def delves_stacks(pid):
    """{id: [function, ...: leaf first]} according to delve, which stops the process for it."""
    if not shutil.which("dlv"):
        raise Skip("no dlv")
    done = subprocess.run(["dlv", "attach", str(pid), "--allow-non-terminal-interactive=true"], timeout=HANGS_S,
                          input="config max-string-len 0\ngoroutines -t 100\nexit\nn\n", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    stacks, names = {}, []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines():
        head = re.search(r"Goroutine (\d+) - ", line)
        frame = re.match(r"\t\s*\d+  0x[0-9a-f]+ in (\S+)$", line)
        if head:
            names = stacks[int(head[1])] = []
        elif frame:
            names.append(frame[1])
    assert stacks, done.stdout
    return stacks


def test_dump_of_goroutines_against_delve(world):
    """delve's own names of inlined functions and of compiler-made ones are the same."""
    with ready(build(world, "goroutines", BUILDS["plain"]), 120, 4, world.path("truth"), stdin=subprocess.PIPE) as target:
        document = json.loads(world.fgprof("dump", "-p", target.pid, "--json").stdout)
        theirs = delves_stacks(target.pid)
        assert target.poll() is None
    ours = {row["goroutine"]: [frame["function"] for frame in row["frames"]] for row in document["goroutines"]}
    # The first one is in a system call: it is a thread's.
    differ = {number: (stack, theirs.get(number)) for number, stack in ours.items()
              if number != 1 and stack != theirs.get(number)}
    assert len(ours) > 200 and not differ, (len(ours), len(differ), list(differ.items())[:2])
    # The runtime's own are left out.
    assert not any("main." in name for number, stack in theirs.items() if number not in ours for name in stack), theirs


def truths(target):
    """{function: (how many wait there, for what)} according to the program."""
    truth = {}
    while (line := target.stdout.readline()) != "that is all\n":
        name, count, thing = line.strip().split(" ", 2)
        truth["main." + name] = int(count), thing
    return truth


def shown_waits(document, name):
    """The goroutines in this function, without their stacks."""
    return [row for row in document["goroutines"]
            if any(frame.get("function", "").split(" ")[0] == name for frame in row["frames"])]


def check_row(row, count, thing, has_groups):
    if thing.startswith("fd "):
        _, fd, address = thing.split()
        assert row["fd"] == int(fd) and row["resource"] == "tcp socket", (row, thing)
        assert address in row["resource_name"], (row, thing)
    elif thing.startswith("channels "):
        assert sorted(row["channels"]) == sorted(thing.split()[1:]) and row["channel_count"] == 2, (row, thing)
    else:
        kind, address = thing.rsplit(" ", 1)
        if kind == "wait group" and not has_groups:
            # Before Go 1.20 the place of the word within it differs.
            kind, address = "semaphore", hex(int(address, 16) + 8)
        assert row["resource"] == kind and row["waiters"] == count, (row, thing)
        name = row["resource_name"]  # in a stripped program "mutex goroutines-waiting+0x5d0c0"
        assert name in (f"{kind} {address}", f"{kind} main.table") or name.endswith("+" + address), (row, thing)


def check_waits(world, options, go="go"):
    with ready(build(world, "goroutines-waiting", options, go), 120) as target:
        truth = truths(target)
        document = json.loads(world.fgprof("dump", "-p", target.pid, "--json").stdout)
        dump = world.fgprof("dump", "-p", target.pid).stdout
        text = world.attach(target, "-f", "text", duration="1s").stdout
    for name, (count, thing) in truth.items():
        rows = shown_waits(document, name)
        assert len(rows) == count, (name, rows, document)
        for row in rows:
            check_row(row, count, thing, minor_version(go) >= 20)
    channel = truth["main.receive"][1]
    assert dump.count(f"[chan receive]:\nwaits for {channel}, as 2 others do\n") == 3, dump
    assert re.search(r"\[select\]:\nwaits for one of 2 channels: 0x[0-9a-f]+; 0x[0-9a-f]+\n", dump), dump
    assert re.search(r"\[IO wait\]:\nwaits for fd \d+ tcp 127.0.0.1:\d+", dump), dump
    # Of channels, only one that several wait for is told apart from others.
    labels = re.findall(r'# labels: .*"resource":"([^"]*)"', text)
    assert labels.count(channel) == 1 and truth["main.receiveAlone"][1] not in labels, labels
    assert labels.count(truth["main.lock"][1]) == 1, labels
    assert any(label.startswith("tcp 127.0.0.1:") for label in labels), labels


def test_what_goroutines_wait_for(world):
    check_waits(world, BUILDS["plain"])


@users_build
def test_what_goroutines_wait_for_stripped(world):
    check_waits(world, BUILDS["stripped"])


def test_what_goroutines_of_debians_go_wait_for(world):
    check_waits(world, BUILDS["plain"], DEBIANS)


def test_what_is_kept_of_goroutines(world):
    with ready(build(world, "goroutines", BUILDS["plain"]), 120, 4, world.path("truth"), stdin=subprocess.PIPE) as target, \
            serving(world, "-p", target.pid, "--keep", "60s") as server:
        wait_for(lambda: "main.shape" in server.text("/debug/fgprof?last=60s&format=folded"), "a goroutine")
        kept = re.search(r'fgprof_kept_bytes\{kind="goroutines"\} (\d+)', server.text("/metrics"))
        assert int(kept[1]) > 200 * 32, kept


@users_build
def test_goroutines_of_a_library(world):
    """A library in a program that is not Go's: the program's own threads stay."""
    library = build(world, "goroutines-shared", ["-buildmode=c-shared", "-ldflags=-s -w"])
    code = (f"import ctypes, time; ctypes.CDLL({library!r}).Begin(); print('ready', flush=True);"
            " time.sleep(120)")
    with ready(sys.executable, "-c", code) as target:
        done = world.attach(target, "--native", duration="1s")
    stacks, ticks = folded(done.stdout), ticks_planned(done.stderr)
    parked = sum(count for stack, count in stacks.items() if has(stack, "runtime.goexit", "main.park"))
    assert abs(parked / (5 * ticks) - 1) < 0.03, (parked, ticks, done.stdout, done.stderr)
    assert not any("runtime.schedule" in stack for stack in stacks), stacks
    assert any(stack[-1] == "clock_nanosleep" for stack in stacks), stacks


@users_build
def test_ten_thousand_goroutines(world):
    check_parked(world, BUILDS["plain"], 200)


def test_a_report_of_goroutines(world):
    """Goroutines are not mistaken for threads, whose numbers may be the same."""
    with ready(build(world, "goroutines", BUILDS["plain"]), 120, 2, world.path("truth"), stdin=subprocess.PIPE) as target:
        assert written(target) == "written\n"
        text = world.attach(target, "-f", "report").stdout
    waits = re.findall(r'^  \d\. (.*) waits? .* in (?:chan|select|IO|sync|sleep).*', text, re.M)
    assert waits and all("goroutine" in wait and "thread" not in wait for wait in waits), text


@users_build
def test_goroutines_at_work(world):
    """Goroutines that compute and sleep by turns: the parts of their time, and their total."""
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


@users_build
def test_the_goroutine_that_a_thread_runs(world):
    """The label is the same as while the goroutine waits."""
    with ready(build(world, "goroutines-at-work", []), 120, stdin=subprocess.PIPE) as target:
        text = world.attach(target, "-f", "text", "--threads=tid", duration="2s").stdout
        names = world.attach(target, "-f", "text", duration="0.5s").stdout
        path, threads = world.path("otlp.gz"), os.listdir(f"/proc/{target.pid}/task")
        world.attach(target, "-f", "otlp", "--threads=tid", "-o", path, duration="1s")
    (_, profiles), = Otlp(world, open(path, "rb").read()).resources
    samples = profiles["wall", "nanoseconds"]["samples"]
    attributes = {name: [attached for stack, _, attached in samples if name in stack]
                  for name in ("main.compute", "main.rest")}
    ids, running, labelled, waiting, on_thread = {"main.compute": set(), "main.rest": set()}, 0, 0, 0, 0
    for part in text.split("\n\n"):
        labels, found = re.search("# labels: (.*)", part), re.search("main.compute|main.rest", part)
        if labels and found:
            number = json.loads(labels[1]).get("goroutine")
            ids[found[0]].add(number)
            count = int(re.search(r"(\d+) .*@", part)[1])
            running += count * (found[0] == "main.compute")
            labelled += count * (found[0] == "main.compute" and number is not None)
            is_asleep = json.loads(labels[1])["state"] == "sleeping"
            waiting += count * is_asleep
            on_thread += count * (is_asleep and "tid" in json.loads(labels[1]))
    # A goroutine that waits is on no thread. A thread may sleep for a lock of Go's own.
    assert on_thread < 0.1 * waiting, (on_thread, waiting, text)
    assert labelled > 0.9 * running > 0, (labelled, running, text)
    assert ids["main.compute"] - {None} == ids["main.rest"] - {None} and len(ids["main.rest"]) >= 4, (ids, text)
    assert '"goroutine"' not in names, names
    for name, found in attributes.items():
        numbers = {str(attached["goroutine"]) for attached in found if "goroutine" in attached}
        assert numbers == ids[name] - {None}, (attributes, ids)
    # Some are found on their way there.
    waits = [(value, "thread.id" in attached) for stack, value, attached in samples if "main.rest" in stack]
    on_thread, all_waits = sum(value for value, has_thread in waits if has_thread), sum(value for value, _ in waits)
    assert on_thread < 0.1 * all_waits, (on_thread, all_waits, attributes)
    tids = {str(attached["thread.id"]) for attached in attributes["main.compute"] if "thread.id" in attached}
    assert tids and tids <= set(threads), (attributes, threads)


def shares_of(counts, names):
    return {name: counts[name] / sum(counts[other] for other in names) for name in names}


def counts_of(text, names):
    """{function: the samples in it}. No stack has two. fgprof writes them leaf first, and may write one
    twice."""
    counts = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        for name in set(stack.split(";")) & set(names):
            counts[name] += int(count)
    return counts


def check_shares(ours, theirs, names, error):
    ours, theirs = shares_of(ours, names), shares_of(theirs, names)
    assert all(abs(ours[name] - theirs[name]) < error for name in names), (ours, theirs)


@alone
@users_build
def test_goroutines_against_fgprof(world):
    """In the same process, at the same time; and compared with the program's own clock. While the CPUs are
    busy, fgprof sees less of what computes, because it needs a CPU itself."""
    source, program = os.path.join(world.source, "tests/fixtures/goroutines-fgprof"), world.path("program")
    need("go")
    environment = dict(os.environ, GOFLAGS="-mod=readonly", GOPROXY="off", GOTOOLCHAIN="local", GO111MODULE="on")
    if subprocess.run(["go", "build", "-o", program, "."], cwd=source, env=environment, timeout=2 * HANGS_S,
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("no module github.com/felixge/fgprof")
    names, truth = ("main.rest", "main.receive", "main.lock", "main.hold", "main.compute"), world.path("truth")
    with ready(program, 120, truth, stdin=subprocess.PIPE) as target:
        assert written(target) == "begun\n"
        done = world.attach(target, duration="20s")
        spent = dict(zip(names, map(int, written(target).split())))
    ours, theirs, late = counts_of(done.stdout, names), counts_of(open(truth).read(), names), late_share(done.stderr)
    check_shares(ours, spent, names, 0.01 + late)
    check_shares(ours, theirs, names[:-1], 0.02 + late)

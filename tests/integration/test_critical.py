"""The critical path: a thread's waits are replaced by what the threads that end them do meanwhile, compared
with their own measurements."""

import collections
import json
import re

from harness import RATE, alone, folded, late_share
from test_capture import need_record, refuse_record
from test_cpu_users import recorded as behind
from test_labels import account, fed
from test_waits import converted, labels_of

RATE_HZ = 499
STEPS = ("think", "parse", "search", "sort", "render")
# Before each step's function, the threads that wait for each other.
WAITS = {"think": [], "parse": ["middle"], "search": ["middle", "backend"], "sort": ["middle", "backend"],
         "render": ["middle"]}


def measured(stdout):
    return {step: int(us) / 1e6 for step, us in re.findall(r"(\w+) (\d+)", stdout)}


def seen(stacks):
    """{step: ticks}, {step: ticks at which the thread that requests it, or answers before it, had not yet
    returned from its call}, and the ticks of stacks without a step; checks what leads to each step."""
    found, sends, others = collections.Counter(), collections.Counter(), collections.Counter()
    for stack, count in stacks.items():
        # What had the CPU that a step waited for.
        stack = stack[:next((i for i, frame in enumerate(stack) if frame.startswith("[waits for a CPU")), len(stack))]
        step = next((frame for frame in reversed(stack) if frame in STEPS), None)
        waits = re.findall(r"\[waits for (\w+)\]", ";".join(stack))
        if step:
            assert waits == WAITS[step], stack
            found[step] += count
            continue
        others[stack] += count
        if "send_byte" in stack:
            asks = "ask" in stack[[i for i, frame in enumerate(stack) if frame == "main"][-1]:]
            after = {(0, True): "parse", (1, True): "search", (2, False): "render", (1, False): "think"}
            sends[after[len(waits), asks]] += count
    return found, sends, others


def recorded(world, seconds, unit_us, rate_hz=RATE_HZ):
    path = world.path("chain.fgprof")
    done = world.fgprof("run", "-F", rate_hz, "--children", "--capture=record", "-o", path, "--",
                        world.fixture("chain"), seconds, unit_us)
    assert done.returncode == 0, done.stderr
    return path, measured(done.stdout)


def check(stacks, truth, rate_hz, tolerated, least=0):
    """Each step has the time that it measured, except the time in which its requester was not yet waiting for
    it."""
    found, sends, others = seen(stacks)
    unknown = sum(count for stack, count in others.items() if stack[-1] == "[place not known]")
    assert unknown <= 0.05 * sum(stacks.values()), others
    for step in STEPS:
        ticks, error = truth[step] * rate_hz, max(tolerated * truth[step] * rate_hz, least)
        assert ticks - error - sends[step] - unknown <= found[step] <= ticks + error, (step, ticks, found, sends, others)
    return found, others


@alone
def test_planted_delays_of_three_processes(world):
    need_record(world)
    path, truth = recorded(world, 10, 10000)
    stacks = folded(converted(world, path, "--critical", "client"))
    found, others = check(stacks, truth, RATE_HZ, 0.03)
    ends = collections.Counter()
    for stack, count in stacks.items():
        ends[stack[-1]] += count
    asleep = sum(count for stack, count in stacks.items() if stack[-1] == "[ended by timer]" and
                 any(frame in stack for frame in ("think", "search", "render")))
    assert asleep >= 0.9 * ends["[ended by timer]"] > 0, ends
    assert ends["[inferred]"] <= 0.03 * sum(stacks.values()), ends
    # It adds up to the time of its thread.
    whole = folded(converted(world, path, "-t"))
    client = sum(count for stack, count in whole.items() if "client" in stack[:2])
    assert abs(sum(stacks.values()) / client - 1) <= 0.01, (sum(stacks.values()), client)
    report = converted(world, path, "--critical", "client", "-f", "report")
    section = report[report.index("What client waits for: "):].split("\n\n")[0].splitlines()
    assert any(re.search(r" s  backend, in search > sleep_until: ended by timer$", line) for line in section), section
    assert len(section) == 4, section
    asked = json.loads(world.fgprof("report", "--json", "--critical", "client", path).stdout)["critical"]
    assert asked["of"] == "client" and len(asked["waits_for"]) == 3, asked
    assert abs(asked["time_ns"] / 1e9 * RATE_HZ - sum(stacks.values())) < 1, asked


@alone
def test_requests_shorter_than_a_period(world):
    """At each tick both sides are known for that very tick."""
    need_record(world)
    path, truth = recorded(world, 12, 300, 199)
    stacks = folded(converted(world, path, "--critical", "client"))
    # By chance, some 400 ticks differ by 20.
    check(stacks, truth, 199, 0.03, 60)


@alone
def test_the_user_of_a_cpu(world):
    """The time that the waiter spends behind another process goes to that process, with its stack if it is
    sampled."""
    need_record(world)
    for options in ("--children",), ():
        path, _, pids = behind(world, 1, "computes", *options)
        stacks = folded(converted(world, path, "--critical", "waiter"))
        whole = sum(count for stack, count in folded(converted(world, path, "-t")).items() if "waiter" in stack[:2])
        assert abs(sum(stacks.values()) / whole - 1) <= 0.03, (sum(stacks.values()), whole)
        # At first it is not known to be a child.
        by_id = rf"hog-0/{pids['hog-0']}"
        hog = rf"\[waits for a CPU used by (?:{by_id}{'|hog-0(?: of .*)?' if options else ''})\]"
        waits = {stack: count for stack, count in stacks.items() if "[waits for a" in ";".join(stack)}
        by_hog = {stack: count for stack, count in waits.items() if any(re.fullmatch(hog, frame) for frame in stack)}
        # How true that is: test_cpu_users.py.
        seen = sum(count for count, labels, _ in labels_of(converted(world, path, "-f", "text"))
                   if labels["thread"] == "waiter" and labels["state"] == "runnable" and
                   (labels.get("owner") == "hog-0" or labels.get("resource") == f"CPU used by hog-0/{pids['hog-0']}"))
        # On a busy machine, it has the CPU for a part of the ticks of a wait, and the path does not go on at the others.
        assert 0.6 * seen <= sum(by_hog.values()) <= 1.05 * seen, (sum(by_hog.values()), seen, waits)
        # It waits for a CPU at its end, too.
        in_waiter = sum(count for stack, count in by_hog.items() if "in_waiter" in stack)
        assert in_waiter >= 0.95 * sum(by_hog.values()), by_hog
        in_place = sum(count for stack, count in by_hog.items() if "in_hog" in stack)
        # On a busy machine, samples of the hog are further away at times.
        assert in_place >= 0.5 * sum(by_hog.values()) if options else not in_place, by_hog


def test_critical_while_recording(world):
    need_record(world)
    path = world.path("critical.folded")
    done = world.fgprof("run", "-F", RATE_HZ, "--children", "--critical", "middle", "-o", path, "--",
                        world.fixture("chain"), 3, 10000)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n  critical path: [\d.]+ s of [\d.]+ s waiting; [\d.]+ % of the path inferred, ", done.stderr)
    stacks = folded(open(path).read())
    assert all(stack[0] == "middle" for stack in stacks), stacks
    # It waits for the client as well, which thinks meanwhile.
    for chain in (["[waits for backend]", "search"], ["[waits for backend]", "sort"], ["[waits for client]", "think"]):
        assert any([frame for frame in stack if frame in chain] == chain for stack in stacks), (chain, stacks)


def test_critical_of_a_label(world):
    need_record(world)
    with fed(world, "labels-no-pie", "sleep") as target:
        done = world.attach(target, "--critical", "route=/slow", duration="6s")
        slow, quick = account(target)
    stacks = folded(done.stdout)
    whole = sum(stacks.values())
    timer = sum(count for stack, count in stacks.items() if stack[-1] == "[ended by timer]")
    assert timer >= 0.8 * whole, stacks
    assert abs(whole / (6 * RATE) - slow / (slow + quick)) < 0.08 + late_share(done.stderr), (stacks, slow, quick)


def test_critical_of_no_thread(world):
    need_record(world)
    path, _ = recorded(world, 1, 10000)
    for of, what in ("nobody", "thread"), ("route=/none", "label"):
        done = world.fgprof("convert", path, "--critical", of)
        assert done.returncode == 1 and done.stdout == "", done
        assert done.stderr == f"fgprof-c: --critical: there was no {what} '{of}'\n", done.stderr
    output = world.path("none.folded")
    done = world.fgprof("run", "-q", "--critical", "nobody", "-o", output, "--", world.fixture("chain"), 1)
    assert done.stderr.splitlines()[-1] == "fgprof-c: --critical: there was no thread 'nobody'", done.stderr
    assert done.returncode == 125, done


def test_critical_without_record(world):
    path = world.path("stopped.fgprof")
    done = world.fgprof("run", "--capture=ptrace", "-o", path, "--", world.fixture("chain"), 1)
    assert done.returncode == 0, done.stderr
    done = world.fgprof("convert", path, "--critical", "client")
    assert done.returncode == 1 and done.stderr == (
        f"fgprof-c: {path} does not tell what ended waits, as --critical needs: record again with --capture=record "
        "-o FILE.fgprof\n"), done.stderr
    for options, why in ((("--capture=ptrace",), "needs the kernel's record of switches: leave out --capture"),
                         (("--blame",), "shows wall-clock time: leave out --kind and --blame"),
                         (("-f", "speedscope", "-o", path), "shows no order of time: give -f folded, pprof, text, "
                                                             "report or html")):
        done = world.fgprof("run", "--critical", "client", *options, "--", "true")
        assert done.stderr == f"fgprof-c: --critical {why}\n", done.stderr


def test_critical_where_the_kernel_may_not_record(world):
    need_record(world)
    done = world.fgprof("run", "--critical", "client", "--", world.fixture("chain"), 1, preexec_fn=refuse_record)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    assert "the kernel may not record switches" in done.stderr, done.stderr

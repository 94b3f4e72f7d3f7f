"""Which threads had the CPU for which others waited, compared with the waiting program's own measurement."""

import collections
import re

from harness import alone, folded, has
from test_capture import need_record
from test_waits import converted, labels_of

RATE_HZ = 499
SECONDS = 6


def recorded(world, hogs, how, *options):
    """The recording of `behind`, and the program's own figures {"waited" or "hog-N": seconds} and {"hog-N":
    its id}. "stolen" is what the hypervisor took from all CPUs: then a thread still has its CPU, but none of
    its clocks advances."""
    path = world.path("behind.fgprof")
    done = world.fgprof("run", "-F", RATE_HZ, "--capture=record", "-o", path, *options, "--",
                        world.fixture("behind"), SECONDS, hogs, how)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"([\w-]+)(?:/(\d+))? (\d+)\n", done.stdout)
    truth = {name: int(us) / 1e6 for name, _, us in said}
    stolen = re.search(r"steal: the hypervisor took ([\d.]+) (m?s) ", done.stderr)
    truth["stolen"] = float(stolen[1]) * {"s": 1, "ms": 1e-3}[stolen[2]] if stolen else 0
    return path, truth, {name: pid for name, pid, _ in said if pid}


def users_of(text):
    """{what the waiter's samples say of the CPU that it waited for: samples}; None: nothing."""
    users = collections.Counter()
    for count, labels, _ in labels_of(text):
        if labels["thread"] == "waiter" and labels["state"] == "runnable":
            users[labels.get("resource")] += count
            assert labels.get("wait", "CPU") == "CPU", labels
    return users


def assert_share(samples, all_samples, name, truth, *what):
    """By chance, shares of some 2,500 samples differ by 1 point; more on a busy machine."""
    error = abs(samples / all_samples - truth[name] / truth["waited"])
    assert error <= 0.06 + truth["stolen"] / truth["waited"], (samples, all_samples, name, truth, *what)


@alone
def test_behind_one_process(world):
    """The waiter is preempted, or woken while the other process, which is not sampled, computes. On a busy
    machine, other processes take the CPU, too."""
    need_record(world)
    for how in ("computes", "wakes"):
        path, truth, pids = recorded(world, 1, how)
        users = users_of(converted(world, path, "-f", "text"))
        all_samples, by_hog = sum(users.values()), users[f"CPU used by hog-0/{pids['hog-0']}"]
        assert abs(all_samples / RATE_HZ - truth["waited"]) <= 0.15 * truth["waited"] + 0.1, (how, users, truth)
        if how == "computes":
            assert_share(by_hog, all_samples, "hog-0", truth, users)
        assert by_hog >= 0.5 * all_samples * truth["hog-0"] / truth["waited"], (how, users, truth)
        assert users[None] <= 0.1 * all_samples + 2, (how, users)
        assert users["idle CPU"] <= 0.03 * all_samples + 2, (how, users)


@alone
def test_shares_of_two_processes(world):
    """The process that has the CPU when a wait ends is not always the one that had it at the tick."""
    need_record(world)
    path, truth, pids = recorded(world, 2, "computes")
    users = users_of(converted(world, path, "-f", "text"))
    for name, pid in pids.items():
        assert_share(users[f"CPU used by {name}/{pid}"], sum(users.values()), name, truth, users)


@alone
def test_a_sampled_process_is_the_owner(world):
    """The process is shown with its thread and its stack, and blamed."""
    need_record(world)
    path, truth, _ = recorded(world, 1, "computes", "--children")
    owners = collections.Counter()
    for count, labels, _ in labels_of(converted(world, path, "-f", "text")):
        if labels["thread"] == "waiter" and labels["state"] == "runnable":
            owners[labels.get("owner")] += count
    assert_share(owners["hog-0"], sum(owners.values()), "hog-0", truth, owners)
    blamed = folded(converted(world, path, "--blame", "-f", "folded"))
    charged = sum(count for stack, count in blamed.items()
                  if stack[0] == "hog-0" and has(stack, "CPU used by hog-0/", "waiter", "in_waiter"))
    in_place = sum(count for stack, count in blamed.items() if has(stack, "in_hog", "CPU used by", "in_waiter"))
    assert charged >= 0.8 * truth["hog-0"] * RATE_HZ and in_place >= 0.1 * charged, (charged, in_place, truth)


@alone
def test_report(world):
    need_record(world)
    path, truth, pids = recorded(world, 1, "computes")
    report = converted(world, path, "-f", "report")
    found = re.search(r"CPU contention: ([\d.]+) s waiting for a CPU, [\d.]+ s of it behind \S+/\d+, ", report)
    assert found, report
    found = re.search(r"\nWaiting for a CPU: ([\d.]+) s, the use of the CPU is known for ([\d.]+) s\n", report)
    assert float(found[2]) >= 0.9 * float(found[1]), report
    hog = re.search(rf"([\d.]+) s  behind hog-0/{pids['hog-0']}\n     waiters are in: .*in_waiter", report)
    assert abs(float(hog[1]) - truth["hog-0"]) <= 0.1 * truth["waited"] + truth["stolen"], (truth, report)


def test_without_record_nothing_is_said(world):
    path = world.path("behind.txt")
    done = world.fgprof("run", "--capture=ptrace", "-f", "text", "-o", path, "--",
                        world.fixture("behind"), 1, 1, "computes")
    assert done.returncode == 0, done.stderr
    assert set(users_of(open(path).read())) <= {None}

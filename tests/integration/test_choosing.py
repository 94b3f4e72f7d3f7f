"""Which threads are sampled, and which of them are shown."""

import os
import re
import subprocess
import time

from harness import (by_root, context_switches, end, folded, late_share, pauses, ticks_planned,
                     wait_for, wait_for_ticks, wait_until_asleep, wait_until_sampling)


def names_of(pid):
    return {int(tid): open(f"/proc/{pid}/task/{tid}/comm").read().strip()
            for tid in os.listdir(f"/proc/{pid}/task")}


def chosen(stderr):
    match = re.search(r"(\d+) of (\d+) threads were chosen", stderr)
    return int(match[1]), int(match[2])


def watched(sampler):
    """The ids of the threads for which the profiler keeps files open, as it does for all that it looks at."""
    tids = set()
    for fd in os.listdir(f"/proc/{sampler.pid}/fd"):
        try:
            path = os.readlink(f"/proc/{sampler.pid}/fd/{fd}")
        except OSError:
            continue
        match = re.search(r"/task/(\d+)/schedstat$", path)
        if match:
            tids.add(int(match[1]))
    return tids


def test_threads_by_name(world):
    """Other threads are not looked at, and not stopped."""
    with world.running("workers", 30, 2, 3) as target:
        tids = {tid for tid, name in names_of(target.pid).items() if name == "sleeping"}
        wait_until_asleep(target.pid, but=["spinning"])
        sampler = world.start("attach", "-p", target.pid, "-t", "--thread", "^sl.*ng$")
        wait_for(lambda: watched(sampler), "a look")
        time.sleep(0.5)
        wait_for(lambda: len(watched(sampler)) >= len(tids), "a look at each")
        assert watched(sampler) == tids, (watched(sampler), tids)
        stdout, stderr = end(sampler)
    assert set(by_root(folded(stdout))) == {"sleeping"}, stdout
    assert chosen(stderr) == (3, 6), stderr
    assert pauses(stderr) == 0, stderr


def test_threads_by_id(world):
    with world.running("workers", 30, 2, 2) as target:
        wait_for(lambda: list(names_of(target.pid).values()).count("spinning") == 2, "spinners")
        spinners = [tid for tid, name in names_of(target.pid).items() if name == "spinning"]
        done = world.attach(target, "--threads=tid", "--tid", f"{target.pid},{spinners[0]}",
                            duration="1s")
        roots = {f"fixture-workers/{target.pid}", f"spinning/{spinners[0]}"}
        assert set(by_root(folded(done.stdout))) == roots, done.stdout
        assert chosen(done.stderr) == (2, 5), done.stderr
        # Both ways to choose add up.
        done = world.attach(target, "--threads=tid", "--tid", target.pid, "--tid", spinners[1],
                            "--thread", "sleep", duration="1s")
        assert f"spinning/{spinners[1]}" in by_root(folded(done.stdout)), done.stdout
        assert chosen(done.stderr) == (4, 5), done.stderr


def test_no_such_thread(world):
    with world.running("workers", 30, 1, 0) as target, world.running("workers", 30, 1, 0) as other:
        begin = time.monotonic()
        done = world.fgprof("attach", "-p", target.pid, "--tid", f"{target.pid},{other.pid}")
        assert done.returncode == 1 and not done.stdout, done
        assert f"no thread {other.pid} in the chosen processes" in done.stderr, done.stderr
        assert time.monotonic() - begin < 20
        done = world.attach(other, "-p", target.pid, "--tid", other.pid, duration="300ms")
        assert chosen(done.stderr)[0] == 1, done.stderr
        # No thread has that name yet: not an error.
        done = world.attach(target, "--thread", "nobody", duration="300ms")
        assert not done.stdout and chosen(done.stderr)[0] == 0, done
    for arguments, word in ((["run", "--tid", "5", "--", "true"], "run has no option '--tid'"),
                            (["attach", "-p", "1", "--tid", "5x"], "bad thread id '5x'"),
                            (["attach", "-p", "1", "--thread", "(a"], r"expression '\(a'")):
        done = world.fgprof(*arguments)
        assert done.returncode in (2, 125) and re.search(word, done.stderr), done


def told(target, line):
    target.stdin.write(line + "\n")
    target.stdin.flush()
    assert target.stdout.readline() == "done\n"


def sampled_while(world, arguments, lines, seconds):
    """Samples the fixture, which gets each of these lines this long after the one before."""
    with subprocess.Popen([world.fixture("renamed"), "60"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout.readline() == "ready\n"
        wait_for(lambda: {"apple", "woken", "idle"} <= set(names_of(target.pid).values()), "names")
        wait_until_asleep(target.pid, but=["apple"])
        sampler = world.start("attach", "-p", target.pid, "-t", *arguments)
        wait_until_sampling(sampler)
        for line in lines:
            time.sleep(seconds)
            told(target, line)
        time.sleep(seconds)
        stdout, stderr = end(sampler)
        target.kill()
    return folded(stdout), stderr


def of_function(stacks, name):
    return sum(count for stack, count in stacks.items() if name in stack)


def test_thread_that_gets_another_name(world):
    """The thread is selected from then on, or no longer."""
    stacks, stderr = sampled_while(world, ["--thread", "banana"], ["rename"], 2)
    assert set(by_root(stacks)) == {"banana"} and not of_function(stacks, "in_apple"), stacks
    assert of_function(stacks, "in_banana") > 20, stacks
    assert chosen(stderr)[0] == 1, stderr
    stacks, stderr = sampled_while(world, ["--thread", "apple"], ["rename"], 3)
    # Its time until its name is read again is still counted for the old name. That takes up to an eighth of
    # the time that it had that name, as much again at most if it must wait for a CPU, and the time for which
    # it was not seen.
    assert set(by_root(stacks)) == {"apple"}, stacks
    planned = ticks_planned(stderr)
    assert of_function(stacks, "in_banana") < (0.25 + late_share(stderr)) * planned, (stacks, stderr)
    assert chosen(stderr)[0] == 1, stderr


def test_thread_that_another_names(world):
    """The thread's name is read again while it is asleep and has never moved."""
    with world.running("renamed", 100, stdin=subprocess.PIPE) as target:
        wait_for(lambda: "idle" in names_of(target.pid).values(), "names")
        wait_until_asleep(target.pid, but=["apple", "fixture-renamed"])
        begin = time.monotonic()
        sampler = world.start("attach", "-p", target.pid, "-t")
        wait_until_sampling(sampler)
        wait_for_ticks(sampler)
        target.stdin.write("name\n")
        target.stdin.flush()
        assert target.stdout.readline() == "done\n"
        # The name is read each time that it has slept for twice as long.
        time.sleep(2 * (time.monotonic() - begin))
        stdout, stderr = end(sampler)
        target.stdin.close()
    counts = by_root(folded(stdout))
    assert counts["idle"] and counts["lazy"], (counts, stderr)
    assert abs(counts["idle"] + counts["lazy"] - ticks_planned(stderr)) <= 2, (counts, stderr)


def test_process_ends_without_its_chosen_thread(world):
    """The end of the process is noticed, although none of its threads is looked at."""
    done = world.fgprof("run", "--thread", "nobody", "--", world.fixture("workers"), "1", "1", "1",
                        timeout=30)
    assert done.returncode == 0 and chosen(done.stderr)[0] == 0, done


def test_threads_that_never_moved(world):
    stacks, stderr = sampled_while(world, ["--no-idle"], ["wake", "rename"], 0.7)
    assert "woken" in by_root(stacks) and "idle" not in by_root(stacks), stacks
    left_out = re.search(r"\n  1 thread never moved and was left out \(([\d.]+) s of thread time\)\n",
                         stderr)
    assert left_out and abs(float(left_out[1]) - ticks_planned(stderr) / 99) < 0.1, stderr
    # All of its time from the beginning, and not only from when it moved.
    counts = by_root(stacks)
    assert all("start_thread" in stack for stack in stacks if stack[0] == "woken"), stacks
    assert counts["woken"] > 0.9 * (counts["apple"] + counts["banana"]), counts
    for arguments in ([], ["--no-idle", "--idle"]):
        stacks, stderr = sampled_while(world, arguments, ["wake"], 0.5)
        assert "idle" in by_root(stacks) and "never moved" not in stderr, (stacks, stderr)


def test_left_out_threads_of_equal_name(world):
    """The threads that are kept are added up as without the option."""
    with world.running("workers", 30, 3, 2) as target:
        wait_until_asleep(target.pid, but=["spinning"])
        for more in [], ["--threads=tid"]:
            done = world.attach(target, "--no-idle", "-t", *more, duration="1s")
            counts = by_root(folded(done.stdout))
            assert len(counts) == (3 if more else 1), counts
            assert re.search(r"\n  3 threads never moved and were left out", done.stderr), (
                done.stderr)
            samples = int(re.search(r"(\d+) samples", done.stderr)[1])
            assert samples == sum(counts.values()), (samples, counts)


def test_a_sleeper_that_is_woken_to_read_its_registers(world):
    """Being woken does not count as a move, however long the thread waits for a CPU on its way back to
    sleep."""
    for _ in range(3):
        with world.running("beside", 200) as target:
            tids = {name: tid for tid, name in names_of(target.pid).items()}
            once, often = (f"{target.pid}/task/{tids[name]}" for name in ("once", "often"))
            wait_until_asleep(target.pid, but=["busy", "often"])
            before = context_switches(target.pid)
            sampler = world.start("attach", "-p", target.pid, "--no-idle", "-t")
            wait_until_sampling(sampler)
            time.sleep(0.5)
            # They get a CPU only when no other thread wants one.
            wait_for(lambda: context_switches(target.pid)[once] > before[once], "it was not needed")
            while_sampled = context_switches(target.pid)
            wait_for(lambda: context_switches(target.pid)[often] > while_sampled[often] + 2, "moves")
            stdout, stderr = end(sampler)
        # A thread that sleeps at the same place again and again moves.
        assert set(by_root(folded(stdout))) == {"busy", "often"}, stdout
        assert re.search(r"\n  1 thread never moved and was left out \(", stderr), stderr

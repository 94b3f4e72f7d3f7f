"""Which thread created each thread: profiles must show what the fixture reports about its own threads, by
each way to find out."""

import contextlib
import errno
import json
import os
import re
import subprocess

from harness import (Skip, end, folded, need, ready, tool, users_build, wait_for, wait_until_sampling)
from test_capture import refuse_events
from test_go import build
from test_serve import serving
from webdriver import Browser

BEFORE, UNSEEN = "[started before the recording]", "[creator not seen]"
LATER, MAIN = "[creator seen later]", "[main thread]"
# Made at each line, and before the first.
MADE, EARLIER = 25, 2


def entries(text):
    """[(count, {label: value}, (function, ...) leaf first), ...] of a profile as text."""
    lines = text.split("--- Memory map: ---")[0].splitlines()
    total = re.fullmatch(r"threadcreate profile: total (\d+)", lines[0])
    found = []
    for paragraph in "\n".join(lines[1:]).strip().split("\n\n"):
        rows = paragraph.splitlines()
        count = int(re.match(r"(\d+) @", rows[0])[1])
        labels = dict(re.findall(r'"(\w+)":"([^"]*)"', rows[1]))
        frames = [re.match(r"#\t0x[0-9a-f]+\t+([^\t]+?)(\+0x[0-9a-f]+)?(\t|$)", row)[1]
                  for row in rows[2:]]
        found.append((count, labels, tuple(frames)))
    assert int(total[1]) == sum(count for count, _, _ in found), text
    return found


def rows(lines):
    """{thread: (name, made in, started in, maker)} of what the fixture says."""
    return {int(tid): (name, made_in, started_in, int(maker)) for tid, name, made_in, started_in, maker in
            (line.split() for line in lines)}


def ask(target):
    """Makes the fixture create its threads, and returns the rows of all threads that it has created."""
    target.stdin.write("\n")
    target.stdin.flush()
    lines = []
    while (line := target.stdout.readline()) != "done\n":
        assert line, "the fixture has ended"
        lines.append(line)
    return rows(lines)


@contextlib.contextmanager
def makers(world):
    with ready(world.fixture("makers"), stdin=subprocess.PIPE) as target:
        yield target


def skip_unless_seen(world):
    """Skips if the kernel does not report births, or not with stacks."""
    done = world.fgprof("run", "--kind", "threadcreate", "--", world.fixture("makers-static"), "all")
    if UNSEEN in done.stdout or LATER in done.stdout:
        raise Skip("the kernel does not permit to see who makes threads")


def check_main(found, pid):
    mains = [(labels, frames) for _, labels, frames in found if labels.get("tid") == str(pid)]
    assert len(mains) == 1 and mains[0][1] == (MAIN,), mains


def check(found, truth, pid, early_are_seen):
    """Each thread is there once, under its name, with the function that created it."""
    threads = {int(labels["tid"]): (labels["thread"], frames) for count, labels, frames in found}
    assert all(count == 1 for count, _, _ in found), found
    assert set(threads) == {pid, *truth}, (sorted(threads), sorted(truth))
    check_main(found, pid)
    for tid, (name, made_in, started_in, maker) in truth.items():
        shown, frames = threads[tid]
        assert shown == name, (shown, name)
        if name.startswith("early") and not early_are_seen:
            assert frames[-1] == BEFORE and frames[0] == started_in, frames
            continue
        # Not the call itself, but its caller; and it is the stack of that thread.
        assert (frames[0] == made_in or frames[:2] == ("make", made_in)), (name, frames)
        assert ("start_to_make" in frames) == (maker != pid), frames
        assert not any(frame.startswith("[") for frame in frames), frames


def test_threads_that_are_made_while_recording(world):
    skip_unless_seen(world)
    with makers(world) as target:
        sampler = world.start("attach", "-p", target.pid, "--kind", "threadcreate", "-f", "text",
                              "--threads=tid")
        wait_until_sampling(sampler)
        for _ in range(3):
            truth = ask(target)
        stdout, stderr = end(sampler)
    assert len(truth) == 3 * MADE + EARLIER, truth
    check(entries(stdout), truth, target.pid, early_are_seen=False)


def run_makers(world, *options, fixture="makers", **how):
    """A command's whole life. Returns the entries, the fixture's rows and its id."""
    path = world.path("out.txt")
    done = world.fgprof("run", "--kind", "threadcreate", "-f", "text", "--threads=tid", "-o", path,
                        *options, "--", world.fixture(fixture), "all", **how)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "ready" and lines[-1] == "done", lines
    truth = rows(lines[1:-1])
    with open(path) as file:
        found = entries(file.read())
    pid = next(maker for name, _, _, maker in truth.values() if name == "early")
    return found, truth, pid


def test_a_command_from_its_first_instruction_on(world):
    skip_unless_seen(world)
    for fixture in "makers", "makers-static":
        found, truth, pid = run_makers(world, fixture=fixture)
        check(found, truth, pid, early_are_seen=True)


def refused():
    refuse_events(errno.EACCES)


def test_the_agent_where_the_kernel_may_not_be_asked(world):
    """The agent does not know threads by their ids: threads that were gone before they were listed have none,
    nor a name of their own."""
    found, truth, pid = run_makers(world, preexec_fn=refused)
    assert sum(count for count, _, _ in found) == 1 + len(truth), found
    check_main(found, pid)
    ending = {made_in for name, made_in, _, _ in truth.values() if name.endswith("-end")}
    for count, labels, frames in found:
        row = truth.get(int(labels.get("tid", 0)))
        if row:
            name, made_in, _, maker = row
            assert count == 1 and labels["thread"] == name, (row, labels)
            assert frames[0] == made_in or frames[:2] == ("make", made_in), (row, frames)
            assert ("start_to_make" in frames) == (maker != pid), frames
        elif labels.get("tid") != str(pid):
            assert frames[0] == "make" and frames[1] in ending, frames
    shown = {int(labels.get("tid", 0)) for _, labels, _ in found}
    stayed = {tid for tid, (name, _, _, _) in truth.items() if not name.endswith("-end")}
    # Threads that come and go in the last moments may not have been listed.
    assert len(stayed - shown) <= len(stayed) / 2, (stayed, shown)


def test_nobody_may_see_who_makes_threads(world):
    """Neither the kernel nor the agent can be used: listed threads show where they began."""
    with makers(world) as target:
        sampler = world.start("attach", "-p", target.pid, "--kind", "threadcreate", "-f", "text",
                              "--threads=tid", preexec_fn=refused)
        wait_until_sampling(sampler)
        truth = ask(target)
        stayed = {tid: row for tid, row in truth.items() if not row[0].endswith("-end")}
        stdout, stderr = end(sampler)
    threads = {int(labels["tid"]): (labels["thread"], frames) for _, labels, frames in entries(stdout)}
    check_main(entries(stdout), target.pid)
    assert set(stayed) <= set(threads), (stayed, threads)
    for tid, (name, _, started_in, _) in stayed.items():
        shown, frames = threads[tid]
        assert shown == name, (shown, name)
        assert frames[-1] == (BEFORE if name.startswith("early") else UNSEEN), frames
        assert frames[0] == started_in, frames


def test_without_tracepoints_the_maker_is_looked_at(world):
    """The kernel reports which thread created which; where the creator was is only found by a look slightly
    later."""
    if os.geteuid():
        raise Skip("not root")
    setpriv = ["setpriv", "--bounding-set", "-sys_admin"]
    skip_unless_seen(world)
    if os.path.exists("/sys/kernel/tracing/events/task/task_newtask/id"):
        raise Skip("tracefs is mounted")
    with makers(world) as target:
        sampler = subprocess.Popen([*setpriv, world.program, "attach", "-p", str(target.pid), "--kind",
                                    "threadcreate", "-f", "text", "--threads=tid"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until_sampling(sampler)
        truth = ask(target)
        stdout, stderr = end(sampler)
    threads = {int(labels["tid"]): frames for _, labels, frames in entries(stdout)}
    assert set(threads) == {target.pid, *truth}, (threads, truth)
    origins = {frames[-1] for tid, frames in threads.items() if tid in truth}
    assert origins <= {BEFORE, UNSEEN, LATER} and LATER in origins, origins
    for tid, frames in threads.items():
        # It was woken soon after, and where it has been is not known in each case.
        is_cut = any(frame.startswith("[truncated") for frame in frames)
        if frames[-1] == LATER and not is_cut:
            is_makers = truth[tid][3] != target.pid
            assert ("start_to_make" in frames) == is_makers, (truth[tid], frames)


def test_none_is_lost_of_threads_that_hardly_live(world):
    skip_unless_seen(world)
    for life in (["5000", "1000"], ["10", "50"]):
        path = world.path("churn.folded")
        done = world.fgprof("run", "--kind", "threadcreate", "-o", path, "--", world.fixture("churn"), "1",
                            *life)
        assert done.returncode == 0, done.stderr
        count = int(re.search(r"(\d+) threads lived", done.stdout)[1])
        with open(path) as file:
            stacks = folded(file.read())
        # The name of a thread is the fixture's, also if it was gone before it could be asked.
        assert {stack[0] for stack in stacks} == {"fixture-churn"}, stacks
        assert sum(stacks.values()) == count + 1, (stacks, count)
        seen = sum(n for stack, n in stacks.items() if stack[-1] == "main")
        assert seen > count * 0.5, (stacks, count)


def test_commands_of_a_command(world):
    """Each process separately, and which one forked it."""
    skip_unless_seen(world)
    script = f"{world.fixture('makers')} all; {world.fixture('makers-static')} all"
    path = world.path("children.txt")
    done = world.fgprof("run", "--kind", "threadcreate", "--children", "-f", "text", "--threads=tid", "-o",
                        path, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("ready\n")[1:]
    with open(path) as file:
        found = entries(file.read())
    for part in parts:
        truth = rows(part.splitlines()[:-1])
        pid = next(maker for name, _, _, maker in truth.values() if name == "early")
        own = [(count, labels, frames) for count, labels, frames in found
               if int(labels["tid"]) in truth]
        forked = [frames for _, labels, frames in found if labels["tid"] == str(pid)]
        assert len(forked) == 1 and any("fork" in frame for frame in forked[0][:3]), forked
        check(own + [(1, {"tid": str(pid), "thread": ""}, (MAIN,))], truth, pid, early_are_seen=True)
    assert sum(count for count, _, _ in found) == 1 + 2 * (MADE + EARLIER + 1), found


def test_pprof_reads_it(world):
    path = world.path("threads.pb.gz")
    with makers(world) as target:
        ask(target)
        done = world.attach(target, "--kind", "threadcreate", "-o", path, duration="300ms")
        text = world.attach(target, "--kind", "threadcreate", "-f", "text", duration="300ms").stdout
    raw = tool("go", "tool", "pprof", "-raw", path)
    assert "PeriodType: threadcreate count\nPeriod: 1\n" in raw, raw
    assert "threadcreate/count" in raw, raw
    text_path = world.path("threads.txt")
    with open(text_path, "w") as file:
        file.write(text)
    tool("go", "tool", "pprof", "-raw", text_path)


COUNTING = """package main

import (
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

func lockAndWait(group *sync.WaitGroup, done chan bool) {
	runtime.LockOSThread()
	group.Done()
	<-done
}

func main() {
	var group sync.WaitGroup
	done := make(chan bool)
	for i := 0; i < 10; i++ {
		group.Add(1)
		go lockAndWait(&group, done)
	}
	group.Wait()
	time.Sleep(100 * time.Millisecond)
	fmt.Println(pprof.Lookup("threadcreate").Count())
}
"""


@users_build
def test_go_counts_as_many(world):
    """Go's own profile has no stacks, but counts threads. The program lives for a tenth of a second, in which
    its code must be found."""
    skip_unless_seen(world)
    need("go")
    directory = world.path("counting")
    os.mkdir(directory)
    with open(directory + "/main.go", "w") as file:
        file.write(COUNTING)
    environment = dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local", GO111MODULE="off",
                       GOCACHE=world.path("cache"))
    done = subprocess.run(["go", "build", "-o", world.path("count"), "."], cwd=directory, env=environment,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    path = world.path("go.txt")
    for _ in range(10):
        done = world.fgprof("run", "--kind", "threadcreate", "-f", "text", "-o", path, "--",
                            world.path("count"))
        assert done.returncode == 0, done.stderr
        with open(path) as file:
            found = entries(file.read())
        assert sum(count for count, _, _ in found) == int(done.stdout), (done.stdout, found)
        assert any(frames[0] == "runtime.clone" and "main.lockAndWait" in frames
                   for _, _, frames in found), found


def test_a_dump_says_where_threads_began(world):
    """If the stack does not show it. No other thread created the main thread."""
    with makers(world) as target:
        truth = ask(target)
        found = {option: world.fgprof("dump", "-p", target.pid, *option)
                 for option in ((), ("--max-depth", "1"), ("--max-depth", "1", "--group"), ("--json",))}
    stayed = {tid: row for tid, row in truth.items() if not row[0].endswith("-end")}
    texts = {option: done.stdout for option, done in found.items()}
    assert all(done.returncode == 0 and not done.stderr for done in found.values()), found
    assert "began in" not in texts[()], texts[()]
    cut = dict(re.findall(r'^thread (\d+) [^\n]*:\n(?:[^\n]+\n)*?began in (\w+)\n\n',
                          texts["--max-depth", "1"], re.M))
    grouped = dict(re.findall(r'^# thread (\d+) .*\], began in (\w+)$',
                              texts["--max-depth", "1", "--group"], re.M))
    document = json.loads(texts["--json",])
    told = {str(thread["tid"]): thread["began_in"] for thread in document["threads"]
            if "began_in" in thread}
    expected = {str(tid): started_in for tid, (_, _, started_in, _) in stayed.items()}
    assert cut == grouped == told == expected, (cut, grouped, told, expected)


def births(text):
    """{thread: text} of a page's data."""
    data = json.loads(re.search(r'id="profile">(.*?)</script>', text, re.S)[1])
    return {tid: (data["strings"][maker] or "", data["strings"][function] or "")
            for tid, maker, function in data.get("births", [])}


def test_a_page_says_who_made_threads(world):
    """The page of a server, which records time and threads; and a recording keeps it."""
    skip_unless_seen(world)
    raw, page = world.path("served.fgprof"), world.path("served.html")
    with makers(world) as target, serving(world, "-p", target.pid) as server:
        wait_for(lambda: server.metric("fgprof_ticks_total") > 3, "a tick")
        truth = ask(target)
        served = births(server.text("/debug/fgprof?seconds=1&format=html"))
        status, _, recording = server.ask("/debug/fgprof?seconds=1&format=raw")
    assert status == 200, status
    with open(raw, "wb") as file:
        file.write(recording)
    done = world.fgprof("convert", raw, "-o", page)
    assert done.returncode == 0, done.stderr
    with open(page) as file:
        kept = births(file.read())
    expected = {}
    for tid, (name, made_in, started_in, maker) in truth.items():
        if name.startswith("early"):
            expected[tid] = [("", started_in)]
        elif not name.endswith("-end"):
            by = f"{'fixture-makers' if maker == target.pid else truth[maker][0]}/{maker}"
            expected[tid] = [(by, made_in), (by, "make")]
    assert served == kept and set(served) == set(expected), (served, kept, expected)
    for tid, birth in served.items():
        assert birth in expected[tid], (tid, birth, expected[tid])
    check_filter(page, {f"{truth[tid][0]}, " + (f"made by {maker} in {function}" if maker
                                                else f"began in {function}")
                        for tid, (maker, function) in served.items()})


def check_filter(page, expected):
    """The page's thread filter says the same."""
    browser = Browser()
    try:
        browser.open(page)
        options = browser.run("return [...document.querySelectorAll('#thread option')].map(o => o.textContent)")
    finally:
        browser.close()
    assert set(options) == {"all", "fixture-makers", *expected}, (options, expected)

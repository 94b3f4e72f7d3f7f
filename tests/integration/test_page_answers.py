"""The page of programs in trouble: the answer is on its first screen, or one click away. With
FGPROF_SCREENSHOTS=DIR screenshots are left there, as in examples/: FGPROF_SCREENSHOTS=examples python3
tests/integration/run.py BUILD_DIRECTORY test_page_answers
"""

import base64
import os
import re
import signal
import subprocess

from harness import thread_named, users_build, wait_for, wait_until_asleep, wait_until_running
from servers import postgres_with_a_lock, redis_under_load
from test_page_time import TimePage
from webdriver import Browser

WIDTH, HEIGHT = 1200, 980  # of the window, with the browser's own bars


def keep(browser, name):
    """Keeps a screenshot."""
    if "FGPROF_SCREENSHOTS" in os.environ:
        with open(os.path.join(os.environ["FGPROF_SCREENSHOTS"], f"page-{name}.png"), "wb") as file:
            file.write(base64.b64decode(browser.screenshot()))


def texts(browser, selector):
    return browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)


def in_sight(browser, selector):
    """Whether the whole element is on the first screen."""
    top, bottom, height = browser.run("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                              "return [b.top, b.bottom, innerHeight]", selector)
    return 0 <= top < bottom <= height


@users_build
def test_first_screen_of_redis_under_load(world):
    """What was recorded, and what stands out and when, are above the fold; idle threads are not in the
    way."""
    path = world.path("redis.html")
    with redis_under_load(world, "get") as server:
        world.attach(server, "-q", "-o", path)
    browser = Browser(WIDTH, HEIGHT)
    try:
        page = TimePage(browser, path)
        assert re.match(rf"redis-server/{server.pid} on \S+, 2\.\d\d s, ", browser.text("#subject")), browser.text("#subject")
        findings = texts(browser, "#findings li")
        # Beside other load, that is what there is to say.
        assert any(f'"redis-server"/{server.pid}' in text or "CPU contention" in text for text in findings), findings
        assert re.match(r"[3-9] idle threads hidden", browser.text("#idle")), browser.text("#idle")
        assert page.names() == [] and browser.text("#strip-names span") == "1 thread"
        assert in_sight(browser, "#findings") and in_sight(browser, "#strip")
        keep(browser, "redis")
    finally:
        browser.close()


def test_postgres_with_a_lock(world):
    """The waiting session is found by its title and by what it waits in; the session that has the lock is
    idle."""
    path = world.path("postgres.html")
    with postgres_with_a_lock(world) as (server, _, holder, waiter):
        world.attach(server, "--children", "-q", "-o", path)
    browser = Browser(WIDTH, HEIGHT)
    try:
        TimePage(browser, path)
        findings = texts(browser, "#findings li")
        assert any(f"for a lock that LockRelationOid takes, in postgres/{waiter}" in text for text in findings), findings
        assert "ProcSleep" in texts(browser, "#functions tbody td.name")
        keep(browser, "postgres")
        browser.click("#threads-tab")
        rows = {row.split("\n")[0].split("\t")[0]: row for row in texts(browser, "#threads tbody tr")}
        assert re.search(r"postgres: test postgres \[local\] LOCK TABLE waiting", rows[f"postgres/{waiter}"]), rows
        assert f"postgres/{holder}" not in rows
        browser.click("#idle")
        rows = "".join(texts(browser, "#threads tbody tr"))
        assert re.search(rf"postgres/{holder}\s+postgres: test postgres \[local\] idle in transaction\s", rows), rows
    finally:
        browser.close()


def test_processes_that_name_themselves(world):
    """The page has the title that a process has set in place of its arguments, but never arguments: these may
    hold secrets."""
    recording, path = world.path("named.fgprof"), world.path("named.html")
    started = [subprocess.Popen(["bash", "-c", 'exec -a "$0" "$@"', *command], stdin=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
               for command in (["shop: worker 3", "cat"], ["cat", "cat", "/dev/stdin", "--", "/a secret"])]
    try:
        for process in started:
            wait_for(lambda pid=process.pid: open(f"/proc/{pid}/comm").read() == "cat\n", "cat")
            wait_until_asleep(process.pid)
        world.attach(started[0], "-p", started[1].pid, "-q", "-o", recording)
    finally:
        for process in started:
            process.stdin.close()
            process.wait()
    assert world.fgprof("convert", recording, "-o", path).returncode == 0
    assert "secret" not in open(path).read()
    browser = Browser(WIDTH, HEIGHT)
    try:
        browser.open(path)
        browser.click("#threads-tab")
        processes = texts(browser, "#threads td.process")
        assert sorted(processes) == sorted([f"cat/{started[0].pid}\nshop: worker 3", f"cat/{started[1].pid}"]), processes
        assert f"cat/{started[0].pid}: shop: worker 3" in texts(browser, "#process option")
    finally:
        browser.close()


def test_lock_that_is_held_in_the_third_second(world):
    """The strip shows when; with that time selected, the owner's place is on the screen."""
    path = world.path("stall.html")
    with world.running("stall", 60, stdin=subprocess.PIPE) as target:
        profiler = world.start("attach", "-p", target.pid, "-q", "-d", "60s", "-o", path)
        wait_until_running(thread_named(target.pid, "worker"), 1)
        for line in "stall 2000\n", "lock 1500\n":
            target.stdin.write(line)
            target.stdin.flush()
            assert target.stdout.readline() == line
        wait_until_running(thread_named(target.pid, "worker"), 1)
        profiler.send_signal(signal.SIGINT)
        assert profiler.wait(timeout=60) == 0
    browser = Browser(WIDTH, HEIGHT)
    try:
        page = TimePage(browser, path)
        worker = next(i for i, name in enumerate(page.names()) if name.startswith("worker/"))
        steps = [i * page.length() / 50 for i in range(50)]
        held = [at for at in steps if "futex 100.0 %" in page.tip(at, worker)]
        assert 1.2 < held[-1] - held[0] + page.length() / 50 < 2.2 and held[0] > 1.5, held
        findings = texts(browser, "#findings li")
        assert any("which wait_for_lock takes" in text for text in findings), findings
        page.drag(held[0] + 0.1, held[-1] - 0.1)
        found = page.functions()
        assert "wait_for_lock" in found and "at_work" not in found, found
        browser.mouse(2, 2)
        browser.run("window.scrollTo(0, 0)")
        browser.click("#waits-tab")
        rows = texts(browser, "#waits tbody tr")
        assert "g_lock" in rows[0] and "fixture-stall" in rows[0], rows
        browser.run("window.scrollTo(0, 0)")
        keep(browser, "held-lock")
    finally:
        browser.close()


def test_deadlock(world):
    """The deadlock is shown above everything else, with both threads and both locks."""
    path = world.path("locks.html")
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        world.attach(target, "-q", "-o", path)
    browser = Browser(WIDTH, HEIGHT)
    try:
        browser.open(path)
        alarm = browser.text("#alarm")
        assert in_sight(browser, "#alarm") and re.search(
            r'^deadlock since [\d.]+ s: "cycle-[ab]" .*mutex (first|second) of "cycle-[ab]" .*mutex (first|second) of', alarm,
            re.M), alarm
        keep(browser, "deadlock")
    finally:
        browser.close()

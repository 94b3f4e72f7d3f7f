"""The HTML page, in a real browser: what it shows, and what its controls do."""

import re
import socket

import made_page
from harness import folded, users_build, wait_for, wait_until_asleep
from page import Page, record, seconds, share, threads
from test_page_time import TimePage, made_tables
from webdriver import Browser


@users_build
def test_page(world):
    workers = record(world, "workers", 60, 1, 3)
    hostile = record(world, "hostile", 60)
    browser = Browser()
    try:
        page = Page(browser, workers)
        console = browser.console()
        assert not console, console
        check_first_view(page)
        check_what_is_shown(page)
        check_threads(page)
        check_zoom(page)
        check_search(page)
        check_filters(page)
        check_roots(page)
        check_units(page)
        check_callers(page)
        check_table(page)
        check_themes(page)
        page = Page(browser, hostile)
        page.show_idle()
        check_hostile_names(page)
        console = browser.console()
        assert not console, console
        requests = browser.run("return performance.getEntriesByType('resource').length")
        assert requests == 0, "the page loaded something"
    finally:
        browser.close()


@users_build
def test_page_of_many_frames(world):
    """The work at any time depends on the size of the screen, and not of the profile."""
    costs = []
    for frames in (1000, 100000):
        path = world.path(f"{frames}.html")
        made_page.write_page(world.program, path, made_page.make_tree(frames))
        browser = Browser()
        try:
            browser.open(path)
            costs.append({name: made_page.cpu_ms(browser, made_page.BEGIN, action)
                          for name, action in made_page.ACTIONS.items()})
        finally:
            browser.close()
    # A filter recounts all samples; everything else is made anew as for a search.
    assert costs[1]["filter"] < 8 * costs[1]["search"], costs
    for name in set(costs[0]) - {"filter"}:
        assert costs[1][name] < 3 * costs[0][name], (name, costs)


def test_page_of_a_time_without_samples(world):
    """A stack that ran for less than half a period has time, but may count as no sample: it is shown, too."""
    path = world.path("short.html")
    made_page.write_page(world.program, path, [0, [[1, [[2, [], 5]], 50]], 0])
    text = open(path).read()
    assert text.count(",5,50000000,") == 1
    open(path, "w").write(text.replace(",5,50000000,", ",0,50000000,"))
    browser = Browser()
    try:
        page = Page(browser, path)
        tip = page.at(2, 0.01)
        assert tip.startswith("namespace::function_1\n") and "50.0 ms · 0 samples" in tip, tip
    finally:
        browser.close()


def test_page_of_a_recording_that_lagged(world):
    """Delayed observations are reported, if there were any, and pauses that were skipped."""
    path = world.path("lagged.html")
    made_page.write_page(world.program, path, [0, [[1, [], 50]], 0])
    text = open(path).read()
    browser = Browser()
    try:
        for count in (0, 12345):
            changed = re.sub(r'"(observations_put_off|samples_thinned)":\d+', rf'"\1":{count}', text)
            open(path, "w").write(changed)
            Page(browser, path)
            for said in ("Looks put off\n12\u202f345\n",
                         "Pauses skipped\n12\u202f345, because threads had spent what --max-pause allows"):
                assert (said in browser.text("#summary")) == bool(count), (said, count, browser.text("#summary"))
    finally:
        browser.close()


def test_page_by_keys(world):
    """Everything that a click can do: going to the graph, from match to match, and copying a stack. Tables
    follow the zoom."""
    path = world.path("keys.html")
    made_page.write_page(world.program, path, [0, [[1, [[2, [], 30], [3, [], 20]], 0], [4, [[2, [], 40]], 10]], 0])
    browser = Browser()
    names = [f"namespace::function_{i}" for i in range(4)]
    try:
        page = Page(browser, path)
        browser.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
        browser.keys("Tab", "Enter")
        assert browser.run("return document.activeElement.id") == "graph" and "#" not in browser.run("return location.href")
        browser.keys("y")
        assert browser.run("return window.copied") is None, "nothing is selected"
        page.search("function_1$")
        tips = []
        for key in "n", "n", "n", "N":
            browser.keys(key)
            tips.append(re.search(r"[\d.]+ ms", browser.text("#tip"))[0])
        assert tips == ["300 ms", "400 ms", "300 ms", "400 ms"], tips
        browser.keys("y")
        assert browser.run("return window.copied") == f"{names[3]};{names[1]}"
        assert browser.text("#tip") == "Copied: 2 frames"
        page.search("")
        assert sorted(page.column(4)) == names
        page.click(1, 0.1)
        wait_for(lambda: sorted(page.column(4)) == names[:3], "the table of what is zoomed to")
        assert page.column(0)[0] == "300 ms" and f"in {names[0]}" in browser.text("#function-count")
        browser.click("#threads-tab")
        times = [seconds(text) for row in browser.run(THREADS) for text in row[1:4]]
        assert abs(sum(times) - 0.5) < 0.001, times
        browser.click("#functions-tab")
        browser.keys("Escape")
        wait_for(lambda: len(page.column(4)) == 4, "the table of all")
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


WAITS = ("return [...document.querySelectorAll('#waits tbody tr')].filter(r => r.cells.length > 1)"
         ".map(r => [...r.cells].map(c => c.innerText))")
CLICK_WAIT = ("[...document.querySelectorAll('#waits td.name button')]"
              ".find(b => b.innerText === arguments[0]).click()")


def test_page_of_waits(world):
    recording, path = world.path("holders.fgprof"), world.path("holders.html")
    done = world.fgprof("run", "-F", 199, "-q", "-o", recording, "--", world.fixture("holders"), 3)
    assert done.returncode == 0, done
    assert world.fgprof("convert", recording, "-o", path).returncode == 0
    blamed = folded(world.fgprof("convert", recording, "--blame", "-f", "folded").stdout)
    browser = Browser()
    try:
        page = Page(browser, path)
        page.show_idle()
        check_waits(page)
        check_blame(page, blamed)
        check_waits_by_keys(page)
        check_hostile_waits(browser, path)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_waits(page):
    """The lock that costs the most comes first, with its owner and the waiting threads."""
    assert not page.browser.run("return document.querySelector('#waits').checkVisibility()")
    page.browser.click("#waits-tab")
    assert not page.browser.run("return document.querySelector('#functions').checkVisibility()")
    rows = {row[3]: row for row in page.browser.run(WAITS)}
    first, second = rows["g_first"], rows["g_second"]
    # The holder waits for it, too, for moments.
    assert first[2] in ("3", "4") and first[4] == "mutex" and second[2] == "1", rows
    assert re.fullmatch(r"holder\s*(9\d\.\d|100\.0) %", first[5]), rows
    assert second[5].startswith("middle"), rows
    assert seconds(first[1]) > seconds(second[1]) > 0, rows
    assert list(rows)[0] == "g_first" and "end of thread holder" in rows, rows
    assert first[6] == second[6] == "take", rows
    page.browser.click("#threads-tab")
    places = {row[0].split("/")[0]: row[5] for row in page.browser.run(THREADS)}
    assert places["waiter"] == "take (mutex g_first)" and places["middle"].startswith("take (mutex g_"), places
    page.browser.click("#waits-tab")
    page.browser.run("document.querySelector('#waits button.open').click()")
    owners, waiters = page.browser.run(
        "return [...document.querySelectorAll('#waits .sides > div')].map(d => d.innerText)")
    assert "holder" in owners and "hold › outer_hold" in owners, owners
    for thread in "waiter", "second", "middle":
        assert f"\n{thread}\n" in waiters, waiters
    assert waiters.count("pthread_mutex_lock") >= 3 and "outer_hold" not in waiters, waiters


def check_blame(page, blamed):
    """A click shows what the owner did; the switch shows the same time by the waiting threads."""
    all_time = page.picture()
    page.browser.run(CLICK_WAIT, "g_first")
    assert page.path() == ["✕ all time", "owners of mutex g_first"], page.path()
    assert page.browser.run("return document.querySelector('#waiting').value") == "blame"
    assert page.at(1).splitlines()[0] == "holder" and page.picture() != all_time
    first = seconds(page.browser.run(WAITS)[0][1])
    assert abs(seconds(page.browser.text("#total")) - first) < 0.1 * first
    widest = [page.at(row, 0.01).splitlines()[0] for row in range(1, 11)]
    plain = [[re.sub(r"_\[[a-z]\]$", "", name) for name in stack] for stack in blamed]
    assert any(stack[:10] == widest for stack in plain), (widest, blamed)
    assert share(page.search(r"^\[holds mutex g_first\]$")) == 100
    assert share(page.search("^(outer|computing)_hold$")) > 80
    page.search("")
    page.browser.click("#functions-tab")
    assert "outer_hold" in page.column(4) and "holder" not in page.column(4), "a name is no function"
    page.browser.choose("#waiting", "wait")
    assert page.path() == ["✕ all time", "waiters for mutex g_first"], page.path()
    assert share(page.search("^wait_for_first$")) > 50 and share(page.search("^outer_hold$")) == 0
    page.search("")
    page.browser.run("document.querySelector('#path button').click()")
    assert page.path() == ["all"] and page.picture() == all_time
    # All that is blamed is as the other formats have it: g_second's waits are under its owner's.
    page.browser.choose("#waiting", "blame")
    assert page.samples() == sum(blamed.values())
    assert share(page.search(r"^\[holds mutex g_second\]$")) > 0
    page.search("")
    page.browser.choose("#thread", "middle")
    middle = sum(count for stack, count in blamed.items() if stack[0] == "middle")
    assert abs(page.samples() - middle) <= 1, "an owner is the thread that it is"
    page.browser.run("document.querySelector('#lines').click()")
    assert page.samples() == middle
    page.reset()
    assert page.path() == ["all"] and page.picture() == all_time


def check_waits_by_keys(page):
    def selected():
        return page.browser.run("return document.activeElement.id")
    page.browser.run("document.querySelector('#waits-tab').focus()")
    page.browser.keys("ArrowLeft")
    assert selected() == "threads-tab"
    page.browser.keys("ArrowLeft")
    assert selected() == "functions-tab"
    assert page.browser.run("return document.querySelector('#functions').checkVisibility()")
    page.browser.keys("ArrowLeft")
    assert selected() == "waits-tab"
    page.browser.run("document.querySelector('#waits td.owner button').focus()")
    page.browser.keys("Enter")
    assert page.path()[1] == "owners of mutex g_first in the hands of holder"
    assert page.browser.run("return document.activeElement.innerText") == "holder"
    page.browser.keys("Escape")
    assert page.path() == ["all"], page.path()


def check_hostile_waits(browser, path):
    """The name of a lock is that of a variable in a file that anyone may have made."""
    name = "<img src=x onerror=document.title='run'>"
    text = open(path).read().replace('"mutex g_first"', '"mutex ' + name.replace("<", "\\u003c") + '"')
    open(path, "w").write(text)
    page = Page(browser, path)
    page.browser.click("#waits-tab")
    page.browser.run(CLICK_WAIT, name)
    page.browser.run("document.querySelector('#waits button.open').click()")
    assert page.path()[1] == f"owners of mutex {name}"
    title, images = browser.run("return [document.title, document.images.length]")
    assert title.endswith("fgprof-c") and not images, (title, images)


def test_page_of_a_deadlock(world):
    path = world.path("locks.html")
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        world.attach(target, "-q", "-o", path, duration="1s")
    browser = Browser()
    try:
        page = Page(browser, path)
        alarm = page.browser.text("#alarm")
        assert re.search(r'^deadlock since [\d.]+ s: "cycle-[ab]" ', alarm, re.M), alarm
        page.browser.click("#waits-tab")
        text = page.browser.text("#deadlocks")
        assert re.search(r'^Deadlock since [\d.]+ s: "cycle-(a|b)" \((\d+)\) waits for mutex \w+ of '
                         r'"cycle-(?!\1)[ab]" \(\d+\), which waits for mutex \w+ of "cycle-\1" \(\2\)$',
                         text, re.M), text
        assert "outside" not in text, text
        marked = page.browser.run("return [...document.querySelectorAll('#waits .deadlock')]"
                                  ".map(mark => mark.parentNode.querySelector('button').innerText)")
        assert {"first", "second"} <= set(marked) <= {"first", "second", "own"}, marked
        # Each thread of the circle is in a stack once.
        page.browser.run(CLICK_WAIT, "first")
        names = [page.at(row, 0.01).splitlines()[0] for row in range(1, 20)]
        assert names.count("cycle-a") <= 1 and names.count("cycle-b") <= 1, names
        # An earlier version's recording has no proof, but the circle itself.
        changed = re.sub(r'"deadlocks":\[[^\]]*\],', "", open(path).read())
        open(path, "w").write(changed)
        page = Page(browser, path)
        page.browser.click("#waits-tab")
        text = page.browser.text("#deadlocks")
        assert re.search(r"^Deadlock cycle-a/(\d+) waits for cycle-b/(\d+) \(mutex second\), "
                         r"which waits for cycle-a/\1 \(mutex first\)$", text, re.M) or re.search(
            r"^Deadlock cycle-b/(\d+) waits for cycle-a/(\d+) \(mutex first\), "
            r"which waits for cycle-b/\1 \(mutex second\)$", text, re.M), text
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_page_without_waits(world):
    """As in a page by an earlier version: there is no tab."""
    path = world.path("none.html")
    made_page.write_page(world.program, path, [0, [[1, [], 50]], 0])
    assert "sample_waits" not in open(path).read().split('id="profile">')[1].split("</script>")[0]
    browser = Browser()
    try:
        page = Page(browser, path)
        assert not page.browser.run(IS_SHOWN, ".of-waits")
        assert page.browser.run("return document.querySelector('#functions').checkVisibility()")
        assert not page.browser.run("return document.querySelector('#waits').checkVisibility()")
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_first_view(page):
    """It shows what was recorded and what stands out, and hides threads that only waited."""
    subject = page.browser.text("#subject")
    assert re.fullmatch(rf"fixture-workers/\d+ on {re.escape(socket.gethostname())}, 1\.\d\d s, "
                        r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", subject), subject
    assert re.fullmatch(r"fgprof-c attach -p \d+ .*workers\.html", page.browser.text("#command"))
    assert page.browser.run("return document.title") == f"{subject} \u2013 fgprof-c"
    busy = page.samples()
    assert 90 <= busy <= 115 and "1 thread " in page.browser.text("#unit-text"), page.browser.text("#total")
    assert re.fullmatch(r"4 idle threads hidden \([34]\.\d\d s\)", page.browser.text("#idle")), page.browser.text("#idle")
    # One that is asked for is shown all the same.
    page.browser.choose("#thread", "fixture-workers")
    assert page.samples() > 90 and "main" in page.column(4)
    page.browser.choose("#thread", "")
    assert page.samples() == busy
    findings = page.browser.run("return [...document.querySelectorAll('#findings li')].map(e => e.innerText)")
    assert any("keeps a CPU busy" in text for text in findings), findings
    page.browser.click("#findings button")
    assert page.browser.run("return document.querySelector('#search').value").startswith("^"), findings
    assert not page.browser.text("#matched").startswith("0 %"), page.browser.text("#matched")
    page.search("")
    assert not page.browser.run("return document.querySelector('#alarm').checkVisibility()")
    page.browser.click("#idle")
    assert re.fullmatch(r"4 idle threads shown \(.*\)", page.browser.text("#idle")), page.browser.text("#idle")


THREADS = """return [...document.querySelectorAll('#threads tbody tr')].map(
  row => [...row.cells].filter(cell => !cell.hidden).map(cell => cell.innerText))"""


def check_threads(page):
    page.browser.click("#threads-tab")
    rows = page.browser.run(THREADS)
    assert len(rows) == 5 and page.browser.text("#thread-count") == "5", rows
    spinning = rows[0]
    assert spinning[0].startswith("spinning/") and spinning[3] == "0 s" and spinning[5] == "in_spin", rows
    assert 0.9 < seconds(spinning[1]) + seconds(spinning[2]) < 1.1, spinning
    sleeping = next(row for row in rows if row[4] == "clock_nanosleep" and row[5] == "sleep_until")
    assert sleeping[1] == sleeping[2] == "0 s" and 0.9 < seconds(sleeping[3]) < 1.1, sleeping
    all_samples = page.samples()
    page.browser.click("#threads tbody button")
    assert page.browser.run("return document.querySelector('#thread').value") == "spinning"
    assert 90 < page.samples() < all_samples and len(page.browser.run(THREADS)) == 5
    page.browser.click("#threads tbody button")
    assert page.samples() == all_samples
    page.browser.click("#functions-tab")


def test_the_address_of_a_page_keeps_its_view(world):
    path = record(world, "workers", 60, 1, 3)
    browser = Browser()
    try:
        page = Page(browser, path)
        assert "#" not in browser.run("return location.href")
        page.show_idle()
        page.browser.choose("#thread", "spinning")
        page.browser.choose("#stacks", "callers")
        page.browser.choose("#unit", "threads")
        page.browser.run("document.querySelector('#lines').click()")
        page.search("in_spin|x&y=z#")
        seen = [page.browser.text(id) for id in ("#total", "#matched", "#unit-text", "#idle")]
        place = browser.run("return location.href")
        browser.open("about:blank")
        page = Page(browser, place)
        assert [page.browser.text(id) for id in ("#total", "#matched", "#unit-text", "#idle")] == seen
        assert browser.run("return document.querySelector('#search').value") == "in_spin|x&y=z#"
        page.browser.click("#reset")
        # What another page's address says is ignored where it means nothing here.
        for fragment in "thread=nobody&state=%00&unit=x&view=0&__proto__=1", "%", "=&=&a", "idle=x&lines=2":
            browser.open("about:blank")
            page = Page(browser, f"file://{path}#{fragment}")
            assert page.samples() > 0 and page.path() == ["all"], fragment
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


# In a frame, or in the page itself.
STRIP = """const page = document.querySelector('iframe')?.contentDocument || document;
const names = () => [...page.querySelectorAll('#strip-names button')].map(b => b.innerText);"""
CHOOSE_THREAD = STRIP + """const thread = page.querySelector('#thread');
thread.value = arguments[0];
thread.dispatchEvent(new Event('change'));
return names();"""


def test_pages_that_cannot_keep_their_address(world):
    """All else is as ever in a blob: page, in the srcdoc of a frame, and if the browser finds that the
    address changes too often."""
    path = world.path("made.html")
    made_page.write_data(world.program, path, made_tables())
    text = open(path).read()
    browser = Browser()
    try:
        browser.open("about:blank")
        browser.run("const frame = document.createElement('iframe'); frame.srcdoc = arguments[0];"
                    "frame.style = 'width: 1100px; height: 700px';"
                    "document.body.replaceChildren(frame)", text)
        check_strip_of_choices(browser)
        browser.open(path)
        browser.run("location = URL.createObjectURL(new Blob([arguments[0]], {type: 'text/html'}))", text)
        wait_for(lambda: browser.run("return location.protocol") == "blob:", "the blob: page")
        check_strip_of_choices(browser)
        browser.open(path)
        browser.run("window.calls = 0; history.replaceState = () => {"
                    " window.calls++; throw new DOMException('too often', 'SecurityError'); }")
        check_strip_of_choices(browser)
        assert browser.run("return window.calls") == 2, "once for each choice"
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_strip_of_choices(browser):
    """The strip is shown last."""
    wait_for(lambda: browser.run(STRIP + "return names()") == ["audit/71", "idler/72"], "the strip")
    assert browser.run(CHOOSE_THREAD, "idler") == ["idler/72", "audit/71"]
    assert browser.run(CHOOSE_THREAD, "") == ["audit/71", "idler/72"]


def check_what_is_shown(page):
    # The main thread, one that computes and three that sleep, each at all ticks; a fraction of a tick may be
    # left over in each state.
    ticks = int(re.search(r"([\d\u202f]+) planned", page.browser.text("#summary"))[1]
                .replace("\u202f", ""))
    assert ticks >= 99 and 5 * ticks - 15 <= page.samples() <= 5 * ticks + 5, (
        ticks, page.browser.text("#total"))
    assert "thread-seconds" in page.browser.text("#unit-text")
    tip = page.at(0)
    assert tip.startswith("all:") and "100.0 % of all" in tip and "samples" in tip, tip
    # Three sleepers make up most of the threads' starts: the widest is on the left.
    tip = page.at(1, 0.05)
    assert "of the parent" in tip and "libc" in tip and "self" in tip, tip
    assert page.at(0, 0.995) and page.browser.run(
        "return document.querySelector('#tip').getBoundingClientRect().right"
        " < document.documentElement.clientWidth"), "the tooltip is beside the scroll bar"
    commands = page.browser.text("#commands")
    assert re.fullmatch(r"Recorded by\nfgprof-c attach -p \d+ -d 1s -q -o \S+\.html", commands), commands
    assert "planned" in page.browser.text("#summary")


def check_zoom(page):
    wide = page.at(1, 0.05)
    before = page.picture()
    page.click(1, 0.05)
    assert len(page.path()) == 2 and page.path()[1] in wide, (page.path(), wide)
    assert page.picture() != before
    # What was on the left now takes the whole width.
    assert page.at(1, 0.95).splitlines()[0] == wide.splitlines()[0]
    page.browser.keys("Escape")
    assert len(page.path()) == 1 and page.picture() != ""
    page.click(1, 0.05)
    page.browser.keys("Backspace")
    assert len(page.path()) == 1
    page.click(1, 0.05)
    page.click(1, 0.5, clicks=2)
    assert len(page.path()) == 1, "a double click goes out"
    # By keys: the root, its widest child, zoom in.
    page.browser.run("document.querySelector('#graph').focus()")
    page.browser.keys("ArrowUp", "ArrowUp", "Enter")
    assert len(page.path()) == 2, page.path()
    page.browser.run("document.querySelector('#path button').click()")
    assert len(page.path()) == 1
    tips = {}
    for key in "ArrowUp", "ArrowUp", "ArrowRight", "ArrowLeft", "ArrowDown":
        page.browser.keys(key)
        tips[key] = page.browser.text("#tip")
    assert tips["ArrowUp"] == tips["ArrowLeft"] != tips["ArrowRight"], tips
    assert tips["ArrowDown"].startswith("all:") and "of the parent" in tips["ArrowRight"], tips


def test_choices_keep_the_zoom(world):
    """Unless the stacks are others, or nothing is left of what the graph is zoomed to."""
    path = world.path("made.html")
    made_page.write_data(world.program, path, made_tables())
    browser = Browser()
    try:
        page = TimePage(browser, path)
        page.click(1, 0.1)
        assert page.path() == ["all", "f"], page.path()
        for selector, value in (("#colour", "module"), ("#colour", "thread"), ("#unit", "threads"),
                                ("#unit", "total"), ("#state", "on-cpu"), ("#thread", "audit"),
                                ("#state", ""), ("#thread", "")):
            browser.choose(selector, value)
            assert page.path() == ["all", "f"], (selector, value, page.path())
        assert page.functions() == {"f": 8.5} and page.at(1, 0.95).startswith("f\n"), page.functions()
        for _ in range(2):
            browser.keys("x")
            assert page.path() == ["all", "f"], page.path()
        page.drag(6, 7)
        assert page.path() == ["all", "f"] and set(page.functions()) == {"f"}, page.path()
        page.drag(4.25, 5.25)
        assert page.path() == ["all"] and set(page.functions()) == {"g", "h"}, page.path()
        browser.click("#strip-all")
        check_what_ends_the_zoom(page)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_what_ends_the_zoom(page):
    """Each click is at another place, so that no two are a double click."""
    browser = page.browser
    page.click(1, 0.2)
    assert page.path() == ["all", "f"], page.path()
    page.reset()
    assert page.path() == ["all"], page.path()
    page.click(1, 0.3)
    browser.choose("#stacks", "callers")
    assert page.path() == ["all"], page.path()
    browser.choose("#stacks", "callees")
    page.click(1, 0.4)
    browser.click("#focus")
    assert page.path() == ["✕ all functions", "callees of f"], page.path()
    page.click(1, 0.6)
    assert page.path() == ["✕ all functions", "callees of f", "f"], page.path()
    browser.click("#focus")
    assert page.path() == ["✕ all functions", "callees of f"], page.path()


def check_search(page):
    before = page.picture()
    assert 10 < share(page.search("^in_sp[i]n$")) < 35
    assert page.picture() != before, "what is found is marked"
    assert page.column(4) == ["in_spin"], "the table shows what is found"
    assert 40 < share(page.search("IN_SLEEP|in_sleep")) < 70
    assert share(page.search("no such function")) == 0
    assert "not a regular expression" in page.search("in_spin(")
    assert page.search("") == ""


def check_filters(page):
    all_samples = page.samples()
    page.browser.choose("#thread", "spinning")
    spinning = page.samples()
    assert abs(spinning - all_samples / 5) < 10 and "1 thread " in page.browser.text("#unit-text")
    assert "in_spin" in page.column(4) and "in_sleep" not in page.column(4)
    page.browser.choose("#thread", "")
    sleepers = page.browser.run("return [...document.querySelectorAll('#thread option')]"
                                ".map(o => o.value).filter(v => v.startsWith('sleeping/'))")
    assert len(sleepers) == 3, sleepers
    page.browser.choose("#thread", sleepers[0])
    assert abs(page.samples() - all_samples / 5) < 10 and "in_sleep" in page.column(4)
    page.browser.choose("#thread", "")
    page.browser.choose("#state", "on-cpu")
    running = page.samples()
    page.browser.choose("#state", "off-cpu")
    off = page.samples()
    assert running and abs(running + off - all_samples) <= 1, (running, off, all_samples)
    page.browser.choose("#state", "clock_nanosleep")
    assert "in_sleep" in page.column(4) and "in_spin" not in page.column(4)
    page.browser.choose("#module", "no such module")  # no option: all
    page.reset()
    assert page.samples() == all_samples
    page.browser.choose("#module", "fixture-workers")
    assert 0 < page.samples() <= all_samples
    page.reset()


def check_roots(page):
    page.browser.choose("#roots", "thread")
    roots = {page.at(1, part).splitlines()[0] for part in (0.1, 0.3, 0.5, 0.7, 0.9)}
    assert len(roots) == 5 and all(re.fullmatch(r".+/\d+", root) for root in roots), roots
    page.browser.choose("#stacks", "callers")
    assert page.at(1, 0.1).splitlines()[0] in roots, "leaves stand on their threads"
    page.browser.choose("#roots", "")
    assert page.at(1, 0.1).splitlines()[0] not in roots
    page.browser.choose("#stacks", "callees")
    assert not page.browser.run(IS_SHOWN, ".of-processes, .of-difference")


# Whether one of these can be chosen.
IS_SHOWN = "return [...document.querySelectorAll(arguments[0])].some(e => !e.hidden && !e.disabled)"


def test_page_of_processes(world):
    path = world.path("processes.html")
    done = world.fgprof("run", "--children", "-q", "-o", path, "--", "sh", "-c",
                        "sleep 3 & sleep 3 & wait")
    assert done.returncode == 0, done
    browser = Browser()
    try:
        page = Page(browser, path)
        page.show_idle()
        check_processes(page)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_processes(page):
    page.browser.choose("#colour", "process")
    names = page.browser.run("return [...document.querySelectorAll('#legend b')].map(b => b.innerText)")
    sleepers = [name for name in names if re.fullmatch(r"sleep/\d+", name)]
    assert len(sleepers) == 2 and len(names) > 2, names
    all_samples, samples = page.samples(), []
    for name in names:
        page.browser.choose("#process", name)
        samples.append(page.samples())
        assert "1 thread " in page.browser.text("#unit-text")
    assert all(samples) and sum(samples) == all_samples, (samples, all_samples)
    page.reset()
    page.browser.choose("#roots", "process")
    assert page.at(1, 0.02).splitlines()[0] in names and page.samples() == all_samples
    assert page.browser.run(IS_SHOWN, ".of-processes")


def check_units(page):
    page.browser.choose("#unit", "threads")
    text = page.browser.text("#unit-text")
    assert text.startswith("Times are the average number of threads at a time"), text
    assert "5 threads" in text, text
    # Five threads for the whole of the recording.
    assert 4 < threads(page.browser.text("#total")) < 5.6, page.browser.text("#total")
    page.browser.choose("#thread", "spinning")
    assert 0.8 < threads(page.browser.text("#total")) < 1.15, page.browser.text("#total")
    assert " threads · " in page.at(1), page.at(1)
    page.reset()
    check_elapsed(page)
    page.browser.choose("#unit", "total")
    page.search("\\[idle\\]")
    assert page.column(4) == [], "idle time is not that of a thread"
    page.search("")


def check_elapsed(page):
    """One thread of five computes all the time; the others sleep for longer than a second."""
    page.browser.choose("#unit", "elapsed")
    text = page.browser.text("#unit-text")
    assert text.startswith("Each instant of a process is divided among its threads"), text
    shown, length = re.search(r"with ([\d.]+) s in all, in a recording of ([\d.]+) s", text).groups()
    assert abs(float(shown) - float(length)) < 0.011, text
    assert "sleeping" not in page.column(4), page.column(4)
    page.search("^in_spin$")
    assert share(page.column(3)[0]) > 90, page.column(3)
    page.search("")
    rows = page.browser.run("return [...document.querySelectorAll('#summary dt')]"
                            ".map(dt => [dt.innerText, dt.nextSibling.innerText])")
    [parallel] = [text for name, text in rows if name == "Running at once"]
    assert "1 for " in parallel and parallel.endswith(" of the time"), parallel


def check_callers(page):
    page.browser.choose("#stacks", "callers")
    assert "clock_nanosleep" in page.at(1, 0.05), "the widest leaf"
    page.browser.choose("#stacks", "callees")
    page.search("^in_spin$")
    assert page.column(4) == ["in_spin"]
    page.browser.click("#functions td.graph button")
    page.search("")
    assert page.path() == ["✕ all functions", "callers of in_spin"], page.path()
    assert page.at(1).startswith("in_spin") and page.at(2).startswith("spin"), page.at(2)
    shares = [share(text) for text in page.column(1)]
    assert max(shares) <= 100 and 90 < sum(shares) <= 100.1, "shares of all, whatever the graph is of"
    page.browser.run("document.querySelector('#path button').click()")
    assert page.path() == ["all"]
    upright = page.picture()
    page.browser.choose("#view", "icicle")
    assert page.picture() != upright
    page.browser.choose("#view", "flame")


def check_table(page):
    def numbers():
        return [float(text.split()[0]) for text in page.column(3)]  # % of the total time
    page.browser.click("th[data-key=total] button")
    assert numbers() == sorted(numbers(), reverse=True) and len(numbers()) > 5
    page.browser.click("th[data-key=total] button")
    assert numbers() == sorted(numbers())
    page.browser.click("th[data-key=name] button")
    assert page.column(4) == sorted(page.column(4))
    page.browser.choose("#colour", "module")
    assert "libc.so.6" in page.browser.text("#legend")
    page.browser.choose("#colour", "thread")
    assert "sleeping" in page.browser.text("#legend")
    page.browser.choose("#colour", "state")
    assert "running" in page.browser.text("#legend")


# The contrast of the text in the lowest rows with its background (WCAG 2.2, "contrast ratio"):
# between the most frequent pixel and the one that differs most from it, which is inside a letter's
# stroke.
CONTRASTS = """
const graph = document.querySelector('#graph'), canvas = graph.querySelector('canvas');
const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) =>
  0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
copy.canvas.width = canvas.width; copy.canvas.height = canvas.height;
copy.drawImage(canvas, 0, 0);
return [0, 1, 2].map(row => {
  const {data} = copy.getImageData(2, canvas.height - 18 * (row + 1) + 2, 60, 13), count = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const key = data.slice(i, i + 3).join();
    count.set(key, (count.get(key) || 0) + 1);
  }
  const pixels = [...count].sort((a, b) => b[1] - a[1]).map(([key]) => luminance(key.split(',')));
  return Math.max(...pixels.map(
    v => (Math.max(v, pixels[0]) + 0.05) / (Math.min(v, pixels[0]) + 0.05)));
});
"""


def check_themes(page):
    grounds = set()
    for _ in range(3):
        grounds.add(page.browser.run("return getComputedStyle(document.body).backgroundColor"))
        for text in "", "in_spin":  # the latter makes all others pale
            page.search(text)
            assert min(page.browser.run(CONTRASTS)) > 4.5, (text, page.browser.run(CONTRASTS))
        page.search("")
        page.browser.click("#theme")
    assert len(grounds) == 2, grounds


def check_hostile_names(page):
    symbol = "</script><img src=x onerror=document.title='run'>"
    assert symbol in page.column(4), page.column(4)
    page.search("onerror")
    assert page.column(4) == [symbol]
    page.browser.click("#functions td.graph button")
    assert page.at(1).startswith(symbol), page.at(1)
    assert page.path()[1] == f"callers of {symbol}"
    page.search("")
    page.browser.choose("#colour", "thread")
    page.browser.choose("#thread", "</script><b>x")
    assert "</script><b>x" in page.browser.text("#legend")
    found = page.browser.run("return [document.title, document.images.length,"
                             "document.querySelectorAll('b b, pre b, option b').length,"
                             "document.scripts.length]")
    assert found[0].endswith("fgprof-c") and found[1:] == [0, 0, 2], found

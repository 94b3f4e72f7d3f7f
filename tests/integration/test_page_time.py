"""The strip of time on the HTML page: when threads were where, and what a part of the time contains."""

import re

import made_page
from harness import wait_until_asleep
from page import Page, seconds, share
from webdriver import Browser

FUTEX = 3  # of "strings"
RUNNING, SLEEPING = 1, 3  # enum thread_state
GRAIN_NS = 10**6
HOSTILE = "</script><img src=x onerror=document.title='run'>"


def made_tables(names=("audit", "idler")):
    """Ten seconds: a thread that runs in f() but waits in g() from 4 s to 5.5 s, and one that comes late and
    sleeps in h() for 6 s."""
    second = 10**9
    return {
        "elapsed_ns": 10 * second, "period_ns": second // 100, "has_elapsed": False, "deadlocks": [],
        "strings": ["", names[0], names[1], "futex", "f", "g", "h", "/opt/app"],
        "processes": [[7, 1]], "locations": [[7, 0, name, 0, 0] for name in (4, 5, 6)],
        "stacks": [[0], [1], [2]],
        "samples": [[0, 1, 71, RUNNING, 0, 0, 850, 85 * second // 10, 0],
                    [1, 1, 71, SLEEPING, FUTEX, 0, 150, 15 * second // 10, 0],
                    [2, 2, 72, SLEEPING, 0, 0, 600, 6 * second, 0]],
        "findings": [], "idle": [],
        "timelines": made_page.timelines_of(GRAIN_NS, [
            [0, [[0, 4000], [1, 1500], [0, 4500]]], [3000, [[2, 2000], [-1, 1000], [2, 4000]]]]),
    }


class TimePage(Page):
    def __init__(self, browser, path):
        browser.open("about:blank")  # the same address, with another fragment, would load nothing
        super().__init__(browser, path)

    def spot(self, at_s, row=-1):
        """Where a time is on the screen, in the row of all threads or of one thread."""
        box = self.browser.run("document.querySelector('#strip').scrollIntoView({block: 'nearest'});"
                               "const b = document.querySelector('#strip canvas').getBoundingClientRect();"
                               "return [b.left, b.top, b.width]")
        y = box[1] + (16 + 22 if row < 0 else 16 + 44 + 4 + 15 * row + 7)
        return box[0] + at_s / self.length() * box[2], y

    def length(self):
        return seconds(re.search(r"recording of ([\d.]+ s)", self.browser.text("#unit-text"))[1])

    def drag(self, begin_s, end_s):
        x, y = self.spot(begin_s)
        self.browser.drag(x, y, self.spot(end_s)[0])

    def tip(self, at_s, row=-1):
        self.browser.mouse(*self.spot(at_s, row))
        return self.browser.text("#tip")

    def names(self):
        return self.browser.run("return [...document.querySelectorAll('#strip-names button')].map(b => b.innerText)")

    def functions(self):
        """{function: its own seconds}."""
        return {name: seconds(time) for name, time in zip(self.column(4), self.column(0))}

    def selected(self):
        return self.browser.text("#strip-text")

    def strip(self):
        return self.browser.run("return document.querySelector('#strip canvas').toDataURL()")


def test_page_of_a_time(world):
    path = world.path("made.html")
    made_page.write_data(world.program, path, made_tables())
    browser = Browser()
    try:
        page = TimePage(browser, path)
        check_strip(page)
        check_drag(page)
        check_keys_of_time(page)
        check_address_of_time(browser, path)
        check_threads_of_strip(TimePage(browser, path))
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_strip(page):
    """All time is shown at first, and the strip says what was when."""
    assert page.functions() == {"f": 8.5, "h": 6, "g": 1.5} and page.samples() == 1600
    assert page.names() == ["audit/71", "idler/72"]
    assert page.browser.text("#strip-names span") == "2 threads"
    assert re.match(r"2\.00 threads\n4\.(49|50)", page.tip(4.5)), page.tip(4.5)
    assert "futex 50.0 %" in page.tip(4.5) and "running 100.0 %" in page.tip(2)
    assert re.match(r"audit/71\n4\.(49|50)", page.tip(4.5, 0)) and "futex 100.0 %" in page.tip(4.5, 0)
    assert "%" not in page.tip(5.5, 1), "absent"
    assert "sleeping 100.0 %" in page.tip(7, 1)


def check_drag(page):
    """The graph, the tables and the sums are those of the selected time."""
    page.drag(4.25, 5.25)
    found = page.functions()
    assert abs(found["g"] - 1) < 0.05 and abs(found["h"] - 0.75) < 0.05 and "f" not in found, found
    assert abs(seconds(page.browser.text("#total")) - found["g"] - found["h"]) < 0.011
    assert "in 1.0" in page.browser.text("#unit-text").split("recording")[0]
    tip = page.at(1, 0.01)
    assert tip.startswith("g\n") and 55 < share(tip) < 59, tip
    page.browser.click("#threads-tab")
    blocked = page.browser.run("return [...document.querySelectorAll('#threads tbody tr')].map(r => r.innerText)")
    assert len(blocked) == 2 and "futex" in blocked[0] + blocked[1], blocked
    page.browser.click("#functions-tab")
    page.browser.choose("#unit", "threads")
    assert re.match(r"1\.7\d threads", page.browser.text("#total")), page.browser.text("#total")
    page.browser.choose("#unit", "total")
    # Another filter counts within the same time; the strip shows all time.
    page.browser.choose("#thread", "idler")
    assert set(page.functions()) == {"h"}
    page.browser.choose("#thread", "")
    page.drag(9.6, 9.2)
    assert set(page.functions()) == {"f", "h"}, "backwards"
    page.browser.mouse(*page.spot(5), 1)
    assert page.functions() == {"f": 8.5, "h": 6, "g": 1.5}, "a click shows all"
    page.drag(4.25, 5.25)
    page.browser.click("#strip-all")
    assert page.samples() == 1600
    page.drag(4.25, 5.25)
    page.reset()
    assert page.samples() == 1600


def check_keys_of_time(page):
    page.browser.run("document.querySelector('#strip-time').focus()")
    page.browser.keys("ArrowRight")
    assert page.selected().startswith("0.000 s to 0.100 s"), page.selected()
    page.browser.keys("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")
    assert page.selected().startswith("0.100 s to 0.400 s"), page.selected()
    assert page.functions() == {"f": 0.3}
    page.browser.keys("End")
    assert page.selected().startswith("9.700 s to 10.000 s"), page.selected()
    page.browser.keys("ArrowRight", "Shift+ArrowRight", "Shift+ArrowLeft")
    assert page.selected().startswith("9.700 s to 9.900 s"), page.selected()
    page.browser.keys("Escape")
    assert page.samples() == 1600
    page.browser.keys("End")
    page.browser.run("document.activeElement.blur()")
    page.browser.keys("Escape")
    assert page.samples() == 1600, "from anywhere"


def check_address_of_time(browser, path):
    page = TimePage(browser, path)
    page.drag(4.25, 5.25)
    page.browser.choose("#thread", "audit")
    seen, place = page.functions(), browser.run("return location.href")
    page = TimePage(browser, place)
    assert page.functions() == seen and set(seen) == {"g"}
    for time in "abc", "5-3", "-1-2", "20-30", "1e9-2e9", "4.5":
        assert TimePage(browser, f"file://{path}#time={time}").samples() == 1600, time
    page = TimePage(browser, f"file://{path}#time=5.1-5.2&thread=idler")
    assert page.samples() == 0 and page.functions() == {}, "nothing is in it"
    assert page.at(0).startswith("all: 0 s"), page.at(0)
    page.reset()
    assert page.samples() == 1600


def check_threads_of_strip(page):
    """A name filters; the other rows stay."""
    page.browser.run("document.querySelectorAll('#strip-names button')[1].click()")
    assert set(page.functions()) == {"h"} and page.names() == ["idler/72", "audit/71"]
    page.browser.run("document.querySelectorAll('#strip-names button')[0].click()")
    assert page.samples() == 1600 and page.names() == ["audit/71", "idler/72"]
    shown = page.strip()
    page.browser.choose("#state", "on-cpu")
    assert page.strip() != shown and page.names() == [], "one thread alone is what all did"
    page.reset()
    assert page.strip() == shown


def test_strip_of_extremes(world):
    """Nothing recorded, no timeline, many threads, and names with markup in them."""
    path = world.path("extreme.html")
    browser = Browser()
    try:
        made_page.write_data(world.program, path, made_tables() | {
            "samples": [], "timelines": made_page.timelines_of(GRAIN_NS, [])})
        page = TimePage(browser, f"file://{path}#time=1-2")
        assert page.samples() == 0 and page.names() == []
        made_page.write_page(world.program, path, [0, [[1, [], 50]], 0])
        page = TimePage(browser, f"file://{path}#time=1-2")
        assert page.samples() == 50 and not browser.run("return document.querySelector('#strip').checkVisibility()")
        made_page.write_data(world.program, path, made_tables((HOSTILE, "idler")))
        page = TimePage(browser, path)
        assert page.names()[0] == f"{HOSTILE}/71" and HOSTILE in page.tip(1, 0)
        assert browser.run("return document.images.length") == 0
        tables = made_page.data_of_threads(made_page.make_tree(200), 10000, 100000, 60)
        made_page.write_data(world.program, path, tables)
        page = TimePage(browser, path)
        assert len(page.names()) == 6 and browser.text("#strip-more") == "9\u202f994 more threads"
        for count in 24, 96, 384:
            browser.click("#strip-more")
            assert len(page.names()) == count
        assert not browser.run("return document.querySelector('#strip-more').checkVisibility()")
        all_time = seconds(browser.text("#total"))
        page.drag(15, 30)
        assert 0.2 * all_time < seconds(browser.text("#total")) < 0.3 * all_time
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_strip_marks_a_deadlock(world):
    path = world.path("locks.html")
    with world.running("locks", 60, world.path("locked")) as target:
        wait_until_asleep(target.pid)
        world.attach(target, "-q", "-o", path, duration="1s")
    browser = Browser()
    try:
        page = TimePage(browser, path)
        browser.click("#idle")
        rows = browser.run("return [...document.querySelectorAll('#strip-names button')].map(b => b.innerText)")
        marked = page.strip()
        assert any(name.startswith("cycle-") for name in rows), rows
        text = re.sub(r'"deadlocks":\[[^\]]*\],', "", open(path).read())
        open(path, "w").write(text)
        page = TimePage(browser, path)
        browser.click("#idle")
        assert page.strip() != marked
    finally:
        browser.close()

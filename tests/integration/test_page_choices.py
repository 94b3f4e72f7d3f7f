"""What a user selects on the HTML page: two sides to compare, functions to hide, and names that filter."""

import re

import made_page
from page import seconds
from test_page_difference import PIXEL
from test_page_time import GRAIN_NS, HOSTILE, RUNNING, SLEEPING, FUTEX, TimePage, made_tables
from webdriver import Browser

SECOND = 10**9


def open_made(world, browser, tables=None, name="made.html", fragment=""):
    path = world.path(name)
    made_page.write_data(world.program, path, tables or made_tables())
    return TimePage(browser, f"file://{path}{fragment}")


def rows(page):
    """{function: [self before, after, change]} of the table of functions."""
    return {name: tuple(page.column(i)[at] for i in range(3)) for at, name in enumerate(page.column(6))}


def press(page, selector, text):
    """Clicks the button with that text by a key, once it has the focus."""
    page.browser.run("const [where, text] = arguments;"
                     "[...document.querySelectorAll(where)].find(b => b.innerText.startsWith(text)).focus()", selector, text)
    page.browser.keys("Enter")


def test_compare_two_choices(world):
    browser = Browser()
    try:
        page = open_made(world, browser)
        check_two_threads(page)
        check_two_times(page)
        check_two_states(page)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def check_two_threads(page):
    """A thread of the table is compared with the selected one."""
    browser = page.browser
    assert not browser.run("return document.querySelector('.of-difference').checkVisibility()")
    page.browser.click("#threads-tab")
    press(page, "#threads td.name button", "idler")
    press(page, "#threads tr:not(.chosen) td.compare button", "compare")
    assert browser.run("return document.querySelectorAll('#threads td.compare button[aria-pressed=true]').length") == 1
    browser.click("#functions-tab")
    assert rows(page) == {"f": ("8.50 s", "0 s", "−8.50 s"), "g": ("1.50 s", "0 s", "−1.50 s"),
                          "h": ("0 s", "6.00 s", "+6.00 s")}, rows(page)
    assert browser.text("#total") == "10.00 s before, 6.00 s after: −4.00 s", browser.text("#total")
    assert browser.text("#unit-text").startswith("Before is thread audit; after is thread idler. "), browser.text("#unit-text")
    assert "grown by up to" in browser.text("#legend")
    tip = page.at(1, 0.5)
    assert tip.startswith("h\n") and "+6.00 s" in tip, tip
    browser.choose("#width", "before")
    assert page.at(1, 0.1).startswith("f\n")
    # A link shows the same.
    seen, place = rows(page), browser.run("return location.href")
    page = TimePage(browser, place)
    assert rows(page) == seen and page.at(1, 0.1).startswith("f\n"), place
    browser.click("#threads-tab")
    press(page, "#threads td.compare button[aria-pressed=true]", "compare")
    browser.click("#functions-tab")
    assert page.functions() == {"h": 6}, "the thread that was chosen"
    page.reset()
    assert page.functions() == {"f": 8.5, "h": 6, "g": 1.5} and "running" in browser.text("#legend")
    assert not browser.run("return location.hash")


def check_two_times(page):
    """The strip has both; times of different lengths are scaled."""
    browser = page.browser
    browser.run("document.querySelector('#strip-time').focus()")
    browser.keys("ArrowRight", "Shift+ArrowRight", "x", "End")
    times = rows(page)
    assert times == {"f": ("200 ms", "200 ms", "0 s"), "h": ("0 s", "200 ms", "+200 ms")}, times
    assert browser.run("return ['#strip-compared', '#strip-chosen'].map(id => parseFloat(document.querySelector(id).style.left) > 0)"
                       ) == [False, True]
    assert not browser.run("return document.querySelector('#normalized').checked")
    browser.keys("Shift+ArrowLeft")
    assert browser.run("return document.querySelector('#normalized').checked"), "different lengths"
    assert "Before is 0.000 s to 0.200 s; after is 9.800 s to 9.900 s." in browser.text("#unit-text")
    total = re.match(r"(\S+ m?s) before, (\S+ m?s) after", browser.text("#total")).groups()
    assert total == ("200 ms", "200 ms"), total
    browser.choose("#unit", "threads")
    assert re.match(r"2\.00 threads before, 2\.00 threads after", browser.text("#total")), browser.text("#total")
    browser.click("#normalized")
    assert re.match(r"1\.00 threads before, 2\.00 threads after", browser.text("#total")), browser.text("#total")
    seen, place = browser.text("#total"), browser.run("return location.href")
    page = TimePage(browser, place)
    assert browser.text("#total") == seen, place
    browser.choose("#unit", "total")
    browser.keys("x")
    assert not browser.run("return document.querySelector('#strip-compared').checkVisibility()")
    page.reset()


def check_two_states(page):
    browser = page.browser
    browser.choose("#thread", "audit")
    browser.choose("#state", "running")
    browser.click("#compare")
    assert "Before is thread audit, state running: choose another" in browser.text("#unit-text")
    assert rows(page)["f"][2] == "0 s"
    browser.choose("#state", "futex")
    assert rows(page) == {"f": ("8.50 s", "0 s", "−8.50 s"), "g": ("0 s", "1.50 s", "+1.50 s")}, rows(page)
    page.search("^g$")
    assert list(rows(page)) == ["g"]
    browser.click("#compare")
    page.search("")
    assert page.functions() == {"g": 1.5}
    page.reset()


def test_compare_by_dragging(world):
    """With Shift, the time that was selected stays as the earlier one."""
    browser = Browser()
    try:
        page = open_made(world, browser)
        page.drag(0.5, 1.5)
        x, y = page.spot(4.25)
        browser.run("document.querySelector('#strip canvas').addEventListener('pointerup', event => "
                    "Object.defineProperty(event, 'shiftKey', {value: true}), {capture: true})")
        browser.drag(x, y, page.spot(5.25)[0])
        found = rows(page)
        assert found["f"][1] == "0 s" and seconds(found["f"][0]) > 0.9 and found["g"][0] == "0 s", found
    finally:
        browser.close()


def stacks_tables():
    """main > work > [libx.so] three times > leaf, and main > other, of two processes."""
    return made_tables() | {
        "strings": ["", "audit", "main", "work", "leaf", "other", "/opt/app", "/opt/libx.so", "web", "db", "futex"],
        "processes": [[7, 8], [9, 9]],
        "locations": [[6, 0, 2, 0, 0], [6, 0, 3, 0, 0], [7, 0, "[libx.so]"], [7, 0, 4, 0, 0], [6, 0, 5, 0, 0]],
        "stacks": [[3, 2, 2, 2, 1, 0], [4, 0], [2, 1, 0]],
        "samples": [[0, 1, 71, RUNNING, 0, 0, 300, 3 * SECOND, 0], [1, 1, 71, SLEEPING, 10, 0, 200, 2 * SECOND, 0],
                    [2, 1, 72, RUNNING, 0, 0, 100, SECOND, 1]],
        "timelines": made_page.timelines_of(GRAIN_NS, [[0, [[0, 3000], [1, 2000]]], [0, [[2, 1000]]]]),
        "places": [0, 0, 0],
    }


def widest(page, share=0.02):
    """The names from the root to the leaf of the widest stack."""
    names = []
    for row in range(1, 10):
        name = page.at(row, share).splitlines()[0]
        if not page.browser.run("return document.querySelector('#tip').checkVisibility()"):
            break
        names.append(name)
    return names


def test_hide_and_focus(world):
    """By the keys h and f, or by buttons; runs of functions without names are one frame."""
    browser = Browser()
    try:
        page = open_made(world, browser, stacks_tables())
        assert widest(page) == ["main", "work", "[libx.so]", "leaf"], widest(page)
        page.search("libx")
        assert not browser.run("return document.querySelector('#hide').checkVisibility()")
        browser.keys("n")
        assert browser.run("return document.querySelector('#hide').checkVisibility()")
        browser.keys("h")
        page.search("")
        assert widest(page) == ["main", "work", "leaf"] and page.functions() == {"leaf": 3, "other": 2, "work": 1, "main": 0}
        assert browser.text("#unhide") == "✕ 1 hidden"
        place = browser.run("return location.href")
        page.click(2, 0.02)
        browser.click("#hide")
        assert widest(page) == ["main", "leaf"] and page.functions() == {"leaf": 3, "other": 2, "main": 1}
        page = TimePage(browser, place)
        assert page.functions() == {"leaf": 3, "other": 2, "work": 1, "main": 0}, "a link hides it too"
        browser.click("#unhide")
        assert page.functions()["[libx.so]"] == 1 and not browser.run("return document.querySelector('#unhide').checkVisibility()")
        page.search("^work$")
        browser.keys("n", "f")
        page.search("")
        assert page.path() == ["✕ all functions", "callees of work"] and widest(page) == ["work", "[libx.so]", "leaf"]
        place = browser.run("return location.href")
        browser.keys("Escape")
        assert page.path() == ["all"]
        page = TimePage(browser, place)
        assert page.path() == ["✕ all functions", "callees of work"]
        browser.keys("h")
        assert page.path() == ["✕ all functions", "callees of work"], "nothing is selected"
        page.click(1)
        browser.click("#focus")
        page.reset()
        assert page.path() == ["all"] and len(page.functions()) == 5 and not browser.run("return location.hash")
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_own_code(world):
    """The libraries and functions that start a thread can be left out; a stack of nothing else keeps its
    leaf."""
    tables = stacks_tables()
    tables["strings"][3] = "start_thread"
    tables["locations"][1][1] = 64
    tables["locations"][2][1] = tables["locations"][3][1] = 256
    browser = Browser()
    try:
        page = open_made(world, browser, tables)
        assert widest(page) == ["main", "start_thread", "[libx.so]", "leaf"]
        browser.keys("l")
        assert widest(page) == ["main", "other"] and page.functions() == {"main": 4, "other": 2}, page.functions()
        place = browser.run("return location.href")
        page = TimePage(browser, place)
        assert page.functions() == {"main": 4, "other": 2}
        page.search("^main$")
        browser.keys("n", "h")
        page.search("")
        assert page.functions() == {"leaf": 3, "other": 2, "[libx.so]": 1}, page.functions()
        page.reset()
        assert len(page.functions()) == 5 and not browser.run("return document.querySelector('#own').checked")
    finally:
        browser.close()


def test_names_filter(world):
    """Names in the legend and in the tables; another click shows all."""
    browser = Browser()
    try:
        page = open_made(world, browser, stacks_tables())
        every = page.functions()
        press(page, "#legend button", "futex")
        assert page.functions() == {"other": 2, "main": 0}
        assert browser.run("return document.activeElement.innerText").startswith("futex"), "the focus stays"
        browser.keys("Enter")
        assert page.functions() == every
        browser.choose("#colour", "process")
        press(page, "#legend button", "db/9")
        assert page.functions() == {"[libx.so]": 1, "work": 0, "main": 0}
        page.reset()
        browser.choose("#colour", "state")
        press(page, "#functions td.module button", "libx.so")
        assert "other" not in page.functions() and browser.run("return document.querySelector('#module').value") == "libx.so"
        page.reset()
        press(page, "#functions td.name button", "other")
        assert browser.run("return document.querySelector('#search').value") == "^other$" and page.column(4) == ["other"]
        press(page, "#functions td.name button", "other")
        assert not browser.run("return document.querySelector('#search').value") and len(page.column(4)) == 5
        browser.click("#threads-tab")
        press(page, "#threads td.process button", "db/9")
        browser.click("#functions-tab")
        assert page.functions() == {"[libx.so]": 1, "work": 0, "main": 0}
        page.reset()
        browser.click("#threads-tab")
        press(page, "#threads td.kind button", "futex")
        assert browser.run("return document.querySelector('#state').value") == "futex"
        page.reset()
        press(page, "#threads td.place button", "leaf")
        assert browser.run("return document.querySelector('#search').value") == "^leaf$"
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


OPTIONS = "return [...document.querySelector('#thread').options].map(o => [o.value, o.text])"
NAMES = "return [...document.querySelectorAll('#threads td.name button')].map(b => b.innerText)"


def test_a_goroutine_with_the_id_of_a_thread(world):
    """Both have the name of the process. In the data, the goroutine's id is negative."""
    tables = made_tables(("server", "server")) | {"births": [[71, 1, 4]], "idle": [[0, 1, -71]]}
    tables["samples"][2][1:3] = [1, -71]
    del tables["timelines"]
    thread, goroutine = "server/71", "server/goroutine 71"
    browser = Browser()
    try:
        page = open_made(world, browser, tables)
        assert page.functions() == {"f": 8.5, "g": 1.5}, "only the goroutine is idle"
        page.show_idle()
        assert page.functions() == {"f": 8.5, "h": 6, "g": 1.5}
        options = [(value, text.strip()) for value, text in browser.run(OPTIONS)]
        assert options == [("", "all"), ("server", "server (all 2)"),
                           (thread, f"{thread}, made by server in f"), (goroutine, goroutine)], options
        browser.choose("#thread", thread)
        assert page.functions() == {"f": 8.5, "g": 1.5}
        browser.choose("#thread", goroutine)
        assert page.functions() == {"h": 6}
        page = TimePage(browser, browser.run("return location.href"))
        assert page.functions() == {"h": 6}
        page.reset()
        browser.click("#threads-tab")
        assert browser.run(NAMES) == [thread, goroutine], browser.run(NAMES)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def waits_tables():
    """Three locks on the heap at one place, two of idle threads, one with a name; the named one has an owner for
    4 of 5 s."""
    tables = made_tables() | {
        "strings": ["", "worker", "idler", "futex", "serve", "take", "mutex", "mutex 0x55d0a0", "mutex 0x55d0c0",
                    "mutex app+0x120", "mutex 0x7f00", "mutex 0x7f40", "mutex g_lock", "holder", "work", "/opt/app", "app"],
        "processes": [[7, 16]], "locations": [[15, 0, 4, 0, 0], [15, 0, 5, 0, 0], [15, 0, 14, 0, 0]], "stacks": [[0], [1], [2]],
        "places": [0, 0, 0], "idle": [[0, 2, 80]], "findings": [],
        "waits": [[6, 7], [6, 8], [6, 9], [6, 10], [6, 11], [6, 12, 0, 13, 90, 3, 0], [6, 12]],
        "sample_waits": [1, 2, 3, 4, 5, 6, 7, 0],
    }
    sample = [[0, 1, 71, SLEEPING, FUTEX, 0, 100, SECOND, 0]] * 3 + [[0, 2, 80, SLEEPING, FUTEX, 0, 1000, 10 * SECOND, 0]] * 2
    sample += [[1, 1, 72, SLEEPING, FUTEX, 0, 400, 4 * SECOND, 0], [1, 1, 72, SLEEPING, FUTEX, 0, 100, SECOND, 0]]
    tables["samples"] = sample + [[2, 13, 90, RUNNING, 0, 0, 400, 4 * SECOND, 0]]
    del tables["timelines"]
    return tables


WAITS = ("return [...document.querySelectorAll('#waits tbody tr')].filter(r => r.cells.length > 1)"
         ".map(r => [...r.cells].slice(1, 4).map(c => c.innerText))")
PIXELS = """const c = document.querySelector('#graph canvas');
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
return arguments[0].map(row => {
  copy.drawImage(c, -c.width + 20, -(c.height - row * 18 + 3));
  return [...copy.getImageData(0, 0, 1, 1).data].join();
});"""


def test_waits_without_names(world):
    """They are grouped by the place that waits, and those of idle threads come last."""
    browser = Browser()
    try:
        page = open_made(world, browser, waits_tables())
        page.browser.click("#waits-tab")
        expected = [["5.00 s", "1", "g_lock"], ["3.00 s", "1", "3 without a name, in serve"]]
        assert browser.run(WAITS) == expected, browser.run(WAITS)
        page.show_idle()
        assert browser.run(WAITS) == expected + [["20.00 s", "1", "2 without a name, in serve"]], browser.run(WAITS)
        press(page, "#waits td.name button", "3 without")
        assert seconds(browser.text("#total")) == 3 and page.path()[1] == "waiters for 3 without a name, in serve"
        # Time lost for which no owner is known is not in its owners' graph, and the page says so.
        press(page, "#waits td.name button", "g_lock")
        assert seconds(browser.text("#total")) == 4
        assert "1.00 s of the 5.00 s lost are not here, as the owner was not known" in browser.text("#unit-text"), \
            browser.text("#unit-text")
        browser.mouse(2, 2)
        names = [page.at(row).splitlines()[0] for row in range(1, 6)]
        assert names == ["holder", "work", "[holds mutex g_lock]", "worker", "take"], names
        browser.mouse(2, 2)
        owner, waiter = browser.run(PIXELS, [2, 5])
        assert owner != waiter, (owner, waiter)
        assert "owners" in browser.text("#legend") and "futex" in browser.text("#legend")
        browser.choose("#waiting", "wait")
        assert "not here" not in browser.text("#unit-text") and seconds(browser.text("#total")) == 5
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def chain_tables(names=("client", "middle", "backend")):
    """The client waits from 2 s to 8 s for middle, which parses until 4 s, waits for the backend until 7 s, and is not
    seen any more. The backend waits for the client at first, and searches from 4 s on."""
    sample = [[0, 1, 71, SLEEPING, 4, 0, 600, 6 * SECOND, 0], [1, 2, 72, RUNNING, 0, 0, 200, 2 * SECOND, 0],
              [2, 2, 72, SLEEPING, 4, 0, 300, 3 * SECOND, 0], [3, 3, 73, RUNNING, 0, 0, 250, 5 * SECOND // 2, 0],
              [4, 3, 73, SLEEPING, 4, 0, 50, SECOND // 2, 0]]
    return made_tables() | {
        "strings": ["", *names, "read", "pipe", "pipe a", "pipe b", "pipe c", "ask", "parse", "query", "search", "rest",
                    "/opt/app", "app"],
        "processes": [[7, 15]], "locations": [[14, 0, name, 0, 0] for name in range(9, 14)],
        "stacks": [[i] for i in range(5)], "places": [0] * 5, "idle": [], "findings": [], "samples": sample,
        "waits": [[5, 6], [5, 7], [5, 8]], "wakers": [[2, 1, 72, 2], [3, 1, 73, 4], [1, 1, 71, 1]],
        "sample_waits": [1, 0, 2, 0, 3],
        "timelines": made_page.timelines_of(GRAIN_NS, [[2000, [[0, 6000]]], [2000, [[1, 2000], [2, 3000]]],
                                                       [4000, [[4, 500], [3, 2500]]]]),
    }


CHAIN = """const lines = (list, depth) => [...list.children].flatMap(li => [
  `${' '.repeat(depth)}${[...li.childNodes].filter(n => n.nodeName !== 'UL').map(n => n.textContent).join(' ')}`,
  ...[...li.children].filter(c => c.nodeName === 'UL').flatMap(ul => lines(ul, depth + 1))]);
const first = document.querySelector('#waits tr:not([hidden]) td > ul.chain');
return first ? lines(first, 0) : [];"""


def test_the_chain_of_a_wait(world):
    """A click on a thread's wait shows what it depended on: what the thread that ended it did meanwhile, and so on."""
    browser = Browser()
    try:
        page = open_made(world, browser, chain_tables())
        browser.click("#threads-tab")
        press(page, "#threads td.place button", "(pipe a)")
        assert browser.run("return document.querySelector('#waits').checkVisibility()")
        assert browser.run("return document.querySelector('#thread').value") == "client"
        expected = ["3.00 s middle: read in query, for pipe b, woken by backend",
                    " 2.50 s backend: running in search",
                    " 500 ms backend: read in rest, for pipe c, woken by client",
                    "2.00 s middle: running in parse", "1.00 s middle: [not sampled then]"]
        assert browser.run(CHAIN) == expected, browser.run(CHAIN)
        # Within the time that is selected.
        page.drag(1.9, 5)
        lines = {text: seconds(f"{number} {unit}") for number, unit, text in
                 (re.fullmatch(r" *([\d.]+) (m?s) (.*)", line).groups() for line in browser.run(CHAIN))}
        wanted = {"middle: running in parse": 2, "middle: read in query, for pipe b, woken by backend": 1,
                  "backend: running in search": 0.5, "backend: read in rest, for pipe c, woken by client": 0.5}
        assert set(lines) == set(wanted) and all(abs(lines[text] - wanted[text]) < 0.05 for text in wanted), lines
        page.reset()
        # Names are data of the target, and pages without the order of time have no chains.
        page = open_made(world, browser, chain_tables((HOSTILE, HOSTILE, "backend")))
        browser.click("#threads-tab")
        press(page, "#threads td.place button", "(pipe a)")
        assert browser.run(CHAIN)[0].startswith(f"3.00 s {HOSTILE}: read"), browser.run(CHAIN)
        assert browser.run("return document.images.length") == 0
        tables = chain_tables()
        del tables["timelines"]
        page = open_made(world, browser, tables)
        browser.click("#threads-tab")
        press(page, "#threads td.place button", "(pipe a)")
        assert browser.run(CHAIN) == [] and "middle" in browser.text("#waits"), browser.text("#waits")
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_page_of_one_thread_and_of_others_fragments(world):
    """The fragment of a link to another page is ignored, and does no harm."""
    tables = made_tables()
    one = tables | {"samples": tables["samples"][:2],
                    "timelines": made_page.timelines_of(GRAIN_NS, [[0, [[0, 4000], [1, 1500], [0, 4500]]]])}
    browser = Browser()
    try:
        page = open_made(world, browser, one, "one.html")
        assert page.samples() == 1000 and page.names() == [] and browser.text("#strip-names span") == "1 thread"
        browser.keys("x")
        assert rows(page) == {"f": ("8.50 s", "8.50 s", "0 s"), "g": ("1.50 s", "1.50 s", "0 s")}
        for fragment in ("thread=nobody/9&state=epoll_wait&module=libz.so&process=x", "before=all%26thread%3Dnobody&hide=17",
                         "hide=%5B%22nothing%22%2C5%2Cnull%5D&focus=nowhere", "hide=%7B%7D", "before=time%3D90-99%26label%3Da",
                         "time=NaN-1&colour=label%3Aroute&unit=fortnights&constructor=1&__proto__=2", "%", "&&=&=",
                         f"search={HOSTILE}&hide=%5B%22{HOSTILE}%22%5D"):
            page = open_made(world, browser, one, "one.html", f"#{fragment}")
            assert page.samples() == 1000 if "before" not in fragment else "10.00 s before" in browser.text("#total"), fragment
            page.reset()
            assert page.functions() == {"f": 8.5, "g": 1.5}, fragment
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_a_waker_whose_place_is_not_known(world):
    """The thread's waits are blamed on it in all tables."""
    browser = Browser()
    try:
        tables = chain_tables()
        tables["wakers"] = [row[:3] + [0] for row in tables["wakers"]]
        page = open_made(world, browser, tables)
        browser.click("#threads-tab")
        browser.choose("#waiting", "blame")
        names = browser.run("return [...document.querySelectorAll('#threads td.name')].map(td => td.innerText.trim())")
        assert sorted(names) == ["backend/73", "client/71", "middle/72"], names
        assert "waiting=blame" in browser.run("return location.hash"), "what is written after the tables"
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_names_that_are_searched_for_are_found(world):
    """Even if frames show more than the name, and if findings mark it."""
    browser = Browser()
    try:
        tables = made_tables()
        tables["findings"] = [["f is hot", "", "f_[j]"]]
        tables["strings"] = [*tables["strings"], "/src/app.c"]
        tables["locations"] = [[7, 0, name, 8, 10 + name] for name in (4, 5, 6)]
        page = open_made(world, browser, tables)
        browser.click("#findings button")
        assert browser.run("return document.querySelector('#search').value") == "^f$"
        assert list(page.functions()) == ["f"], page.functions()
        browser.click("#lines")
        assert len(page.functions()) == 1, page.functions()
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def test_a_waker_that_is_no_thread(world):
    """A click on it shows the waits that it ended; what it did is not known."""
    browser = Browser()
    try:
        tables = chain_tables(("client", "middle", "network"))
        tables["wakers"] = [[3, 0, 0, 0]] * 3
        page = open_made(world, browser, tables)
        browser.click("#waits-tab")
        press(page, "#waits td.owner button", "network")
        assert browser.text("#total").startswith("6.00 s"), browser.text("#total")
        assert browser.run("return document.querySelector('#waiting').value") == "wait"
    finally:
        browser.close()


def lines_tables():
    tables = made_tables()
    tables["strings"] = [*tables["strings"], "/src/app.c"]
    tables["locations"] = [[7, 0, name, 8, 10 + name] for name in (4, 5, 6)]
    return tables


def test_a_function_that_is_focused_with_and_without_lines(world):
    browser = Browser()
    try:
        page = open_made(world, browser, lines_tables())
        page.search("^f$")
        browser.keys("n", "f")
        page.search("")
        assert browser.text("#total").startswith("8.50 s"), browser.text("#total")
        browser.click("#lines")
        assert browser.text("#total").startswith("8.50 s"), browser.text("#total")
        assert page.at(1).startswith("f ("), page.at(1)
        page = open_made(world, browser, lines_tables(), fragment="#focus=f&lines=true")
        assert browser.text("#total").startswith("8.50 s"), browser.text("#total")
    finally:
        browser.close()


def test_threads_of_blamed_waits(world):
    """The table has what the graph has."""
    browser = Browser()
    try:
        page = open_made(world, browser, waits_tables())
        browser.click("#threads-tab")
        browser.choose("#waiting", "blame")
        found = browser.run("return [...document.querySelectorAll('#threads tbody tr')].map(r => r.innerText)")
        assert len(found) == 1 and "holder" in found[0] and found[0].count("4.00 s") == 1, found
        assert browser.text("#total").startswith("4.00 s")
    finally:
        browser.close()


def test_links_have_all_that_is_chosen(world):
    browser = Browser()

    def hash_after(selector, value):
        browser.choose(selector, value)
        return browser.run("return location.hash")
    try:
        page = open_made(world, browser)
        assert "view=icicle" in hash_after("#view", "icicle")
        assert "unit=threads" in hash_after("#unit", "threads")
        page.reset()
        page = open_made(world, browser, name="compared.html", fragment="#before=thread%3Daudit&thread=idler")
        assert browser.text("#subject") and "two recordings" not in browser.text("#kind"), browser.text("#subject")
        assert "colour=state" in hash_after("#colour", "state")
        page = TimePage(browser, browser.run("return location.href"))
        assert browser.run("return document.querySelector('#colour').value") == "state"
        page.reset()
        assert browser.text("#subject") and "two recordings" not in browser.text("#kind")
        # Choices that this page does not offer are none.
        for fragment in "width=before", "waiting=blame":
            page = open_made(world, browser, name="offered.html", fragment=f"#{fragment}")
            assert page.functions() == {"f": 8.5, "h": 6, "g": 1.5}, fragment
            assert page.at(1, 0.1).startswith("f\n"), fragment
        # Equal parts of different lengths: nothing has changed.
        page = open_made(world, browser, name="equal.html",
                         fragment="#time=0-0.9&before=time%3D0-1.4&normalized=true")
        assert browser.text("#total").endswith(": 0 s"), browser.text("#total")
        assert browser.run(PIXEL, 1, 0.5) == "grey"
    finally:
        browser.close()


def test_own_code_of_a_module(world):
    """The time in a module goes to its callers, even if the module is left out."""
    tables = stacks_tables()
    tables["strings"][3] = "start_thread"
    tables["locations"][1][1] = 64
    tables["locations"][2][1] = tables["locations"][3][1] = 256
    browser = Browser()
    try:
        page = open_made(world, browser, tables)
        browser.choose("#module", "libx.so")
        whole = browser.text("#total")
        browser.keys("l")
        assert browser.text("#total") == whole, (whole, browser.text("#total"))
        assert page.functions() and set(page.functions()) <= {"main", "other"}, page.functions()
    finally:
        browser.close()


def test_what_sleeps_in_no_known_call(world):
    """The legend distinguishes it from waits in a call, and so does a click on it."""
    browser = Browser()
    try:
        page = open_made(world, browser)
        press(page, "#legend button", "sleeping")
        assert page.functions() == {"h": 6}, page.functions()
        press(page, "#legend button", "sleeping")
        # The focus stays where it was when the table is filled anew.
        press(page, "#functions td.name button", "f")
        assert browser.run("return document.activeElement.innerText") == "f"
        browser.keys("Enter")
        assert len(page.functions()) == 3, page.functions()
        # A selection does not go beyond the end.
        page = open_made(world, browser, fragment="#time=9.95-10")
        browser.run("document.querySelector('#strip-time').focus()")
        browser.keys("Shift+ArrowRight")
        assert page.selected().startswith("9.950 s to 10.000 s"), page.selected()
    finally:
        browser.close()

"""The page of the difference of two recordings, in a real browser."""

import os
import re

from harness import users_build
from page import Page, record, share
from webdriver import Browser


@users_build
def test_page_of_a_difference(world):
    """One thread that computes and twenty that sleep, then four and one. Even if the machine made
    one of the recordings twice as long, it is known which has more of what."""
    after = world.path("after.fgprof")
    os.rename(record(world, "workers", 60, 4, 1, ending="fgprof"), after)
    before = record(world, "workers", 60, 1, 20, ending="fgprof")
    hostile = record(world, "hostile", 60, ending="fgprof")
    browser = Browser()
    try:
        page = difference(world, browser, before, after, "-f", "html")
        check_difference(page)
        check_normalized(difference(world, browser, before, after, "-n"))
        check_hostile_difference(difference(world, browser, before, hostile))
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


# What in the table does not fit its place; whether each name's tooltip has all of it.
TABLE = """const table = document.querySelector('#functions'), cells = [...table.querySelectorAll('td')];
const cut = cells.filter(c => [c, ...c.querySelectorAll('.filter')].some(e => e.scrollWidth > e.clientWidth));
return [table.scrollWidth - table.clientWidth, cut.map(c => c.className.split(' ')[0]),
        cells.every(c => !c.classList.contains('name') || c.title === c.textContent),
        [...table.querySelectorAll('th')].filter(c => c.scrollWidth > c.clientWidth).length];"""


@users_build
def test_table_in_small_windows(world):
    """The table fits: only names are cut."""
    recording = record(world, "hostile", 60, ending="fgprof")
    for width in 600, 1200:
        browser = Browser(width, 800)
        try:
            page = difference(world, browser, recording, recording)
            for unit in "total", "threads":
                page.browser.choose("#unit", unit)
                page.column(6)
                too_wide, cut, is_whole, heads_cut = browser.run(TABLE)
                assert too_wide <= 0 and set(cut) <= {"name", "module"}, (width, unit, too_wide, cut)
                assert is_whole and not heads_cut, (width, unit, heads_cut)
                assert "name" in cut or width > 600, "a long name ends in an ellipsis"
        finally:
            browser.close()


def difference(world, browser, before, after, *options):
    path = world.path("difference.html")
    done = world.fgprof("diff", before, after, "-o", path, *options)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done
    return Page(browser, path)


def seconds(text):
    """The seconds of the first time in a text, with its sign."""
    sign, number, unit = re.search(r"([+\u2212]?)([\d.]+) (s|ms|µs)\b", text).groups()
    return float(number) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit] * (-1 if sign == "\u2212" else 1)


def rows(page):
    """The table's rows, {function: [self before, after, difference, total before, after,
    difference]}."""
    columns = [page.column(i) for i in range(7)]
    return {name: [seconds(column[i]) for column in columns[:6]]
            for i, name in enumerate(columns[6])}


# The pixel in the middle of a frame's left end.
PIXEL = """const c = document.querySelector('#graph canvas'), [row, share] = arguments;
const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
copy.drawImage(c, -Math.round(share * c.width), -(c.height - row * 18 - 3));
const [r, g, b] = copy.getImageData(0, 0, 1, 1).data;
return r > b + 12 ? 'red' : b > r + 12 ? 'blue' : 'grey';"""


def colour_of(page, name):
    """The colour of the first frame with that name above the widest one, and its tooltip."""
    for row in range(1, 9):
        for part in (0.02, 0.3, 0.6, 0.75, 0.9):
            tip = page.at(row, part)
            if tip.startswith(name + "\n"):
                return page.browser.run(PIXEL, row, part), tip
    raise AssertionError(name + " is not in the graph")


def check_difference(page):
    found = rows(page)
    assert found["in_sleep"][5] < -1 and found["spin"][5] > 0.5, found
    for row in found.values():
        assert abs(row[4] - row[3] - row[5]) < 0.03 and abs(row[1] - row[0] - row[2]) < 0.03, row
    page.browser.click("th[data-key=totalDifference] button")
    differences = [seconds(text) for text in page.column(5)]
    assert differences == sorted(differences, reverse=True) and differences[0] > 0.5
    page.browser.click("th[data-key=totalDifference] button")
    assert [seconds(text) for text in page.column(5)] == sorted(differences)
    colour, tip = colour_of(page, "in_sleep")
    assert colour == "blue" and "\ndifference" in tip and "points" in tip, (colour, tip)
    lines = {line.split()[0]: line for line in tip.splitlines() if line.split()}
    assert seconds(lines["before"]) - seconds(lines["after"]) > 1, tip
    colour, tip = colour_of(page, "in_spin")
    assert colour == "red" and seconds(lines["difference"]) < -1, (colour, tip)
    assert "grown by up to" in page.browser.text("#legend")
    page.browser.choose("#colour", "state")
    assert "clock_nanosleep" in page.browser.text("#legend")
    page.browser.choose("#colour", "difference")
    after = share(page.search("^in_sleep$"))
    page.browser.choose("#width", "before")
    assert share(page.browser.text("#matched")) > after + 20, "before, most was sleep"
    page.search("")
    assert page.browser.run("return document.querySelectorAll('#summary dl').length") == 2
    commands = page.browser.text("#commands").splitlines()
    assert commands[::2] == ["Before recorded by", "After recorded by", "Page made by"], commands
    for command in commands[1:4:2]:
        assert re.fullmatch(r"fgprof-c attach -p \d+ -d 1s -q -o \S+\.fgprof", command), commands
    assert re.fullmatch(r"fgprof-c diff \S+ \S+ -o \S+ -f html", commands[5]), commands


def check_normalized(page):
    total = page.browser.text("#total")
    before, after = re.match(r"(.*) before, (.*) after", total).groups()
    assert before == after and total.endswith(": 0 s"), total
    assert page.browser.run("return document.querySelector('#normalized').checked")
    page.browser.click("#normalized")
    before, after = re.match(r"(.*) before, (.*) after", page.browser.text("#total")).groups()
    assert seconds(before) > seconds(after) + 0.5, (before, after)


def check_hostile_difference(page):
    """Names are text; and frames that exist only before are found by their own widths."""
    symbol = "</script><img src=x onerror=document.title='run'>"
    assert symbol in page.column(6), page.column(6)
    assert "only before" in page.browser.text("#unit-text")
    assert share(page.search("^in_spin$")) == 0
    page.browser.choose("#width", "before")
    assert share(page.browser.text("#matched")) > 2
    assert page.browser.run("return [document.title, document.images.length]") == ["fgprof-c", 0]

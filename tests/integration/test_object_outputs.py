"""Profiles of objects: each format, checked by its real readers; what a recording can be turned into, and
what is refused. The recordings have a real program's stacks, with made-up figures."""

import collections
import json
import os
import re

import made_objects
from harness import flame_graph, folded, need, tool, users_build
from page import Page
from webdriver import Browser

RATE = 512 << 10
SIZES = [16, 516, 4096, 1 << 20, 3 << 20]
TYPES = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden")


def amounts_of_heap(i):
    """One stack that has gone entirely is among them."""
    return SIZES[i % len(SIZES)], 10 * (i + 1), 20 if i == 1 else 3 * i


KINDS = {
    "heap": (made_objects.HEAP, amounts_of_heap, RATE, None),
    "growth": (made_objects.GROWTH, lambda i: (4096, 10 * (i + 1), 3 * i), 0, None),
    "threadcreate": (made_objects.THREADCREATE, lambda i: (0, i + 1, 0), 0, None),
    "open files": (made_objects.CUSTOM, lambda i: (0, i + 4, 3), 0, "open files"),
}


def recording(world, kind):
    """A recording of this kind, made once."""
    path, time = world.path(f"{kind}.fgprof"), world.path("time.fgprof")
    if not os.path.exists(time):
        with world.running("states", 60) as target:
            # Stopped threads have a sample for each stack, whoever had the CPUs that they waited for.
            world.attach(target, "-o", time, "--capture=ptrace", duration="1s")
    if not os.path.exists(path):
        number, amounts, rate, name = KINDS[kind]
        made_objects.make_objects(time, path, number, amounts, rate, name)
    return path


def converted(world, kind, ending, *arguments):
    path = world.path(kind.replace(" ", "-") + ending)
    done = world.fgprof("convert", recording(world, kind), "-o", path, *arguments)
    assert done.returncode == 0 and not done.stderr, done
    return path


def pprof(world, *arguments):
    """The head of pprof's output, and {function: its own amount}."""
    text = tool("go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", *arguments)
    rows = re.findall(r"^ *([-\d.]+)([kMG]?B)? +[-\d.]+% +[\d.]+% +\S+ +[-\d.]+% +(.*)$", text, re.M)
    scale = {"": 1, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    own = collections.Counter()
    for amount, unit, name in rows:
        own[name.removesuffix(" (inline)")] += float(amount) * scale[unit]
    return text, own


def sample_values(raw):
    """The values of all samples in what pprof -raw prints."""
    text = raw[raw.index("Samples:"):raw.index("Locations")]
    return sorted(tuple(map(int, row.split())) for row in
                  re.findall(r"^ +((?:-?\d+ +)*-?\d+): [\d ]+$", text, re.M))


def test_pprof_and_google_pprof_agree_on_heap(world):
    """On all four values: those of the text, whose readers scale the samples, and those of profile.proto."""
    need("google-pprof")
    proto, text = converted(world, "heap", ".pb.gz"), converted(world, "heap", ".txt")
    raw = [tool("go", "tool", "pprof", "-symbolize=none", "-raw", path) for path in (proto, text)]
    assert "PeriodType: space bytes\nPeriod: 524288\n" in raw[0]
    for one in raw:
        assert re.search(r"alloc_objects/count alloc_space/bytes inuse_objects/count "
                         r"inuse_space/bytes", one), one[:500]
    assert "inuse_space/bytes[dflt]" in raw[0] and "bytes:[1048576 bytes]" in raw[0]
    values = [sample_values(one) for one in raw]
    assert len(values[0]) == len(values[1]) > 5, values
    # Each row of the text is scaled and rounded by itself, and pprof adds up those of one stack.
    rows = len(re.findall(r"^ *\d+: \d+ \[\d+: \d+\] @ 0x", open(text).read(), re.M))
    assert rows >= len(values[1])
    allowed = 1 + rows - len(values[1])
    for scaled, read in zip(*values):
        assert all(abs(a - b) <= allowed for a, b in zip(scaled, read)), (scaled, read, allowed)
    program = world.fixture("states")
    for name in TYPES:
        said, own = pprof(world, "-sample_index=" + name, proto)
        assert f"Type: {name}\n" in said, said
        said = tool("google-pprof", "--text", "--" + name, program, text)
        rows = re.findall(r"^ +([\d.]+) +([\d.]+)% +[\d.]+% +[\d.]+ +[\d.]+% (\w+)$", said, re.M)
        shares = {function: float(share) for _, share, function in rows}
        share = 100 * own["in_spin"] / sum(own.values())
        assert abs(shares["in_spin"] - share) < 0.1 and share > 1, (name, share, said)


def test_all_allocations_are_in_use(world):
    """If they were equal, pprof would take the two pairs of the head for one."""
    source, text = world.path("kept-all.fgprof"), world.path("kept-all.txt")
    recording(world, "heap")
    made_objects.make_objects(world.path("time.fgprof"), source, made_objects.HEAP,
                              lambda i: (516, 10 * (i + 1), 0), RATE)
    assert world.fgprof("convert", source, "-o", text).returncode == 0
    raw = tool("go", "tool", "pprof", "-symbolize=none", "-raw", text)
    assert "inuse_space/bytes" in raw and all(len(row) == 4 for row in sample_values(raw)), raw[:500]


def test_which_value_is_shown_first(world):
    for arguments, name in ((), "inuse_space"), (("--kind", "allocs"), "alloc_space"):
        path = world.path(name + ".pb.gz")
        assert world.fgprof("convert", recording(world, "heap"), "-o", path, *arguments).returncode == 0
        assert f"Type: {name}\n" in pprof(world, path)[0]
    # What is kept as the one can be written as the other.
    kept = world.path("allocs.fgprof")
    assert world.fgprof("convert", recording(world, "heap"), "--kind", "allocs", "-o",
                        kept).returncode == 0
    stacks = [world.fgprof("convert", *arguments).stdout for arguments in (
        [kept], [recording(world, "heap"), "--kind", "allocs"], [kept, "--kind", "heap"],
        [recording(world, "heap")])]
    assert stacks[0] == stacks[1] != stacks[2] == stacks[3], stacks


def test_pprof_reads_the_other_kinds(world):
    program = world.fixture("states")
    for kind, name, period in (("growth", "rss", "faults"), ("threadcreate",) * 3,
                               ("open files",) * 3):
        proto, text = converted(world, kind, ".pb.gz"), converted(world, kind, ".txt")
        said, own = pprof(world, proto)
        assert f"Type: {name}\n" in said and own["in_spin"] > 0, said
        raw = tool("go", "tool", "pprof", "-raw", proto)
        assert f"PeriodType: {period} count\nPeriod: 1\n" in raw, raw[:300]
        # The map at its end is there for symbols.
        said, own_of_text = pprof(world, program, text)
        assert own_of_text["in_spin"] == own["in_spin"], (own, said)
    said = tool("google-pprof", "--text", program, converted(world, "growth", ".txt"))
    assert re.search(r"^ +[\d.]+ +[\d.]+% .* in_spin$", said, re.M), said


def test_folded_stacks(world):
    """Bytes for allocations and pages, numbers for the others; and threads under their names."""
    totals = {}
    for kind in KINDS:
        path = converted(world, kind, ".folded")
        stacks = folded(open(path).read())
        totals[kind] = sum(stacks.values())
        drawn = re.search(r"<title>all \(([\d,]+) samples, 100%\)", flame_graph(path))[1]
        assert int(drawn.replace(",", "")) == totals[kind], (kind, drawn, totals)
        roots = {stack[0] for stack in stacks}
        assert ("spinning" in roots) == (kind == "threadcreate"), roots
    proto = tool("go", "tool", "pprof", "-raw", converted(world, "heap", ".pb.gz"))
    assert totals["heap"] == sum(row[3] for row in sample_values(proto))
    assert totals["growth"] % 4096 == 0 and totals["threadcreate"] < 1000


def test_report(world):
    text = world.fgprof("report", recording(world, "heap")).stdout
    assert re.match(r"fgprof-c report: heap of fixture-states/\d+ on \S+; \d+\.\d\d s\n", text), text
    assert "\nIn use, by stack:\n" in text and "in_spin\n" in text, text
    command = re.search(r"^  fgprof-c (convert \S+ -o )(heap\.html)$", text, re.M)
    page = world.path("next.html")
    assert world.fgprof(*command[1].split(), page).returncode == 0 and os.path.exists(page)
    report = json.loads(world.fgprof("report", "--json", recording(world, "growth")).stdout)
    assert report["kind"] == "growth" and report["most"]["stacks"][0]["frames"], report


def test_two_recordings(world):
    before, after = (os.path.join(GOLDEN, name) for name in ("heap.fgprof", "heap-later.fgprof"))
    page, report = world.path("growth.html"), world.path("growth.report")
    assert world.fgprof("diff", before, after, "-o", page).returncode == 0
    assert world.fgprof("diff", before, after, "-o", report).returncode == 0
    assert "\nGrown, by stack:\n" in open(report).read()
    # pprof finds the same.
    protos = [world.path(name) for name in ("before.pb.gz", "after.pb.gz")]
    for source, proto in zip((before, after), protos):
        assert world.fgprof("convert", source, "-o", proto).returncode == 0
    _, own = pprof(world, "-symbolize=none", "-diff_base", *protos)
    text = open(report).read()
    assert round(own["parse"] / 2**20, 1) == float(re.search(r"\+([\d.]+) MiB .* main > parse$", text,
                                                             re.M)[1]), (own, text)
    # One is of all that was allocated: what is compared is of the same kind.
    allocs = world.path("later-allocs.fgprof")
    assert world.fgprof("convert", after, "--kind", "allocs", "-o", allocs).returncode == 0
    assert world.fgprof("diff", before, allocs).stdout == world.fgprof("diff", before, after).stdout


def test_what_can_not_be_is_refused(world):
    heap, growth = recording(world, "heap"), recording(world, "growth")
    time = world.path("time.fgprof")
    for arguments, words in (
            (["convert", heap, "-f", "speedscope"], "this format shows time"),
            (["convert", heap, "--on-cpu"], "--on-cpu and --off-cpu are for time"),
            (["convert", heap, "--elapsed"], "--elapsed is for time"),
            (["convert", heap, "--kind", "cpu"], "can't be shown as --kind cpu"),
            (["convert", heap, "--kind", "growth"], "can't be shown as --kind growth"),
            (["convert", time, "--kind", "heap"], "is a profile of time, which can't be shown as"),
            (["convert", time, "--kind", "threads"], "heap, allocs, growth or threadcreate"),
            (["diff", heap, time], "one is a profile of objects, the other of time"),
            (["diff", time, heap, "-f", "html"], "one is a profile of objects, the other of time"),
            (["diff", heap, growth], "they are of two kinds"),
            (["diff", heap, heap, "--on-cpu"], "are for time"),
            (["diff", heap, heap, "-f", "pprof"], "give folded, html or report")):
        done = world.fgprof(*arguments)
        assert done.returncode != 0 and not done.stdout and words in done.stderr, (arguments, done)
        assert done.stderr.count("\n") == 1, done.stderr


@users_build
def test_page(world):
    browser = Browser()
    try:
        check_heap(world, Page(browser, converted(world, "heap", ".html")))
        check_threads(Page(browser, converted(world, "threadcreate", ".html")))
        page = Page(browser, converted(world, "open files", ".html"))
        assert browser.text("#kind") == "open files", browser.text("#kind")
        check_difference(world, browser)
        console = browser.console()
        assert not console, console
    finally:
        browser.close()


def options(page, selector):
    return page.browser.run("return [...document.querySelector(arguments[0]).options]"
                            ".filter(o => !o.hidden).map(o => o.text)", selector)


def is_shown(page, selector):
    return page.browser.run("return document.querySelector(arguments[0]).checkVisibility()", selector)


def check_heap(world, page):
    """Each of the four values can be shown, with its unit; there is no mention of time."""
    proto = converted(world, "heap", ".pb.gz")
    browser = page.browser
    assert browser.text("#kind") == "allocated memory"
    assert options(page, "#unit") == ["bytes in use", "objects in use", "bytes allocated",
                                      "objects allocated"]
    assert re.fullmatch(r"[\d.]+ MiB, [\d\u202f]+ objects in use", browser.text("#total"))
    assert "bytes in use, estimated from one allocation in 512.0 KiB" in browser.text("#unit-text")
    assert not is_shown(page, "#state") and "by state" not in options(page, "#colour")
    tip = page.at(0)
    assert re.search(r"MiB · [\d\u202f]+ objects in use · 100.0 % of all", tip), tip
    assert "thread" not in browser.text("#unit-text") and "tick" not in browser.text("#summary")
    in_use = check_shares(page, proto, "inuse_space")
    browser.choose("#unit", "0")
    assert re.fullmatch(r"[\d\u202f]+", browser.text("#total")), browser.text("#total")
    objects = check_shares(page, proto, "alloc_objects")
    assert any(abs(objects[name] - in_use[name]) > 1 for name in in_use), (objects, in_use)
    assert all(re.fullmatch(r"[\d\u202f]+", text) for text in page.column(2)), page.column(2)
    browser.choose("#unit", "3")
    assert check_shares(page, proto, "inuse_space") == in_use


def check_shares(page, proto, value):
    """Each function's share of the value that the page shows, as in pprof, which leaves out functions without
    any. How large they are depends on the recording: on how many samples it has, and in which order."""
    text = tool("go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0",
                "-sample_index=" + value, proto)
    expected = {name: float(share) for share, name in re.findall(r" ([\d.]+)%  (\w+)$", text, re.M)}
    shares = {name: share(page, name) for name in ("in_spin", "in_sleep", "in_lock", "in_pipe")}
    assert all(abs(shares[name] - expected.get(name, 0)) < 0.1 for name in shares), (shares, expected)
    return shares


def share(page, name):
    return float(re.match(r"([\d.]+) % matched", page.search(f"^{name}$"))[1])


def check_threads(page):
    assert options(page, "#unit") == ["threads made"]
    assert is_shown(page, "#thread") and "spinning" in options(page, "#thread")


def check_difference(world, browser):
    path = world.path("difference.html")
    before, after = (os.path.join(GOLDEN, name) for name in ("heap.fgprof", "heap-later.fgprof"))
    assert world.fgprof("diff", before, after, "-o", path).returncode == 0
    page = Page(browser, path)
    assert browser.text("#total") == "37.0 MiB before, 68.8 MiB after: +31.8 MiB"
    assert "Widths are the bytes in use after" in browser.text("#unit-text")
    changes = dict(zip(page.column(6), page.column(2)))
    assert changes == {"parse": "+27.5 MiB", "begin": "+5.8 MiB", "main": "0 B",
                       "fill_cache": "\u22121.5 MiB"}, changes
    browser.choose("#unit", "2")
    assert "objects in use" in browser.text("#unit-text")
    assert dict(zip(page.column(6), page.column(2)))["parse"] == "+55\u202f911"

"""The HTML page on a made-up profile in headless Chromium, and d3-flame-graph beside it."""

import json
import os
import statistics
import sys

import made_page  # of the integration tests, as webdriver is
import programs
import tables
from webdriver import Browser

TITLE = "How smooth the page is"
TOOLS = ("chromium", "chromedriver")
ROUNDS = 20
D3_ROUNDS = 2  # each takes seconds
OURS_RENDER = "return performance.getEntriesByName('fgprof-render')[0].duration"

D3_PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>%s</style>
<div id="box" style="height: 70vh; overflow-y: auto"><div id="chart"></div></div>
<script>%s</script><script>%s</script><script type="application/json" id="data">%s</script>
<script>
const begin = performance.now();
const chart = (flamegraph.default || flamegraph)().width(1250).transitionDuration(0).minFrameSize(0.5);
d3.select('#chart').datum(JSON.parse(document.querySelector('#data').textContent)).call(chart);
document.body.getBoundingClientRect();
window.render = performance.now() - begin;
window.chart = chart;
</script>"""

# Each frame is an SVG group with a rectangle; the last drawn is no special one.
D3_BEGIN = """
const box = document.querySelector('#box');
const frames = () => [...document.querySelectorAll('#chart g.frame')];
const root = frames().find(frame => !d3.select(frame).datum().parent);
const widest = () => frames().filter(frame => d3.select(frame).datum().depth === 1)
  .sort((a, b) => d3.select(b).datum().value - d3.select(a).datum().value)[0];
const child = widest(), some = frames();
const fire = (frame, name) => frame.dispatchEvent(new MouseEvent(name, {bubbles: true}));
"""
D3 = {
    "zoom": "chart.zoomTo(d3.select(i % 2 ? child : root).datum());",
    "scroll": "box.scrollTop = box.scrollHeight - 100 * (i % 8);",
    "hover": "fire(some[17 * i % some.length], 'mouseover');",
    "search": "chart.search('function_' + i);",
}
D3_RENDER = "return window.render"


def d3_tree(node):
    """d3-flame-graph's {name, value, children}."""
    children = [d3_tree(child) for child in node[1]]
    return {"name": f"namespace::function_{node[0]}", "children": children,
            "value": node[2] + sum(child["value"] for child in children)}


def measure_once(path, render, begin, actions, rounds):
    browser = Browser(1300, 1000)
    try:
        browser.open(path)
        results = {"render": browser.run(render)}
        for name, action in actions.items():
            results[name] = made_page.cpu_ms(browser, begin, action, rounds)
        return results
    finally:
        browser.close()


def measure(world, *arguments):
    results = [measure_once(*arguments) for _ in range(world.pick(3, 1))]
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


def write_d3_page(directory, path, tree):
    def read(name):
        with open(os.path.join(directory, "node_modules", name)) as file:
            return file.read()

    flame = "d3-flame-graph/dist/d3-flamegraph"
    with open(path, "w") as file:
        file.write(D3_PAGE % (read(flame + ".css"), read("d3/dist/d3.min.js"),
                              read(flame + ".umd.min.js"), json.dumps(d3_tree(tree))))


def rows_of(world, frames):
    tree = made_page.make_tree(frames)
    path = world.path("page.html")
    made_page.write_page(world.fgprof, path, tree)
    name = f"{frames:,} frames"
    found = {f"{name}, the page": measure(world, path, OURS_RENDER, made_page.BEGIN,
                                          made_page.ACTIONS, ROUNDS)}
    if world.options.d3:
        path = world.path("d3.html")
        write_d3_page(world.options.d3, path, tree)
        found[f"{name}, d3-flame-graph"] = measure(world, path, D3_RENDER, D3_BEGIN, D3, D3_ROUNDS)
    columns = ["render", *made_page.ACTIONS]
    return columns, [[title, *(f"{values[column]:.1f}" if column in values else "-"
                               for column in columns)] for title, values in found.items()]


# Half of the time is selected at first, and moved.
TIME_BEGIN = made_page.BEGIN + """
const strip = document.querySelector('#strip-time');
const press = key => strip.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
"""
TIME_ACTIONS = {
    "zoom": made_page.ACTIONS["zoom"],
    "filter": made_page.ACTIONS["filter"],
    "select": "press(i % 2 ? 'ArrowRight' : 'ArrowLeft');",
}
TIME_COLUMNS = ["render", *TIME_ACTIONS, "compare"]
THREADS, MINUTES = 1000, 30


def time_rows_of(world):
    """The page of many threads, with as many runs as a recording keeps (count/timeline.h)."""
    rows = []
    for runs in world.pick([1 << 20, 4 << 20], [1 << 18]):
        programs.progress(f"  {runs} runs")
        path = world.path("threads.html")
        made_page.write_data(world.fgprof, path, made_page.data_of_threads(
            made_page.make_tree(20000), THREADS, runs, 60 * MINUTES))
        found = measure(world, f"file://{path}#time=450-1350", OURS_RENDER, TIME_BEGIN, TIME_ACTIONS, ROUNDS)
        compared = measure(world, f"file://{path}#time=450-1350&before=time%3D0-450", OURS_RENDER, TIME_BEGIN,
                           {"compare": TIME_ACTIONS["select"]}, ROUNDS)
        found["compare"] = compared["compare"]
        rows.append([f"{runs:,}", f"{os.path.getsize(path) / 1e6:.1f}",
                     *(f"{found[column]:.1f}" for column in TIME_COLUMNS)])
    return rows


def report(world):
    sys.setrecursionlimit(100000)
    rows = []
    for frames in world.pick([10000, 100000], [10000]):
        programs.progress(f"  {frames} frames")
        columns, more = rows_of(world, frames)
        rows += more
    return f"""Milliseconds, the median of three. *Render* is by the clock, from before the data is
parsed until all is drawn. The others are CPU time of the page's thread, with layout and painting,
for one of: a zoom, a scroll, a move of the mouse to another frame, a letter typed in the search, and
a filter that counts anew (which d3-flame-graph has not). Below 16 ms it is smooth at 60 Hz.
d3-flame-graph, if it was measured (`--d3`), shows the same tree in the same window.

{tables.table(["frames", *columns], rows)}

Pages with the order of time: {THREADS:,} threads for {MINUTES} minutes, with 40,000 samples in as many runs of equal
samples; a recording keeps at most 4,194,304. The frames are 20,000. *Select* is the CPU time of a selection of half
of the time, until graph and table are painted; *compare* that of one which is compared with the first quarter; *filter* counts anew and draws the strip anew.

{tables.table(["runs", "MB", *TIME_COLUMNS], time_rows_of(world))}"""

"""A page of a made-up profile of any size, and helpers to measure it."""

import base64
import json
import random
import re
import subprocess

DATA = re.compile(r'(<script type="application/json" id="profile">)(.*?)(</script>)', re.S)


def make_tree(frames):
    """Nodes [function, children, time], about as deep and broad as in a large program."""
    chance = random.Random(1)
    root = [0, [], 0]
    nodes = [root]
    while len(nodes) <= frames:
        # A stack that leaves a known one somewhere and continues for a while.
        node = nodes[chance.randrange(len(nodes))]
        for _ in range(min(chance.randrange(1, 30), frames + 1 - len(nodes))):
            child = [chance.randrange(1, 5000), [], 0]
            node[1].append(child)
            nodes.append(child)
            node = child
        node[2] += chance.randrange(1, 100)
    return root


def data_of(tree):
    """The tables of the page's data for that tree (src/output/page/html.c)."""
    stacks, samples = [], []
    todo = [(tree, [])]
    while todo:
        node, path = todo.pop()
        if node[2]:
            samples.append([len(stacks), 1, 7, 1 + len(stacks) % 3, 0, 0, node[2], node[2] * 10**7, 0])
            stacks.append(path[::-1])
        todo += [(child, path + [child[0] - 1]) for child in node[1]]
    names = [f"namespace::function_{i}" for i in range(5000)]
    return {
        "elapsed_ns": 10**10, "strings": ["", "thread", *names], "stacks": stacks, "samples": samples,
        "locations": [[0, 0, 2 + i, 0, 0] for i in range(5000)],
    }


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def timelines_of(grain_ns, threads):
    """Timelines (src/output/page/html.c, write_timelines). threads: [begin, [[sample, grains], ...]], in
    grains; the sample is -1 while the thread is absent."""
    rows, packed = [], bytearray()
    for begin, runs in threads:
        known = {}
        for sample, grains in runs:
            is_new = sample not in known
            packed += varint(known.setdefault(sample, len(known)))
            if is_new:
                packed += varint(sample + 1)
            packed += varint(grains)
        rows.append([begin, len(runs)])
    return {"grain_ns": grain_ns, "ended_early": False, "threads": rows,
            "runs": base64.b64encode(packed).decode()}


def data_of_threads(tree, threads, runs, seconds):
    """The tables for this many threads, which are in the tree's stacks by turns, with this many runs in
    total."""
    data, chance = data_of(tree), random.Random(2)
    grain_ns = seconds * 10**9 // 2**20 + 1
    most = 2 * seconds * 10**9 * threads // runs // grain_ns
    samples, timelines = [], []
    for thread in range(threads):
        first = len(samples)
        for _ in range(40):
            samples.append([chance.randrange(len(data["stacks"])), 1, 1000 + thread,
                            1 + chance.randrange(3), 0, 0, 0, 0, 0])
        made = [[first + chance.randrange(40), chance.randrange(1, most)] for _ in range(runs // threads)]
        for sample, grains in made:
            samples[sample][7] += grains * grain_ns
            samples[sample][6] = samples[sample][7] // 10101010
        timelines.append([0, made])
    return data | {"elapsed_ns": seconds * 10**9, "samples": samples,
                   "timelines": timelines_of(grain_ns, timelines), "idle": [], "findings": []}


def write_page(program, path, tree):
    """Writes the page of that tree, using the program's page of another recording."""
    write_data(program, path, data_of(tree))


def write_data(program, path, tables):
    """Writes a page that has these tables instead of its own."""
    subprocess.run([program, "run", "-q", "-o", path, "--", "true"], check=True)
    page = open(path).read()
    data = json.loads(DATA.search(page)[2])
    for key in "timelines", "waits", "sample_waits", "places":
        data.pop(key, None)
    data |= tables
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    with open(path, "w") as file:
        file.write(DATA.sub(lambda match: match[1] + text + match[3], page))


# Something that is done with a page repeatedly, each time until it is painted.
SETTLE = "await new Promise(done => requestAnimationFrame(() => setTimeout(done)));"
REPEAT = "return (async () => { %s for (let i = 0; i < arguments[0]; i++) { %s " + SETTLE + "} })()"

BEGIN = """
const graph = document.querySelector('#graph'), canvas = graph.querySelector('canvas');
const box = canvas.getBoundingClientRect(), bottom = Math.min(box.bottom, innerHeight);
const mouse = (name, x, y) => canvas.dispatchEvent(
  new MouseEvent(name, {detail: 1, clientX: box.left + x, clientY: bottom - y}));
const change = (id, value, event) => {
  const control = document.querySelector(id);
  control.value = value;
  control.dispatchEvent(new Event(event));
};
"""
ACTIONS = {
    "zoom": "mouse('click', 10, 10 + 18 * (i % 2));",
    "scroll": "graph.scrollTop = graph.scrollHeight - 100 * (i % 8);",
    "hover": "mouse('mousemove', 10 + 23 * i, 10 + 18 * (i % 20));",
    "search": "change('#search', 'function_' + i, 'input');",
    "filter": "change('#state', ['', 'on-cpu'][i % 2], 'change');",
}


def cpu_ms(browser, begin, action, rounds=20):
    """The CPU time of the page's thread for one round."""
    script = REPEAT % (begin, action)
    browser.run(script, 2)
    before = browser.cpu_ms()
    browser.run(script, rounds)
    return (browser.cpu_ms() - before) / rounds

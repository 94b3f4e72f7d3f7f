"""Labels that threads give themselves: OpenTelemetry's thread context, by fgprof_label.h."""

import os
import re
import subprocess

from harness import (PERIOD, by_root, children_of, folded, late_share, need, ready, tool,
                     users_build)
from page import Page
from webdriver import Browser

LIBRARIES = ["global-dynamic", "initial-exec", "tlsdesc"]


def fed(world, name, *arguments):
    """A fixture that ends at the end of its input."""
    return world.running(name, *arguments, stdin=subprocess.PIPE)


def roots(world, target, *arguments):
    """{root frame: samples} of a profile with the route as root frame."""
    done = world.attach(target, "--label", "route", *arguments, duration="1s")
    return by_root(folded(done.stdout)), done.stderr


def ticks_taken(stderr):
    return int(re.search(r"ticks planned, (\d+) taken", stderr)[1])


def check_static(world, kind, *arguments):
    with fed(world, f"labels-{kind}", "stay") as target:
        counts, stderr = roots(world, target, *arguments)
    ticks = int(re.search(r"(\d+) ticks planned", stderr)[1])
    # On a busy machine, the first samples are older than the knowledge of where labels are. Late ones have none.
    for route in "/one", "/two":
        assert ticks_taken(stderr) - 10 <= counts[route] <= ticks + 1, (counts, stderr)
    # The other two threads have none.
    assert sum(counts.values()) - counts["/one"] - counts["/two"] >= 2 * ticks - 10, counts


def test_labels_in_a_position_independent_executable(world):
    check_static(world, "pie")


def test_labels_in_an_executable_at_a_fixed_place(world):
    check_static(world, "no-pie")


def test_labels_in_a_static_executable(world):
    check_static(world, "static")


def test_labels_in_a_static_position_independent_executable(world):
    check_static(world, "static-pie")


def check_library(world, name, *arguments):
    with fed(world, name, *arguments) as target:
        counts, stderr = roots(world, target)
    ticks = int(re.search(r"(\d+) ticks planned", stderr)[1])
    for route in "/early", "/late":
        assert ticks_taken(stderr) - 10 <= counts[route] <= ticks + 1, (counts, stderr)
    assert sum(counts.values()) - counts["/early"] - counts["/late"] >= 2 * ticks - 10, counts


def test_labels_in_libraries_that_are_linked(world):
    for model in LIBRARIES:
        check_library(world, f"labels-host-{model}")


def test_labels_if_two_libraries_define_the_variable(world):
    check_library(world, "labels-host-two")


def test_labels_in_libraries_that_are_loaded_later(world):
    for model in LIBRARIES:
        check_library(world, "labels-host",
                      os.path.join(world.build, f"tests/fixtures/libfixture-labels-{model}.so"))


def account(target):
    """For how long the fixture was in /slow and in /quick, by its own account."""
    target.stdin.close()
    target.stdin = None
    return [float(word) for word in target.stdout.readline().split()]


def check_shares(world, mode, seconds, tolerance, *arguments):
    """The share of /slow is the one that the fixture measured."""
    with fed(world, "labels-no-pie", mode) as target:
        done = world.attach(target, "--label", "route", *arguments, duration=seconds)
        slow, quick = account(target)
    counts = by_root(folded(done.stdout))
    part = counts["/slow"] / (counts["/slow"] + counts["/quick"])
    # On a busy machine ticks come late, and the time for which the thread waits for a CPU is counted where it
    # next has one: of the two threads, the other one never waits.
    waiting = 2 * float(re.search(r"([\d.]+) % waiting for a CPU", done.stderr)[1]) / 100
    tolerance += late_share(done.stderr) + waiting
    assert abs(part - slow / (slow + quick)) < tolerance, (counts, slow, quick, done.stderr)
    return counts, done.stderr


def test_shares_of_a_thread_that_sleeps(world):
    counts, stderr = check_shares(world, "sleep", "6s", 0.08)
    # It has labels all the time, but for moments.
    ticks = int(re.search(r"(\d+) ticks planned", stderr)[1])
    assert counts["/slow"] + counts["/quick"] > (0.93 - late_share(stderr)) * ticks, (counts, stderr)


def test_shares_of_a_thread_that_runs(world):
    check_shares(world, "spin", "6s", 0.08)


def test_shares_of_a_thread_that_is_stopped(world):
    counts, stderr = check_shares(world, "spin", "6s", 0.08, "--capture", "ptrace")
    assert "up to a tick after" not in stderr, stderr


def test_labels_of_running_threads_that_change_are_said(world):
    """A sample's labels are read up to a tick later: by then this thread has other labels."""
    if not os.geteuid() == 0:
        return
    with fed(world, "labels-no-pie", "fast") as target:
        done = world.attach(target, "--capture", "kernel", "-f", "text", duration="2s")
    assert re.search(r"times? labels changed while they were read|up to a tick after", done.stderr)
    sets = re.findall(r'"first":"([^"]*)", "second":"([^"]*)"', done.stdout)
    assert all(first == second for first, second in sets), sets


def test_no_record_is_mixed_of_two(world):
    """A thread changes its labels all the time and is stopped: always one set or the other."""
    with fed(world, "labels-no-pie", "fast") as target:
        done = world.attach(target, "--capture", "ptrace", "--max-pause", "100", "-F", "1000", "-f", "text",
                            duration="2s")
    counts = {}
    for first, second in re.findall(r'"first":"([^"]*)", "second":"([^"]*)"', done.stdout):
        assert first == second, (first, second)
        counts[first] = counts.get(first, 0) + 1
    assert len(counts) == 2, (counts, done.stderr)


def record(world, *mode, arguments=()):
    path = world.path("labels.fgprof")
    with fed(world, "labels-no-pie", *mode) as target:
        done = world.attach(target, "-o", path, *arguments)
    return path, done.stderr


def test_readers_of_recordings(world):
    """A recording has the labels, and so does each format that is written from it."""
    need("go")
    path, _ = record(world, "stay")
    text = world.fgprof("convert", path, "-f", "text").stdout
    assert text.count('"route":"/one"') == text.count('"route":"/two"') == 1, text
    counts = by_root(folded(world.fgprof("convert", path, "--label", "route").stdout))
    assert {"/one", "/two"} <= set(counts), counts
    plain = folded(world.fgprof("convert", path).stdout)
    assert not any("/one" in frame for stack in plain for frame in stack), plain
    profile = world.path("labels.pb.gz")
    assert world.fgprof("convert", path, "-o", profile).returncode == 0
    tags = tool("go", "tool", "pprof", "-tags", profile)
    route = re.search(r"^ *route: .*\n((?: +.*\n)+)", tags, re.M)[1]
    assert "/one" in route and "/two" in route, tags
    shown = tool("go", "tool", "pprof", "-raw", "-tagfocus", "route=/one", profile)
    assert "route:[/one]" in shown and "/two" not in shown, shown


def test_several_labels_are_roots_in_their_order(world):
    path, _ = record(world, "fast", arguments=["--capture", "ptrace", "--max-pause", "100"])
    done = world.fgprof("convert", path, "--label", "second", "--label", "none", "--label", "first", "-t")
    stacks = [stack for stack in folded(done.stdout) if stack[0] == "even"]
    assert stacks and all(stack[:3] == ("even", "even", "fixture-labels-") for stack in stacks), stacks
    assert world.fgprof("convert", path, "--label", "").returncode == 2


def test_values_are_limited_and_that_is_said(world):
    """More than 1,000 values of a key: the others become one."""
    with fed(world, "labels-no-pie", "many", 5000) as target:
        done = world.attach(target, "--label", "id", "-F", "1000", duration="16s")
    counts = by_root(folded(done.stdout))
    values = {root for root in counts if root.startswith("value-")}
    # A value may have been seen whose time was given to others.
    assert 980 <= len(values) <= 1000 and counts["[other]"] > 0, (len(values), counts["[other]"], done.stderr)
    assert re.search(r"labels had more different keys or values than are kept", done.stderr), done.stderr


WRITER = r"""
#include "fgprof_label.h"
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
static struct fgprof_labels labels;
static void raw(const void *bytes, unsigned count)
{
    memcpy(labels.attributes + labels.bytes, bytes, count);
    labels.bytes = (uint16_t)(labels.bytes + count);
}
int main(int argc, char **argv)
{
    unsigned char id = 0;
    (void)argc;
    fgprof_labels_put(&labels, "route", "/old");
    switch (atoi(argv[1])) {
    case 0: /* not UTF-8, and then one that is */
        fgprof_labels_put(&labels, "bad", "\xff\xfe");
        break;
    case 1: /* a later value of the same key, and a key that was not published */
        raw("\0\4/new", 6);
        raw("\200\1x", 3);
        break;
    case 2: /* a length beyond the end */
        raw("\0\377/new", 6);
        break;
    case 3: /* a size beyond the memory's end */
        memset(labels.attributes + labels.bytes, 1, sizeof labels.attributes - labels.bytes);
        labels.bytes = 65535;
        break;
    case 4: /* not valid */
        labels.is_valid = 2;
        break;
    case 5: /* ids */
        for (; id < 16; id++)
            labels.trace_id[id] = (uint8_t)(0xa0 + id);
        memset(labels.span_id, 7, sizeof labels.span_id);
        break;
    case 6: /* keys that profiles have for something else */
        fgprof_labels_put(&labels, "thread", "mine");
        fgprof_labels_put(&labels, "state", "odd;\n");
        break;
    case 7: { /* a child has the labels that its parent had */
        fgprof_labels_attach(&labels);
        if (fork())
            break;
        struct fgprof_label_scope scope;
        if (fgprof_label_begin(&scope, "child", "yes"))
            return 1;
        puts("ready");
        fflush(stdout);
        getchar();
        return 0;
    }
    case 8: /* the record is the variable itself: its bytes are no record that is valid */
        fgprof_labels_attach((const struct fgprof_labels *)(const void *)&otel_thread_ctx_v1);
        puts("ready");
        fflush(stdout);
        getchar();
        return 0;
    case 9: /* a pointer into nowhere */
        fgprof_labels_attach((const struct fgprof_labels *)16);
        puts("ready");
        fflush(stdout);
        getchar();
        return 0;
    }
    fgprof_labels_attach(&labels);
    if (atoi(argv[1]) != 7)
        puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"""


def compiled(world, compiler, text, name, *flags):
    source, program = world.path(name), world.path(name + ".out")
    with open(source, "w") as file:
        file.write(text)
    tool(compiler, *flags, "-Wall", "-Wextra", "-Werror", "-O1", "-I" + world.source + "/include", source,
         "-pthread", "-o", program)
    return program


def labels_of(world, program, number, *arguments):
    """The labels of the writer's only thread."""
    with ready(program, number, stdin=subprocess.PIPE) as target:
        done = world.attach(target, "-f", "text", *arguments, duration="500ms")
    found = re.findall(r"# labels: \{(.*)\}", done.stdout)
    return dict(re.findall(r'"([^"]*)":"([^"]*)"', found[0])), done.stderr


def test_hostile_records(world):
    program = compiled(world, "gcc", WRITER, "writer.c", "-std=gnu11")
    labels, stderr = labels_of(world, program, 0)
    assert labels["route"] == "/old" and "bad" not in labels, labels
    assert "not UTF-8" in stderr, stderr
    labels, stderr = labels_of(world, program, 1)
    assert labels["route"] == "/new", labels
    assert set(labels) == {"resource", "route", "state", "syscall", "thread", "wait"}, labels
    assert labels_of(world, program, 2)[0]["route"] == "/old"
    # What is behind the record is zeros: values of the first key without a length.
    assert "route" not in labels_of(world, program, 3)[0]
    for number in 4, 8, 9:
        labels, stderr = labels_of(world, program, number)
        assert "route" not in labels, (number, labels)
    assert "could not be read" in stderr, stderr
    labels, stderr = labels_of(world, program, 5)
    assert labels["route"] == "/old" and "trace_id" not in labels, labels
    labels, stderr = labels_of(world, program, 5, "--trace-ids")
    assert labels["trace_id"] == "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", labels
    assert labels["span_id"] == "07" * 8, labels
    labels, stderr = labels_of(world, program, 6)
    assert labels["label.thread"] == "mine" and labels["thread"] == "writer.c.out", labels
    assert labels["label.state"] == "odd; ", labels


def test_labels_of_a_child(world):
    """A child of fork publishes its own keys, and has its parent's labels and its own."""
    program = compiled(world, "gcc", WRITER, "forks.c", "-std=gnu11")
    with ready(program, 7, stdin=subprocess.PIPE) as target:
        child, = children_of(target.pid)
        done = world.fgprof("attach", "-p", child, "-d", "500ms", "-f", "text")
    assert '"child":"yes", ' in done.stdout and '"route":"/old"' in done.stdout, done.stdout


def test_the_header_in_cpp_and_in_several_files(world):
    program = world.path("two.out")
    sources = []
    for name, text in ("one.cc", r"""
#include "fgprof_label.h"
#include <cstdio>
#include <string>
void other();
int main(int, char **argv)
{
    char text[] = "array";
    fgprof::label route("route", std::string("/cpp"));
    fgprof::label array("array", text), argument("argument", argv[1]);
    {
        fgprof::label route2("route", "/inner");
        fgprof::label gone("gone", "yes");
    }
    other();
}
"""), ("two.cc", r"""
#include "fgprof_label.h"
#include <cstdio>
void other()
{
    fgprof::label file("file", "two");
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
}
"""):
        sources.append(world.path(name))
        with open(sources[-1], "w") as file:
            file.write(text)
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-std=c++11", "-I" + world.source + "/include"]
    for compiler, more in ("g++", ["-pedantic"]), ("clang++", []):
        need(compiler)
        tool(compiler, *flags, *more, *sources, "-o", program)
        labels, stderr = labels_of(world, program, 0)
        assert labels["route"] == "/cpp" and labels["file"] == "two" and "gone" not in labels, labels
        assert labels["array"] == "array" and labels["argument"] == "0", labels
    need("clang")
    tool("clang", "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
         world.source + "/include/fgprof_label.h", "-Wno-unused-function", "-Wno-pragma-once-outside-header")


def test_the_header_says_that_strict_c_lacks_functions(world):
    source = world.path("strict.c")
    with open(source, "w") as file:
        file.write('#include "fgprof_label.h"\n')
    command = ["gcc", "-std=c11", "-fsyntax-only", "-I" + world.source + "/include", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode and "needs -std=gnu11 or so, or _GNU_SOURCE" in done.stderr, done.stderr
    tool(*command, "-D_GNU_SOURCE")


def test_musl_is_said_not_to_show_where_labels_are(world):
    """musl's sleeping threads can't be read; a thread that was stopped can."""
    need("musl-gcc")
    program = compiled(world, "musl-gcc", WRITER, "musl.c", "-std=gnu11", "-static")
    labels, stderr = labels_of(world, program, 5)
    assert "route" not in labels, labels
    assert "only glibc shows" in stderr, stderr


def test_a_program_without_labels_has_none(world):
    with world.running("sleepers-O2-omit", 60) as target:
        done = world.attach(target, "--label", "route", duration="500ms")
        unasked = world.attach(target, duration="500ms")
    assert "\n  no labels were found: " in done.stderr, done.stderr
    assert "label" not in unasked.stderr, unasked.stderr


def check_slow(world, path, *arguments):
    """Of requests that take 40 ms and others that take 400 ms, only the latter are kept, completely. On a
    busy machine they take longer: the fixture says how long."""
    with fed(world, "labels-no-pie", "spans") as target:
        done = world.attach(target, "--slow", "request>200ms", *arguments, "-o", path, duration="5s")
        lengths = account(target)
    shown = world.fgprof("convert", path, "--label", "request", "--state")
    counts = by_root(folded(shown.stdout))
    kept = {int(root): count for root, count in counts.items() if root.isdigit()}
    unlabelled = sum(count for root, count in counts.items() if not root.isdigit())
    changed = re.search(r"\n  (\d+) times labels changed while they were read", done.stderr)
    changed = changed or re.search(r"\n  (1) time labels changed while they were read", done.stderr)
    assert len(kept) >= 2 and unlabelled <= (int(changed[1]) if changed else 0), (counts, done.stderr)
    gap = 0.02 + late_share(done.stderr)  # between two ticks
    # The end of a span is seen at a tick, which may be counted for the next one.
    short = sum(count for number, count in kept.items() if lengths[number] <= 0.2 - gap)
    assert short <= len(kept) + 0.05 * sum(kept.values()), (kept, lengths, done.stderr)
    # The first and the last may be cut, and one may have lost its ends between late ticks.
    whole = range(min(kept) + 1, max(kept))
    long = [number for number in whole if lengths[number] > 0.3]
    missing = [number for number in long if number not in kept]
    assert long and len(missing) <= len(long) * gap + 1, (missing, lengths, done.stderr)
    waiting = 2 * float(re.search(r"([\d.]+) % waiting for a CPU", done.stderr)[1]) / 100
    full = [number for number in long if number in kept
            and kept[number] * PERIOD > (0.7 - gap - waiting) * lengths[number] - 2 * PERIOD]
    assert len(full) >= len(long) - len(missing) - 1, (kept, lengths, done.stderr)
    states = by_root({stack[::-1]: count for stack, count in folded(shown.stdout).items()})
    awake = states["[running]"] + states["[runnable]"]
    assert min(awake, sum(kept.values()) - awake) >= sum(kept.values()) / 10, (states, done.stderr)
    slow, short = map(int, re.search(r"(\d+) slow spans? w\w+ kept, (\d+) shorter", done.stderr).groups())
    assert slow >= len(kept) - 1 and short >= 1, done.stderr


def test_only_slow_spans_are_kept(world):
    check_slow(world, world.path("slow.fgprof"))


def test_only_slow_spans_are_kept_of_stopped_threads(world):
    check_slow(world, world.path("stopped.fgprof"), "--capture", "ptrace")


def test_slow_spans_that_are_asked_for_wrongly(world):
    for bad in "route", ">1s", "route>", "route>0", "route>long", "route>-1s":
        done = world.fgprof("attach", "-p", os.getpid(), "--slow", bad)
        assert done.returncode == 2 and "bad span" in done.stderr, done
    done = world.fgprof("attach", "-p", os.getpid(), "--slow", "route>1s", "-f", "speedscope", "-o", "x")
    assert done.returncode == 2 and "use --slow with other formats" in done.stderr, done


@users_build
def test_labels_on_the_page(world):
    """Filter, colours and root frames; and a page without labels offers none of them."""
    recording, _ = record(world, "stay", arguments=[])
    with_labels, without = world.path("labels.html"), world.path("none.html")
    assert world.fgprof("convert", recording, "-o", with_labels).returncode == 0
    with world.running("sleepers-O2-omit") as target:
        world.attach(target, "-o", without, duration="300ms")
    browser = Browser()
    try:
        page = Page(browser, with_labels)
        every = page.samples()
        offered = browser.run("return [...document.querySelectorAll('#label option')].map(o => o.value)")
        assert sorted(offered) == ["", "route=/one", "route=/two"], offered
        browser.choose("#label", "route=/one")
        assert abs(page.samples() - every / 4) < 10, (page.samples(), every)
        browser.click("#reset")
        assert page.samples() == every
        browser.choose("#roots", "label:route")
        roots = {page.at(1, share).split("\n")[0] for share in (0.1, 0.4, 0.6, 0.9)}
        assert {"/one", "/two", "[none]"} <= roots, roots
        browser.choose("#colour", "label:route")
        legend = browser.text("#legend")
        assert "/one" in legend and "/two" in legend and "[none]" in legend, legend
        assert not browser.console(), browser.console()
        page = Page(browser, without)
        assert browser.run("return document.querySelector('.of-labels').hidden")
        assert "label" not in browser.run("return document.querySelector('#roots').innerHTML")
        assert not browser.console(), browser.console()
    finally:
        browser.close()

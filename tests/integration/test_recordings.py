"""Recordings: converted to each format, compared, and refused if they are damaged."""

import glob
import gzip
import json
import os
import re
import signal
import zlib

from harness import flame_graph, folded, tool


GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"  # RFC 1952, 2.3: of the shortest kind


def kept(world, name="kept", duration="1s"):
    """A recording of a process, made once."""
    path = world.path(name + ".fgprof")
    if not os.path.exists(path):
        with world.running("states", 60) as target:
            world.attach(target, "-o", path, duration=duration)
    return path


def converted(world, *arguments):
    done = world.fgprof("convert", *arguments)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def samples_of(path):
    """pprof's view: (values, labels) of all samples."""
    raw = tool("go", "tool", "pprof", "-symbolize=none", "-raw", path)
    text = raw[raw.index("Samples:"):raw.index("Locations")]
    found = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+): [\d ]+\n((?: {4,}\S+:.*\n)*)", text, re.M)
    assert found, text[:1000]
    return sorted(found)


def test_a_kept_recording_becomes_each_format(world):
    path = kept(world)
    results = {ending: world.path("converted" + ending) for ending in (".folded", ".txt", ".pb.gz")}
    for result in results.values():
        assert not converted(world, path, "-o", result)
    stacks = folded(open(results[".folded"]).read())
    total = sum(stacks.values())
    assert f"<title>all ({total} samples, 100%)" in flame_graph(results[".folded"])
    text = open(results[".txt"]).read()
    assert int(re.match(r"wallclock profile: total (\d+)\n", text)[1]) == total
    for name in "in_spin", "nanosleep", "read":
        assert name in tool("go", "tool", "pprof", "-top", results[".pb.gz"]), name
        assert any(name in frame for stack in stacks for frame in stack[-2:]), name
    assert sum(int(values[0]) for values in samples_of(results[".pb.gz"])) == total
    # A copy is as good as the original.
    copy = world.path("copy.fgprof")
    converted(world, path, "-o", copy)
    assert converted(world, copy) == open(results[".folded"]).read()


def test_what_is_kept_is_chosen_when_it_is_converted(world):
    path = kept(world)
    total = sum(folded(converted(world, path)).values())
    parts = [folded(converted(world, path, option)) for option in ("--on-cpu", "--off-cpu")]
    assert all(parts) and abs(sum(sum(part.values()) for part in parts) - total) <= 1
    by_name, by_id = (folded(converted(world, path, option)) for option in ("--threads", "--threads=tid"))
    assert by_name and not any("/" in stack[0] for stack in by_name)
    assert by_id and all(re.search(r"/\d+$", stack[0]) for stack in by_id)
    assert any(stack[-1] == "[running]" for stack in folded(converted(world, path, "--state")))
    assert re.search(r"\(states\.c:\d+\)", converted(world, path, "--lines"))
    assert '"tid"' not in converted(world, path, "-f", "text")
    assert '"tid"' in converted(world, path, "-f", "text", "--threads=tid")


def test_diff_has_both_counts(world):
    before, after = kept(world), kept(world, "short", "400ms")
    counts = [folded(converted(world, path)) for path in (before, after)]
    path = world.path("diff.folded")
    for option in ["--no-normalize"], ["--normalize"], []:
        done = world.fgprof("diff", before, after, "-o", path, *option)
        assert done.returncode == 0 and not done.stdout, done
        assert re.fullmatch("" if option else r"fgprof-c: [\d.]+ s are compared with [\d.]+ s: normalized, "
                            r"with as many samples before as after \(--no-normalize: as they are\)\n",
                            done.stderr), done
        seen = {}
        for line in open(path).read().splitlines():
            stack, one, two = re.fullmatch(r"(.*\S) (\d+) (\d+)", line).groups()
            seen[tuple(stack.split(";"))] = (int(one), int(two))
        assert list(seen) and set(seen) == set(counts[0]) | set(counts[1])
        scale = sum(counts[1].values()) / sum(counts[0].values()) if option != ["--no-normalize"] else 1
        for stack, (one, two) in seen.items():
            assert abs(one - counts[0].get(stack, 0) * scale) <= 1, stack
            assert two == counts[1].get(stack, 0), stack


def test_diff_in_words(world):
    before, after = kept(world), kept(world, "short", "400ms")
    text = world.fgprof("diff", before, after, "-f", "report", "--no-normalize").stdout
    assert re.match(r"fgprof-c diff\n  before: [\d.]+ s, \S+, recorded by: fgprof-c .*\n  after:  0\.\d+ s, ", text), text
    times = re.findall(r"^ +([\d.]+) +([\d.]+) +([+-][\d.]+)  ", text, re.M)
    assert len(times) > 4 and all(abs(float(two) - float(one) - float(change)) < 0.03
                                  for one, two, change in times), text
    grown, shrunk = text.split("\nGrown", 1)[1].split("\nShrunk:\n", 1)
    assert not re.search(r" -\d", grown) and not re.search(r" \+\d", shrunk), text
    assert re.search(r"^ +[\d.]+ +[\d.]+ +-0\.\d+  mutex mutex +run > in_lock > pthread_mutex_lock$", shrunk, re.M), text
    assert "\n  normalized: times before are multiplied by 0." in world.fgprof(
        "diff", before, after, "-f", "report").stdout
    alike = world.fgprof("diff", before, before, "-f", "report")
    assert "\nGrown: nothing\n\nShrunk: nothing\n" in alike.stdout and not alike.stderr, alike


def test_flamegraph_paints_a_diff(world):
    # One of them lasts longer if the machine pauses for seconds in the other.
    before, after = kept(world, "long", "4s"), kept(world, "short", "400ms")
    path = world.path("painted.folded")
    red, blue = r'fill="rgb\(255,(\d+),\1\)"', r'fill="rgb\((\d+),\1,255\)"'
    for pair, wanted, other in (((before, after), blue, red), ((after, before), red, blue)):
        world.fgprof("diff", *pair, "-o", path, "--no-normalize")
        svg = flame_graph(path)
        values = [[int(v) for v in re.findall(colour, svg) if int(v) < 255] for colour in (wanted, other)]
        assert len(values[0]) > len(values[1]), values


def refused(world, path, words):
    for arguments in (["convert", path, "-o", world.path("never.folded")],
                      ["diff", kept(world), path, "-o", world.path("never.folded")]):
        done = world.fgprof(*arguments)
        assert done.returncode == 1 and not done.stdout, done
        assert words in done.stderr and path in done.stderr, (words, done.stderr)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert not glob.glob(world.directory + "/*never*"), "nothing is left behind"


def with_other_contents(data):
    """The gzip file with one bit of its contents changed, but with the checksum of the old contents."""
    contents = bytearray(gzip.decompress(data))
    contents[-1] ^= 1
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return GZIP_HEADER + deflate.compress(contents) + deflate.flush() + data[-8:]


def test_what_is_no_good_recording_is_refused(world):
    good = open(kept(world), "rb").read()
    pprof = world.path("foreign.pb.gz")
    converted(world, kept(world), "-o", pprof)
    fifo = world.path("fifo.fgprof")
    os.mkfifo(fifo)
    assert good[:4] == GZIP_HEADER[:4], "no file name follows the header, but the deflated data"
    for name, data, words in (
            ("changed", with_other_contents(good), "damaged"),
            # There is no fourth type of block (RFC 1951, 3.2.3).
            ("misread", good[:10] + bytes([good[10] | 6]) + good[11:], "damaged"),
            ("longer", good + b"x", "damaged"), ("cut", good[:-1], "cut short"),
            ("empty", b"", "cut short"), ("text", b"main;read 12\n", "not a recording")):
        path = world.path(name + ".fgprof")
        open(path, "wb").write(data)
        refused(world, path, words)
    # Whatever is done about children that end: what was there stays.
    kept_page = world.path("kept.html")
    open(kept_page, "w").write("as before")
    done = world.fgprof("convert", world.path("changed.fgprof"), "-o", kept_page,
                        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 1 and open(kept_page).read() == "as before", done
    refused(world, pprof, "not a recording")
    newer = bytearray(gzip.decompress(good))
    newer[8:12] = (3).to_bytes(4, "little")
    open(world.path("newer.fgprof"), "wb").write(gzip.compress(newer))
    refused(world, world.path("newer.fgprof"), "its format is version 3, and this program knows "
            "version 2")
    refused(world, fifo, "not a regular file")
    refused(world, world.path("missing.fgprof"), "No such file")


def test_the_command_that_recorded_is_kept(world):
    command = re.compile(r"fgprof-c attach -p \d+ -d 1s -o \S+/kept\.fgprof")
    copy, page, pprof = (world.path("by" + ending) for ending in (".fgprof", ".html", ".pb.gz"))
    converted(world, kept(world), "-o", copy)
    converted(world, copy, "-o", page)
    converted(world, copy, "-o", pprof)
    found = re.search(r'"command":"([^"]*)","recorded_by":"([^"]*)"', open(page).read())
    assert found[1] == f"fgprof-c convert {copy} -o {page}" and command.fullmatch(found[2]), found
    assert command.fullmatch(tool("go", "tool", "pprof", "-comments", pprof).strip())


def test_a_recording_without_a_timeline(world):
    """As the library writes it if no timeline is requested."""
    path = world.path("without.speedscope.json")
    old = world.source + "/tests/golden/no-timelines.fgprof"
    done = world.fgprof("convert", old, "-o", path)
    assert done.returncode == 1 and not os.path.exists(path), done
    assert re.fullmatch(rf"fgprof-c: {old} has no timeline, .* -o FILE.fgprof.*\n", done.stderr), done
    converted(world, kept(world), "-o", path)
    assert json.load(open(path))["profiles"]


def test_processes_are_shown_when_it_is_converted(world):
    path = world.path("family.fgprof")
    done = world.fgprof("run", "--children", "-o", path, "--", "sh", "-c", "sleep 2; exit 0")
    assert done.returncode == 0, done.stderr
    for arguments in ["convert", path], ["diff", path, path]:
        plain = world.fgprof(*arguments)
        shown = world.fgprof(*arguments, "--processes")
        assert plain.returncode == shown.returncode == 0, (plain, shown)
        roots = {line.split(";")[0] for line in shown.stdout.splitlines()}
        assert {re.sub(r"/\d+$", "/", root) for root in roots} == {"sh/", "sleep/"}, shown.stdout
        assert not re.search(r"^\w+/\d+;", plain.stdout, re.M), plain.stdout


def test_command_line_of_convert_and_diff(world):
    for arguments, word in ((["convert"], "one recording"), (["convert", "a", "b"], "one recording"),
                            (["diff", "a"], "two recordings"), (["convert", "a", "-f", "svg"], "svg"),
                            (["convert", "a", "-o", "x.svg"], "x.svg"),
                            (["convert", "a", "-n"], "no option '-n'"),
                            (["diff", "a", "b", "-f", "raw"], "folded, html or report"),
                            *((["diff", "a", "b", "-o", "x" + ending], "use .folded, .html or .report, or give -f")
                              for ending in (".pb.gz", ".json", ".fgprof", ".otlp.gz", ".txt")),
                            (["convert", "a", "--normalize"], "normalize"),
                            (["diff", "a", "b", "--on-cpu", "--off-cpu"], "combined")):
        done = world.fgprof(*arguments)
        assert done.returncode == 2 and not done.stdout, (arguments, done)
        assert word in done.stderr, (arguments, done.stderr)


def test_pprof_writes_the_same_profile_again(world):
    path, again = world.path("round.pb.gz"), world.path("round-again.pb.gz")
    converted(world, kept(world), "-o", path, "--threads=tid")
    tool("go", "tool", "pprof", "-symbolize=none", "-proto", "-output", again, path)
    assert samples_of(again) == samples_of(path)
    tops = [re.sub(r"^File: .*\n", "", tool("go", "tool", "pprof", "-symbolize=none", "-top", p))
            for p in (path, again)]
    assert tops[0] == tops[1], tops

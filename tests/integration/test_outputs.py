"""The formats, checked by their real readers."""

import gzip
import os
import re
import shutil
import subprocess

from harness import (Skip, flame_graph, folded, need, need_file, tool, wait_until_asleep,
                     wait_until_sampling)
from made_objects import STRINGS, read_sections, uleb, write_sections

# From Debian's golang-github-google-pprof-dev.
SCHEMA = "/usr/share/gocode/src/github.com/google/pprof/proto"


def profiles(world):
    """One process in all formats: {format: path}, made once."""
    paths = {name: world.path("all" + name) for name in (".folded", ".txt", ".pb.gz")}
    if not os.path.exists(paths[".pb.gz"]):
        with world.running("states", 60) as target:
            for path in paths.values():
                world.attach(target, "-o", path, duration="1s")
    return paths


def test_format_follows_the_files_ending(world):
    with world.running("states", 60) as target:
        for ending in ".folded", ".collapsed":
            path = world.path("ending" + ending)
            world.attach(target, "-q", "-o", path, duration="100ms")
            assert folded(open(path).read()), ending
        for ending, begin in ((".txt", b"wallclock profile"), (".pb.gz", b"\x1f\x8b"),
                              (".pprof", b"\x1f\x8b")):
            path = world.path("ending" + ending)
            world.attach(target, "-q", "-o", path, duration="100ms")
            assert open(path, "rb").read().startswith(begin), ending
        # -f wins over the file's ending.
        path = world.path("forced.folded")
        world.attach(target, "-f", "text", "-o", path, duration="100ms")
        assert open(path).read().startswith("wallclock profile")


def test_an_ending_that_names_no_format(world):
    """The endings that do are listed, and accepted."""
    def convert(ending):
        return world.fgprof("convert", world.path("none.fgprof"), "-o", world.path("ending" + ending))
    done = convert(".xyz")
    assert done.returncode == 2, done
    endings = re.search(r"use a known ending \((.*)\) or give -f$", done.stderr.strip())[1].split(" ")
    assert len(endings) > 8 and {".folded", ".pprof", ".firefox.json.gz", ".report"} < set(endings), done
    for ending in endings:
        done = convert(ending)
        assert done.returncode == 1 and "can't be read" in done.stderr, (ending, done)


def test_quiet(world):
    with world.running("states", 60) as target:
        done = world.attach(target, "-q", duration="300ms")
    assert done.stdout and not done.stderr, done
    done = world.fgprof("run", "-q", "-o", world.path("quiet.folded"), "--", "true")
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


def test_pprof_reads_pprof(world):
    path = profiles(world)[".pb.gz"]
    raw = tool("go", "tool", "pprof", "-raw", path)
    assert ("samples/count time/nanoseconds[dflt] on_cpu/nanoseconds off_cpu/nanoseconds "
            "elapsed/nanoseconds\n"
            in raw), raw[:500]
    assert "PeriodType: wallclock nanoseconds" in raw and "Period: 10101010" in raw
    assert re.search(r"^1: 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ \S*fixture-states [0-9a-f]{40}", raw,
                     re.M), "mapping 1 is the main binary, with its build id"
    top = tool("go", "tool", "pprof", "-top", path)
    for name in "in_spin", "nanosleep", "read":
        assert name in top, top
    assert re.search(r"in_spin", tool("go", "tool", "pprof", "-peek", "in_spin", path))


def test_pprof_is_told_what_is_known_of_each_file(world):
    """pprof looks nothing up in a mapping that has any of the flags: a stripped file has none."""
    def flags(name, *arguments):
        path = world.path("flags.pb.gz")
        target = subprocess.Popen([program, "30", *arguments], stdout=subprocess.PIPE)
        try:
            assert target.stdout.readline() == b"ready\n"
            world.attach(target, "-o", path, duration="1s")
        finally:
            target.kill()
            target.communicate()
        raw = tool("go", "tool", "pprof", "-symbolize=none", "-raw", path)
        return re.search(rf"^\d+: \S+ \S*/{name} \w+ ?(.*)$", raw[raw.index("\nMappings\n"):], re.M)[1]

    fixtures = os.path.join(world.build, "tests/fixtures")
    program = f"{fixtures}/fixture-host-in_old"
    library = world.path("told.so")
    tool("cp", f"{fixtures}/libfixture-plugin-in_new.so", library)
    told = flags("told.so", "call", library)
    assert told == "[FN][FL][LN][IN]", told
    tool("strip", "-g", library)
    assert flags("told.so", "call", library) == "[FN]"
    program = world.path("untold")
    tool("strip", "-o", program, f"{fixtures}/fixture-host-in_old")
    assert flags("untold") == ""


def test_pprof_follows_the_published_schema(world):
    proto = need_file("profile.proto", SCHEMA + "/profile.proto")
    need("protoc")
    data = gzip.open(profiles(world)[".pb.gz"]).read()
    decoded = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", "-I" + SCHEMA, proto],
                             input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert decoded.returncode == 0, decoded.stderr
    text = decoded.stdout.decode()
    # An unknown field is shown by its number.
    assert not re.search(r"^\s*\d+:", text, re.M), text[:2000]
    assert re.search(r'^string_table: ""', text, re.M)
    for message in "mapping", "location", "function":
        ids = re.findall(message + r" \{\n  id: (\d+)", text)
        assert ids and len(set(ids)) == len(ids) and "0" not in ids, message
    locations = set(re.findall(r"location \{\n  id: (\d+)", text))
    assert set(re.findall(r"location_id: (\d+)", text)) <= locations
    assert re.search(r"build_id: [1-9]", text) and "default_sample_type" in text
    again = subprocess.run(["protoc", "--encode=perftools.profiles.Profile", "-I" + SCHEMA, proto],
                           input=decoded.stdout, stdout=subprocess.PIPE, timeout=60)
    assert again.returncode == 0 and len(again.stdout) > len(data) // 2


def test_opentelemetry_accepts_otlp(world):
    """OpenTelemetry's own checker of profiles: profcheck/cmd/profcheck of
    github.com/open-telemetry/sig-profiling."""
    if not shutil.which("profcheck"):
        raise Skip("no profcheck")
    golden = os.path.join(world.source, "tests/golden")
    kept = [os.path.join(golden, name) for name in os.listdir(golden) if name.endswith(".fgprof")]
    with world.running("states", 60) as target:
        kept.append(world.path("otlp.fgprof"))
        world.attach(target, "--threads=tid", "-o", kept[-1], duration="1s")
    assert len(kept) > 3
    for path in kept:
        compressed, plain = world.path("kept.otlp.gz"), world.path("kept.otlp")
        assert world.fgprof("convert", path, "-f", "otlp", "-o", compressed).returncode == 0
        with open(plain, "wb") as file:
            file.write(gzip.decompress(open(compressed, "rb").read()))
        assert "passed" in tool("profcheck", "-check-dupes", "-check-orphans", plain)


def test_pprof_reads_text(world):
    path = profiles(world)[".txt"]
    text = open(path).read()
    total = int(re.match(r"wallclock profile: total (\d+)\n", text)[1])
    counts = [int(count) for count in re.findall(r"^(\d+) @", text, re.M)]
    assert sum(counts) == total and counts == sorted(counts, reverse=True)
    raw = tool("go", "tool", "pprof", "-raw", path)
    assert "wallclock/count" in raw or "wallclock count" in raw, raw[:300]
    samples = raw[raw.index("Samples:"):raw.index("Locations")]
    read_back = [int(c) for c in re.findall(r"^ +(\d+): [\d ]+", samples, re.M)]
    assert sum(read_back) == total, (sum(read_back), total)
    assert '"thread":"spinning"}' in text
    assert re.search(r"^#\t0x[0-9a-f]+\tin_spin\+0x[0-9a-f]+\t+\S*states\.c:\d+$", text, re.M), text


def renamed(recording, old, new):
    """A recording with one string replaced by another."""
    sections = read_sections(recording)
    strings = sections[STRINGS]
    assert strings.count(uleb(len(old)) + old) == 1, strings
    sections[STRINGS] = strings.replace(uleb(len(old)) + old, uleb(len(new)) + new)
    write_sections(recording, sections)


def test_pprof_reads_the_longest_lines_of_text(world):
    """Its scanner rejects lines of 64 KiB: neither a deep stack nor a name may make one."""
    recording, text = world.path("long.fgprof"), world.path("long.txt")
    with world.running("deep", 60, 8000) as target:
        wait_until_asleep(target.pid)
        world.attach(target, "--max-depth", 10000, "-o", recording, duration="200ms")
    renamed(recording, b"fixture-deep", b'"\x01' * 40000)
    done = world.fgprof("convert", recording, "-o", text)
    assert done.returncode == 0, done.stderr
    lines = open(text).read().splitlines()
    assert 60000 < max(map(len, lines)) < 65536
    total = int(re.fullmatch(r"wallclock profile: total (\d+)", lines[0])[1])
    assert total > 10 and lines[2].startswith("# labels: {"), lines[2][:100]
    raw = tool("go", "tool", "pprof", "-raw", text)
    assert re.search(rf"^ +{total}: ([\d]+ )+", raw[raw.index("Samples:"):], re.M), raw[:300]


def test_flamegraph_reads_folded(world):
    svg = flame_graph(profiles(world)[".folded"])
    total = sum(folded(open(profiles(world)[".folded"]).read()).values())
    for name in "in_spin", "in_sleep", "in_lock", "in_pipe":
        assert f"<title>{name} (" in svg, name
    assert f"<title>all ({total} samples, 100%)" in svg, svg[:3000]


def test_folded_is_sorted_and_root_first(world):
    lines = open(profiles(world)[".folded"], "rb").read().splitlines()
    assert lines == sorted(lines)
    for line in lines:
        # What a thread ran while it could not be stopped has no root.
        is_of_none = re.fullmatch(rb"\[truncated: thread not observed in time\] \d+", line)
        assert is_of_none or line.startswith((b"_start;", b"__clone3;", b"clone;", b"__clone")), line
    assert len(lines) >= 5, lines


def test_a_device_is_written_directly(world):
    with world.running("states", 60) as target:
        done = world.fgprof("attach", "-q", "-p", target.pid, "-d", "200ms", "-f", "folded", "-o",
                            "/dev/null")
    assert done.returncode == 0 and not done.stdout and not done.stderr, done
    assert os.path.exists("/dev/null")


def test_a_file_keeps_its_mode_and_a_link_its_target(world):
    real, link = world.path("real.folded"), world.path("link.folded")
    open(real, "w").close()
    os.chmod(real, 0o640)
    os.symlink(real, link)
    with world.running("states", 60) as target:
        world.attach(target, "-o", link, duration="200ms")
    assert os.path.islink(link) and folded(open(real).read())
    assert os.stat(real).st_mode & 0o777 == 0o640


def test_nothing_is_left_if_the_profiler_is_killed(world):
    """As far as the file system supports unnamed files: open(2), O_TMPFILE."""
    directory = world.path("killed")
    os.mkdir(directory)
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        raise Skip(f"no files without a name: {error.strerror}")
    old = os.path.join(directory, "old.folded")
    with open(old, "w") as file:
        file.write("precious 1\n")
    with world.running("states", 60) as target:
        for path in old, os.path.join(directory, "new.folded"):
            sampler = world.start("attach", "-p", target.pid, "-d", "60s", "-o", path)
            wait_until_sampling(sampler)
            sampler.kill()
            sampler.communicate(timeout=30)
            assert os.listdir(directory) == ["old.folded"], path
    assert open(old).read() == "precious 1\n"


def test_a_new_file_has_the_mode_of_the_umask(world):
    path = world.path("umask.folded")
    with world.running("states", 60) as target:
        world.attach(target, "-o", path, duration="200ms", umask=0o027)
    assert os.stat(path).st_mode & 0o777 == 0o640

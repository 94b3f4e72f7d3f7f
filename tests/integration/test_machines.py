"""scripts/machines, without booting any, and what it needs of run.py and run-unit-tests."""

import argparse
import contextlib
import glob
import importlib.machinery
import importlib.util
import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import HANGS_S, users_build, wait_for

# What a machine's console shows: carriage returns, the kernel's lines, and a part that is cut off.
CONSOLE = """\
== kernel 6.1.0-9-amd64\r
== defaults perf_event_paranoid=3 yama/ptrace_scope=0 \r
ok   run: forks 3.1 s (0.2 s of CPU)\r
skip (no go) run: reads 0.1 s (0.1 s of CPU)\r
FAIL run: hangs: it ended with 1\r
FAIL states: run 4.0 s (0.2 s of CPU)\r
FAIL states: stopped 4.0 s (0.2 s of CPU)\r
once more, alone: run: hangs, states: run, states: stopped\r
[   12.3] clocksource: timekeeping watchdog\r
FAIL states: stopped 4.0 s (0.2 s of CPU)\r
ok   run: hangs 1.0 s (0.2 s of CPU)\r
"""
LABELS = ["run: forks", "run: reads", "run: hangs", "states: run", "states: stopped", "waits: never", "waits: again"]
UNITS = """\
ok   unit_base_array: 6
FAIL unit_late
not ok 1 - waits
ok   unit_other: 0
FAIL unit_broken
ok   unit_late: 1
did not fail again, alone: unit_late
7 passed, 1 failed, 1 skipped
"""


def script(world):
    loader = importlib.machinery.SourceFileLoader("machines", world.source + "/scripts/machines")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("machines", loader))
    loader.exec_module(module)
    return module


def run_script(world, *arguments, path=os.environ["PATH"]):
    command = [sys.executable, world.source + "/scripts/machines", "--cache", world.path("cache"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANGS_S,
                          env={**os.environ, "PATH": path})


@users_build
def test_machines_are_listed(world):
    """Without anything in the cache, and without fetching."""
    done = run_script(world)
    assert done.returncode == 0 and not done.stderr, done
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["amd64-6.1", "-", "-", "-", "-"] in rows and ["arm64-6.1", "-", "-", "-", "-"] in rows, done.stdout
    assert os.listdir(world.path("cache")) == []


@users_build
def test_machines_that_cannot_run(world):
    def refusal(*arguments, status=1, **options):
        done = run_script(world, *arguments, **options)
        assert done.returncode == status, done
        return done.stderr
    assert re.match("machines: there is no machine amd64-1.0: there are amd64-5.10, ", refusal("amd64-1.0"))
    assert refusal("amd64-6.1", path="/nonexistent") == (
        "machines: there is no apt-get: run scripts/setup machines, on a Debian\n")
    assert "there is no part all: there are unit, root, user" in refusal("--parts", "unit,all", status=2)


@users_build
def test_lists_name_tests_that_there_are(world):
    machines = script(world)
    run = [sys.executable, world.source + "/tests/integration/run.py", "--list", world.build]
    core, skips = machines.named("core"), {**machines.named("skips"), **machines.named("skips-arm64-user")}
    units = {name for name in skips if name.startswith("unit_")}
    names = [*core, *(set(skips) - units)]
    done = subprocess.run([*run, *names], stdout=subprocess.PIPE, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done.stdout
    assert {label.replace(" ", "") for label in done.stdout.splitlines()} == set(names), done.stdout
    assert 40 <= len(core) <= 60 and all(skips.values()), (len(core), skips)
    sources = [os.path.relpath(path, world.source + "/tests") for path in glob.glob(
        world.source + "/tests/unit/**/test_*.c", recursive=True)]
    unknown = units - {path[:-2].replace("/test_", "/").replace("/", "_") for path in sources}
    assert not unknown, unknown
    done = subprocess.run([*run, "run:no_such"], stdout=subprocess.PIPE, text=True, timeout=HANGS_S)
    assert done.returncode == 1 and done.stdout.startswith("FAIL no such test: test_run:no_such\n"), done


@users_build
def test_results_are_read_line_by_line(world):
    machines = script(world)
    states, once = machines.parse(CONSOLE.replace("\r", ""), LABELS)
    assert list(states.values()) == ["passed", "skipped", "passed", "failed", "failed", *["not reached"] * 2], states
    assert once == ["run: hangs"], once
    assert machines.summary({"tests": states}) == "2 of 6 passed, 2 not reached"
    units = ["unit_base_array", "unit_late", "unit_other", "unit_broken"]
    states, once = machines.parse(UNITS, units)
    assert list(states.values()) == ["passed", "passed", "skipped", "failed"] and once == ["unit_late"], (states, once)
    assert machines.summary({"tests": states}) == "2 of 3 passed"


class Emulated:
    """scripts/machines with a complete cache, and a stand-in for qemu."""

    def __init__(self, world, qemu):
        self.machines = script(world)
        self.cache = self.machines.Cache(world.path("cache"))
        self.said = io.StringIO()
        os.makedirs(world.path("cache/build-amd64"))
        shutil.copy(world.build + "/CMakeCache.txt", world.path("cache/build-amd64"))
        os.mkdir(world.path("bin"))
        with open(world.path("bin/qemu-system-x86_64"), "w") as file:
            file.write(f"#!/bin/sh\n{qemu}\n")
        os.chmod(world.path("bin/qemu-system-x86_64"), 0o755)
        self.path = world.path("bin") + ":" + os.environ["PATH"]

    def run(self, part, tests=None, minutes=1):
        arguments = argparse.Namespace(tests=tests, minutes=minutes)
        before, os.environ["PATH"] = os.environ["PATH"], self.path
        try:
            with contextlib.redirect_stdout(self.said):
                return self.machines.run_part(self.cache, "amd64-5.10", part, self.machines.commit(), arguments)
        finally:
            os.environ["PATH"] = before

    def results(self):
        return self.cache.results().get("amd64-5.10", {})


@users_build
def test_a_part_that_is_cut_off_counts(world):
    emulated = Emulated(world, "echo '== kernel 6.1.0'\necho 'ok   states: stopped 1.0 s (0.1 s of CPU)'\n"
                        "exec sleep 300")
    emulated.machines.BOOT_S = 1
    lists = {"core": ["states:stopped", "states:leaf_frames", "states:pprof"], "skips": {"states:pprof": "too slow"}}
    emulated.machines.named = lambda path: lists.get(path, {})
    begin = time.monotonic()
    assert emulated.run("root", minutes=0) == (1, True, 1)
    assert time.monotonic() - begin < 60
    said = emulated.said.getvalue()
    assert "skip (too slow) amd64-5.10: root: states: pprof\n" in said, said
    assert "FAIL amd64-5.10: root: 1 of 2 passed, 1 not reached, 1 skipped\n" in said, said
    result = emulated.results()["root"]
    assert result["kernel"] == "6.1.0" and not result["is_off"] and re.match(r"[0-9a-f]{8}", result["commit"]), result
    assert result["tests"] == {"states: stopped": "passed", "states: leaf_frames": "not reached",
                               "states: pprof": "skipped"}


@users_build
def test_what_a_kernel_says_counts(world):
    """All tests have passed there."""
    passed = "echo '== kernel 5.10.0'; echo 'ok   states: stopped 1.0 s (0.1 s of CPU)'; echo '== ended 0 after 9 s'"
    lockup = "[   70.1] watchdog: BUG: soft lockup - CPU#1 stuck for 65s! [redis-server:812]"
    emulated = Emulated(world, f"{passed}; echo '{lockup}'; echo '== off'")
    emulated.machines.chosen_tests = lambda *_: (["states: stopped"], {})
    assert emulated.run("root") == (1, True, 0)
    assert f"its kernel said: {lockup}\n" in emulated.said.getvalue(), emulated.said.getvalue()
    assert emulated.results()["root"]["troubles"] == [lockup]
    emulated = Emulated(Inner(world), f"{passed}; echo '== off'")
    assert emulated.run("root", ["states:stopped"]) == (1, 0, 0), emulated.said.getvalue()


@users_build
def test_a_panic_is_tried_again_on_one_cpu(world):
    # An oops is one, too: what comes after it is not worth much.
    emulated = Emulated(world, """case "$*" in *thread=multi*oops=panic*) echo 'Kernel panic - not syncing' ;;
        *) echo 'ok   states: stopped 1.0 s (0.1 s of CPU)'; echo '== off' ;; esac""")
    assert emulated.run("root", ["states:stopped"]) == (1, 0, 0), emulated.said.getvalue()
    kept = re.search("its kernel panicked, emulated by thread=multi: see (.*)\n", emulated.said.getvalue())[1]
    assert open(kept).read().startswith("Kernel panic")
    assert emulated.results() == {}, "chosen tests are not the part"
    emulated = Emulated(Inner(world), "echo 'Kernel panic - not syncing'")
    assert emulated.run("root", ["states:stopped"]) == (0, True, 0), emulated.said.getvalue()


@users_build
def test_a_lockup_is_tried_again_on_one_cpu(world):
    """It is not waited for. A CPU that is stuck for a while may go on."""
    stuck = "echo 'watchdog: BUG: soft lockup - CPU#0 stuck for {}s! [fgprof-sampler:256]'"
    passed = "echo 'ok   states: stopped 1.0 s (0.1 s of CPU)'; echo '== off'"
    emulated = Emulated(world, f"""case "$*" in *thread=multi*) {stuck.format(130)}; exec sleep 300 ;;
        *) {stuck.format(71)}; {passed} ;; esac""")
    begin = time.monotonic()
    assert emulated.run("root", ["states:stopped"]) == (1, 0, 0), emulated.said.getvalue()
    assert time.monotonic() - begin < 250
    assert "its kernel locked up, emulated by thread=multi: see " in emulated.said.getvalue(), emulated.said.getvalue()


@users_build
def test_a_machine_that_is_silent_is_tried_again(world):
    """It has locked up, without a word of its kernel."""
    emulated = Emulated(world, """case "$*" in *thread=multi*) echo '== kernel 5.10.0'; exec sleep 300 ;;
        *) echo 'ok   states: stopped 1.0 s (0.1 s of CPU)'; echo '== off' ;; esac""")
    emulated.machines.SILENT_S = 3
    begin = time.monotonic()
    assert emulated.run("root", ["states:stopped"]) == (1, 0, 0), emulated.said.getvalue()
    assert time.monotonic() - begin < 250
    kept = re.search("its kernel locked up, emulated by thread=multi: see (.*)\n", emulated.said.getvalue())[1]
    assert emulated.machines.SILENCE in open(kept).read()


@users_build
def test_a_machine_ends_with_what_started_it(world):
    emulated = Emulated(world, "echo $$; exec sleep 300")
    starter = multiprocessing.Process(target=emulated.run, args=("root", ["states:stopped"]))
    starter.start()
    log = emulated.machines.log_path(emulated.cache, "amd64-5.10", "root")
    wait_for(lambda: os.path.exists(log) and re.match(r"\d+\n", open(log).read()), "the machine")
    pid = int(open(log).read())
    starter.kill()
    starter.join()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the machine")


class Inner:
    """A folder inside a world's, in place of it."""

    def __init__(self, world):
        self.source, self.build, self._world = world.source, world.build, world

    def path(self, name):
        os.makedirs(self._world.path("inner"), exist_ok=True)
        return self._world.path("inner/" + name)


def made_result(passed, failed=(), **options):
    tests = {**{f"run: {i}": "passed" for i in range(passed)}, **dict.fromkeys(failed, "failed")}
    return {"tests": tests, "kernel": "6.1.0", "commit": "12345678", "date": "2026-01-02", "minutes": 7, "once": [],
            "defaults": "perf_event_paranoid=3", "is_off": True, "log": "", **options}


def keep(source, directory, part):
    machines = script(argparse.Namespace(source=source))
    machines.Cache(directory).keep("arm64-6.1", part, made_result(3))


# Stand-ins for apt: since Linux 7.2 Debian's kernels are several packages.
APT = {
    "apt-cache": """case $2 in
linux-image-amd64) printf '%s\\n' linux-image-amd64 '  Depends: linux-base-amd64' '  Depends: linux-image-7.2-amd64' ;;
linux-image-7.2-amd64)
    printf '%s\\n' linux-image-7.2-amd64 '  PreDepends: linux-base' ' |Depends: dracut' '  Depends: <linux-initramfs-tool>' \\
        '  Depends: linux-binary-7.2-amd64' '  Depends: linux-modules-7.2-amd64' '  Recommends: apparmor' ;;
esac
""",
    "apt-get": """shift 2
for name; do
    [ ! -e lacks-$name ] || { echo "Err:1 somewhere"; echo "E: Failed to fetch $name  404"; exit 100; }
    touch "${name}_7.2.1_amd64.deb"
done
""",
}


@users_build
def test_kernels_of_several_packages(world):
    machines = script(world)
    for name, text in APT.items():
        with open(world.path(name), "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(file.name, 0o755)
    apt = object.__new__(machines.Apt)
    apt.suite, apt.directory = "sid", world.directory
    apt.environment = {**os.environ, "PATH": f"{world.directory}:{os.environ['PATH']}"}
    files = apt.fetch_kernel("linux-image-amd64")
    assert [os.path.relpath(file, world.directory) for file in files] == [
        f"linux-{part}-7.2-amd64_7.2.1_amd64.deb" for part in ("image", "binary", "modules")], files
    for lacking, package, reason in (
            ("", "linux-image-arm64", "the mirror has no linux-image-arm64 of sid"),
            ("linux-modules-7.2-amd64", "linux-image-amd64",
             "linux-image-7.2-amd64 of sid can't be fetched: E: Failed to fetch linux-modules-7.2-amd64  404")):
        open(world.path("lacks-" + lacking), "w").close()
        try:
            apt.fetch_kernel(package)
        except machines.Unavailable as refused:
            assert str(refused) == reason, refused
        else:
            raise AssertionError(package)


@users_build
def test_parts_are_merged(world):
    """A part replaces only its own last result, even if two runs end at the same time."""
    machines = script(world)
    cache = machines.Cache(world.path("cache"))
    os.mkdir(cache.path("results"))
    with open(cache.path("results/arm64-6.1.json"), "w") as file:
        json.dump({"parts": {"unit tests": {"passed": 1}, "unit": made_result(1)}}, file)  # the first is of before
    # So many that without the lock some would be lost.
    parts = ["root", "user", *(f"part{i}" for i in range(20))]
    writers = [multiprocessing.Process(target=keep, args=(world.source, cache.directory, part)) for part in parts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(HANGS_S)
        assert writer.exitcode == 0
    results = cache.results()["arm64-6.1"]
    assert set(results) == {"unit", *parts}, results
    assert len(results["unit"]["tests"]) == 1 and len(results["root"]["tests"]) == 3
    cache.keep("arm64-6.1", "root", made_result(2))
    assert len(cache.results()["arm64-6.1"]["root"]["tests"]) == 2


@users_build
def test_the_table(world):
    machines = script(world)
    old = machines.table("", {"arm64-6.1": {"unit": made_result(1), "root": made_result(2)}})
    new = machines.table(old, {"arm64-6.1": {"root": made_result(4, ["run: x", "top: y"], minutes=9)},
                               "amd64-6.1": {"user": made_result(5)}}).splitlines()
    assert new[2:] == [
        "| amd64-6.1 | 6.1.0 | user | 5 of 5 passed | none | 0 | 12345678 | 2026-01-02 | 7 | perf_event_paranoid=3 |",
        "| arm64-6.1 | 6.1.0 | unit | 1 of 1 passed | none | 0 | 12345678 | 2026-01-02 | 7 | perf_event_paranoid=3 |",
        "| arm64-6.1 | 6.1.0 | root | 4 of 6 passed | run: x, top: y | 0 | 12345678 | 2026-01-02 | 9 | "
        "perf_event_paranoid=3 |"], new
    assert {line.count("|") for line in new} == {11}, new
    page = open(world.source + "/docs/support.md").read()
    assert re.search(r"<!-- by scripts/machines --table -->\n" + re.escape(new[0]) + "\n.*\n<!-- end -->", page, re.S)


def hold(source, directory, ready, seconds):
    machines = script(argparse.Namespace(source=source))
    with machines.Cache(directory).locked("amd64-6.1", "uses amd64-6.1"):
        ready.set()
        time.sleep(seconds)


@users_build
def test_two_runs_at_once(world):
    """The second run waits for the first, and says so."""
    machines, said = script(world), io.StringIO()
    cache, ready = machines.Cache(world.path("cache")), multiprocessing.Event()
    holder = multiprocessing.Process(target=hold, args=(world.source, cache.directory, ready, 2))
    holder.start()
    assert ready.wait(HANGS_S)
    begin = time.monotonic()
    with contextlib.redirect_stdout(said), cache.locked("amd64-6.1", "uses amd64-6.1"):
        assert time.monotonic() - begin > 1
    assert said.getvalue() == "machines: another run uses amd64-6.1: waiting for it\n"
    holder.join(HANGS_S)


@users_build
def test_no_disk_space(world):
    machines = script(world)
    cache = machines.Cache(world.path("cache"))
    machines.shutil = argparse.Namespace(**vars(shutil))
    machines.shutil.which = lambda *_, **__: "/bin/true"
    machines.shutil.disk_usage = lambda _: argparse.Namespace(free=100 << 20)
    for step, what in ((lambda: machines.make_root(cache, "amd64"), "the disk of amd64 needs 2000"),
                       (lambda: machines.build(cache, "amd64"), "the build for amd64 needs [0-9]+"),
                       (lambda: machines.make_data(cache, "amd64", ""), "the data of amd64 needs [0-9]+")):
        try:
            step()
            assert False, what
        except SystemExit as end:
            assert re.fullmatch(rf"machines: \S*cache has 100 MB free, and {what}: see --cache", end.code), end.code
    assert os.listdir(cache.directory) == []


@users_build
def test_a_suite_that_the_mirror_lacks_is_skipped(world):
    machines = script(world)
    cache = machines.Cache(world.path("cache"))
    open(cache.path("root-amd64.ext4"), "w").close()
    with open(cache.path("root-amd64.packages"), "w") as file:
        file.write(" ".join(["?essential", *machines.PACKAGES]))
    os.mkdir(world.path("bin"))
    programs = {"apt-get": 'case "$*" in *update) echo "E: sid does not have a Release file."; exit 100 ;; esac\n'
                           "echo Debian Debian http://mirror/debian", "apt-config": "", "apt-cache": "",
                **dict.fromkeys(("dpkg-deb", "mke2fs", "cpio", "cmake", "git"), "exit 1")}
    for name, text in programs.items():
        with open(world.path("bin/" + name), "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(world.path("bin/" + name), 0o755)
    done = run_script(world, "amd64-sid", "amd64-5.10", path=world.path("bin") + ":" + os.environ["PATH"])
    assert done.returncode == 0 and not done.stderr, done
    for suite, name in ("sid", "amd64-sid"), ("bullseye", "amd64-5.10"):
        reason = f"apt-get update fails for {suite}: E: sid does not have a Release file."
        assert f"\nskip ({reason}) {name}\n" in done.stdout, done
    assert done.stdout.endswith("\n0 passed, 0 failed, 2 skipped\n"), done.stdout


# ---- Processes that are emulated ----


def make_programs(directory, **texts):
    os.makedirs(directory, exist_ok=True)
    for name, text in texts.items():
        with open(f"{directory}/{name}", "w") as file:
            file.write(f"#!/bin/bash\n{text}\n")
        os.chmod(f"{directory}/{name}", 0o755)


@users_build
def test_unit_tests_of_another_architecture(world):
    """Each test is run by the emulator, with the libraries against which it was built; those that make no
    sense there are skipped by name."""
    machines, said = script(world), io.StringIO()
    cache = machines.Cache(world.path("cache"))
    make_programs(cache.path("build-arm64-user/tests/unit"), unit_good="echo ok 1 - good", unit_bad="exit 1",
                  unit_skipped="exit 1")
    make_programs(world.path("bin"), qemu="""
        [ "$1" != --version ] || { echo qemu-aarch64 version 1.2.3 '(Debian)'; exit; }
        [ "$1 $2" = "-L """ + cache.path("root-arm64-user") + """" ] || exit 1
        exec "$3"
    """)
    machines.ARCHITECTURES["arm64"].emulator = world.path("bin/qemu")
    machines.make_libraries = lambda *_: None
    machines.build = lambda cache, name: cache.path("build-" + name)
    machines.named = lambda path: {"unit_skipped": "it waits"} if path == "skips-arm64-user" else {}
    with contextlib.redirect_stdout(said):
        counts = machines.test(cache, "arm64-user", argparse.Namespace(tests=None, minutes=1), {})
    assert counts == (1, 1, 1), (counts, said.getvalue())
    assert "\nskip (it waits) arm64-user: unit_skipped\n" in "\n" + said.getvalue(), said.getvalue()
    assert "FAIL arm64-user: unit: 1 of 2 passed, 1 skipped\n       unit_bad\n" in said.getvalue(), said.getvalue()
    kept = cache.results()["arm64-user"]["unit"]
    assert kept["kernel"] == "(qemu-user 1.2.3)" and kept["tests"] == {
        "unit_good": "passed", "unit_bad": "failed", "unit_skipped": "skipped"}, kept


# ---- What bounds the tests in a machine ----

HANGING = """
import subprocess
import time

def test_that_hangs(world):
    open(world.directory + "/../hanging.pid", "w").write(str(subprocess.Popen(["sleep", "300"]).pid))
    time.sleep(300)

def test_that_fails(world):
    assert False
"""


@users_build
def test_what_hangs_is_ended_with_its_processes(world):
    """The limit and the number of repeats come from the environment."""
    for name in "run.py", "harness.py":
        text = open(f"{world.source}/tests/integration/{name}").read()
        with open(world.path(name), "w") as file:
            file.write(re.sub(r"MODULES = \[.*?\n\]", 'MODULES = ["test_hanging"]', text, flags=re.S))
    with open(world.path("test_hanging.py"), "w") as file:
        file.write(HANGING)
    os.mkdir(world.path("tmp"))
    done = subprocess.run([sys.executable, world.path("run.py"), world.build], stdout=subprocess.PIPE, text=True,
                          timeout=HANGS_S, env={**os.environ, "FGPROF_TEST_SECONDS": "3", "FGPROF_TEST_REPEATS": "1",
                                                "TMPDIR": world.path("tmp")})
    assert done.returncode == 1, done
    assert re.search("^FAIL hanging: that_hangs: it ended with 1$", done.stdout, re.M), done.stdout
    assert "in test_that_hangs" in done.stdout and "once more" not in done.stdout, done.stdout
    assert done.stdout.endswith("\n0 passed, 2 failed, 0 skipped\n"), done.stdout
    child = open(world.path("tmp/hanging.pid")).read()
    wait_for(lambda: not os.path.exists(f"/proc/{child}") or not open(f"/proc/{child}/cmdline").read(), "its end")


@users_build
def test_unit_tests_are_bounded(world):
    """One test ignores SIGTERM, and one leaves a process behind that holds its output."""
    make_programs(world.path("tests/unit"),
                  unit_orphan="setsid sleep 100 & echo $! >$0.pid; echo 'ok 1 - leaves'",
                  unit_stubborn="trap '' TERM; sleep 100", unit_other="echo 'ok 1 - other'")
    begin = time.monotonic()
    done = subprocess.run([world.source + "/scripts/run-unit-tests", world.directory, "unit_orphan", "unit_stubborn",
                           "unit_none"], stdout=subprocess.PIPE, text=True, timeout=HANGS_S,
                          env={**os.environ, "FGPROF_TEST_SECONDS": "1"})
    assert time.monotonic() - begin < 60
    os.kill(int(open(world.path("tests/unit/unit_orphan.pid")).read()), signal.SIGKILL)
    assert done.returncode == 1 and done.stdout.endswith("\n1 passed, 2 failed, 0 skipped\n"), done.stdout
    assert "ok   unit_orphan: 1\n" in done.stdout and "FAIL unit_stubborn\n" in done.stdout, done.stdout


def test_a_build_of_another_checkout(world):
    machines, folder = script(world), world.path("build")
    os.mkdir(folder)
    for checkout, is_of_this in ((machines.CHECKOUT, True), ("/elsewhere" + machines.CHECKOUT, False),
                                 (machines.CHECKOUT + "-2", False)):
        with open(folder + "/CMakeCache.txt", "w") as file:
            file.write(f"# For build in {machines.CHECKOUT}\nCMAKE_HOME_DIRECTORY:INTERNAL={checkout}\n")
        assert machines.is_of_this_checkout(folder) == is_of_this, checkout

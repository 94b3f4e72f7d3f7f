"""The report: what it says about programs with one bottleneck each, as text and as JSON."""

import contextlib
import json
import re

from harness import thread_named, wait_for_switches, wait_until_asleep

PAGE_LINES = 100
LINE_COLUMNS = 160
FIRST_LINES = 10

PATHS_KEYS = {"total_ns", "paths_left_out", "paths"}
PATH_KEYS = {"self_ns", "total_ns", "threads", "threads_never_moved", "pid", "tid", "call", "frames",
             "frames_omitted"}
TIME_KEYS = {"running_ns", "runnable_ns", "waiting_ns", "idle_ns", "stopped_ns", "unknown_ns"}
FINDING_KEYS = {"kind", "time_ns", "function", "text", "detail"}
KEYS = {"version", "recording", "findings", "held_ns", "holders", "woken_ns", "wakers", "cpu_use_known_ns", "cpu_users", "elapsed",
        "running_at_once_ns", "on_cpu", "waiting", "idle", "processes", "threads_idle", "threads", "symbols_wanted", "next"}
RECORDING_KEYS = {
    "command", "start_time_ns", "elapsed_ns", "period_ns", "seed", "ticks_planned", "ticks_taken",
    "ticks_late", "processes_seen", "threads_seen", "samples", "samples_cut", "samples_unnamed",
    "samples_not_captured", "samples_assumed", "samples_thinned", "kernel_samples",
    "kernel_samples_lost", "pauses", "pause_median_ns", "pause_max_ns",
    "recorded_samples", "recorded_lost", "wakes_lost", "hidden_returns", "switches_unrecorded",
    "record_refusal", "filter_refusal", "throttled_ns",
    "quota_millicpu", "steal_ns",
    "kernel_refusal", "error",
    "kept", "reason"}


@contextlib.contextmanager
def bottleneck(world, kind):
    """The fixture with one bottleneck, in the middle of its work."""
    with world.running("bottlenecks", 120, kind) as target:
        if kind != "peer":
            wait_until_asleep(target.pid, but=["hot", "saver", "writer", "slow", "changer", "device"])
        busy = {"lock": "saver", "shared": "slow", "peer": "fixture-bottlen"}.get(kind)
        if busy:
            wait_for_switches(thread_named(target.pid, busy), 3, "the slow device")
        yield target


def check_page(text):
    """One page, without colours; returns its first lines."""
    lines = text.splitlines()
    assert 10 < len(lines) <= PAGE_LINES, len(lines)
    assert max(map(len, lines)) <= LINE_COLUMNS, max(lines, key=len)
    assert text.isprintable() or not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), text
    return "\n".join(lines[:FIRST_LINES])


def check_json(text):
    """The report as JSON, checked for its form."""
    report = json.loads(text)
    assert set(report) == KEYS and report["version"] == 1, set(report)
    assert set(report["recording"]) == RECORDING_KEYS, report["recording"]
    assert set(report["next"]) == {"command", "why"}
    for finding in report["findings"]:
        assert set(finding) == FINDING_KEYS, finding
    # Each process has its own.
    elapsed_ns = report["elapsed"]["total_ns"] + report["elapsed"]["idle_ns"]
    assert elapsed_ns == sum(report["running_at_once_ns"]), (elapsed_ns, report)
    if len(report["processes"]) == 1:
        assert abs(elapsed_ns - report["recording"]["elapsed_ns"]) < 0.1e9, (elapsed_ns, report)
    for key in "elapsed", "on_cpu", "waiting", "idle":
        more = {"idle_ns"} if key == "elapsed" else set()
        assert set(report[key]) == PATHS_KEYS | more, report[key]
        for path in report[key]["paths"]:
            assert set(path) == PATH_KEYS and path["frames"], path
            assert 0 < path["self_ns"] <= path["total_ns"] <= report[key]["total_ns"], path
        selves = [path["self_ns"] for path in report[key]["paths"]]
        assert selves == sorted(selves, reverse=True), selves
    for process in report["processes"]:
        assert set(process) == TIME_KEYS | {"pid", "name", "threads"}, process
    for thread in report["threads"]:
        assert set(thread) == TIME_KEYS | {"pid", "tid", "name"}, thread
    for module in report["symbols_wanted"]:
        assert set(module) == {"path", "build_id", "samples_cut", "samples_unnamed"}, module
    return report


def reports(world, kind):
    """Records the fixture with this bottleneck. Returns the report's first lines and its JSON."""
    path = world.path(f"{kind}.fgprof")
    with bottleneck(world, kind) as target:
        world.attach(target, "--children", "-o", path, duration="3s")
    done = world.fgprof("report", path)
    assert done.returncode == 0 and not done.stderr, done
    report = world.fgprof("report", "--json", path)
    assert report.returncode == 0 and not report.stderr, report
    return check_page(done.stdout), check_json(report.stdout)


def paths_with(report, key, function):
    return [path for path in report[key]["paths"] if function in path["frames"]]


def check_pool_is_idle(report):
    """The threads that never get any work do not swamp anything."""
    for key in "threads", "threads_never_moved":
        assert sum(path[key] for path in paths_with(report, "idle", "in_pool")) == 3, report["idle"]
    assert not paths_with(report, "waiting", "in_pool"), report["waiting"]
    assert not any("pool" in finding["text"] for finding in report["findings"]), report["findings"]


def test_a_saturated_thread_is_found(world):
    first, report = reports(world, "saturated")
    assert "in_hot_loop" in first, first
    finding = report["findings"][0]
    assert finding["kind"] == "saturated_thread" and finding["function"] == "in_hot_loop", finding
    assert re.match(r'thread "hot"/\d+ keeps a CPU busy', finding["text"]), finding
    assert "--on-cpu" in report["next"]["command"], report["next"]
    check_pool_is_idle(report)


def test_a_lock_held_over_io_is_found(world):
    first, report = reports(world, "lock")
    assert "in_add_record" in first and "in_write_journal" in first, first
    lock = report["findings"][0]
    assert lock["kind"] == "lock", report["findings"]
    assert re.match(r"4 threads wait \d+\.\d+ s for mutex \S+, which in_add_record takes$", lock["text"]), lock
    # The thread that has it is shown by its other waits. On a busy machine it waits for the lock as well, in
    # line behind the others, and both are reported together.
    holder = next(finding for finding in report["findings"] if finding["function"] == "read")
    assert "in_write_journal" in holder["detail"], report["findings"]
    assert holder["kind"] == "long_wait" or "in_save_all" in holder["text"], report["findings"]
    # While the others wait for it, that is where time goes, as far as none of them wants a CPU.
    waits = [path for path in report["elapsed"]["paths"]
             if path["call"] not in ("running", "runnable")]
    assert "in_write_journal" in waits[0]["frames"], report["elapsed"]
    assert "dump -p" in report["next"]["command"], report["next"]
    check_pool_is_idle(report)


def test_a_lock_held_over_io_in_the_same_function_is_found(world):
    first, report = reports(world, "shared")
    assert "in_write_journal" in first, first
    lock = report["findings"][0]
    assert lock["kind"] == "lock" and "in_change_record" in lock["text"], report["findings"]
    assert "in_write_journal" in lock["detail"] and lock["function"] != "in_change_record", lock


def test_a_slow_peer_is_found(world):
    first, report = reports(world, "peer")
    assert "in_ask" in first and "in_slow_answer" in first, first
    kinds = [finding["kind"] for finding in report["findings"][:2]]
    assert kinds == ["long_wait", "long_wait"], report["findings"]
    assert len(report["processes"]) == 2 and {p["name"] for p in report["processes"]} >= {"peer"}


def test_a_report_is_written_at_once(world):
    """By attach and run, without a recording; the file's ending selects the format."""
    with bottleneck(world, "saturated") as target:
        text = world.attach(target, "-f", "report", duration="1s").stdout
        path = world.path("wall.report")
        world.attach(target, "-q", "-o", path, duration="1s")
    assert "in_hot_loop" in check_page(text), text
    assert f"attach -p {target.pid} -d 30s --on-cpu" in text.splitlines()[-1], text
    assert "in_hot_loop" in check_page(open(path).read())
    done = world.fgprof("run", "-q", "-f", "report", "--", world.fixture("bottlenecks"), "1",
                        "saturated")
    assert done.returncode == 0, done.stderr
    assert "in_hot_loop" in check_page(done.stdout), done.stdout
    assert done.stdout.endswith("fgprof-c run --on-cpu -o cpu.html -- CMD [ARG...]\n"), done.stdout


def test_a_recording_has_one_report(world):
    """The same each time, even from a copy, and from `convert`."""
    path, copy, out = (world.path(name) for name in ("one.fgprof", "copy.fgprof", "out.report"))
    with bottleneck(world, "shared") as target:
        world.attach(target, "-o", path, duration="1s")
    assert world.fgprof("convert", path, "-o", copy).returncode == 0
    texts = [world.fgprof("report", recording).stdout.replace(copy, path)
             for recording in (path, path, copy)]
    assert world.fgprof("convert", path, "-o", out).returncode == 0
    texts.append(open(out).read())

    assert texts[0] and len(set(texts)) == 1, texts
    for arguments in ["--json", path, "-o", out], [path, "--json", "-o", out]:
        done = world.fgprof("report", *arguments)
        assert done.returncode == 0 and not done.stdout and not done.stderr, done
        check_json(open(out).read())


def test_command_line_of_report(world):
    for arguments, words in (([], "report takes one recording: use report FILE.fgprof"),
                             (["a", "b"], "report takes one recording"),
                             (["a", "-f", "text"], "report has no option '-f'"),
                             (["a", "--on-cpu"], "report has no option '--on-cpu'")):
        done = world.fgprof("report", *arguments)
        assert done.returncode == 2 and not done.stdout and words in done.stderr, (arguments, done)
    done = world.fgprof("report", world.path("missing.fgprof"))
    assert done.returncode == 1 and "No such file" in done.stderr and not done.stdout, done

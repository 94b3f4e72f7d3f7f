"""Runs the integration tests: run.py [--all-tools] [--list] BUILD_DIRECTORY [NAME...], each the name of a test
or of a module, without test_, or MODULE:TEST. Closes with a count. --list names them instead.

A test that this machine can't run is skipped. With --all-tools one fails instead if it lacks something
that scripts/setup installs.

Most tests wait for most of their time, so that some run at once, each in a process of its own. Those
that are marked with @alone measure what other load would change: they run one at a time, at the end.

The tests hold what is shown of real threads on real CPUs against what they did, and a machine may have
other work in just that second. So if a few tests fail, each is run once more, with nothing beside it,
and is named at the end if it passes then: what is broken fails twice.

FGPROF_TEST_SECONDS is the limit of each test (1800), FGPROF_TEST_REPEATS how many that failed are run
once more (8): if there are more, something is broken, and no second run would tell more. FGPROF_TEST_PACKAGES=1
also makes the Debian packages for Debian 13 and arm64, which fetches much.
"""

import contextlib
import faulthandler
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import harness  # noqa: E402

# The longest tests come first, so that nothing waits for them at the end.
MODULES = [
    "test_deb", "test_matrix", "test_time", "test_stacks", "test_unwind", "test_states",
    "test_names", "test_kernel", "test_capture", "test_bad_cases", "test_run", "test_errors", "test_outputs", "test_lifecycle",
    "test_extremes", "test_coexistence", "test_programs", "test_symbols", "test_package",
    "test_compatibility", "test_go", "test_goroutines", "test_python", "test_steps", "test_jit", "test_mappings", "test_children", "test_choosing",
    "test_cgroups",
    "test_containers", "test_timeline", "test_recordings", "test_golden", "test_object_outputs",
    "test_heap", "test_growth", "test_page", "test_page_answers", "test_page_choices", "test_page_difference", "test_page_time", "test_report", "test_dump",
    "test_waits", "test_wakers", "test_cpu_users", "test_cpu_limits", "test_critical", "test_peers", "test_truth", "test_privileges", "test_reader", "test_record", "test_serve", "test_http", "test_stays", "test_access", "test_push", "test_self",
    "test_elapsed", "test_labels", "test_custom", "test_agent", "test_makers", "test_top",
    "test_completions", "test_first_minute", "test_help", "test_scripts", "test_machines", "test_faults", "test_hostile",
]
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
AT_ONCE = 3
# More than a busy machine spoils.
REPEATED_AT_MOST = int(os.environ.get("FGPROF_TEST_REPEATS", 8))
# Far more than any test takes: the place where it hangs is then printed.
HANGS_AFTER_S = int(os.environ.get("FGPROF_TEST_SECONDS", 1800))
# faulthandler ends what hangs with 1.
PASSED, FAILED, SKIPPED = 0, 99, 77


def run(label, test, build, all_tools):
    """Runs a test in this process, which is its own. Returns its exit status."""
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
    begin = time.monotonic()
    with harness.World(build) as world:
        try:
            test(world)
            status, result = PASSED, "ok  "
        except harness.Missing as what:
            if all_tools:
                status, result = FAILED, f"FAIL ({what}, which scripts/setup should have installed)"
            else:
                status, result = SKIPPED, f"skip ({what})"
        except harness.Skip as reason:
            status, result = SKIPPED, f"skip ({reason})"
        except BaseException:  # a test may fail in any way
            status, result = FAILED, "FAIL"
            traceback.print_exc(file=sys.stdout)
    used = os.times()
    print(f"{result} {label} {time.monotonic() - begin:.1f} s ({sum(used[:4]):.1f} s of CPU)",
          flush=True)
    return status


def start(label, test, build, all_tools):
    """Starts the process of the test, in a separate group. Returns its id and the file with its output."""
    said = tempfile.TemporaryFile()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid, said
    status = FAILED
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # A group in the background is stopped if it reads from the terminal.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        status = run(label, test, build, all_tools)
    finally:
        sys.stdout.flush()
        os._exit(status)


def run_all(tests, build, all_tools, at_once):
    """Runs [(label, test)], this many at once; prints the output of each when it ends. Returns how many
    passed, those that failed, and how many were skipped."""
    running = {}
    try:
        return run_waiting(list(reversed(tests)), running, build, all_tools, at_once)
    except BaseException:
        for pid in running:  # which the terminal's signal does not reach
            signal_group(pid, signal.SIGINT)
        raise


def signal_group(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def run_waiting(waiting, running, build, all_tools, at_once):
    """`running` holds {process: (label, test, file of its output)}."""
    passed, failed, skipped = 0, [], 0
    while waiting or running:
        while waiting and len(running) < at_once:
            label, test = waiting.pop()
            pid, said = start(label, test, build, all_tools)
            running[pid] = label, test, said
        pid, status = os.wait()
        if pid not in running:
            continue  # a child of the shell that executed this program in its place
        label, test, said = running.pop(pid)
        signal_group(pid, signal.SIGKILL)  # what a test that hung has left
        with said:
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="replace"))
        status = os.waitstatus_to_exitcode(status)
        if status not in (PASSED, FAILED, SKIPPED):
            print(f"FAIL {label}: it ended with {status}")
        sys.stdout.flush()
        passed += status == PASSED
        skipped += status == SKIPPED
        if status not in (PASSED, SKIPPED):
            failed.append((label, test))
    return passed, failed, skipped


def run_and_repeat(tests, build, all_tools):
    """Runs [(label, test)], and those that failed, if few, once more. Returns how many passed, failed
    and were skipped."""
    beside = [item for item in tests if not harness.is_alone(item[1])]
    alone = [item for item in tests if harness.is_alone(item[1])]
    runs = [run_all(beside, build, all_tools, AT_ONCE), run_all(alone, build, all_tools, 1)]
    passed, skipped = (sum(run[i] for run in runs) for i in (0, 2))
    doubtful = runs[0][1] + runs[1][1]
    if not 0 < len(doubtful) <= REPEATED_AT_MOST:
        return passed, len(doubtful), skipped
    print(f"once more, alone: {', '.join(label for label, _ in doubtful)}", flush=True)
    passed_then, failed, skipped_then = run_all(doubtful, build, all_tools, 1)
    late = [label for label, test in doubtful if (label, test) not in failed]
    if late:
        print(f"did not fail again: {', '.join(late)}")
    return passed + passed_then, len(failed), skipped + skipped_then


def choose(chosen):
    """[(label, test)] of these names of tests and modules, or of all, and the names that do not exist."""
    tests, unknown = [], set(chosen)
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(dir(module)):
            names = {name, module_name, f"{module_name}:{name[5:]}"}
            if name.startswith("test_") and (not chosen or chosen & names):
                tests.append((f"{module_name[5:]}: {name[5:]}", getattr(module, name)))
                unknown -= names
    return tests, sorted(unknown)


def main():
    arguments = sys.argv[1:]
    all_tools = arguments[:1] == ["--all-tools"]
    if all_tools:
        arguments.pop(0)
    only_list = arguments[:1] == ["--list"]
    if only_list:
        arguments.pop(0)
    if not arguments:
        print("usage: run.py [--all-tools] [--list] BUILD_DIRECTORY [NAME...]", file=sys.stderr)
        return 2
    build = arguments.pop(0)
    # A shell's background job has the one ignored, after nohup(1) the other, and so would all that
    # is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = {f"test_{name.removeprefix('test_')}" for name in arguments}
    # Go's own library takes longest to compile: once for all tests.
    os.environ.setdefault("GOCACHE", os.path.join(SOURCE, ".cache/go"))
    tests, unknown = choose(chosen)
    for name in unknown:
        print(f"FAIL no such test: {name}")
    if only_list:
        print(*(label for label, _ in tests), sep="\n")
        return 1 if unknown else 0
    with harness.World(build) as world:
        is_sanitized = world.is_sanitized
    if is_sanitized:
        ours = [item for item in tests if not harness.is_of_users_build(item[1])]
        if len(ours) < len(tests):
            print(f"not run under the sanitizers: {len(tests) - len(ours)} tests, which measure the build "
                  "that users make")
        tests = ours
    passed, failed, skipped = run_and_repeat(tests, build, all_tools)
    failed += len(unknown)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main())

"""Runs the integration tests: run.py BUILD_DIRECTORY [NAME...]. Closes with a count."""

import importlib
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import harness  # noqa: E402

MODULES = [
    "test_truth", "test_stacks", "test_unwind", "test_states", "test_names", "test_kernel",
    "test_run", "test_errors", "test_outputs", "test_lifecycle", "test_promises",
    "test_coexistence", "test_programs", "test_symbols", "test_package", "test_go", "test_steps",
    "test_jit", "test_world", "test_matrix",
]


def main():
    world = harness.World(sys.argv[1])
    chosen = {f"test_{name.removeprefix('test_')}" for name in sys.argv[2:]}
    passed = failed = 0
    found = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(n for n in dir(module) if n.startswith("test_")):
            if chosen and name not in chosen:
                continue
            found.add(name)
            begin = time.monotonic()
            try:
                getattr(module, name)(world)
                passed += 1
                result = "ok  "
            except harness.Skip as reason:
                result = f"skip ({reason})"
            except Exception:  # a test may fail in any way
                failed += 1
                result = "FAIL"
                traceback.print_exc(file=sys.stdout)
            print(f"{result} {module_name[5:]}: {name[5:]} {time.monotonic() - begin:.1f} s",
                  flush=True)
    for name in sorted(chosen - found):
        failed += 1
        print(f"FAIL no such test: {name}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())

"""Unwinding by rules: compared with libunwind, and where libunwind can't unwind."""

import glob
import os
import re
import subprocess

from harness import HANGS_S, folded, has, need, need_file, ready, tool, users_build
from servers import redis_under_load
from test_stacks import WAITS

SNAPSHOTS = 500


def test_each_address_of_installed_programs_has_a_rule(world):
    """Even OpenSSL's, some of whose functions keep their caller's stack pointer behind an array."""
    patterns = ("libc.so.6", "libcrypto.so.3", "libstdc++.so.6", "libpython3*.so.1.0", "libuv.so.1")
    files = [path for pattern in patterns for path in glob.glob("/usr/lib/*-linux-gnu/" + pattern)]
    files += [path for path in ("/usr/bin/python3", "/usr/bin/redis-server", "/usr/bin/node") if os.path.exists(path)]
    counted = tool(os.path.join(world.build, "tests/tools/count-rules"), *files)
    counts = {key: int(value) for key, value in (word.split("=") for word in counted.split())}
    assert counts["functions"] > 5000 and counts["addresses"] > 1000000 and counts["unknown"] == 0, counts


# ---- Judged by libunwind ----

def check_agreement(world, pid):
    """Takes snapshots of a process, and fails if the two unwinders differ on one."""
    judge = need_file("compare-unwinders (libunwind)", os.path.join(world.build, "tests/tools/compare-unwinders"))
    done = subprocess.run(["timeout", str(HANGS_S), judge, str(pid), str(SNAPSHOTS)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    values = {key: float(value) for key, value in
              (word.split("=") for word in done.stdout.split())}
    assert values["snapshots"] == SNAPSHOTS and values["disagree"] == 0, values
    # If a build has frame pointers, both ways cut the stacks of sleeping threads, which do not show
    # theirs.
    assert values["agree"] > 0.1 * SNAPSHOTS, values
    # Rules end no stack early that libunwind does not.
    assert values["rules_whole"] >= values["libunwind_whole"], values


@users_build
def test_agrees_with_libunwind_on_python(world):
    script = ("import json, re, threading, time\n"
              "end = time.time() + 300\n"
              "def deep(n): return n if n < 2 else deep(n - 1) + deep(n - 2)\n"
              "def work():\n"
              "    while time.time() < end:\n"
              "        deep(12); re.sub('(a|b)*c', 'x', 'abab' * 50)\n"
              "        json.loads(json.dumps([1, 2, 3] * 30))\n"
              "        sorted(range(1000), key=lambda x: -x); time.sleep(0.001)\n"
              "threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]\n"
              "[t.start() for t in threads]\n"
              "print('ready', flush=True)\n"
              "[t.join() for t in threads]\n")
    with ready("/usr/bin/python3", "-c", script) as target:
        check_agreement(world, target.pid)


def test_agrees_with_libunwind_on_redis(world):
    with redis_under_load(world, "get,set,lpush") as server:
        check_agreement(world, server.pid)


def test_agrees_with_libunwind_on_every_state(world):
    with world.running("states", 300) as target:
        check_agreement(world, target.pid)


# ---- Programs of other forms ----

FIXTURES = "tests/fixtures"


def compile_states(world, name, *flags, compiler="gcc", source=None):
    program = world.path(name)
    fixtures = os.path.join(world.source, FIXTURES)
    tool(compiler, "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-D_GNU_SOURCE", "-pthread",
         "-I", fixtures, *flags, source or os.path.join(fixtures, "states.c"), "-o", program)
    return program


def check_states(world, program, waits=WAITS):
    """Attaches to the running program: the stacks of all of its threads must be complete and named."""
    with ready(program, 60) as target:
        done = world.attach(target, "-t")
    stacks = folded(done.stdout)
    for thread, names in waits.items():
        of_thread = [stack for stack in stacks if stack[0] == thread]
        assert of_thread, (thread, stacks)
        for stack in of_thread:
            assert "clone" in stack[1] and has(stack, "start_thread", "run", *names), stack
    main = [stack for stack in stacks if stack[0] == os.path.basename(program)[:15]]
    assert main and all(has(stack, "_start", "main", "sleep_until", "nanosleep") for stack in main), \
        stacks
    assert " 0.00 % cut" in done.stderr, done.stderr


def described_functions(program, section):
    """The functions of the program that have an entry in the section of call frame information."""
    ranges, current = [], None
    for line in tool("readelf", "-W", "--debug-dump=frames", program).splitlines():
        heading = re.match(r"Contents of the (\S+) section", line)
        entry = re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if heading:
            current = heading[1]
        elif entry and current == section:
            ranges.append((int(entry[1], 16), int(entry[2], 16)))
    functions = set()
    for line in tool("nm", program).splitlines():
        symbol = re.fullmatch(r"([0-9a-f]+) [Tt] (\S+)", line)
        if symbol and any(start <= int(symbol[1], 16) < end for start, end in ranges):
            functions.add(symbol[2])
    return functions


OWN = {"main", "run", "in_sleep", "in_spin", "in_lock", "in_pipe", "sleep_until"}


def test_a_static_program(world):
    check_states(world, compile_states(world, "static", "-g", "-static"))


def test_a_static_pie(world):
    check_states(world, compile_states(world, "static-pie", "-g", "-static-pie"))


def test_debug_frame_alone(world):
    program = compile_states(world, "debug-frame", "-g", "-fno-asynchronous-unwind-tables",
                             "-fno-unwind-tables", "-fomit-frame-pointer")
    assert not OWN & described_functions(program, ".eh_frame")
    assert OWN <= described_functions(program, ".debug_frame")
    check_states(world, program)
    packed = world.path("debug-packed")
    tool("objcopy", "--compress-debug-sections", program, packed)
    assert re.search(r"\.debug_frame .* C ", tool("readelf", "-SW", packed))
    check_states(world, packed)


NO_TABLES = ("-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-dwarf2-cfi-asm")


def test_frame_pointers_alone(world):
    program = compile_states(world, "frame-pointer", *NO_TABLES, "-fno-omit-frame-pointer")
    assert not OWN & described_functions(program, ".eh_frame")
    assert not described_functions(program, ".debug_frame")
    check_states(world, program)


@users_build
def test_neither_tables_nor_frame_pointers(world):
    """The code itself shows where the return address is."""
    for level in ("-O0", "-O2", "-O3"):
        program = compile_states(world, "nothing" + level, *NO_TABLES, level,
                                 "-fno-optimize-sibling-calls", "-fno-inline",
                                 "-fomit-frame-pointer")
        assert not OWN & described_functions(program, ".eh_frame")
        check_states(world, program)


def test_nothing_at_all(world):
    """Not even symbols: the code after the current address shows where it returns."""
    program = compile_states(world, "stripped", *NO_TABLES, "-O2", "-fomit-frame-pointer", "-s")
    with ready(program, 60) as target:
        done = world.attach(target, "-t")
    stacks = folded(done.stdout)
    assert {stack[0] for stack in stacks} == {"stripped", *WAITS}, stacks
    for thread, first, *_ in stacks:
        assert (first == "[stripped]") if thread == "stripped" else ("clone" in first), stacks
    assert " 0.00 % cut" in done.stderr, done.stderr


def test_no_way_to_a_return(world):
    """Then the stack is cut, and a note says so."""
    source = world.path("lost.c")
    with open(source, "w") as file:
        file.write("#include <stdio.h>\n#include <unistd.h>\nvolatile int sink;\n"
                   "__attribute__((noinline)) int main(void) { char room[1000]; alarm(60);\n"
                   "setvbuf(stdout, room, _IOFBF, 1000); puts(\"ready\"); fflush(stdout);\n"
                   "for (;;) sink = sink + 1; }\n")
    program = world.path("lost")
    tool("gcc", *NO_TABLES, "-O2", "-fomit-frame-pointer", "-s", source, "-o", program)
    with ready(program) as target:
        stacks = folded(world.attach(target).stdout)
    note = "[truncated: no unwind info in lost]"
    assert stacks and all(stack[0] == note for stack in stacks), stacks


def test_without_the_linkers_table(world):
    program = compile_states(world, "no-table", "-g", "-Wl,--no-eh-frame-hdr")
    assert "GNU_EH_FRAME" not in tool("readelf", "-lW", program)
    check_states(world, program)


def test_linked_by_lld_and_attached_to(world):
    need("ld.lld")
    check_states(world, compile_states(world, "lld", "-g", "-fuse-ld=lld"))
    check_states(world, compile_states(world, "lld-static", "-g", "-fuse-ld=lld", "-static"))


def test_compiled_by_clang(world):
    check_states(world, compile_states(world, "clang", "-g", compiler="clang"))

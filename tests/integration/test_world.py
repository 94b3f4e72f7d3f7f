"""Names stay right whatever happens to the files, the mappings and the process."""

import contextlib
import os
import re
import shutil
import subprocess

from harness import Skip, folded, tool

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@contextlib.contextmanager
def host(world, program, *arguments, seconds=30, **options):
    """fixture-host, or a copy of it; ended at the end."""
    options.setdefault("cwd", "/")
    target = subprocess.Popen([program, str(seconds), *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **options)
    try:
        line = target.stdout.readline()
        assert line == "ready\n", (line, target.stderr.read() if target.poll() else "")
        yield target
    finally:
        target.kill()
        target.communicate()


def built(world, name):
    """A program or library of the fixtures: in_old or in_new is what it runs."""
    return os.path.join(world.build, "tests/fixtures", name)


def copy(world, name, to):
    """Puts a copy there, as an upgrade does: at once, with an inode of its own."""
    shutil.copy(built(world, name), to + ".part")
    os.chmod(to + ".part", 0o755)
    os.rename(to + ".part", to)
    return to


@contextlib.contextmanager
def folder(world, mode=0o755):
    """An empty one, which others may enter."""
    path = world.path("world")
    os.mkdir(path)
    os.chmod(path, mode)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def frames(world, target, *arguments, duration="500ms", **options):
    """All frames of the main program's stacks, and what the profiler said."""
    done = world.fgprof("attach", "-p", target.pid, "-d", duration, *arguments, **options)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert sum(stacks.values()) > 20, (stacks, done.stderr)
    return {frame for stack in stacks for frame in stack}, done.stderr


def unprivileged(world):
    """A copy of the profiler that anybody may run, and how to run it so that it may not use
    map_files."""
    if os.geteuid():
        raise Skip("needs root")
    path = world.path("fgprof-c")
    if not os.path.exists(path):
        shutil.copy(world.program, path)
    os.chmod(path, 0o755)
    return path


def frames_for_nobody(world, target):
    done = subprocess.run([unprivileged(world), "attach", "-p", str(target.pid), "-d", "500ms"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          cwd="/", **NOBODY)
    assert done.returncode == 0, done.stderr
    return {frame for stack in folded(done.stdout) for frame in stack}, done.stderr


def test_deleted_program_and_library(world):
    with folder(world) as path:
        program = copy(world, "fixture-host-in_old", f"{path}/program")
        library = copy(world, "libfixture-plugin-in_new.so", f"{path}/lib.so")
        with host(world, program, "call", library) as target:
            os.unlink(program)
            os.unlink(library)
            found, _ = frames(world, target, "--lines")
            assert any(f.startswith("in_new (") and "plugin.c:" in f for f in found), found
            assert any(f.startswith("main (") and "host.c:" in f for f in found), found
            # pprof takes the first mapping for the program: also one that is deleted.
            profile = world.path("deleted.pb.gz")
            world.attach(target, "-o", profile, duration="300ms")
            raw = tool("go", "tool", "pprof", "-raw", profile)
            first = re.search(r"^Mappings\n1: (.*)$", raw, re.MULTILINE)[1]
            assert f"{path}/program" in first, raw


def test_replaced_program_and_library(world):
    """An upgrade under a running server: what runs is the old, and must never have the new names."""
    with folder(world) as path:
        program = copy(world, "fixture-host-in_old", f"{path}/program")
        library = copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        with host(world, program, "call", library) as by_library, host(world, program) as by_itself:
            copy(world, "fixture-host-in_new", program)
            copy(world, "libfixture-plugin-in_new.so", library)
            for target in by_library, by_itself:
                found, _ = frames(world, target)
                assert "in_old" in found and "in_new" not in found, found
            # What is not there any more is not sampled by the old names either.
            with host(world, program, "call", library) as new:
                found, _ = frames(world, new)
                assert "in_new" in found and "in_old" not in found, found


def test_replaced_without_privileges(world):
    """Without map_files a library that is gone has no names, and the program has its own: by the
    link /proc/PID/exe, which leads to it wherever it is."""
    unprivileged(world)
    with folder(world) as path:
        program = copy(world, "fixture-host-in_old", f"{path}/program")
        library = copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        with host(world, program, "call", library, **NOBODY) as target, \
                host(world, program, **NOBODY) as by_itself:
            found, _ = frames_for_nobody(world, target)
            assert {"main", "run_plugin", "in_old"} <= found, found
            copy(world, "fixture-host-in_new", program)
            copy(world, "libfixture-plugin-in_new.so", library)
            found, said = frames_for_nobody(world, target)
            assert "[lib.so]" in found, found
            assert not found & {"in_old", "in_new", "run_plugin"}, found
            found, said = frames_for_nobody(world, by_itself)
            assert {"main", "in_old"} <= found and "in_new" not in found, found


def test_file_called_deleted(world):
    unprivileged(world)
    with folder(world) as path:
        library = copy(world, "libfixture-plugin-in_new.so", f"{path}/lib.so (deleted)")
        copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        program = copy(world, "fixture-host-in_old", f"{path}/program (deleted)")
        with host(world, program, "call", library, **NOBODY) as target:
            for found, _ in frames(world, target), frames_for_nobody(world, target):
                assert "in_new" in found and "in_old" not in found and "main" in found, found


def test_library_in_the_place_of_another(world):
    """Two libraries take turns at the same address: each sample has the name of the one that was
    there, and not that of the one that was there when the maps were read last."""
    with folder(world) as path:
        libraries = [copy(world, f"libfixture-plugin-{name}.so", f"{path}/{name}.so")
                     for name in ("in_old", "in_new")]
        with host(world, built(world, "fixture-host-in_old"), "swap", *libraries,
                  seconds=5) as target:
            done = world.fgprof("attach", "-p", target.pid)
            lines = [line.split() for line in target.stdout.read().splitlines()]
    assert done.returncode == 0, done.stderr
    if len({where for _, where in lines}) != 1:
        raise Skip("the libraries were not loaded at the same address")
    stacks = folded(done.stdout)
    right = wrong = 0
    for stack, count in stacks.items():
        for caller, name in ("at_even", "in_old"), ("at_odd", "in_new"):
            if caller in stack and not {"in_old", "in_new"}.isdisjoint(stack):
                right += count if name in stack else 0
                wrong += count if name not in stack else 0
    # Between the copy of a stack and the look at what is mapped a library may still go: all the
    # more where the machine is busy.
    assert right > 200 and wrong < 0.2 * right, (right, wrong, stacks)
    # Where the same is loaded again, its stacks are the same rows.
    assert int(re.search(r"(\d+) distinct stacks", done.stderr)[1]) < 60, done.stderr

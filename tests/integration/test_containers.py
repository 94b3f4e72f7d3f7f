"""Containers: processes in their own PID, mount and user namespaces, sampled from outside and inside. A
container is a folder made of the fixtures and the libraries that they need, in which unshare(1) and chroot(1)
start programs."""

import contextlib
import os
import re
import shutil
import subprocess

from harness import Skip, children_of, folded, status_field, tool, wait_for

INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount"]
ROOTLESS = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount"]


def install(root, program, at):
    """Puts a program into the tree, and the libraries that it needs at their paths."""
    for path in tool("ldd", program).split():
        if path.startswith("/") and not os.path.exists(root + path):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
    os.makedirs(os.path.dirname(root + at), exist_ok=True)
    shutil.copy(program, root + at)
    os.chmod(root + at, 0o755)


@contextlib.contextmanager
def tree(world):
    """A container's files. Its /usr/lib/fixture.so is in_new; outside, the file at that path is
    in_old."""
    if os.geteuid():
        raise Skip("needs root")
    root = world.path("container")
    fixtures = os.path.join(world.build, "tests/fixtures")
    try:
        for folder in "proc", "tmp", "dev":
            os.makedirs(f"{root}/{folder}")
        os.chmod(f"{root}/tmp", 0o1777)
        install(root, f"{fixtures}/fixture-host-in_old", "/program")
        install(root, world.fixture("jit"), "/jit")
        install(root, world.fixture("workers"), "/workers")
        install(root, world.program, "/fgprof-c")
        open(f"{root}/dev/null", "w", encoding="ascii").close()
        install(root, "/bin/sh", "/bin/sh")
        install(root, "/bin/sleep", "/bin/sleep")
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def command(root, words, how=INSIDE):
    """Mounts /proc for the container's PID namespace and runs `words` with its root."""
    script = f'mount -t proc proc {root}/proc && exec chroot {root} "$@"'
    return [*how, "sh", "-c", script, "sh", *map(str, words)]


def check_possible(root, how):
    done = subprocess.run(command(root, ["/bin/sh", "-c", "exit 7"], how), check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)
    if done.returncode != 7:
        raise Skip("such namespaces are not permitted")


@contextlib.contextmanager
def container(root, words, how=INSIDE):
    """Yields the id of the container's first process as seen from outside, once it is ready."""
    check_possible(root, how)
    with subprocess.Popen(command(root, words, how), stdout=subprocess.PIPE, text=True) as outer:
        try:
            assert outer.stdout.readline() == "ready\n"
            yield children_of(outer.pid)[0]
        finally:
            outer.kill()


def sampled(world, pid, *arguments):
    done = world.fgprof("attach", "-p", pid, "-d", "700ms", *arguments)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert sum(stacks.values()) > 20, (stacks, done.stderr)
    return stacks, done.stderr


def inside(root, words, how=INSIDE):
    """Runs `words` in a container to its end."""
    check_possible(root, how)
    done = subprocess.run(command(root, words, how), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return folded(done.stdout), done.stderr


def frames(stacks):
    return {frame for stack in stacks for frame in stack}


def test_names_from_outside(world):
    """A library and a program whose paths lead to other files where the profiler runs."""
    with tree(world) as root:
        fixtures = os.path.join(world.build, "tests/fixtures")
        here = world.path("lib.so")
        shutil.copy(f"{fixtures}/libfixture-plugin-in_old.so", here)
        os.makedirs(root + os.path.dirname(here), exist_ok=True)
        shutil.copy(f"{fixtures}/libfixture-plugin-in_new.so", root + here)
        for how in INSIDE, ROOTLESS:
            with container(root, ["/program", "30", "call", here], how) as pid:
                found = frames(sampled(world, pid)[0])
                assert {"main", "run_plugin", "in_new"} <= found and "in_old" not in found, found


def test_thread_ids_are_the_profilers_own(world):
    """From outside they are the outer ids, and from inside the inner ones."""
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            with container(root, ["/workers", "300", "1", "2"], how) as pid:
                tids = set(map(int, os.listdir(f"/proc/{pid}/task")))
                wait_for(lambda: {open(f"/proc/{pid}/task/{tid}/comm").read() for tid in tids} ==
                         {"workers\n", "spinning\n", "sleeping\n"}, "names")
                stacks, _ = sampled(world, pid, "--threads=tid")
                assert {int(stack[0].split("/")[1]) for stack in stacks} == tids, (stacks, tids)
                assert not any(tid < 6 for tid in tids), tids
                chosen, said = sampled(world, pid, "--tid", max(tids), "--threads=tid")
                assert {int(stack[0].split("/")[1]) for stack in chosen} == {max(tids)}, chosen
            stacks, _ = inside(root, ["/fgprof-c", "run", "--threads=tid", "--", "/workers", "2",
                                      "1", "2"], how)
            tids = {int(stack[0].split("/")[1]) for stack in stacks}
            assert len(tids) == 4 and max(tids) < 20, stacks


def test_perf_map_from_outside_and_inside(world):
    """The map's name has the process's innermost id, and the map is in the process's own /tmp."""
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            stacks, said = inside(root, ["/fgprof-c", "run", "--", "/jit", "2", "replaced"],
                                  how)
            assert {"first function_[j]", "second function_[j]"} <= frames(stacks), (stacks, said)
            check_possible(root, how)
            script = ["/bin/sh", "-c", "/jit 60 replaced & echo ready; wait"]
            with container(root, script, how) as shell:
                wait_for(lambda: children_of(shell), "a child")
                pid = children_of(shell)[0]
                wait_for(lambda: open(f"/proc/{pid}/comm").read() == "jit\n", "the program")
                inner = status_field(pid, "NSpid").split()[-1]
                assert inner != str(pid), inner
                # The file outside in the place of the container's belongs to another process.
                decoy = f"/tmp/perf-{inner}.map"
                has_decoy = not os.path.exists(decoy)
                if has_decoy:
                    with open(decoy, "w", encoding="ascii") as file:
                        file.write("1000 7fffffffe000 decoy\n")
                try:
                    stacks, said = sampled(world, pid)
                finally:
                    if has_decoy:
                        os.unlink(decoy)
                assert any(name.endswith(" function_[j]") for name in frames(stacks)), (
                    stacks, said)
                assert "decoy_[j]" not in frames(stacks), stacks
            os.unlink(f"{root}/tmp/perf-{inner}.map")


def test_jitdump_from_outside_and_inside(world):
    """The jitdump's name has the innermost id too; it is the file that the process has mapped."""
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            with container(root, ["/jit", "60", "dump", "/tmp"], how) as pid:
                inner = status_field(pid, "NSpid").split()[-1]
                dump = f"{root}/tmp/jit-{inner}.dump"
                assert inner != str(pid) and open(f"/proc/{pid}/comm").read() == "jit\n", inner
                wait_for(lambda: os.path.exists(dump) and
                         b"other function" in open(dump, "rb").read(), "the jitdump")
                # There is another file at its path outside.
                decoy = f"/tmp/jit-{inner}.dump"
                has_decoy = not os.path.exists(decoy)
                if has_decoy:
                    with open(decoy, "wb") as file:
                        file.write(open(dump, "rb").read().replace(b"moving", b"decoys"))
                try:
                    stacks, said = sampled(world, pid, "--lines")
                finally:
                    if has_decoy:
                        os.unlink(decoy)
                assert any(re.fullmatch(r"moving function \(made\.lua:[78]\)_\[j\]", stack[-1])
                           for stack in stacks), (stacks, said)
                assert not any("decoys" in name for name in frames(stacks)), stacks
            os.unlink(dump)
            stacks, said = inside(root, ["/fgprof-c", "run", "--", "/jit", "2", "dump",
                                         "/tmp"], how)
            assert "moving function_[j]" in frames(stacks), (stacks, said)


def test_attach_inside(world):
    """Uses the inner ids; processes outside are not visible."""
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            stacks, _ = inside(root, ["/bin/sh", "-c", ": >/tmp/said; /program 30 >/tmp/said & "
                                      "until [ -s /tmp/said ]; do sleep 0.01; done; "
                                      "exec /fgprof-c attach -p $! -d 500ms"], how)
            assert {"main", "in_old"} <= frames(stacks), stacks


def test_debug_file_of_the_container(world):
    """Stripped files have their debug information below the container's /usr/lib/debug."""
    with tree(world) as root:
        program = f"{root}/stripped"
        shutil.copy(f"{root}/program", program)
        build_id = re.search(r"Build ID: (\w+)", tool("readelf", "-n", program))[1]
        debug = f"{root}/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        os.makedirs(os.path.dirname(debug))
        tool("objcopy", "--only-keep-debug", program, debug)
        tool("strip", program)
        for how in INSIDE, ROOTLESS:
            with container(root, ["/stripped", "30"], how) as pid:
                found = frames(sampled(world, pid, "--lines")[0])
                assert any(f.startswith("main (") and "host.c:" in f for f in found), found

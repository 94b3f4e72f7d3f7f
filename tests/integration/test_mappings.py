"""Names stay right whatever happens to the files, the mappings and the process."""

import contextlib
import os
import re
import shutil
import subprocess

from harness import (Skip, alone, children_of, folded, has, late_share, ticks_late, ticks_planned, tool,
                     users_build, wait_until_sampled, wait_until_sampling)

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@contextlib.contextmanager
def host(world, program, *arguments, seconds=100, **options):
    """fixture-host, or a copy of it; it is ended with the context."""
    options.setdefault("cwd", "/")
    target = subprocess.Popen([program, str(seconds), *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **options)
    try:
        line = target.stdout.readline()
        assert line == "ready\n", (line, target.stderr.read() if target.poll() else "")
        yield target
    finally:
        target.kill()
        target.communicate()


def built(world, name):
    """A program or library of the fixtures: its code runs in_old or in_new."""
    return os.path.join(world.build, "tests/fixtures", name)


def copy(world, name, to):
    """Puts a copy there as an upgrade does: atomically, with a new inode."""
    shutil.copy(built(world, name), to + ".part")
    os.chmod(to + ".part", 0o755)
    os.rename(to + ".part", to)
    return to


@contextlib.contextmanager
def folder(world, mode=0o755):
    """An empty folder that other users may enter."""
    path = world.path("world")
    os.mkdir(path)
    os.chmod(path, mode)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def frames(world, target, *arguments, duration="500ms", **options):
    """All frames of the main program's stacks, and the profiler's messages."""
    done = world.fgprof("attach", "-p", target.pid, "-d", duration, *arguments, **options)
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    assert sum(stacks.values()) > 20, (stacks, done.stderr)
    return {frame for stack in stacks for frame in stack}, done.stderr


def unprivileged(world):
    """A copy of the profiler that every user may run, and how to run it so that it may not use map_files."""
    if os.geteuid():
        raise Skip("needs root")
    path = world.path("fgprof-c")
    if not os.path.exists(path):
        shutil.copy(world.program, path)
    os.chmod(path, 0o755)
    return path


def by_nobody(world, *arguments):
    done = subprocess.run([unprivileged(world), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, cwd="/", **NOBODY)
    assert done.returncode == 0, done.stderr
    return done


def frames_for_nobody(world, target):
    done = by_nobody(world, "attach", "-p", str(target.pid), "-d", "500ms")
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
            # pprof takes the first mapping to be the program, even a deleted one.
            profile = world.path("deleted.pb.gz")
            world.attach(target, "-o", profile, duration="300ms")
            raw = tool("go", "tool", "pprof", "-raw", profile)
            first = re.search(r"^Mappings\n1: (.*)$", raw, re.MULTILINE)[1]
            assert f"{path}/program" in first, raw


def test_replaced_program_and_library(world):
    """An upgrade under a running server: the old files keep running, and must never get the new names."""
    with folder(world) as path:
        program = copy(world, "fixture-host-in_old", f"{path}/program")
        library = copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        with host(world, program, "call", library) as by_library, host(world, program) as by_itself:
            copy(world, "fixture-host-in_new", program)
            copy(world, "libfixture-plugin-in_new.so", library)
            for target in by_library, by_itself:
                found, _ = frames(world, target)
                assert "in_old" in found and "in_new" not in found, found
            # What is no longer there is not sampled under the old names either.
            with host(world, program, "call", library) as new:
                found, _ = frames(world, new)
                assert "in_new" in found and "in_old" not in found, found


def test_replaced_without_privileges(world):
    """Without map_files a library that is gone has no names. The program still has its own,
    through the link /proc/PID/exe, which leads to it wherever it is."""
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
            assert f"1 module could not be read: {library} (deleted)" in said, said
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
    """Two libraries take turns at the same address: each sample gets its name from the library
    that was there, and not from the one that was there when the maps were last read."""
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
    # A library may still go between the copy of a stack and the check of what is mapped, more often on a busy
    # machine. Without that check, half of them are wrong.
    assert right > 200 and wrong < 0.5 * right, (right, wrong, stacks)
    # If the same library is loaded again, its stacks are the same rows: otherwise nearly each tick
    # would have its own. Some are in the dynamic linker, more if that is slow.
    taken = ticks_planned(done.stderr) - ticks_late(done.stderr)
    rows = int(re.search(r"(\d+) distinct stacks", done.stderr)[1])
    assert rows < 40 + taken / 4, done.stderr


@alone
def test_code_mapped_since_the_maps_were_read(world):
    """A thread found asleep in such code is read again once the maps have been, and not left with
    a cut stack until it wakes up: here after fifty ticks."""
    if os.uname().machine != "x86_64":
        raise Skip("the code is for x86-64")
    with world.running("mapper", 30) as target:
        done = world.attach(target, "-F", 1000, duration="4s")
    stacks = {stack: count for stack, count in folded(done.stdout).items()
              if has(stack, "asleep_in_mapped")}
    cut = sum(count for stack, count in stacks.items() if "truncated" in stack[0])
    whole = sum(count for stack, count in stacks.items() if has(stack, "in_mapper"))
    # On a busy machine the thread is awake again before it is read again.
    assert whole > 1000 and cut < (0.03 + late_share(done.stderr)) * whole, (cut, whole, done.stderr)


def test_modules_that_are_no_elf_files(world):
    """They are skipped, named and counted; sampling goes on."""
    if os.uname().machine != "x86_64":
        raise Skip("the code is for x86-64")
    spin = b"\xeb\xfe"  # jmp to itself
    header = open(built(world, "libfixture-plugin-in_old.so"), "rb").read(4096)
    files = {
        "not ELF": (spin.ljust(4096, b"\0"), 4096),
        "huge\x1b[31m;name": (spin, 4 << 30),
        "cut short": (header[:64], 4096),
        "garbage": (header[:16] + b"\xff" * 4080, 4096),
    }
    for name, (content, size) in files.items():
        with folder(world) as path:
            file = f"{path}/{name}"
            with open(file, "wb") as out:
                out.write(content)
                out.truncate(size)
            how = "map-call" if content.startswith(spin) else "map"
            with host(world, built(world, "fixture-host-in_old"), how, file) as target:
                done = world.fgprof("attach", "-p", target.pid, "-d", "500ms")
                assert done.returncode == 0, done.stderr
                stacks = folded(done.stdout)
            assert sum(stacks.values()) > 20, done.stderr
            if how == "map":
                assert any("in_old" in stack for stack in stacks), stacks
                continue
            assert re.search(r"1 module could not be read.*world/[^\x1b]*"
                             r" \(not a valid ELF file\)", done.stderr), done.stderr
            assert any(re.fullmatch(r"\[(not ELF|huge.*name)\]", stack[-1]) for stack in stacks), (
                stacks)


def test_strange_paths(world):
    """Whatever a path contains, its code has names, even without map_files."""
    unprivileged(world)
    names = ["a b", "line\nfeed", "semi;colon", "[brackets]", "größe", b"\xff\xfe", "percent%s%n",
             " 12", "a/" * 8 + "deep", "/".join(["x" * 250] * 15 + ["y" * 130])]
    with folder(world) as path, contextlib.ExitStack() as programs:
        program = copy(world, "fixture-host-in_old", f"{path}/program")
        targets = {}
        for number, name in enumerate(names):
            library = os.fsencode(f"{path}/{number}/") + os.fsencode(name)
            os.makedirs(os.path.dirname(library))
            shutil.copy(built(world, "libfixture-plugin-in_new.so"), library)
            os.chmod(library, 0o755)
            targets[name] = programs.enter_context(host(world, program, "call", library, **NOBODY))
        pids = ",".join(str(target.pid) for target in targets.values())
        # They all want a CPU all the time: so long that each has one, and is looked at then.
        command = "attach", "--processes", "--max-pause", "50", "-d", "2s", "-p", pids
        for done in world.fgprof(*command), by_nobody(world, *command):
            stacks = folded(done.stdout)
            for name, target in targets.items():
                assert any(has(stack, f"/{target.pid}", "main", "run_plugin", "in_new")
                           for stack in stacks), (name, stacks, done.stderr)
        done = world.fgprof(*command, "-f", "text")
        assert done.stdout.count("\tin_new+0x") >= len(names), done.stdout
        profile = world.path("paths.pb.gz")
        world.fgprof(*command, "-o", profile)
        assert "in_new" in tool("go", "tool", "pprof", "-raw", profile)


def test_program_in_memory_only(world):
    """Executed from a memfd, which has no path at all: found through its /proc link as well."""
    unprivileged(world)
    memory = os.memfd_create("in memory", 0)
    with open(built(world, "fixture-host-in_new"), "rb") as program:
        os.write(memory, program.read())
    os.fchmod(memory, 0o755)
    with host(world, f"/proc/self/fd/{memory}", pass_fds=[memory], **NOBODY) as target:
        assert "/memfd:in memory (deleted)" in open(f"/proc/{target.pid}/maps").read()
        for found, _ in frames(world, target), frames_for_nobody(world, target):
            assert {"main", "in_new"} <= found, found
    os.close(memory)


def test_program_in_a_removed_directory(world):
    unprivileged(world)
    with folder(world) as path:
        os.mkdir(f"{path}/there")
        program = copy(world, "fixture-host-in_new", f"{path}/there/program")
        with host(world, program, **NOBODY) as target:
            shutil.rmtree(f"{path}/there")
            for found, _ in frames(world, target), frames_for_nobody(world, target):
                assert {"main", "in_new"} <= found, found


def without_map_files(world, target, duration="500ms"):
    """Frames as seen by a container's root, which has CAP_SYS_PTRACE but not what map_files needs."""
    done = subprocess.run(["setpriv", "--bounding-set", "-sys_admin,-checkpoint_restore",
                           "--inh-caps", "-all", unprivileged(world), "attach", "-p",
                           str(target.pid), "-d", duration], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {frame for stack in folded(done.stdout) for frame in stack}, done.stderr


def test_another_mount_namespace(world):
    """The target's path leads to another file where the profiler runs."""
    unprivileged(world)
    with folder(world) as path:
        for name in "inside", "outside", "at":
            os.mkdir(f"{path}/{name}")
        copy(world, "libfixture-plugin-in_old.so", f"{path}/inside/lib.so")
        copy(world, "libfixture-plugin-in_new.so", f"{path}/at/lib.so")
        script = f'mount --bind {path}/inside {path}/at && exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "true"],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            raise Skip("mount namespaces are not permitted")
        with host_of(["unshare", "-m", "sh", "-c", script, "sh",
                      built(world, "fixture-host-in_new"), "100", "call",
                      f"{path}/at/lib.so"]) as target:
            for found, _ in frames(world, target), without_map_files(world, target):
                assert "in_old" in found and "in_new" not in found and "main" in found, found


@contextlib.contextmanager
def host_of(command):
    target = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        yield target
    finally:
        target.kill()
        target.communicate()


def test_hidden_by_a_mount(world):
    """Another file system is mounted over the library's folder: its file with the same path, and by chance
    the same inode number, is not the one that runs."""
    unprivileged(world)
    with folder(world) as path:
        os.mkdir(f"{path}/at")
        old, new = (built(world, f"libfixture-plugin-{name}.so") for name in ("in_old", "in_new"))
        mount = f"mount -t tmpfs none {path}/at && cp"
        script = (f'{mount} {old} {path}/at/lib.so || exit; ls -i {path}/at/lib.so; '
                  f'"$@" & read line; '
                  f'{mount} {new} {path}/at/lib.so; ls -i {path}/at/lib.so; echo $!; wait')
        target = subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh",
                                   built(world, "fixture-host-in_new"), "100", "call",
                                   f"{path}/at/lib.so"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = 0
        try:
            first = target.stdout.readline()
            if not first:
                raise Skip("mounts are not permitted")
            assert target.stdout.readline() == "ready\n"
            target.stdin.write("\n")
            target.stdin.flush()
            second = target.stdout.readline()
            pid = int(target.stdout.readline())
            assert first == second, (first, second)
            child = subprocess.Popen.__new__(subprocess.Popen)
            child.pid, child.returncode = pid, 0
            found, _ = frames(world, child)
            assert "in_old" in found and "in_new" not in found, found
            found, said = without_map_files(world, child)
            assert "[lib.so]" in found and not found & {"in_old", "in_new"}, found
            assert "replaced by another file" in said, said
        finally:
            if pid:
                os.kill(pid, 9)
            target.kill()
            target.communicate()


def test_on_an_overlay(world):
    """As in a container: the program is in the lower layer, the library in the upper one. If these
    are two file systems, or on older kernels, maps and stat report different devices."""
    unprivileged(world)
    library, other = (built(world, f"libfixture-plugin-{name}.so") for name in ("in_old", "in_new"))

    def both(target):
        return (frames(world, target, duration="250ms"),
                without_map_files(world, target, duration="250ms"))

    for lower in "upper-fs/lower", "lower":
        with folder(world) as path:
            os.mkdir(f"{path}/upper-fs")
            script = (f"cd {path} && mount -t tmpfs none upper-fs && mkdir -p merged {lower} && "
                      f"cd upper-fs && mkdir upper work && "
                      f"cp {built(world, 'fixture-host-in_new')} ../{lower}/program && "
                      f"cp {library} ../{lower}/lower.so && "
                      f"mount -t overlay none -o lowerdir=../{lower},upperdir=upper,workdir=work ../merged && "
                      f'cp {library} ../merged/upper.so && cd ../merged && exec "$@"')
            in_overlay = ["unshare", "-m", "sh", "-c", script, "sh"]
            if subprocess.run([*in_overlay, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
                raise Skip("overlays are not permitted")
            with host_of([*in_overlay, f"{path}/merged/program", "100", "call",
                          f"{path}/merged/upper.so"]) as target:
                for found, _ in both(target):
                    assert {"main", "run_plugin", "in_old"} <= found, (lower, found)
            # Writing to a file in place creates a copy with the same inode; the mapping keeps the old
            # contents.
            with host_of([*in_overlay, f"{path}/merged/program", "100", "call",
                          f"{path}/merged/lower.so"]) as target:
                shutil.copyfile(other, f"/proc/{target.pid}/root{path}/merged/lower.so")
                for found, said in both(target):
                    assert "[lower.so]" in found and not found & {"in_old", "in_new"}, (lower, found)
                    assert "lower.so (replaced by another file)" in said, said


def test_in_a_chroot(world):
    unprivileged(world)
    with folder(world) as path:
        program = built(world, "fixture-host-in_old")
        library = built(world, "libfixture-plugin-in_new.so")
        for name in tool("ldd", program).split():
            if name.startswith("/"):
                os.makedirs(path + os.path.dirname(name), exist_ok=True)
                shutil.copy(name, path + name)
        shutil.copy(program, f"{path}/program")
        shutil.copy(library, f"{path}/lib.so")
        with host_of(["chroot", path, "/program", "100", "call", "/lib.so"]) as target:
            for found, _ in frames(world, target), without_map_files(world, target):
                assert {"main", "in_new"} <= found, found


def test_many_libraries_and_few_files(world):
    """There are more libraries than files may be open: the first ones have names, the others are counted, and
    sampling, naming and writing continue."""
    with folder(world) as path:
        libraries = []
        for number in range(600):
            libraries.append(f"{path}/{number}.so")
            shutil.copy(built(world, "libfixture-plugin-in_new.so"), libraries[-1])
        with host(world, built(world, "fixture-host-in_old"), "keep", *libraries) as target:
            done = subprocess.run(["prlimit", "--nofile=256:256", world.program, "attach", "-p",
                                   str(target.pid), "-d", "1s"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            stacks = folded(done.stdout)
            assert sum(stacks.values()) > 80, done.stderr
            # In the order of their addresses: the library that was loaded last comes first.
            assert any("in_new" in stack for stack in stacks), stacks
            assert "could not be read: " in done.stderr, done.stderr
            assert "libc.so.6 (too many open files)" in done.stderr, done.stderr
            assert "[libc.so.6]" in {frame for stack in stacks for frame in stack}, stacks
            found, _ = frames(world, target)
            assert {"main", "in_new"} <= found, found


def test_pid_namespace(world):
    """Outside by its outer number, inside by its inner one."""
    unprivileged(world)
    program = built(world, "fixture-host-in_old")
    inside = ["unshare", "-p", "-f", "--mount-proc", "--kill-child"]
    if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("namespaces are not permitted")
    with host_of([*inside, program, "100"]) as target:
        done = world.fgprof("attach", "-p", children_of(target.pid)[0], "-d", "500ms")
        assert done.returncode == 0 and "in_old" in done.stdout, done
    said = world.path("said")
    script = (f': >{said}; {program} 30 >{said} & until [ -s {said} ]; do sleep 0.01; done; '
              f'{world.program} attach -p $! -d 500ms')
    done = subprocess.run([*inside, "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "in_old" in done.stdout, done


def test_truncated_while_sampled(world):
    """The file is truncated under the process and the profiler: that may kill the process, but not the
    profiler."""
    with folder(world) as path:
        library = copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        with host(world, built(world, "fixture-host-in_new"), "call", library) as target:
            sampler = world.start("attach", "-p", target.pid, "-d", "2s")
            wait_until_sampling(sampler)
            wait_until_sampled(target.pid, "fixture-host-in")
            with open(library, "r+b") as file:
                file.truncate(100)
            stdout, stderr = sampler.communicate(timeout=60)
        assert sampler.returncode == 0, (sampler.returncode, stderr)
        assert any("main" in stack for stack in folded(stdout)), (stdout, stderr)


def test_vdso(world):
    """The kernel's own library, which is not a file."""
    # It only asks for the time.
    with world.running("renamed", 60, stdin=subprocess.PIPE) as target:
        if "[vdso]" not in open(f"/proc/{target.pid}/maps").read():
            raise Skip("there is no vdso")
        stacks = folded(world.attach(target, duration="1s").stdout)
    assert not any({"[vdso]", "[unknown]"} & set(stack) for stack in stacks), stacks
    # libc's function, and the kernel function that it calls, by one of its names.
    assert any(sum("clock_gettime" in frame for frame in stack) == 2 for stack in stacks), stacks


def test_what_is_at_the_path_by_now(world):
    """A FIFO and a device at the library's path are neither waited for nor opened."""
    unprivileged(world)
    with folder(world) as path:
        library = copy(world, "libfixture-plugin-in_old.so", f"{path}/lib.so")
        with host(world, built(world, "fixture-host-in_new"), "call", library) as target:
            for put in (lambda: os.mkfifo(library), lambda: os.mknod(library, 0o20666, 0x501),
                        lambda: os.mkdir(library)):
                os.unlink(library)
                put()
                assert "in_old" in frames(world, target)[0]
                found, said = without_map_files(world, target)
                assert "[lib.so]" in found and "lib.so (deleted)" in said, (found, said)
                if os.path.isdir(library):
                    os.rmdir(library)


def test_mapped_device(world):
    """Code in a private mapping of a device, which is not opened."""
    with host(world, built(world, "fixture-host-in_old"), "map", "/dev/zero") as target:
        assert "in_old" in frames(world, target)[0]


def test_proc_of_another_pid_namespace(world):
    """The numbers in that /proc belong to other processes than ptrace's numbers."""
    inside = ["unshare", "-p", "-f", "--kill-child"]
    if os.geteuid() or subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL,
                                      check=False).returncode:
        raise Skip("namespaces are not permitted")
    with host(world, built(world, "fixture-host-in_old")) as target:
        done = subprocess.run([*inside, world.program, "attach", "-p", str(target.pid), "-d", "1s"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and not done.stdout, done
    assert "another PID namespace" in done.stderr, done.stderr


@users_build  # the sanitizers need /proc
def test_no_proc(world):
    """Whatever is at /proc instead is not mistaken for another namespace's."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if os.geteuid() or subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL,
                                      check=False).returncode:
        raise Skip("namespaces are not permitted")
    for status, arguments in ((1, ["attach", "-p", "1", "-d", "1s"]), (125, ["run", "--", "true"])):
        done = subprocess.run([*hidden, world.program, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == status and not done.stdout, done
        assert "/proc is not mounted" in done.stderr, done.stderr

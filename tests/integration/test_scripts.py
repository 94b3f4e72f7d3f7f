"""scripts/: what setup installs and prints, the demo, and where they can't work."""

import ast
import contextlib
import fcntl
import glob
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios

from bare_machine import BareMachine
from harness import (HANGS_S, Missing, Skip, all_children_of, need, thread_named, tool, users_build,
                     wait_for)

# For each package of scripts/setup: a program of it, or a file.
PACKAGES = {
    "bash-completion": "/usr/share/bash-completion/bash_completion",
    "binutils": "objcopy",
    "bpftool": "bpftool",
    "chromium": "chromium",
    "chromium-driver": "chromedriver",
    "clang": "clang",
    "clang-format": "clang-format",
    "cmake": "cmake",
    "curl": "curl",
    "debootstrap": "debootstrap",
    "dpkg-dev": "dpkg-shlibdeps",
    "dwz": "dwz",
    "file": "file",
    "fish": "fish",
    "g++": "g++",
    "gcc": "gcc",
    "gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc",
    "gdb": "gdb",
    "gfortran": "gfortran",
    "git": "git",
    "golang-github-google-pprof-dev": "/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto",
    "golang-go": "go",
    "google-perftools": "google-pprof",
    "libbpf-dev": "/usr/include/bpf/libbpf.h",
    "libc6-dbg": "/usr/lib/debug/.build-id/*/*.debug",
    "libc6-dev": "/usr/include/stdio.h",
    "libc6-dev-arm64-cross": "/usr/aarch64-linux-gnu/include/stdio.h",
    "libclang-rt-14-dev": "/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libcurl4": "/usr/lib/*/libcurl.so.4",
    "libdebuginfod1": "/usr/lib/*/libdebuginfod.so.1",
    "libdevel-nytprof-perl": "/usr/share/perl5/*/*/flamegraph.pl",
    "libelf-dev": "/usr/include/libelf.h",
    "libiberty-dev": "/usr/include/libiberty/demangle.h",
    "libjemalloc2": "/usr/lib/*/libjemalloc.so.2",
    "liblzma-dev": "/usr/include/lzma.h",
    "libmicrohttpd-dev": "/usr/include/microhttpd.h",
    "libmimalloc2.0": "/usr/lib/*/libmimalloc.so.2",
    "libncurses-dev": "/usr/include/ncurses.h",
    "libtcmalloc-minimal4": "/usr/lib/*/libtcmalloc_minimal.so.4",
    "libunwind-dev": "/usr/lib/*/pkgconfig/libunwind-ptrace.pc",
    "libzstd-dev": "/usr/include/zstd.h",
    "libzydis-dev": "/usr/include/Zydis/Zydis.h",
    "lintian": "lintian",
    "linux-perf": "perf",
    "lld": "ld.lld",
    "llvm": "llvm-dwp",
    "make": "make",
    "mandoc": "mandoc",
    "mold": "mold",
    "musl-tools": "musl-gcc",
    "openssl": "openssl",
    "nginx": "nginx",
    "nodejs": "node",
    "openjdk-17-jdk-headless": "javac",
    "patchelf": "patchelf",
    "pkgconf": "pkg-config",
    "procps": "ps",
    "prometheus": "prometheus",
    "protobuf-compiler": "protoc",
    "python3": "/usr/share/doc/python3/copyright",
    "qemu-user": "qemu-aarch64",
    "redis-server": "/usr/share/doc/redis-server/copyright",
    "redis-tools": "redis-benchmark",
    "rpm": "rpmbuild",
    "rustc": "rustc",
    "skopeo": "skopeo",
    "valgrind": "valgrind",
    "xz-utils": "xz",
    "zlib1g-dev": "/usr/include/zlib.h",
    "zsh": "/usr/share/doc/zsh/copyright",
}
# Every Debian has these.
BASE = {"apt", "bash", "coreutils", "dash", "dpkg", "findutils", "libc-bin", "perl-base", "sed", "tar",
        "util-linux"}
DIRECTORIES = "/usr/bin", "/usr/sbin", "/bin", "/sbin"


def listed(world, *lists):
    """What scripts/setup installs."""
    text = open(world.source + "/scripts/setup").read()
    packages = set()
    for name in lists or ("build", "test"):
        lines = re.search(rf"^{name}=\(\n(.*?)^\)", text, re.M | re.S)[1].splitlines()
        packages.update(word for line in lines for word in line.split("#")[0].split())
    return packages


def programs_used(world):
    """The programs that tests are known to need, as far as tests contain their names."""
    used = set()
    for path in glob.glob(world.source + "/tests/integration/*.py"):
        for call in (node for node in ast.walk(ast.parse(open(path).read())) if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", getattr(call.func, "attr", None))
            words = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            if name in ("need", "tool"):
                used.update(words if name == "need" else words[:1])
    return {name for name in used if isinstance(name, str)}


def ways_to(path):
    """The path, then the targets of its links, by the names that dpkg may know: packages that are older than
    the merged /usr say /bin."""
    ways = []
    while path:
        ways += [path, path.removeprefix("/usr")]
        path = os.path.join(os.path.dirname(path), os.readlink(path)) if os.path.islink(path) else None
    return ways


def owners(paths):
    """{path: the package that it belongs to, or the first of its links that belongs to one}; None if dpkg
    knows none."""
    asked = sorted({way for path in paths for way in ways_to(path)})
    said = subprocess.run(["dpkg", "-S", *asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout
    known = {path: packages.split(",")[0].split(":")[0]
             for packages, path in re.findall(r"^(\S.*?): (/.*)$", said, re.M)}
    return {path: next((known[way] for way in ways_to(path) if way in known), None) for path in paths}


def evidence_of(package):
    """The file that shows that the package is installed; None if it is not."""
    evidence = PACKAGES[package]
    return next(iter(sorted(glob.glob(evidence))), None) if "/" in evidence else program_file(evidence)


def program_file(name):
    """Where Debian has the program; None if it is not there, or only from elsewhere."""
    return next((f"{directory}/{name}" for directory in DIRECTORIES if os.path.exists(f"{directory}/{name}")),
                None)


@users_build
def test_setup_lists_each_package_that_is_needed(world):
    """So that a missing package is noticed even on a machine that has it by chance."""
    packages = listed(world)
    assert packages == set(PACKAGES), packages ^ set(PACKAGES)
    need("dpkg")
    found = {package: evidence_of(package) for package in PACKAGES}
    used = {program: program_file(program) for program in programs_used(world)}
    assert len(used) > 20, used
    owned_by = owners({path for path in (*found.values(), *used.values()) if path})
    # What is not there is missed by the test that needs it.
    for package, path in found.items():
        assert not path or owned_by[path] == package, (package, path, owned_by[path])
    for program, path in used.items():
        assert not path or owned_by[path] in packages | BASE, (program, path, owned_by[path])


# ---- setup, with stand-ins for what it calls ----

class Machine:
    """A PATH of its own: this machine's programs, except for some, and stand-ins. `calls` has the arguments
    of their calls."""

    def __init__(self, world, name, without=()):
        self.source = world.source
        self.directory = world.path(name)
        self._calls = world.path(name + ".calls")
        os.mkdir(self.directory)
        for program in os.listdir("/usr/bin"):
            if program not in (*without, "apt-get", "dpkg-query", "id", "npm", "sudo"):
                os.symlink("/usr/bin/" + program, f"{self.directory}/{program}")

    def stand_in(self, name, text="exit 0"):
        path = f"{self.directory}/{name}"
        if os.path.islink(path):
            os.unlink(path)  # else the real program would be overwritten
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\necho {name} "$@" | tr "\\n" " " >>{self._calls}; echo >>{self._calls}\n'
                       f"{text}\n")
        os.chmod(path, 0o755)

    def calls(self):
        return open(self._calls).read().splitlines() if os.path.exists(self._calls) else []

    def run(self, *command, prefix=(), **options):
        return subprocess.run([*prefix, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANGS_S, cwd="/",
                              env=dict(os.environ, PATH=self.directory, LC_ALL="C.UTF-8"), **options)

    def setup(self, *arguments, prefix=()):
        return self.run(self.source + "/scripts/setup", *arguments, prefix=prefix)


def installed(world, but=()):
    """The output of dpkg-query."""
    native = tool("dpkg", "--print-architecture").strip()
    return "cat <<END\n" + "".join(f"{name}:{native} {'config-files' if name in but else 'installed'}\n"
                                   for name in listed(world)) + "END"


# As apt-get says it: what it would fetch.
APT = """\
case "$*" in
*--print-uris*)
    echo '1 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.'
    echo 'Need to get 20.7 MB of archives.'
    echo "'http://mirror/cmake.deb' cmake.deb 20300000 MD5Sum:0"
    echo "'http://mirror/gcc.deb' gcc.deb 400000 MD5Sum:0" ;;
*' install '*) echo Unpacking; {install} ;;
*) {update} ;;
esac
"""


def machine_to_set_up(world, name, uid, update="exit 0", install="exit 0", **options):
    """A machine that lacks cmake and gcc."""
    machine = Machine(world, name, **options)
    machine.stand_in("dpkg-query", installed(world, but=("cmake", "gcc")))
    machine.stand_in("id", f"echo {uid}")
    machine.stand_in("apt-get", APT.format(update=update, install=install))
    return machine


SAID = "setup: installing 3 packages (21 MB to fetch): cmake gcc\n"


@users_build
def test_setup_says_how_it_is_called(world):
    machine = Machine(world, "usage")
    for arguments in (), ("all",), ("build", "test"), ("--help",):
        done = machine.setup(*arguments)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr == "usage: scripts/setup build|build-arm64|test|machines\n", done
    for script in "test", "demo", "package":
        done = machine.run(f"{world.source}/scripts/{script}", "--nonsense")
        assert done.returncode == 2 and not done.stdout, done
        assert re.fullmatch(rf"usage: scripts/{script} \[.*\]\n", done.stderr), done


@users_build
def test_setup_does_nothing_if_all_is_there(world):
    machine = Machine(world, "complete")
    machine.stand_in("dpkg-query", installed(world))
    machine.stand_in("apt-get")
    machine.stand_in("sudo")
    for what in "build", "test":
        done = machine.setup(what)
        assert done.returncode == 0 and not done.stdout and not done.stderr, done
    assert all(call.startswith("dpkg-query") for call in machine.calls()), machine.calls()


@users_build
def test_setup_by_sudo(world):
    machine = machine_to_set_up(world, "by-sudo", 1000)
    machine.stand_in("sudo")
    done = machine.setup("build")
    assert done.returncode == 0 and done.stdout == SAID and not done.stderr, done
    asked, update, install = [call for call in machine.calls() if call.startswith("sudo ")]
    assert asked == "sudo -n true " and " apt-get " in update and update.endswith(" update "), machine.calls()
    assert " apt-get " in install and "/usr/sbin/policy-rc.d" in install, install
    assert install.endswith(" install --no-install-recommends --no-remove cmake gcc "), install
    # Nothing else was called as root, and apt-get itself only for what may be asked by everybody.
    asked = [call for call in machine.calls() if call.startswith("apt-get ")]
    assert len(asked) == 1 and "--print-uris" in asked[0], asked


@users_build
def test_setup_for_arm64(world):
    """A native package does not stand for one of the other architecture."""
    machine = Machine(world, "for-arm64")
    have = "".join(f"{name}:amd64 installed\n" for name in listed(world) if name != "make")
    machine.stand_in("dpkg-query", f"cat <<END\n{have}make:all installed\nlibelf-dev:arm64 installed\nEND")
    machine.stand_in("id", "echo 1000")
    machine.stand_in("apt-get", APT.format(update="exit 0", install="exit 0"))
    machine.stand_in("sudo")
    for foreign in "", "armhf":
        machine.stand_in("dpkg", f'[ "$1" = --print-architecture ] && echo amd64 || echo {foreign}')
        done = machine.setup("build-arm64")
        assert done.returncode == 1 and "dpkg --add-architecture arm64" in done.stderr, done
    machine.stand_in("dpkg", '[ "$1" = --print-architecture ] && echo amd64 || printf "armhf\\narm64\\n"')
    done = machine.setup("build-arm64")
    assert done.returncode == 0 and not done.stderr, done
    install = [call for call in machine.calls() if call.startswith("sudo ")][-1].split("--no-remove ")[1].split()
    assert "gcc-aarch64-linux-gnu" not in install  # among those for the tests
    assert set(install) == {name for name in listed(world, "arm64") if name.endswith(":arm64")} - {"libelf-dev:arm64"}


def mount_namespace(script):
    """The beginning of a command in a mount namespace of its own, once the script has run there."""
    if os.geteuid():
        raise Skip("needs root")
    prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"]
    if subprocess.run([*prefix, script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise Skip("mounts are not permitted")
    return [*prefix, script + '; exec "$@"', "sh"]


@users_build
def test_setup_as_root_starts_no_server(world):
    machine = machine_to_set_up(world, "as-root", 0, install="/usr/sbin/policy-rc.d; echo $? >$0.policy")
    prefix = mount_namespace("mount -t tmpfs tmpfs /usr/sbin")
    done = machine.run("sh", "-ec", f"{world.source}/scripts/setup build; ls -A /usr/sbin", prefix=prefix)
    assert done.returncode == 0 and done.stdout == SAID and not done.stderr, done
    assert open(machine.directory + "/apt-get.policy").read() == "101\n"  # forbidden: invoke-rc.d(8)
    assert not any(call.startswith("sudo") for call in machine.calls())


def failed(machine, reason):
    done = machine.setup("build")
    assert done.returncode == 1, done
    assert re.fullmatch(f"setup: {reason}\n", done.stderr), done.stderr
    return done.stdout


@users_build
def test_setup_without_rights(world):
    machine = machine_to_set_up(world, "no-sudo", 1000)
    said = failed(machine, "installing packages needs root, and there is no sudo: run .* as root")
    machine.stand_in("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    said += failed(machine, "installing packages needs root, and sudo does not permit it: run .* as root")
    assert not said and not any(call.startswith("apt-get") for call in machine.calls()), machine.calls()


@users_build
def test_setup_without_a_network(world):
    message = "Failed to fetch http://mirror/x  Temporary failure resolving mirror"
    machine = machine_to_set_up(world, "no-network", 0, update=f'echo "W: {message}" >&2; exit 0')
    machine.stand_in("apt-get", f'case "$*" in *update) echo "W: {message}"; exit 100 ;; esac; '
                     'echo "E: Unable to locate package cmake" >&2; exit 100')
    assert not failed(machine, "the packages can't be installed; is there a network[?] " + re.escape(message))
    # The lists are there, but not the packages.
    very_often = f"yes 'E: {message}' | head -n 9999; exit 100"
    machine.stand_in("apt-get", APT.format(update="exit 0", install=very_often))
    done = machine.setup("build", prefix=mount_namespace("mount -t tmpfs tmpfs /usr/sbin"))
    assert done.returncode == 1 and done.stdout == SAID, done
    assert done.stderr == f"setup: the packages were not installed; is there a network? {message}\n", done


@users_build
def test_setup_shows_what_apt_said_if_it_fails(world):
    machine = machine_to_set_up(world, "broken", 0, install='echo "E: dpkg was interrupted" >&2; exit 100')
    done = machine.setup("build", prefix=mount_namespace("mount -t tmpfs tmpfs /usr/sbin"))
    assert done.returncode == 1 and done.stdout == SAID, done
    assert done.stderr == "Unpacking\nE: dpkg was interrupted\nsetup: the packages were not installed\n", done


@users_build
def test_setup_elsewhere_than_on_debian(world):
    failed(Machine(world, "not-debian"), r"this is no Debian \(there is no apt-get or dpkg-query\): .*")


# ---- Tests that lack something ----

@users_build
def test_a_missing_program_is_a_skip_or_a_failure(world):
    machine = Machine(world, "no-rustc", without=("rustc",))
    run = [sys.executable, world.source + "/tests/integration/run.py"]
    done = machine.run(*run, world.build, "rust")
    assert done.returncode == 0, done
    assert re.match(r"skip \(no rustc\) symbols: rust ", done.stdout), done
    assert done.stdout.endswith("\n0 passed, 0 failed, 1 skipped\n"), done
    done = machine.run(*run, "--all-tools", world.build, "rust")
    assert done.returncode == 1, done
    assert re.match(r"FAIL \(no rustc, which scripts/setup .*\) symbols: rust ", done.stdout), done
    assert done.stdout.endswith("\n0 passed, 1 failed, 0 skipped\n"), done


@users_build
def test_what_fails_only_once_is_named(world):
    need("rustc")
    machine = Machine(world, "busy", without=("rustc",))
    machine.stand_in("rustc", f'mkdir "{world.path("first")}" 2>/dev/null && exit 1; exec "{shutil.which("rustc")}" "$@"')
    run = [sys.executable, world.source + "/tests/integration/run.py", world.build, "rust"]
    done = machine.run(*run)
    assert done.returncode == 0, done
    assert "\nFAIL symbols: rust " in done.stdout and "\nok   symbols: rust " in done.stdout, done
    assert done.stdout.endswith("\ndid not fail again: symbols: rust\n1 passed, 0 failed, 0 skipped\n"), done
    machine.stand_in("rustc", "exit 1")
    done = machine.run(*run)
    assert done.returncode == 1 and done.stdout.count("FAIL symbols: rust ") == 2, done
    assert done.stdout.endswith("\n0 passed, 1 failed, 0 skipped\n"), done


# ---- The demo ----

def read_only_checkout(world, *then):
    """The beginning of a command for which the checkout is on a read-only file system, and its place."""
    place = world.path("checkout")
    os.makedirs(place, exist_ok=True)
    script = f"mount --bind '{world.source}' '{place}'; mount -o remount,bind,ro '{place}'"
    return mount_namespace(script) + list(then), place


@users_build
def test_a_read_only_checkout(world):
    prefix, place = read_only_checkout(world)
    for script, hint in (("demo", "scripts/demo DIRECTORY"), ("test", "copy it"),
                         ("package", "scripts/package DIRECTORY")):
        done = subprocess.run([*prefix, f"{place}/scripts/{script}"], stdin=subprocess.DEVNULL, cwd="/",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANGS_S)
        assert done.returncode == 1 and not done.stdout, (script, done)
        assert re.fullmatch(rf"{script}: {place}\S* is not writable.*\n", done.stderr), (script, done)
        assert hint in done.stderr, done


@users_build
def test_a_correction_that_there_is_not_can_not_be_left_out(world):
    """Otherwise a benchmark would compare two equal builds."""
    need("cmake")
    configure = ["cmake", "-S", world.source, "-B", world.path("build"), "-DBUILD_TESTING=OFF"]
    done = subprocess.run([*configure, "-DFGPROF_WITHOUT=everything"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANGS_S)
    assert done.returncode != 0 and "There is no correction 'everything'" in done.stdout, done.stdout
    done = subprocess.run([*configure, "-DFGPROF_WITHOUT=record;yield", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=HANGS_S)
    with open(world.path("build/compile_commands.json")) as file:
        commands = [entry["command"] for entry in json.load(file)]
    assert done.returncode == 0, done.stdout
    assert all("-DFGPROF_WITHOUT_RECORD -DFGPROF_WITHOUT_YIELD" in command for command in commands)


def test_the_demo_without_proc(world):
    prefix = mount_namespace("umount -l /proc")
    done = subprocess.run([*prefix, world.source + "/scripts/demo", world.path("no-proc")],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=HANGS_S)
    assert done.returncode == 1 and re.fullmatch("demo: /proc is not mounted.*\n", done.stderr), done


def interrupt_by_terminal(command, is_time, **options):
    """Runs the command in a terminal of its own, and presses Ctrl-C there when it is time. Returns its exit
    status and its output; fails if it leaves a process behind."""
    main, side = pty.openpty()
    try:
        with subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, start_new_session=True,
                              preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **options) as demo:
            wait_for(lambda: is_time(demo.pid), "the time to press Ctrl-C", HANGS_S)
            os.write(main, b"\x03")
            said, _ = demo.communicate(timeout=HANGS_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
            raise AssertionError("it left a process behind")
        return demo.returncode, said
    finally:
        os.close(main)
        os.close(side)


def samples_below(pid):
    """Whether the profiler is running, as a child of this process. Other processes come and go meanwhile."""
    try:
        return any(thread_named(child, "fgprof-sampler") for child in all_children_of(pid))
    except OSError:
        return False


def readme_block(world, before):
    """The commands that README.md shows after this line."""
    text = open(world.source + "/README.md").read()
    block = re.search(re.escape(before) + r"\n\n((?: {4}.*\n)+)", text)[1]
    return [line.strip() for line in block.splitlines()]


@users_build
def test_readmes_lines_build_with_what_readme_lists(world):
    """On a machine that has nothing else. The build says there once which tests it leaves out, and why."""
    text = " ".join(open(world.source + "/README.md").read().split())
    packages = re.search(r"If you only build, `([^`]*)`", text)[1].split()
    assert "cmake" in packages and set(packages) < listed(world, "build"), packages
    machine = BareMachine(world, packages)
    setup, build, install = readme_block(world, "From source, on Debian 12:")
    assert setup == "scripts/setup build" and install.startswith("sudo "), (setup, install)
    lines = "\n".join((build, install.removeprefix("sudo "), "fgprof-c --version"))
    done = machine.run("sh", "-ec", f"cd /checkout\nexport PATH=$PATH:/usr/local/bin\n{lines}")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert re.search(r"^fgprof-c \d+\.\d+\.\d+$", done.stdout, re.M), done.stdout[-4000:]
    said = [line for line in done.stdout.splitlines() if "left out" in line.lower()]
    assert len(said) == 1 and "unit tests (cmocka), the integration tests (python3)" in said[0], said
    assert not done.stderr, done.stderr


@users_build
def test_the_demo(world):
    """From a read-only checkout, called from elsewhere, by an unprivileged user, into a directory; as root,
    on a machine on which only what `scripts/setup build` installs is there."""
    need("dpkg-query")
    missing = [package for package in listed(world, "build") if not evidence_of(package)]
    if missing:
        raise Missing(f"no {', '.join(missing)}")
    directory, place = world.path("the demo"), world.path("the demo")
    command = [world.source + "/scripts/demo", directory]
    if not os.geteuid():
        machine = BareMachine(world, listed(world, "build"))
        place = "/the demo"
        directory = machine.root + place
        command = machine.command("/checkout/scripts/demo", place, user=65534, read_only=True)
    os.mkdir(directory)
    if not os.geteuid():
        os.chown(directory, 65534, 65534)
    options = dict(cwd="/", env=dict(os.environ, DEMO_SECONDS="2", HOME="/nonexistent"))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=2 * HANGS_S, **options)
    assert done.returncode == 0, done
    results = {"build", "demo.folded", "demo.html", "demo.svg"}
    assert set(os.listdir(directory)) == results, os.listdir(directory)
    assert not os.path.exists(directory + "/build/tests"), "the demo builds no tests"
    assert "slow_network_request" in open(directory + "/demo.svg").read()
    page = open(directory + "/demo.html").read()
    assert "slow_network_request" in page and '"command":"fgprof-c convert demo.fgprof -o demo.html"' in page
    for line in (r"slow_network_request +60\.0% +[4-7]\d\.\d%", r"  xdg-open \S.*/demo\.html",
                 r"  (sudo )?\S.*/build/fgprof-c attach NAME -d 10s  .*",
                 r"  (sudo )?\S.*/build/fgprof-c top NAME  .*",
                 r"  (sudo )?\S.*/build/fgprof-c dump NAME  .*"):
        assert re.search(f"^{line}$", done.stdout, re.M), (line, done.stdout)
    program = re.search(r"^  (?:sudo )?(\S.*/fgprof-c) top ", done.stdout, re.M)[1]
    shown = ["sh", "-c", program + " --help"]
    assert "top" in tool(*(shown if os.geteuid() else machine.command(*shown))), "as a shell reads it"

    for name in "demo.folded", "demo.html", "demo.svg":
        os.unlink(f"{directory}/{name}")
    options["env"]["DEMO_SECONDS"] = str(HANGS_S)
    status, said = interrupt_by_terminal(command, samples_below, **options)
    assert status == 130, (status, said)
    assert os.listdir(directory) == ["build"], os.listdir(directory)

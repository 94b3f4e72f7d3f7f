"""The Debian packages, and what they contain, installed on a Debian that has nothing else."""

import glob
import os
import re
import shutil
import subprocess

from bare_machine import BareMachine, copy_checkout
from harness import Skip, folded, need, tool, users_build
from test_scripts import listed


def bounded(seconds, *command):
    """Runs a command and all that it starts in namespaces of their own. They end with it, after
    this long at the latest, and no mount stays behind."""
    return subprocess.run(["timeout", "-k", "5", str(seconds), "unshare", "-m", "-p", "-f",
                           "--kill-child", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def inside(root, *command, seconds=200):
    """Runs a command in the tree, with a /proc mounted there."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return bounded(seconds, "sh", "-c", script, root, *command)


def mirror():
    """Where this machine's own packages come from."""
    sources = tool("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)")
    return next(line.split()[1] for line in sources.splitlines() if line.startswith("bookworm "))


def packages(world):
    """Makes the packages, using only what `scripts/setup build` installs. Returns {name: file}."""
    machine = BareMachine(world, listed(world, "build"))
    seen = []
    for place in "/results", "/results-2":
        done = machine.run("/checkout/scripts/package", "--no-setup", place)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        files = sorted(glob.glob(f"{machine.root}{place}/*.deb"))
        seen.append({os.path.basename(file): open(file, "rb").read() for file in files})
    assert seen[0] == seen[1], "their bytes depend on where and when they are made"
    assert not os.path.exists(machine.root + "/results/tests"), "packages need no tests"
    done = machine.run("/checkout/scripts/package", "--no-setup", "--arm64", "/results")
    assert done.returncode == 1 and "has a build for another architecture" in done.stderr, done
    return {os.path.basename(file).split("_")[0]: f"{machine.root}/results/{os.path.basename(file)}" for file in files}


def check_by_lintian(files):
    """The maintainer of the packages has no publicly known address."""
    done = subprocess.run(["timeout", "400", "lintian", "--allow-root", "--suppress-tags",
                           "bogus-mail-host,bogus-mail-host-in-debian-changelog", "--fail-on",
                           "error", *files], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def pkg_config_file(package):
    return subprocess.run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -xO --wildcards "*/fgprof.pc"', package],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def check_what_development_needs(package):
    """The packages that hold what its pkg-config file requires."""
    needed = tool("dpkg-deb", "-f", package, "Depends")
    described = pkg_config_file(package)
    required = re.search("^Requires.private: (.*)", described, re.M)[1].split()
    assert len(required) > 3, described
    for name in required:
        owner = tool("dpkg", "-S", f"*/pkgconfig/{name}.pc").split(":")[0]
        assert owner in needed, (owner, needed)
    is_of_x86 = os.uname().machine == "x86_64"
    assert ("-lZydis" in described) == is_of_x86 and ("libzydis-dev" in needed) == is_of_x86, (described, needed)


def make_debian(root, suite):
    """A Debian with only the essential packages, in a new directory."""
    done = bounded(600, "debootstrap", "--variant=minbase", suite, root, mirror())
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def check_installed(root, made):
    """Installs the packages in a tree that has nothing else, and runs the program."""
    for name in "fgprof-c", "libfgprof0":
        shutil.copy(made[name], f"{root}/tmp/{name}.deb")
    done = inside(root, "apt-get", "install", "-y", "-q", "--no-install-recommends",
                  "/tmp/fgprof-c.deb", "/tmp/libfgprof0.deb")
    assert done.returncode == 0, done.stdout + done.stderr
    done = inside(root, "fgprof-c", "--version")
    assert re.fullmatch(r"fgprof-c \d+\.\d+\.\d+\n", done.stdout), done
    done = inside(root, "fgprof-c", "run", "--state", "--", "sleep", "2")
    assert done.returncode == 0, done.stderr
    stacks = folded(done.stdout)
    asleep = sum(count for stack, count in stacks.items() if stack[-1] == "[clock_nanosleep]")
    assert asleep > 0.5 * sum(stacks.values()) > 10, (stacks, done.stderr)
    # The package's trigger has made the library known to the dynamic linker.
    assert "libfgprof.so.0" in inside(root, "ldconfig", "-p").stdout
    for name in ("man/man1/fgprof-c.1.gz", "man/man1/fgprof-c-attach.1.gz",
                 "man/man5/fgprof-c-formats.5.gz", "bash-completion/completions/fgprof-c",
                 "zsh/vendor-completions/_fgprof-c", "fish/vendor_completions.d/fgprof-c.fish",
                 "doc/fgprof-c/copyright"):
        assert os.path.getsize(f"{root}/usr/share/{name}") > 0, name


@users_build
def test_packages_install_and_run_on_a_clean_debian(world):
    if os.geteuid():
        raise Skip("needs root")
    need("cpack", "dpkg-shlibdeps", "file", "lintian", "debootstrap")
    made = packages(world)
    assert set(made) == {"fgprof-c", "libfgprof0", "libfgprof-dev"}, made
    check_by_lintian(made.values())
    check_what_development_needs(made["libfgprof-dev"])
    root = world.path("debian")
    make_debian(root, "bookworm")
    check_installed(root, made)


def needs_downloads():
    if os.geteuid():
        raise Skip("needs root")
    if not os.environ.get("FGPROF_TEST_PACKAGES"):
        raise Skip("FGPROF_TEST_PACKAGES is not set: it fetches 300 MB")
    need("debootstrap")


def packages_made_in(world, root, *commands):
    """{name: file} of the packages that scripts/package makes in a separate Debian, after these commands."""
    copy_checkout(world.source, root + "/checkout")
    for command in commands:
        done = inside(root, *command, seconds=1200)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return {os.path.basename(file).split("_")[0]: file for file in glob.glob(root + "/results/*.deb")}


@users_build
def test_packages_of_debian_13(world):
    """The packages are made on one, and installed on another."""
    needs_downloads()
    clean, builder = world.path("debian"), world.path("builder")
    make_debian(clean, "trixie")
    tool("cp", "-a", clean, builder)
    check_installed(clean, packages_made_in(world, builder, ("/checkout/scripts/package", "/results")))


@users_build
def test_packages_for_arm64(world):
    needs_downloads()
    need("qemu-aarch64")
    root = world.path("debian")
    make_debian(root, "bookworm")
    made = packages_made_in(world, root, ("dpkg", "--add-architecture", "arm64"),
                            ("/checkout/scripts/package", "--arm64", "/results"))
    assert set(made) == {"fgprof-c", "libfgprof0", "libfgprof-dev"}, made
    for name, file in made.items():
        assert tool("dpkg-deb", "-f", file, "Architecture") == "arm64\n"
        assert "x86_64" not in tool("dpkg-deb", "-c", file)
    assert "/usr/lib/aarch64-linux-gnu/libfgprof.so.0" in tool("dpkg-deb", "-c", made["libfgprof0"])
    assert "Zydis" not in pkg_config_file(made["libfgprof-dev"])
    assert "zydis" not in tool("dpkg-deb", "-f", made["libfgprof-dev"], "Depends")
    done = inside(root, "apt-get", "install", "-s", *(file.removeprefix(root) for file in made.values()))
    assert done.returncode == 0 and "Inst libfgprof-dev:arm64" in done.stdout, done
    # The program runs with the libraries of that Debian.
    place = world.path("unpacked")
    tool("dpkg-deb", "-x", made["fgprof-c"], place)
    libraries = f"{root}/usr/lib/aarch64-linux-gnu"
    said = tool("qemu-aarch64", "-E", f"LD_LIBRARY_PATH={libraries}", f"{libraries}/ld-linux-aarch64.so.1",
                place + "/usr/bin/fgprof-c", "--version")
    assert re.fullmatch(r"fgprof-c \d+\.\d+\.\d+\n", said), said

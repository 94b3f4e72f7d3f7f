"""The cost of each way to install: the size of the download, the disk space, and the time until the program
runs, on a Debian that has nothing else."""

import glob
import os
import re
import shutil
import subprocess
import time

import programs
import tables
from bare_machine import copy_checkout
from test_deb import inside, make_debian
from test_package import unpack_image

TITLE = "Ways to install"
TOOLS = ("debootstrap", "rpm")
SUITE = "bookworm"
SOURCE_S = 1500  # at most, with what it needs


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def made(world):
    """{way: files} that the project's own commands make of the build."""
    release, packages = world.path("release"), world.path("packages")
    run("cmake", "--build", world.build, "--parallel", str(os.cpu_count()))  # manuals, too
    run(os.path.join(world.source, "scripts/release"), world.build, release)
    run(os.path.join(world.source, "scripts/package"), "--no-setup", packages)
    return {
        "tarball": glob.glob(release + "/*.tar.gz"),
        "image": glob.glob(release + "/*.oci.tar"),
        "RPM package": glob.glob(release + "/*.rpm"),
        "Debian packages": [file for file in glob.glob(packages + "/*.deb") if "-dev_" not in file],
    }


def disk_bytes(root):
    return int(run("du", "-sxB1", root).split()[0])


def fetched_mb(said):
    """What apt or scripts/setup says that it fetches, in MB; 0 if it fetches nothing."""
    match = re.search(r"Need to get (?:[\d.,]+ \S+/)?([\d.,]+) (k?M?B)|\((\d+) MB to fetch", said)
    if not match:
        return 0
    number = float((match[1] or match[3]).replace(",", ""))
    return number / 1000 if match[2] == "kB" else number


def timed(root, script, seconds=300):
    """Runs the script in the tree. Returns how long it took, its output, and how much the tree has grown."""
    before, begin = disk_bytes(root), time.monotonic()
    done = inside(root, "sh", "-ec", script, seconds=seconds)
    took_s = time.monotonic() - begin
    assert done.returncode == 0 and re.search(r"^fgprof-c \d", done.stdout, re.M), done.stdout[-2000:] + done.stderr
    return took_s, done.stdout + done.stderr, disk_bytes(root) - before


def in_debian(root, files, script, seconds=300):
    os.makedirs(root + "/in")
    for file in files:
        shutil.copy(file, root + "/in")
    took_s, said, bytes_ = timed(root, script, seconds)
    return took_s, fetched_mb(said), bytes_


def by_image(world, file):
    begin = time.monotonic()
    root = unpack_image(file, world.path(""))
    os.makedirs(root + "/proc", exist_ok=True)
    done = inside(root, "/bin/fgprof-c", "--version")
    assert done.stdout.startswith("fgprof-c "), done
    return time.monotonic() - begin, 0, disk_bytes(root)


def by_rpm(world, file):
    root = world.path("rpm")
    os.mkdir(root)
    begin = time.monotonic()
    run("rpm", "-i", "--root", root, "--dbpath", "/rpm", "--nodeps", file)
    assert run(root + "/usr/bin/fgprof-c", "--version").startswith("fgprof-c ")
    took_s = time.monotonic() - begin
    shutil.rmtree(root + "/rpm")
    return took_s, 0, disk_bytes(root)


def from_source(world, root):
    copy_checkout(world.source, root + "/checkout")
    return in_debian(root, [], "cd /checkout; scripts/setup build; cmake -S . -B build >/dev/null; "
                     "cmake --build build --parallel $(nproc) >/dev/null; cmake --install build >/dev/null; "
                     "fgprof-c --version", SOURCE_S)


def report(world):
    debian, rows = world.path("debian"), []
    programs.progress("  making what is installed")
    files = made(world)
    make_debian(debian, SUITE)
    assert inside(debian, "apt-get", "update", "-q").returncode == 0
    for way, names in files.items():
        programs.progress(f"  {way}")
        root = world.path(way.replace(" ", "-"))
        if way == "image":
            took_s, mb, bytes_ = by_image(world, names[0])
        elif way == "RPM package":
            took_s, mb, bytes_ = by_rpm(world, names[0])
        else:
            run("cp", "-a", debian, root)
            script = ("tar -C /opt -xzf /in/*.tar.gz; /opt/fgprof-c-*/bin/fgprof-c --version" if way == "tarball" else
                      "apt-get install -y -q --no-install-recommends /in/*.deb; fgprof-c --version")
            took_s, mb, bytes_ = in_debian(root, names, script)
            shutil.rmtree(root)
        size = sum(map(os.path.getsize, names))
        rows.append([way, f"{size / 1e6:.1f} MB", f"{mb:.1f} MB", f"{bytes_ / 1e6:.0f} MB", f"{took_s:.1f} s"])
    if not world.is_quick:
        programs.progress("  source")
        took_s, mb, bytes_ = from_source(world, debian)
        rows.append(["source", "-", f"{mb:.0f} MB", f"{bytes_ / 1e6:.0f} MB", f"{took_s:.0f} s"])
    header = ["way", "files", "fetched beside them", "on disk", "until it runs"]
    return f"""Each way from the file to the first `fgprof-c --version`: the image and the RPM package in an
empty tree, the others on a Debian 12 that has nothing but what all have (`debootstrap
--variant=minbase`, with the lists of packages fetched). What is fetched comes from a mirror nearby.
*source* is `scripts/setup build`, cmake, and the build by both CPUs.

{tables.table(header, rows)}"""

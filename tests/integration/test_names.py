"""The names of frames."""

import contextlib
import os
import re
import shutil
import subprocess

from harness import folded, has, need_file, tool, wait_until_asleep

SHORT = "std::vector::push_back", "operator<<", "core::fmt::Write::write_fmt"
FULL = ("std::vector<int, std::allocator<int> >::push_back(int&&)",
        "std::ostream& operator<< <int>(std::ostream&, int)", "core::fmt::Write::write_fmt")
RAW = ("_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZlsIiERSoS0_T_",
       "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE")


def follow(stack, names):
    """Whether the names are adjacent frames of the stack."""
    return any(stack[i:i + len(names)] == names for i in range(len(stack)))


def test_namings(world):
    with world.running("names", 300) as target:
        for names, flags in (SHORT, []), (FULL, ["--full-names"]), (RAW, ["--no-demangle"]):
            stacks = folded(world.attach(target, *flags, duration="200ms").stdout)
            assert stacks and all(follow(stack, ("main", *names)) for stack in stacks), stacks


def test_pprof_has_both_names(world):
    path = world.path("names.pb.gz")
    with world.running("names", 300) as target:
        world.attach(target, "-o", path, duration="200ms")
    raw = tool("go", "tool", "pprof", "-raw", path)
    for short, symbol in zip(SHORT, RAW):
        assert f" {short} " in raw and f"({symbol})" in raw, raw


def test_one_naming_at_a_time(world):
    for flags in ["--full-names", "--no-demangle"], ["--no-demangle", "--full-names"]:
        done = world.fgprof("attach", "-p", 1, *flags)
        assert done.returncode == 2 and "can't be combined" in done.stderr, done


def test_signal_handlers(world):
    for fixture in "handler", "handler-static":
        with world.running(fixture, 300) as target:
            wait_until_asleep(target.pid)
            stacks = folded(world.attach(target, duration="200ms").stdout)
            raw = world.attach(target, "--no-demangle", duration="200ms").stdout
            text = world.attach(target, "-f", "text", duration="200ms").stdout
            path = world.path("handler.pb.gz")
            world.attach(target, "-o", path, duration="200ms")
        for stack in list(stacks) + list(folded(raw)):
            frames = [frame for frame in stack if "signal" in frame or "restore_rt" in frame]
            assert frames == ["<signal handler called>"], stack
            assert has(stack, "main", "interrupted", *frames, "in_handler", "sleep_until"), stack
        assert re.search(r"^#\t0x[0-9a-f]+\t<signal handler called>\+0x0\b", text, re.M), text
        assert "<signal handler called>" in tool("go", "tool", "pprof", "-traces", path)


LIBRARY = r"""
#include <time.h>
int hidden_work(void);
__attribute__((noinline)) static int hidden(void)
{
    struct timespec nap = {300, 0};
    return 1 + nanosleep(&nap, 0);
}
int hidden_work(void)
{
    return 1 + hidden();
}
"""
PROGRAM = r"""
#include <stdio.h>
int hidden_work(void);
int main(void)
{
    puts("ready");
    fflush(stdout);
    return 1 + hidden_work();
}
"""


@contextlib.contextmanager
def calling_a_stripped_library(world):
    """Runs a program in a library whose symbols are in another file. Yields the program, with that
    file."""
    def write(name, text):
        with open(world.path(name), "w") as file:
            file.write(text)
        return world.path(name)
    os.makedirs(world.path("whole"), exist_ok=True)
    whole, stripped = world.path("whole/libhidden.so"), world.path("libhidden.so")
    program = world.path("calls-hidden")
    tool("gcc", "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-fno-optimize-sibling-calls",
         "-o", whole, write("hidden.c", LIBRARY))
    tool("objcopy", "--strip-all", whole, stripped)
    tool("gcc", "-O1", "-o", program, write("calls.c", PROGRAM), stripped)
    target = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    try:
        assert target.stdout.readline() == "ready\n"
        wait_until_asleep(target.pid)
        yield target, whole
    finally:
        target.kill()
        target.stdout.close()
        target.wait()


def test_without_a_name_the_file_stands(world):
    with calling_a_stripped_library(world) as (target, whole):
        plain = folded(world.attach(target, duration="200ms").stdout)
        lines = folded(world.attach(target, "--lines", duration="200ms").stdout)
        text = world.attach(target, "-f", "text", duration="200ms").stdout
    assert all(follow(stack, ("hidden_work", "[libhidden.so]")) for stack in plain), plain
    addresses = {frame.split("+")[1] for stack in lines for frame in stack
                 if frame.startswith("libhidden.so+")}
    assert len(addresses) == 1, lines
    address = addresses.pop()
    assert tool("addr2line", "-f", "-s", "-e", whole, address) == "hidden\nhidden.c:7\n"
    assert re.search(r"^#\t0x[0-9a-f]+\tlibhidden\.so\+" + address + "$", text, re.M), text


# pprof itself: `go tool pprof` does not read build ids (cmd/pprof/pprof.go), and takes no file from
# PPROF_BINARY_PATH for a mapping that has one.
PPROF = r"""
package main

import (
	"os"

	"github.com/google/pprof/driver"
)

func main() {
	if driver.PProf(&driver.Options{}) != nil {
		os.Exit(1)
	}
}
"""


def pprof_itself(world):
    """The path of google/pprof, built of Debian's sources."""
    need_file("pprof as a library", "/usr/share/gocode/src/github.com/google/pprof/driver")
    source, program = world.path("pprof.go"), world.path("pprof")
    with open(source, "w") as file:
        file.write(PPROF)
    tool("go", "build", "-o", program, source,
         env=dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOFLAGS=""))
    return program


def test_pprof_names_it_from_another_file(world):
    path, binaries = world.path("hidden.pb.gz"), world.path("binaries")
    with calling_a_stripped_library(world) as (target, whole):
        world.attach(target, "-o", path, duration="200ms")
    stripped = world.path("libhidden.so")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", whole))[1]
    raw = tool("go", "tool", "pprof", "-symbolize=none", "-raw", path)
    assert re.search(rf"^\d+: 0x\S+ {re.escape(stripped)} {build_id} *$", raw, re.M), raw
    os.makedirs(os.path.join(binaries, build_id), exist_ok=True)
    shutil.copy(whole, os.path.join(binaries, build_id))
    pprof = pprof_itself(world)

    def traces(*command, directory="/nonexistent"):
        return tool(*command, "-traces", path, env=dict(os.environ, PPROF_BINARY_PATH=directory))
    named = re.compile(r" hidden\n +hidden_work\n +main$", re.M)
    assert not named.search(traces(pprof))
    assert named.search(traces(pprof, directory=binaries))
    assert not named.search(traces("go", "tool", "pprof"))
    shutil.copy(whole, stripped)
    assert named.search(traces("go", "tool", "pprof"))

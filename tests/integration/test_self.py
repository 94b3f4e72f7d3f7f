"""Programs that profile themselves: fgprof_start and fgprof_stop."""

import errno
import glob
import os
import re
import shutil
import signal
import subprocess
import types

from harness import HANGS_S, folded, need, tool, users_build, wait_for, wait_for_ticks

FOLDED, PPROF, TEXT, SPEEDSCOPE, RAW, HTML = range(6)
FIXTURE = "self"


def run(world, how, path, form=FOLDED, **options):
    """Returns the program's output at its end: how often SIGCHLD came, what wait(2) returned, and the results
    of fgprof_start and fgprof_stop."""
    done = subprocess.run([world.fixture(FIXTURE), path, str(form), how], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANGS_S, **options)
    assert done.returncode == 0 and not done.stderr, done
    return tuple(map(int, done.stdout.split()))


NO_CHILD = (0, errno.ECHILD)


def helpers_of(pid):
    """The helper processes for this program, which are not its children. Each has a reader."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path, errors="replace").read().split("\0")
            name = open(os.path.join(os.path.dirname(path), "comm")).read().strip()
        except OSError:
            continue
        if words[1:2] == ["helper"] and words[3:4] == [str(pid)] and name != "fgprof-reader":
            found.append(int(path.split("/")[2]))
    return found


def check(path, seconds):
    """The profile has the program's threads, all of the time, and nothing of ours."""
    stacks = folded(open(path).read())

    def count(name):
        return sum(count for stack, count in stacks.items() if name in stack)
    for name in "in_computing", "in_waiting":
        assert count(name) >= 0.8 * 99 * seconds, (name, stacks)
    assert not any("fgprof" in frame for stack in stacks for frame in stack), stacks
    return stacks


def test_two_sessions_one_after_the_other(world):
    path = world.path("twice.folded")
    assert run(world, "twice", path) == (*NO_CHILD, 0, 0)
    for name in path, path + ".2":
        stacks = check(name, 0.4)
        assert any("session_of" in stack for stack in stacks), stacks


def test_formats_of_a_session(world):
    need("go")
    for form, ending in (PPROF, "pb.gz"), (SPEEDSCOPE, "speedscope.json"), (RAW, "fgprof"), (HTML, "html"):
        path = world.path("self." + ending)
        assert run(world, "fork", path, form)[2:] == (0, 0), form
        assert os.path.getsize(path) > 500, form
    assert "in_computing" in tool("go", "tool", "pprof", "-top", world.path("self.pb.gz"))
    done = world.fgprof("convert", world.path("self.fgprof"), "-f", "speedscope")
    assert done.returncode == 0 and "in_waiting" in done.stdout, done.stderr


def test_one_session_at_a_time(world):
    path = world.path("busy.folded")
    assert run(world, "busy", path) == (*NO_CHILD, -errno.EBUSY, 0)
    check(path, 0.2)


def test_a_thread_that_is_cancelled(world):
    assert run(world, "cancel", world.path("cancel.folded")) == (*NO_CHILD, 0, 0)


def test_a_program_that_forks(world):
    path = world.path("fork.folded")
    assert run(world, "fork", path) == (*NO_CHILD, 0, 0)
    check(path, 0.4)


def test_an_unprivileged_program(world):
    path = world.path("user.folded")
    directory = world.path("for-all")
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    path = directory + "/self.folded"
    prefix = [] if os.geteuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run([*prefix, world.fixture(FIXTURE), path, str(FOLDED), "twice"], stdout=subprocess.PIPE,
                          text=True, timeout=HANGS_S)
    assert done.returncode == 0 and done.stdout == f"0 {errno.ECHILD} 0 0\n", done
    check(path, 0.4)


def answer(world, url):
    """The status, the headers and the body of what a program answers."""
    path = world.path("answer")
    assert run(world, url, path) == (*NO_CHILD, 0, 0)
    with open(path, "rb") as file:
        head, body = file.read().split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body), headers
    return int(re.fullmatch(r"HTTP/1\.1 (\d+) [A-Z].*", first)[1]), headers, body


def test_requests_to_a_server_of_the_programs_own(world):
    need("go")
    status, headers, body = answer(world, "/debug/fgprof?seconds=1&format=%66olded")
    assert status == 200 and headers["Content-Type"].startswith("text/plain"), headers
    stacks = folded(body.decode())
    assert any("in_waiting" in stack for stack in stacks), stacks
    assert not any("fgprof_http_handle" in stack for stack in stacks), "the thread that answers"
    for path, kind in (("profile?seconds=1", "cpu"), ("goroutine", "thread"), ("block?seconds=1", "delay")):
        status, headers, body = answer(world, "/debug/pprof/" + path)
        assert status == 200 and headers["Content-Disposition"].startswith("attachment"), (path, headers)
        with open(world.path("answer.pb.gz"), "wb") as file:
            file.write(body)
        shown = tool("go", "tool", "pprof", "-top", world.path("answer.pb.gz"))
        assert f"\nType: {kind}\n" in shown and (kind == "delay" or "in_computing" in shown), (path, shown)
    status, _, body = answer(world, "/debug/pprof/goroutine?debug=2")
    assert status == 200 and b'"computing"' in body and b"in_waiting" in body, body
    for path in "/", "/debug/pprof/":
        status, _, body = answer(world, path)
        assert status == 200 and b"fgprof?seconds=10" in body and b"last=" not in body, (path, body)
    for url, wanted, why in (("/debug/fgprof?seconds=x", 400, b"whole number"), ("/nothing", 404, b"no such page"),
                             ("/debug/fgprof?last=10s", 400, b"nothing was sampled before"),
                             ("/debug/pprof/heap", 404, b"no heap profile")):
        status, headers, body = answer(world, url)
        assert status == wanted and why in body and headers["X-Go-Pprof"] == "1", (url, status, body)


def begin(world, path):
    target = subprocess.Popen([world.fixture(FIXTURE), path, str(FOLDED), "once"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    helpers = helpers_of(target.pid)
    assert len(helpers) == 1, helpers
    wait_for_ticks(types.SimpleNamespace(pid=helpers[0]))
    return target, helpers[0]


def test_the_helper_is_killed(world):
    target, helper = begin(world, world.path("killed.folded"))
    os.kill(helper, signal.SIGKILL)
    said, _ = target.communicate("\n", timeout=HANGS_S)
    assert target.returncode == 0
    assert said == f"0 {errno.ECHILD} 0 {-errno.ECONNRESET}\n", said


def test_the_program_is_killed(world):
    """The helper ends with the program, and the profile covers its whole life."""
    path = world.path("killed.folded")
    target, helper = begin(world, path)
    target.kill()
    target.communicate(timeout=HANGS_S)
    wait_for(lambda: not os.path.exists(f"/proc/{helper}/exe"), "the helper's end")
    assert "in_waiting" in open(path).read()


def test_ctrl_c_is_for_the_program(world):
    target, helper = begin(world, world.path("interrupted.folded"))
    for number in signal.SIGINT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTERM:
        os.kill(helper, number)
    said, _ = target.communicate("\n", timeout=HANGS_S)
    assert said == f"0 {errno.ECHILD} 0 0\n", said
    check(world.path("interrupted.folded"), 0.01)


@users_build
def test_where_the_helper_is(world):
    """Next to the library, then in PATH; and only of the library's version."""
    elsewhere = world.path("elsewhere")
    os.mkdir(elsewhere)
    shutil.copy(world.fixture(FIXTURE), elsewhere)
    shutil.copy(os.path.realpath(world.build + "/libfgprof.so"), elsewhere + "/libfgprof.so.0")
    program, path = elsewhere + "/fixture-" + FIXTURE, world.path("elsewhere.folded")

    def result(**environment):
        done = subprocess.run([program, path, str(FOLDED), "twice"], stdout=subprocess.PIPE, text=True, timeout=HANGS_S,
                              env=dict(os.environ, LD_LIBRARY_PATH=elsewhere, **environment))
        assert done.returncode == 0, done
        return int(done.stdout.split()[2])
    assert result(PATH="/nonexistent:") == -errno.ENOENT
    assert result(PATH=f"/nonexistent::{world.build}") == 0
    other = elsewhere + "/fgprof-c"
    with open(other, "w") as file:
        file.write(f'#!/bin/sh\nshift 2\nexec {world.program} helper 0.0.1 "$@"\n')
    os.chmod(other, 0o755)
    assert result(PATH="/bin:/usr/bin") == -errno.EPROTONOSUPPORT
    os.chmod(other, 0o644)
    assert result(PATH=f"/bin:{world.build}") == 0


@users_build
def test_in_cplusplus(world):
    source, program = world.path("self.cc"), world.path("self-cc")
    with open(source, "w") as file:
        file.write("""
#include <fgprof.h>
#include <chrono>
#include <cstdio>
#include <thread>
#include <unistd.h>

extern "C" void in_cplusplus()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

int main()
{
    fgprof_session *session;
    int err = fgprof_start(STDOUT_FILENO, FGPROF_FOLDED, &session);
    if (err)
        return -err;
    in_cplusplus();
    return -fgprof_stop(session);
}
""")
    tool("g++", "-Wall", "-Wextra", "-Werror", "-I" + world.source + "/include", source, "-o", program,
         "-L" + world.build, "-l:libfgprof.so", "-Wl,-rpath," + world.build)
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done
    assert any("in_cplusplus" in stack for stack in folded(done.stdout)), done

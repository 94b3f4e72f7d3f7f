"""Profiles that programs keep themselves: fgprof_profiles.h."""

import os
import re
import subprocess

from harness import HANGS_S, folded, has, need, ready, tool, users_build
from test_serve import serving, top

KINDS = {"files": 7, "example.com/sockets": 4, "locks": 3}


def holding(world, *mode):
    """A program that has ready profiles, until its input ends."""
    return world.running("custom", *(mode or ("hold",)), stdin=subprocess.PIPE)


def attach(world, target, kind, *arguments):
    done = world.fgprof("attach", "-p", target.pid, "--kind", kind, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_files(stacks):
    """Checks the stacks of a thread that has exited, and of the main thread; the function that opens is left
    out."""
    assert sum(stacks.values()) == KINDS["files"], stacks
    of_data = [count for stack, count in stacks.items() if stack[-1] == "open_data"]
    of_config = [count for stack, count in stacks.items() if has(stack, "main", "hold", "open_config")]
    assert of_data == [5] and sum(of_config) == 2, stacks


def test_each_kind_of_an_attached_program(world):
    with holding(world) as target:
        check_files(folded(attach(world, target, "files")))
        sockets = folded(attach(world, target, "example.com/sockets"))
        assert sum(sockets.values()) == 4, sockets
        assert all(stack[-1] == "connect_pair" for stack in sockets), sockets
        locks = folded(attach(world, target, "locks"))
        assert [stack[-2:] for stack in locks] == [("hold_locks", "lock_one")], locks
        assert list(locks.values()) == [3], locks
        assert not any("fgprof" in frame for stacks in (sockets, locks) for stack in stacks for frame in stack)


def test_readers_of_the_formats(world):
    need("go")
    text, pprof, recording = (world.path("files" + ending) for ending in (".txt", ".pb.gz", ".fgprof"))
    with holding(world) as target:
        for path in text, pprof, recording:
            attach(world, target, "files", "-o", path)
    assert open(text).read().startswith("files profile: total 7\n5 @ 0x")
    shown = tool("go", "tool", "pprof", "-top", pprof)
    assert re.search(r"Type: files\b.*^ *5 .* open_data$.*^ *2 .* open_config$", shown, re.M | re.S), shown
    for path in text, pprof:
        raw = tool("go", "tool", "pprof", "-raw", path)
        assert "PeriodType: files count\nPeriod: 1\n" in raw and "files/count" in raw, raw
        assert sorted(re.findall(r"^ +(\d+): [1-9]", raw, re.M)) == ["1", "1", "5"], raw
    check_files(folded(world.fgprof("convert", recording).stdout))
    done = world.fgprof("report", recording)
    assert "total: 7" in done.stdout, done.stdout


def test_names_that_are_not_there(world):
    with holding(world) as target:
        done = world.fgprof("attach", "-p", target.pid, "--kind", "head")
        assert done.returncode == 1 and not done.stdout, done
        assert "bad kind of profile 'head': give wall, cpu," in done.stderr, done.stderr
        assert "keeps itself: example.com/sockets, files, locks\n" in done.stderr, done.stderr
        done = world.fgprof("attach", "-p", target.pid, "--kind", "files", "-d", "1s")
        assert done.returncode == 2 and "leave out --duration" in done.stderr, done.stderr
        done = world.fgprof("run", "--kind", "files", "--", "true")
        assert done.returncode == 125 and "bad kind of profile 'files': give wall" in done.stderr, done.stderr
    with world.running("sleepers-O2-omit", "1", "60") as target:
        done = world.fgprof("attach", "-p", target.pid, "--kind", "files")
        assert done.returncode == 1 and "keeps none itself (fgprof_profiles.h)" in done.stderr, done.stderr


def written(world, debug):
    """The output of fgprof_custom_write, for the program and for its child, and the results that it
    returns."""
    done = subprocess.run([world.fixture("custom"), "write", str(debug)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=HANGS_S)
    assert done.returncode == 0, done
    assert done.stderr == b"0 0\n0\n", done.stderr  # both could, and no child of ours was seen
    return done.stdout


def test_a_program_writes_its_own(world):
    """The program writes its own profile, and so does its child, which begins without the parent's values,
    and has two."""
    need("go")
    first, second = written(world, 1).decode().split("files profile: total ")[1:]
    assert first.startswith("7\n5 @ 0x") and "\topen_data+0x" in first and "__libc_start" in first, first
    assert second.startswith("2\n") and "open_data" not in second and "open_config+0x" in second, second
    binary = written(world, 0)
    at = binary.rindex(b"\x1f\x8b\x08")
    for number, part in enumerate((binary[:at], binary[at:])):
        path = world.path(f"written-{number}.pb.gz")
        with open(path, "wb") as file:
            file.write(part)
        total = 2 if number else 7
        assert f"of {total} total" in tool("go", "tool", "pprof", "-top", path)


def test_an_unprivileged_program_writes_its_own(world):
    if os.geteuid():
        return
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", world.fixture("custom"),
                           "write", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANGS_S)
    assert done.stderr == b"0 0\n0\n" and done.stdout.startswith(b"files profile: total 7\n"), done


def test_profiles_of_a_server(world):
    need("go")
    with holding(world) as target, serving(world, "-p", target.pid) as server:
        index = server.text("/debug/pprof/")
        for kind, count in KINDS.items():
            assert f'<a href="/debug/pprof/{kind}?debug=1">{kind}?debug=1</a></dt><dd>{count} now' in index, index
            assert server.text(f"/debug/pprof/{kind}?debug=1").startswith(f"{kind} profile: total {count}\n")
            assert f"of {count} total" in top(server.url + f"debug/pprof/{kind}")
        status, headers, body = server.ask("/debug/pprof/example.com/sockets", "HEAD")
        assert status == 200 and not body, (status, body)
        assert headers["Content-Disposition"] == 'attachment; filename="sockets.pb.gz"', headers
        server.fails("/debug/pprof/none", 404, "no such page")
        server.fails("/debug/pprof/files?seconds=1", 400, "of one moment")
        server.fails("/debug/pprof/files?debug=x", 400, "debug must be")
        assert server.ask("/debug/pprof/files", "POST")[0] == 405
        # The profiles of time go on meanwhile.
        assert "read" in server.text("/debug/fgprof?seconds=1&format=folded")


def test_many_values(world):
    """There are more values than are listed at once, and more than there is room for stacks."""
    with holding(world, "many", 20000) as target:
        stacks = folded(attach(world, target, "many"))
        assert list(stacks.values()) == [20000] and has(list(stacks)[0], "main", "hold_many"), stacks
    with holding(world, "many", 200000) as target:
        stacks = folded(attach(world, target, "many"))
        kept = sum(count for stack, count in stacks.items() if has(stack, "main", "hold_many"))
        assert sum(stacks.values()) == 200000 and kept >= 60000, stacks
        assert stacks[("[truncated: stack not kept]",)] == 200000 - kept, stacks


CHURN = r"""
#include "fgprof_profiles.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static fgprof_custom_profile *profile;

void held_for_good(uintptr_t value);
void comes_and_goes(uintptr_t value);

void held_for_good(uintptr_t value)
{
    if (fgprof_custom_add(profile, (void *)value, 0))
        _exit(1);
}

void comes_and_goes(uintptr_t value)
{
    fgprof_custom_add(profile, (void *)value, 0);
    fgprof_custom_remove(profile, (void *)value);
}

static void *churn(void *number)
{
    for (uintptr_t value = 1;; value++)
        comes_and_goes(value << 8 | (uintptr_t)number);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (fgprof_custom_new("churn", &profile))
        return 1;
    alarm(300);
    for (uintptr_t i = 0; i < 2000; i++)
        held_for_good(i << 8);
    for (uintptr_t i = 1; i < 3; i++)
        pthread_create(&thread, NULL, churn, (void *)i);
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"""


def link(world, *libraries):
    return [f"-L{world.build}", "-lfgprof-agent", *libraries, f"-Wl,-rpath,{world.build}"]


def test_values_that_come_and_go_meanwhile(world):
    source, program = world.path("churn.c"), world.path("churn")
    with open(source, "w") as file:
        file.write(CHURN)
    tool("gcc", "-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "-Wall", "-Wextra", "-Werror", "-pthread",
         "-I" + world.source + "/include", source, "-o", program, *link(world))
    with ready(program, stdin=subprocess.PIPE) as target:
        for _ in range(5):
            stacks = folded(attach(world, target, "churn", "-q"))
            held = sum(count for stack, count in stacks.items() if stack[-1] == "held_for_good")
            others = sum(count for stack, count in stacks.items() if stack[-1] == "comes_and_goes")
            assert held == 2000 and others <= 2 and held + others == sum(stacks.values()), stacks


LIAR = r"""
#include "fgprof_profiles.h"
#include "agent/values_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct values_header *find(void)
{
    unsigned long start = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/memfd:FGPROF-VALUES"))
            sscanf(line, "%lx", &start);
    }
    return (struct values_header *)start;
}

int main(int argc, char **argv)
{
    fgprof_custom_profile *profile;
    (void)argc;
    if (fgprof_custom_new("liar", &profile) || fgprof_custom_add(profile, &profile, 0))
        return 1;
    struct values_header *header = find();
    struct values_slot *slot = (struct values_slot *)((char *)header + VALUES_HEADER_BYTES);
    switch (atoi(argv[1])) {
    case 0:
        header->version = 99;
        break;
    case 1:
        header->slab_count = 1u << 31;
        break;
    case 2:
        slot->stack_bytes = 1u << 30;
        break;
    case 3:
        memset(slot->registers, 0xff, sizeof slot->registers);
        break;
    case 4:
        slot->sequence++;
        break;
    case 5:
        strcpy(header->profiles[0].name, "\x1b[31mred");
        break;
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"""


def test_programs_that_lie(world):
    program = world.path("liar")
    with open(world.path("liar.c"), "w") as file:
        file.write(LIAR)
    tool("gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I" + world.source + "/include", "-I" + world.source + "/src",
         world.path("liar.c"), world.source + "/src/base/utf8.c", "-o", program, *link(world))
    for number, (status, said) in enumerate((
            (1, "not of this version"), (1, "is damaged"), (0, "0 values now\n  1 more could not be read"),
            (0, "1 value now"), (0, "0 values now"), (1, "bad kind of profile 'liar'"))):
        with ready(program, number, stdin=subprocess.PIPE) as target:
            done = world.fgprof("attach", "-p", target.pid, "--kind", "liar")
            assert done.returncode == status and said in done.stderr, (number, done)
            assert "\x1b" not in done.stderr, done.stderr


BOTH = r"""
#include "fgprof.h"
#include "fgprof_profiles.h"
#include <stdio.h>

int main(void)
{
    fgprof_custom_profile *custom;
    fgprof_session *session;
    FILE *nowhere = fopen("/dev/null", "w");
    int err = fgprof_start(fileno(nowhere), FGPROF_TEXT, &session);
    if (err || fgprof_custom_new("both", &custom) || fgprof_custom_add(custom, custom, 0))
        return 1;
    err = fgprof_custom_write(custom, 1, 1); /* while the session goes on */
    return err ? 2 : -fgprof_stop(session);
}
"""


@users_build
def test_both_libraries_in_one_program(world):
    program = world.path("both")
    with open(world.path("both.c"), "w") as file:
        file.write(BOTH)
    tool("gcc", "-Wall", "-Wextra", "-Werror", "-I" + world.source + "/include", world.path("both.c"), "-o", program,
         *link(world, "-lfgprof"))
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=HANGS_S)
    assert done.returncode == 0 and done.stdout.startswith("both profile: total 1\n"), done


def test_the_header_in_strict_c_and_cpp(world):
    source = world.path("strict.c")
    with open(source, "w") as file:
        file.write('#include "fgprof_profiles.h"\n#include "fgprof.h"\n#include "fgprof_profiles.h"\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I" + world.source + "/include"]
    tool("gcc", "-std=c99", *flags, source)
    need("g++")
    tool("g++", "-std=c++98", *flags, "-x", "c++", "-include", world.source + "/include/fgprof_profiles.h",
         "/dev/null")
    tool("g++", "-std=c++11", *flags, "-x", "c++", source)

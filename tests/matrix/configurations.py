"""The programs of the matrix, and the ways to build each."""

import collections
import os

# commands: how to build it; @ is the program's path. tools: what that needs. options: for fgprof-c.
# judge: the file that gdb reads instead of the program. may_be_cut: a regular expression for the
# note that may end a stack from fgprof-c, which must be right up to there. only: the function that
# a thread must be in to be compared; other threads do not stay in place. stop: gdb commands that
# bring the program to the place to be compared.
Configuration = collections.namedtuple("Configuration", "title commands tools options judge "
                                       "may_be_cut only stop", defaults=((), None, None, None, ()))


def environment(directory):
    """Go caches the compiled library between runs."""
    return {"GOCACHE": os.path.join(directory, "go"), **os.environ, "LC_ALL": "C.UTF-8"} \
        if "HOME" not in os.environ else {**os.environ, "LC_ALL": "C.UTF-8"}


LINKERS = {"-fuse-ld=gold": "ld.gold", "-fuse-ld=lld": "ld.lld", "-fuse-ld=mold": "mold"}


def command(compiler, source, flags):
    return [compiler, "-g", source, "-o", "@", "-pthread", *flags.split()]


def tools(compiler, flags):
    return [compiler, *(LINKERS[word] for word in flags.split() if word in LINKERS)]


def compiled(compiler, source, flags):
    return Configuration(f"{source} {compiler} {flags}", [command(compiler, source, flags)],
                         tools(compiler, flags))


def without_cfi(compiler, source, flags):
    """A program whose call frame information is in a file that only gdb reads."""
    return Configuration(
        f"{source} {compiler} {flags} without CFI",
        [command(compiler, source, f"{flags} -fno-asynchronous-unwind-tables -fno-unwind-tables"),
         ["cp", "@", "@.debug"], ["strip", "--strip-debug", "@"]],
        tools(compiler, flags), judge="@.debug", may_be_cut="no unwind info|frame pointer not known")


C = [compiled(compiler, "cases.c", flags) for compiler, flags in (
    ("gcc", "-O0"),
    ("gcc", "-O1"),
    ("gcc", "-O2"),
    ("gcc", "-O3"),
    ("gcc", "-O0 -fomit-frame-pointer"),
    ("gcc", "-O2 -fno-omit-frame-pointer"),
    ("gcc", "-O2 -fcf-protection=full"),
    ("gcc", "-O2 -fstack-clash-protection -fstack-protector-strong"),
    ("gcc", "-O2 -fno-plt"),
    ("gcc", "-O2 -flto"),
    ("gcc", "-O2 -no-pie"),
    ("gcc", "-O2 -static"),
    ("gcc", "-O2 -static-pie"),
    ("gcc", "-O2 -fuse-ld=gold"),
    ("gcc", "-O2 -fuse-ld=lld"),
    ("gcc", "-O2 -fuse-ld=mold"),
    ("gcc", "-O2 -static -fuse-ld=lld"),
    ("gcc", "-O2 -s"),
    ("gcc", "-O2 -s -static"),
    ("gcc", "-O2 -g0"),
    ("gcc", "-O2 -g1"),
    ("gcc", "-O2 -gz"),
    ("gcc", "-O2 -gdwarf-4 -fdebug-types-section"),
    ("gcc", "-O2 -gsplit-dwarf"),
    ("gcc", "-O2 -fno-asynchronous-unwind-tables"),
    ("musl-gcc", "-O2"),
    ("musl-gcc", "-O2 -static"),
    ("clang", "-O0"),
    ("clang", "-O2"),
    ("clang", "-O3"),
    ("clang", "-O2 -fno-omit-frame-pointer"),
    ("clang", "-O2 -static -fuse-ld=lld"),
    ("clang", "-O2 -flto -fuse-ld=lld"),
    ("clang", "-O2 -fuse-ld=mold"),
)]

CPP = [compiled(compiler, "cases.cc", f"-std=c++17 {flags}") for compiler, flags in (
    ("g++", "-O0"),
    ("g++", "-O2"),
    ("g++", "-O2 -fno-omit-frame-pointer"),
    ("g++", "-O2 -flto"),
    ("g++", "-O2 -static"),
    ("clang++", "-O0"),
    ("clang++", "-O2"),
    ("clang++", "-O2 -static-libstdc++ -fuse-ld=mold"),
)]

CONTEXTS = [
    Configuration(f"contexts.c gcc {flags}",
                  [command("gcc", "contexts.c", flags + " -DEH_FRAME assembly.S")], ["gcc"])
    for flags in ("-O0", "-O2")]

DEEP = [compiled("gcc", "deep.c", "-O2")._replace(may_be_cut="max depth")]

RUST = [Configuration(f"cases.rs rustc {flags}", [["rustc", "-g", "cases.rs", "-o", "@",
                                                   *flags.split()]], ["rustc", *linkers])
        for flags, *linkers in (("-O",), ("-Copt-level=0",),
                                ("-O -Clink-arg=-fuse-ld=lld", "ld.lld"))]

GO_BUILD = ["env", "-C", "cases_go", "go", "build", "-o"]

GO = [
    Configuration("cases.go go", [[*GO_BUILD, "@"]], ["go"], only="main.spin"),
    # Compiled once: with -ldflags=-s, newer Go puts functions elsewhere.
    Configuration("cases.go go, stripped",
                  [[*GO_BUILD, "@.debug"], ["strip", "-s", "-o", "@", "@.debug"]], ["go", "strip"],
                  judge="@.debug", only="main.spin"),
]



# gdb's names for stubs depend on the linker: compare the function that the call leads to.
TO_STUB = ("python exec('while gdb.newest_frame().name() == \"call_both\": "
           "gdb.execute(\"stepi\")')")


def stopped(flags, where, steps, stop):
    """Stopped `steps` instructions later."""
    return compiled("gcc", "calls.c", flags)._replace(
        title=f"calls.c gcc {flags}, {where} + {steps}",
        stop=["set var may_go = 1", *stop, *([f"stepi {steps}"] if steps else [])])


def in_stub(flags, steps):
    return stopped(flags, "stub", steps, ["tbreak call_both", "continue", TO_STUB])


# In the linker's own stub, then on the way to the dynamic linker at the first call.
STOPPED = [in_stub("-O2 -Wl,-z,lazy", steps) for steps in (0, 1, 2, 3, 4, 5, 8)]
STOPPED += [in_stub(flags, 0) for flags in (
    "-O0", "-O2 -Wl,-z,now", "-O2 -no-pie", "-O2 -fcf-protection=full", "-O2 -fuse-ld=gold",
    "-O2 -fuse-ld=lld", "-O2 -fuse-ld=mold")]
STOPPED += [in_stub(flags, 1) for flags in ("-O0", "-O2 -fuse-ld=lld", "-O2 -fuse-ld=mold")]
STOPPED += [stopped("-O2", "vdso", steps, ["tbreak *__vdso_clock_gettime", "continue"])
            for steps in (0, 2, 10, 20)]

WITHOUT_CFI = [without_cfi(compiler, "cases.c", flags) for compiler, flags in (
    ("gcc", "-O0"),
    ("gcc", "-O2"),
    ("gcc", "-O2 -fno-omit-frame-pointer"),
    ("clang", "-O2"),
)] + [without_cfi("gcc", "contexts.c", "-O2 assembly.S")]

ALL = [*C, *CPP, *CONTEXTS, *DEEP, *RUST, *GO, *STOPPED, *WITHOUT_CFI]

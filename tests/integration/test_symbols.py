"""Names of functions, files, lines and inlined calls, from everything that compilers and tools
make."""

import contextlib
import glob
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import HANGS_S, Skip, need, need_file, ready, tool, users_build

SOURCE = """\
static volatile int sink;
static inline __attribute__((always_inline)) int innermost(int x)
{
    sink = x;
    return x * 3;
}
namespace space {
struct thing {
    int method(int x);
    static inline __attribute__((always_inline)) int middle(int x)
    {
        return innermost(x) + 1;
    }
};
__attribute__((noinline)) int thing::method(int x)
{
    return middle(x) + 2;
}
}
int main(int argc, char **argv)
{
    (void)argv;
    space::thing thing;
    return thing.method(argc) == 42;
}
"""
METHOD = "_ZN5space5thing6methodEi"


class Place:
    """A directory with the source, for what is made from it."""

    def __init__(self, world, name):
        self.world = world
        self.directory = tempfile.mkdtemp(prefix=name, dir=world.directory)
        self.write("p.cc", SOURCE)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def run(self, *command):
        return tool(*command, cwd=self.directory)

    def build(self, *options, compiler="g++", sources=("p.cc",), output="p"):
        self.run(compiler, "-O1", *options, "-o", output, *sources)
        return self.path(output)


def names(world, path, *addresses):
    """[(function, file, line), ...], innermost first, for each address; whether inlined calls
    would be known for all; and the offset in the function for each."""
    done = subprocess.run([os.path.join(world.build, "tests/tools/name-addresses"), path],
                          input="".join(f"{address:x}\n" for address in addresses),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done
    rows, complete, offsets = [], True, []
    for line in done.stdout.splitlines():
        complete = complete and not line.startswith("!")
        fields = line.split("\t")[1:]
        if fields == ["?"]:
            rows.append([])
            continue
        places = [fields[i + 1].rsplit(":", 1) for i in range(0, len(fields), 2)]
        functions = fields[0::2]
        functions[-1], offset = functions[-1].rsplit("+", 1)
        offsets.append(int(offset, 16))
        rows.append([(function, file, int(number))
                     for function, (file, number) in zip(functions, places)])
    assert len(rows) == len(addresses), done.stdout
    return rows, complete, offsets


def symbol(path, name, *options):
    """Where the symbol begins, and how long it is."""
    match = re.search(rf"^([0-9a-f]+) ([0-9a-f]+) \w {re.escape(name)}(@.*)?$",
                      tool("nm", "-S", *options, path), re.M)
    assert match, name
    return int(match[1], 16), int(match[2], 16)


def method_names(world, path, start_and_bytes=None):
    start, size = start_and_bytes or symbol(path, METHOD)
    return names(world, path, *range(start, start + size))


def assert_all_is_known(world, path, start_and_bytes=None, source=None):
    """The method contains the three functions, each in its file and at its line."""
    file = source or os.path.join(os.path.dirname(path), "p.cc")
    rows, complete, offsets = method_names(world, path, start_and_bytes)
    assert complete, rows
    assert [("innermost", file, 4), ("space::thing::middle", file, 12),
            ("space::thing::method", file, 17)] in rows, rows
    assert all(row[-1][:2] == ("space::thing::method", file) for row in rows), rows
    assert offsets == list(range(len(rows))), offsets


def assert_only_named(world, path, start_and_bytes=None):
    rows, complete, _ = method_names(world, path, start_and_bytes)
    assert not complete and all(row == [("space::thing::method", "?", 0)] for row in rows), rows


def test_every_version_of_dwarf(world):
    place = Place(world, "versions")
    for compiler in "g++", "clang++":
        for version in 2, 3, 4, 5:
            assert_all_is_known(world, place.build("-g", f"-gdwarf-{version}", compiler=compiler))
        assert_all_is_known(world, place.build("-g", "-gdwarf64", compiler=compiler))


def test_compressed_sections(world):
    place = Place(world, "compressed")
    for kind in "zlib", "zlib-gnu":
        path = place.build("-g", f"-gz={kind}")
        sections = place.run("readelf", "-SW", path)
        assert ".zdebug_info" in sections or re.search(r"\.debug_info .* C ", sections), sections
        assert_all_is_known(world, path)


def put(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def test_sections_compressed_by_zstd(world):
    if "zstd" not in tool("objcopy", "--help"):
        raise Skip("objcopy does not compress by zstd")
    place = Place(world, "zstd")
    path = place.build("-g")
    place.run("objcopy", "--compress-debug-sections=zstd", path)
    assert re.search(r"\.debug_info\n.*\n.*COMPRESSED\n +ZSTD", place.run("readelf", "-tW", path))
    if re.search("^FGPROF_ZSTD:BOOL=(1|ON)$", open(os.path.join(world.build, "CMakeCache.txt")).read(), re.M):
        assert_all_is_known(world, path)
    else:
        assert_only_named(world, path)
    # If it can't be decompressed, the symbol table's names remain.
    data = bytearray(open(path, "rb").read())
    for frame in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data):
        data[frame.start() + 8] ^= 0xff
    put(path, data)
    assert_only_named(world, path)


def test_split_units(world):
    place = Place(world, "split")
    for compiler in "g++", "clang++":
        for version in 4, 5:
            path = place.build("-g", f"-gdwarf-{version}", "-gsplit-dwarf", compiler=compiler)
            parts = glob.glob(place.path("*.dwo"))
            assert parts, os.listdir(place.directory)
            assert_all_is_known(world, path)
            for part in parts:
                os.rename(part, part + ".away")
            _, complete, _ = method_names(world, path)
            assert not complete, "no part of a unit may be missing unsaid"
            # A file of another build.
            place.write("p.cc", SOURCE + "int more(int x) { return x * 7; }\n")
            place.build("-g", f"-gdwarf-{version}", "-gsplit-dwarf", compiler=compiler, output="other")
            for fresh, part in zip(glob.glob(place.path("*.dwo")), parts):
                os.rename(fresh, part)
            _, complete, _ = method_names(world, path)
            assert not complete
            place.write("p.cc", SOURCE)
            for part in glob.glob(place.path("*.dwo*")):
                os.unlink(part)


def test_names_in_several_split_units(world):
    """Their entries are at the same offsets in their files, which are read one after the other."""
    place = Place(world, "several")
    units = ["alpha", "bravo", "delta", "gamma"]
    for name in units:
        place.write(f"{name}.c", f"int {name}(int x) {{ return x * {len(name)} + 1; }}\n")
    place.write("main.c", "int main(void) { return 0; }\n")
    path = place.build("-g", "-gdwarf-5", "-gsplit-dwarf", compiler="gcc",
                       sources=[f"{name}.c" for name in [*units, "main"]])
    asked = [symbol(path, name)[0] for name in units]
    place.run("objcopy", "--strip-symbol=alpha", "--strip-symbol=bravo", "--strip-symbol=delta",
              "--strip-symbol=gamma", path)
    rows, complete, _ = names(world, path, *asked)
    assert complete and [row[0][0] for row in rows] == units, rows


def test_packages_of_split_units(world):
    place = Place(world, "packages")
    place.write("q.cc", "int other(int x) { return x * 5; }\n")
    for compiler, version, packager in (("g++", 4, "dwp"), ("clang++", 4, "llvm-dwp"), ("clang++", 5, "llvm-dwp")):
        need(packager)
        place.run(compiler, "-c", "-O1", "-g", f"-gdwarf-{version}", "-gsplit-dwarf", "q.cc", "p.cc")
        path = place.build(compiler=compiler, sources=("q.o", "p.o"))
        if packager == "dwp":
            place.run("dwp", "-e", path, "-o", path + ".dwp")
        else:
            place.run("llvm-dwp", "q.dwo", "p.dwo", "-o", path + ".dwp")
        for part in glob.glob(place.path("*.dwo")):
            os.unlink(part)
        assert_all_is_known(world, path)
        assert names(world, path, symbol(path, "_Z5otheri")[0])[0] == [[("other", place.path("q.cc"), 1)]]


def test_symbols_without_debug_info(world):
    place = Place(world, "symbols")
    path = place.build("-g0")
    assert_only_named(world, path)
    # .dynsym alone
    where = symbol(path := place.build("-g0", "-rdynamic"), METHOD)
    place.run("strip", path)
    assert ".symtab" not in place.run("readelf", "-SW", path)
    assert_only_named(world, path, where)
    # Nothing at all.
    where = symbol(path := place.build("-g0"), METHOD)
    place.run("strip", path)
    rows, complete, _ = method_names(world, path, where)
    assert not complete and not any(rows)


def test_the_name_that_users_know(world):
    place = Place(world, "aliases")
    place.write("alias.c", """\
int ___work(int x) { return x + 1; }
extern __typeof(___work) __work __attribute__((alias("___work")));
extern __typeof(___work) work __attribute__((weak, alias("___work")));
static int __hidden(int x) __attribute__((used, noinline));
static int __hidden(int x) { return x * 2; }
int main(int argc, char **argv) { (void)argv; return work(argc) + __hidden(argc); }
""")
    place.write("versioned.c", """int __new(int x) { return x + 1; }
__asm__(".symver __new, work@@V_2");
__asm__(".symver __new, old_work@V_1");
""")
    place.write("map", "V_1 { global: old_work; local: *; }; V_2 { global: work; };\n")
    for options in ("-g0",), ("-g",):
        path = place.build(*options, compiler="gcc", sources=("alias.c",))
        assert names(world, path, symbol(path, "work")[0])[0][0][0][0] == "work"
        assert names(world, path, symbol(path, "__hidden")[0])[0][0][0][0] == "__hidden"
    for options in ("-g0",), ("-g",):
        path = place.build(*options, "-shared", "-fPIC", "-Wl,--version-script=map", compiler="gcc",
                           sources=("versioned.c",), output="versioned.so")
        where = symbol(path, "work")[0]
        assert names(world, path, where)[0][0][0][0] == "work"


def test_separate_files(world):
    place = Place(world, "separate")
    for build_id in "none", "sha1":
        path = place.build("-g", f"-Wl,--build-id={build_id}")
        where = symbol(path, METHOD)
        place.run("objcopy", "--only-keep-debug", path, "p.debug")
        place.run("objcopy", "--strip-all", "--add-gnu-debuglink=p.debug", path)
        assert_all_is_known(world, path, where)
        os.makedirs(place.path(".debug"), exist_ok=True)
        os.rename(place.path("p.debug"), place.path(".debug/p.debug"))
        assert_all_is_known(world, path, where)
        # Not the file of another build.
        place.write("p.cc", SOURCE + "int more(int x) { return x * 7; }\n")
        other = place.build("-g", f"-Wl,--build-id={build_id}", output="other")
        place.write("p.cc", SOURCE)
        place.run("objcopy", "--only-keep-debug", other, ".debug/p.debug")
        _, complete, _ = method_names(world, path, where)
        assert not complete
        # A FIFO is not waited for.
        os.unlink(place.path(".debug/p.debug"))
        os.mkfifo(place.path(".debug/p.debug"))
        _, complete, _ = method_names(world, path, where)
        assert not complete
        os.unlink(place.path(".debug/p.debug"))
        below = "/usr/lib/debug" + place.directory
        if not os.access("/usr/lib/debug", os.W_OK):
            continue
        path = place.build("-g", f"-Wl,--build-id={build_id}")
        place.run("objcopy", "--only-keep-debug", path, "p.debug")
        place.run("objcopy", "--strip-all", "--add-gnu-debuglink=p.debug", path)
        os.makedirs(below)
        try:
            shutil.move(place.path("p.debug"), below + "/p.debug")
            assert_all_is_known(world, path, where)
        finally:
            shutil.rmtree(below)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(below))


def test_a_debug_file_of_the_programs_own_name(world):
    """Only the directory distinguishes them, as in some distributions."""
    place = Place(world, "same_name")
    path = place.build("-g", "-Wl,--build-id=sha1")
    where = symbol(path, METHOD)
    debug = place.path(os.path.join(".debug", os.path.basename(path)))
    os.makedirs(os.path.dirname(debug))
    place.run("objcopy", "--only-keep-debug", path, debug)
    place.run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path)
    assert_all_is_known(world, path, where)


def test_separate_files_of_another_build(world):
    """Files left by another build are not used, wherever they are, and do not hide the right one."""
    if not os.access("/usr/lib/debug", os.W_OK):
        raise Skip("needs to write below /usr/lib/debug")
    place = Place(world, "left_behind")
    below = "/usr/lib/debug" + place.directory
    for build_id in None, f"{random.getrandbits(160):040x}":
        # The method is at the same address in both.
        place.write("p.cc", SOURCE + "int more(int x) { return x * 7; }\n")
        place.build("-g", "-Wl,--build-id=" + ("sha1" if build_id else "none"), output="other")
        place.write("p.cc", SOURCE)
        path = place.build("-g", "-Wl,--build-id=" + ("0x" + build_id if build_id else "none"))
        where = symbol(path, METHOD)
        assert symbol(place.path("other"), METHOD) == where
        content = {}
        for name in "p", "other":
            place.run("objcopy", "--only-keep-debug", name, "p.debug")
            content[name] = open(place.path("p.debug"), "rb").read()
        place.run("strip", path)

        def link_to(name):
            """The link's checksum is that of the file at that time."""
            put(place.path("p.debug"), content[name])
            place.run("objcopy", "--remove-section=.gnu_debuglink", path)
            place.run("objcopy", "--add-gnu-debuglink=p.debug", path)

        places = [place.path("p.debug"), place.path(".debug/p.debug"), below + "/p.debug"]
        if build_id:
            places.append(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
        try:
            for name in "other", "p":
                link_to(name)
                for file in places:
                    put(file, content["other"])
                # Without build ids the file is the one with the link's checksum.
                if build_id or name == "p":
                    rows, complete, _ = method_names(world, path, where)
                    assert not any(rows) and not complete, (build_id, name, rows)
            for file in places:
                put(file, content["p"])
                assert_all_is_known(world, path, where)
                put(file, content["other"])
        finally:
            shutil.rmtree(below, ignore_errors=True)
            if build_id:
                os.unlink(places[-1])
            for folder in os.path.dirname(below), os.path.dirname(places[-1]):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def test_separate_file_by_build_id(world):
    if os.geteuid() != 0:
        raise Skip("needs to write below /usr/lib/debug")
    place = Place(world, "build_id")
    build_id = f"{random.getrandbits(160):040x}"
    path = place.build("-g", f"-Wl,--build-id=0x{build_id}")
    where = symbol(path, METHOD)
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    try:
        place.run("objcopy", "--only-keep-debug", path, debug)
        place.run("strip", path)
        assert_all_is_known(world, path, where)
    finally:
        os.unlink(debug)
        if not os.listdir(os.path.dirname(debug)):
            os.rmdir(os.path.dirname(debug))


def test_mini_debug_info(world):
    place = Place(world, "mini")
    path = place.build("-g0")
    where = symbol(path, METHOD)
    place.run("objcopy", "--only-keep-debug", path, "mini")
    place.run("xz", "mini")
    place.run("objcopy", "--strip-all", "--add-section", ".gnu_debugdata=mini.xz", path)
    assert_only_named(world, path, where)


def test_debug_info_shared_by_dwz(world):
    place = Place(world, "dwz")
    # They have enough in common to be worth it.
    common = "".join(f"struct common_{i} {{ int first_{i}, second_{i}; char rest_{i}[{i} + 1]; }};\n"
                     f"static inline __attribute__((always_inline)) int twice_{i}(struct common_{i} *c)\n"
                     f"{{ return c->first_{i} * 2; }}\n" for i in range(40))
    place.write("common.h", common)
    for name in "one", "two":
        place.write(f"{name}.c", '#include "common.h"\n' + "".join(
            f"int {name}_{i}(struct common_{i} *c) {{ return twice_{i}(c) + 1; }}\n" for i in range(40))
            + "int main(void) { return 0; }\n")
        place.build("-g", "-gdwarf-4", "-Wl,--build-id", compiler="gcc", sources=(f"{name}.c",), output=name)

    def check():
        for name in "one", "two":
            start, size = symbol(place.path(name), f"{name}_7")
            rows, complete, _ = names(world, place.path(name), *range(start, start + size))
            assert complete and [("twice_7", place.path("common.h"), 24),
                                 (f"{name}_7", place.path(f"{name}.c"), 9)] in rows, rows
    check()
    place.run("dwz", "-m", "shared", "one", "two")
    assert "DW_FORM_GNU_ref_alt" in place.run("readelf", "--debug-dump=abbrev", "one")
    check()
    start, _ = symbol(place.path("one"), "one_7")
    place.run("objcopy", "--remove-section=.debug_info", "shared")
    for is_there in True, False:
        if not is_there:
            os.unlink(place.path("shared"))
        rows, _, _ = names(world, place.path("one"), start)
        assert rows[0][-1][0] == "one_7", f"what was moved away is missing, and no more: {is_there}"
        assert rows[0][-1][2] == 9, rows


def test_one_file_after_dwz(world):
    place = Place(world, "dwz_one")
    place.write("q.cc", SOURCE.replace("main", "other").replace("method", "second"))
    path = place.build("-g", "-gdwarf-4", sources=("p.cc", "q.cc"))
    place.run("dwz", path)
    assert_all_is_known(world, path)


def test_link_time_optimization(world):
    place = Place(world, "lto")
    place.write("q.cc", "int other(int x) { return x * 5; }\n")
    assert_all_is_known(world, place.build("-g", "-flto", sources=("q.cc", "p.cc")))
    need("ld.lld")
    assert_all_is_known(world, place.build("-g", "-flto", "-fuse-ld=lld", compiler="clang++",
                                           sources=("q.cc", "p.cc")))


@users_build
def test_functions_that_the_linker_left_out(world):
    place = Place(world, "sections")
    unused = "".join(f"int unused_{i}(int x) {{ return x * {i}; }}\n" for i in range(300))
    place.write("q.cc", unused)
    for linker in "bfd", "lld", "gold":
        need(f"ld.{linker}")
        for version in 4, 5:
            for compiler in "g++", "clang++":
                path = place.build("-g", f"-gdwarf-{version}", "-ffunction-sections", "-Wl,--gc-sections",
                                   f"-fuse-ld={linker}", compiler=compiler, sources=("q.cc", "p.cc"))
                assert "unused_7" not in place.run("nm", path)
                assert_all_is_known(world, path)
                rows, _, _ = names(world, path, *range(0, 0x1000, 16))
                assert not any("unused" in frame[0] for row in rows for frame in row), rows


def test_cold_parts(world):
    place = Place(world, "cold")
    place.write("cold.c", """\
#include <stdlib.h>
volatile int sink;
__attribute__((cold, noinline)) void fail(int x) { sink = x; }
__attribute__((noinline)) int work(int x)
{
    if (__builtin_expect(x == 42, 0)) {
        fail(x);
        fail(x + 1);
        abort();
    }
    return x + sink;
}
int main(int argc, char **argv) { (void)argv; return work(argc) == 7; }
""")
    # So that the ranges of cold.c do not begin at the start of the section.
    place.write("first.c", """void abort(void);
__attribute__((cold, noinline)) void fail_first(void) { __asm__ volatile(""); }
int first(int x) { if (__builtin_expect(x == 42, 0)) { fail_first(); fail_first(); abort(); } return x + 1; }
""")
    for options in (["-g"], ["-g", "-gdwarf-4"], ["-g", "-gsplit-dwarf"], ["-g", "-gdwarf-4", "-gsplit-dwarf"],
                    ["-g0"]):
        path = place.build("-O2", "-freorder-blocks-and-partition", *options, compiler="gcc",
                           sources=("first.c", "cold.c"))
        start, size = symbol(path, "work.cold")
        rows, _, _ = names(world, path, *range(start, start + size))
        if "-g0" in options:
            assert all(row == [("work.cold", "?", 0)] for row in rows), rows
        else:
            assert all(row[-1][:2] == ("work", place.path("cold.c")) for row in rows), rows
            assert {7, 8, 9} <= {row[-1][2] for row in rows}, rows


def test_nested_functions(world):
    place = Place(world, "nested")
    place.write("nested.f90", """\
module shapes
contains
  subroutine outer(n)
    integer, intent(inout) :: n
    call inner()
  contains
    subroutine inner()
      n = n * 3
    end subroutine
  end subroutine
end module
program p
  use shapes
  integer :: n
  n = 1
  call outer(n)
  print *, n
end program
""")
    path = place.build("-g", "-O0", compiler="gfortran", sources=("nested.f90",))
    listing = place.run("nm", "-S", path)
    start = int(re.search(r"^([0-9a-f]+) .* inner\.0$", listing, re.M)[1], 16)
    assert names(world, path, start)[0][0] == [("inner", place.path("nested.f90"), 7)]
    start = symbol(path, "__shapes_MOD_outer")[0]
    assert names(world, path, start)[0][0] == [("__shapes_MOD_outer", place.path("nested.f90"), 3)]


def test_rust(world):
    place = Place(world, "rust")
    place.write("r.rs", """\
mod shapes {
    pub struct Square { pub side: u64 }
    impl Square {
        #[inline(never)]
        pub fn area(&self) -> u64 {
            twice(self.side) + 1
        }
    }
    #[inline(always)]
    fn twice(x: u64) -> u64 {
        unsafe { std::ptr::read_volatile(&x) * 2 }
    }
}
fn main() {
    println!("{}", shapes::Square { side: std::env::args().count() as u64 }.area());
}
""")
    place.run("rustc", "-g", "-O", "--crate-name", "r", "-o", "r", "r.rs")
    path = place.path("r")
    name = re.search(r"\b(_ZN\S*area\S*)$", place.run("nm", path), re.M)[1]
    start, size = symbol(path, name)
    rows, complete, _ = names(world, path, *range(start, start + size))
    assert complete and any([frame[0] for frame in row][-2:] ==
                            ["r::shapes::twice", "r::shapes::Square::area"] and
                            row[-2][2] == 11 and row[-1][2] == 6 for row in rows), rows


def test_damaged_files_end_no_one(world):
    """Bits of a file are changed at random: it need not give names, but reading it must end."""
    place = Place(world, "damaged")
    program = os.path.join(world.build, "tests/tools/name-addresses")
    rand = random.Random(1)
    for options in ("-gdwarf-4",), ("-gdwarf-5",), ("-gz=zlib",), ("-gdwarf-4", "-gsplit-dwarf"):
        whole = open(place.build("-g", *options), "rb").read()
        debug_start = 0x3000
        for i in range(60):
            data = bytearray(whole)
            for _ in range(rand.choice((1, 4, 32))):
                data[rand.randrange(debug_start if i % 4 else 64, len(data))] = rand.randrange(256)
            if i % 10 == 0:
                del data[rand.randrange(64, len(data)):]
            with open(place.path("damaged"), "wb") as file:
                file.write(data)
            done = subprocess.run([program, place.path("damaged"), "16"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=HANGS_S)
            assert done.returncode in (0, 2) and not done.stderr, (i, options, done.stderr[-2000:])


@users_build  # the sanitizers need the memory that is forbidden here
def test_a_line_table_of_rows_that_take_no_room(world):
    place = Place(world, "rows")
    program = place.build("-gdwarf-5")
    # One column of directories, the path as DW_FORM_flag_present; very many rows.
    header = bytes([1, 1, 1, 0xfb, 14, 1, 1, 1, 0x19]) + b"\xff" * 5 + b"\x01" + bytes(30)
    table = struct.pack("<HBBI", 5, 8, 0, len(header)) + header
    with open(place.path("table"), "wb") as file:
        file.write(struct.pack("<I", len(table)) + table)
    tool("objcopy", "--update-section", f".debug_line={place.path('table')}", program)
    half = 1 << 29
    with subprocess.Popen(
            ["timeout", str(HANGS_S), os.path.join(world.build, "tests/tools/name-addresses"), program,
             "16"], stdout=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (half, half))) as naming:
        _, status, used = os.wait4(naming.pid, 0)
        naming.returncode = os.waitstatus_to_exitcode(status)
    assert naming.returncode == 0 and used.ru_maxrss << 10 < half / 4, (status, used)


def test_a_damaged_module_is_named_in_the_summary(world):
    """The loader needs no section headers, so the program runs; but its sections are unknown."""
    fixture = world.path("fixture-damaged")
    data = bytearray(open(world.fixture("states"), "rb").read())
    data[40:48] = struct.pack("<Q", len(data) + 4096)  # e_shoff
    with open(fixture, "wb") as file:
        file.write(data)
    os.chmod(fixture, 0o755)
    with ready(fixture, 300) as target:
        done = world.attach(target, duration="500ms")
    assert re.search(rf"^  1 module could not be read: {re.escape(fixture)} \([a-z ,A-Z]+\)$",
                     done.stderr, re.M), done.stderr
    assert "in_spin" not in done.stdout and "[fixture-damaged]" in done.stdout, done.stdout
    with world.running("states", 300) as target:
        assert "could not be read" not in world.attach(target, duration="500ms").stderr


@contextlib.contextmanager
def debuginfod(world, name, hangs=False):
    """A stripped fixture at work, and a server on loopback that has its debug information: yields the target,
    the environment that points to the server, and the server's requests."""
    build_id = f"{random.getrandbits(160):040x}"
    fixture, debug = world.path("fixture-" + name), world.path(name + ".debug")
    # GNU ld's note is name size, description size, type, "GNU" and the id.
    data = open(world.fixture("states"), "rb").read()
    old = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", world.fixture("states")))[1]
    data = data.replace(bytes.fromhex(old), bytes.fromhex(build_id))
    with open(fixture, "wb") as file:
        file.write(data)
    os.chmod(fixture, 0o755)
    tool("objcopy", "--only-keep-debug", fixture, debug)
    tool("strip", fixture)
    content = open(debug, "rb").read()
    asked, ended = [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if hangs:
                ended.wait()
            if self.path != f"/buildid/{build_id}/debuginfo":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    environment = dict(os.environ, DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}",
                       DEBUGINFOD_CACHE_PATH=world.path(name + ".cache"))
    for variable in "http_proxy", "https_proxy", "DEBUGINFOD_PROGRESS":
        environment.pop(variable, None)
    try:
        with ready(fixture, 300) as target:
            yield target, environment, build_id, asked
    finally:
        ended.set()
        server.shutdown()
        server.server_close()


def need_libdebuginfod():
    need_file("libdebuginfod", "/usr/lib/*/libdebuginfod.so.1", "/usr/lib*/libdebuginfod.so.1")


def test_debug_info_is_fetched_where_that_is_asked_for(world):
    need_libdebuginfod()
    with debuginfod(world, "fetched") as (target, environment, build_id, asked):
        done = world.attach(target, "--lines", duration="300ms", env=environment)
        assert "in_spin" not in done.stdout and not asked, "nobody is asked without the option"
        done = world.attach(target, "--lines", "--debuginfod", duration="300ms", env=environment)
        assert re.search(r"in_spin \(\S*states\.c:\d+\)", done.stdout), done.stdout
        assert f"/buildid/{build_id}/debuginfo" in asked, asked


def test_a_server_that_hangs_is_given_up(world):
    need_libdebuginfod()
    with debuginfod(world, "hanging", hangs=True) as (target, environment, _, asked):
        # The server answers when this is over.
        done = world.attach(target, "--debuginfod=1s", duration="300ms", env=environment)
        assert asked and "in_spin" not in done.stdout


def test_progress_of_fetching_is_shown_on_a_terminal(world):
    need_libdebuginfod()
    with debuginfod(world, "shown", hangs=True) as (target, environment, _, _):
        terminal, end = os.openpty()
        try:
            subprocess.run([world.program, "attach", "-p", str(target.pid), "-d", "300ms", "--debuginfod=2s", "-o",
                            world.path("shown.folded")], stdin=subprocess.DEVNULL, stderr=end, env=environment,
                           check=True, timeout=HANGS_S)
            assert b"fetching debug information for fixture-shown: 0 %" in os.read(terminal, 65536)
        finally:
            os.close(terminal)
            os.close(end)


def test_debuginfod_needs_a_server(world):
    environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    done = world.fgprof("attach", "-p", os.getpid(), "--debuginfod", env=environment)
    assert done.returncode == 2 and "DEBUGINFOD_URLS" in done.stderr, done
    environment["DEBUGINFOD_URLS"] = "http://127.0.0.1:1"
    done = world.fgprof("attach", "-p", os.getpid(), "--debuginfod=soon", env=environment)
    assert done.returncode == 2 and "bad time limit 'soon'" in done.stderr, done


def test_labels_in_a_stripped_file(world):
    """A label without a size names its own function, and none of those after it that have lost their
    symbols."""
    if os.uname().machine != "x86_64":
        raise Skip("the code is for x86-64")
    place = Place(world, "labels")
    fixtures = os.path.join(world.source, "tests/fixtures")
    program = place.build("-O2", "-rdynamic", compiler="gcc", output="untold",
                          sources=[os.path.join(fixtures, name) for name in ("untold.c", "untold.S")])
    labels = {name: int(address, 16) for address, name in
              re.findall(r"^([0-9a-f]+) . (untold_\w+)$", place.run("nm", program), re.M)}
    place.run("strip", program)
    assert len(labels) > 6, labels
    for name, address in labels.items():
        expected = name if name in ("untold_first", "untold_last") else None
        for offset in (0, 1):
            rows, _, _ = names(world, program, address + offset)
            assert [row[0] for row in rows[0]] == ([expected] if expected else []), (name, rows)

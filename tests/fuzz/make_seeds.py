#!/usr/bin/env python3
"""Writes the initial files of each fuzz target's corpus: small real files, built here.

    tests/fuzz/make_seeds.py FOLDER

The committed corpus also has the inputs that the fuzzers found, and need not be rebuilt."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

SOURCE = """
extern int outside(int);
static int counter;
__attribute__((noinline)) static int inner(int x) { counter += x; return counter * 3; }
static inline int between(int x) { return inner(x) + inner(x + 1); }
__attribute__((noinline)) int outer(int x) { volatile char room[x + 1]; room[x] = 1; return between(room[x]); }
int LAST(int x) { return outer(x) + CALL(x); }
"""
FORMS = {  # compiler options
    "shared": ["-shared", "-fPIC", "-DCALL=outside"],
    "shared-g": ["-shared", "-fPIC", "-g", "-DCALL=outside"],
    "shared-g4": ["-shared", "-fPIC", "-gdwarf-4", "-g", "-DCALL=outside"],
    "static": ["-static", "-DCALL=inner", "-Wl,-e,LAST"],
    "debug_frame": ["-static", "-DCALL=inner", "-Wl,-e,LAST", "-g", "-fno-asynchronous-unwind-tables"],
    "compressed": ["-static", "-DCALL=inner", "-Wl,-e,LAST", "-g", "-gz",
                   "-fno-asynchronous-unwind-tables"],
    "no-cfi": ["-static", "-DCALL=inner", "-Wl,-e,LAST", "-fno-asynchronous-unwind-tables"],
    "pointer": ["-static", "-DCALL=inner", "-Wl,-e,LAST", "-fno-omit-frame-pointer"],
}
HOSTILE = {  # directives of call frame information, see as's manual and DWARF 5, 7.7.1 and 7.24
    # The CFA's expression never ends: DW_OP_skip by -3, back to itself
    "endless": ".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff",
    # the smallest number divided by -1, which traps
    "division": ".cfi_escape 0x0f, 12, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b",
    # an impossible register for the return address
    "return-column": ".cfi_return_column 255\n.cfi_escape 0x0f, 3, 0x77, 8, 6",
    # more saved rows than any function has
    "remember": ".cfi_escape 0x0f, 3, 0x77, 8, 6\n" + ".cfi_remember_state\n" * 3000,
}
NAMES = """_ZNSt6vectorIiSaIiEE9push_backEOi _ZN3foo3barILi3EEEvRKNS_3bazE _ZTVN10__cxxabiv117__class_type_infoE
_RNvCs1234_7mycrate3foo _RINvNtC3std3mem8align_ofdE _RNCNvC4main4main0 _ZN4core3fmt9Formatter3pad17h0123456789abcdefE
_D3std5stdio7writelnFZv _D4core6thread6ThreadQe3runMFZv _ZZ4mainENKUlvE_clEv
_ZNKSt8functionIFvvEEclEv _ZN1aIXadL_ZN1b1cEvEEE1dEv _Z1fIJicEEvDpT_ _ZDTcl1gfp_EE plain""".split()


def link(source, out, options):
    """Segments are adjacent in the file, which has a few KB."""
    subprocess.run(["gcc", "-O1", "-nostdlib", "-fcf-protection=none", "-Wl,-z,noseparate-code",
                    "-Wl,-z,max-page-size=64", "-Wl,-z,norelro", "-Wl,--build-id",
                    f"-ffile-prefix-map={source.parent}=/seed", *options, "-o", out, source], check=True,
                   cwd=source.parent)
    return out.read_bytes()


def compile_forms(work):
    source = work / "seed.c"
    source.write_text(SOURCE)
    for name, options in FORMS.items():
        out = work / name
        yield name, link(source, out, options)
    by_zstd = work / "compressed-zstd"
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", work / "debug_frame", by_zstd], check=True)
    yield by_zstd.name, by_zstd.read_bytes()
    for name, directives in HOSTILE.items():
        source = work / "hostile.s"
        source.write_text(f"""
            .globl LAST, _start
            LAST: _start: .cfi_startproc
            {directives}
            call LAST
            nop
            .cfi_endproc
            """)
        yield name, link(source, work / name, ["-static", "-Wl,-e,LAST", "-Wl,--eh-frame-hdr"])


def sections(elf):
    """name -> (address, bytes)"""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    text = elf[rows[names][4]:][:rows[names][5]]
    return {text[row[0]:].split(b"\0")[0].decode(): (row[3], elf[row[4]:row[4] + row[5]])
            for row in rows if row[1] != 8}


def address(kind, number):
    return kind.encode() + struct.pack("<I", number)


def unwind_input(elf, pc, words, known=(1 << 17) - 1):
    """See tests/fuzz/unwind.c. A stack whose words are these addresses."""
    registers = b"\0" + struct.pack("<Q", known) + address("c", pc) + address("s", 0) + address("s", 8)
    stack = struct.pack("<BBBB", len(words), 0, 0, 1) + b"".join(address(*word) for word in words)
    return registers + stack + elf


def main():
    out = pathlib.Path(sys.argv[1])

    def put(target, name, data):
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    with tempfile.TemporaryDirectory() as work:
        for name, elf in compile_forms(pathlib.Path(work)):
            put("elf", name, elf)
            put("symbols", name, elf)
            parts = sections(elf)
            text_address, text = parts[".text"]
            put("code", name, b"\x20\0" + text)
            if ".eh_frame" in parts:
                eh = parts[".eh_frame"][1]
                put("cfi", name, b"\0" + struct.pack("<H", len(eh)) + eh)
                if ".eh_frame_hdr" in parts:
                    table = parts[".eh_frame_hdr"][1]
                    put("cfi", name + "-table", b"\1" + struct.pack("<H", len(table) - 12) + table + eh)
            if name == "debug_frame":
                put("cfi", name, b"\0\0\0" + parts[".debug_frame"][1])
            # A frame in each function, with possible leftovers of calls above it.
            for at in (8, len(text) // 2, len(text) - 2):
                words = [("c", text_address + at), ("s", 32), ("c", text_address + len(text) - 4), ("\0", 0)] * 4
                put("unwind", f"{name}-{at}", unwind_input(elf, text_address + at, words))
                put("unwind", f"{name}-{at}-sleeper",
                    unwind_input(elf, text_address + at, words, (1 << 17) - 1 - (1 << 6)))
    for i, name in enumerate(NAMES):
        put("demangle", f"name-{i}", name.encode())
    for i, name in enumerate(("std::vector<int, std::allocator<int> >::push_back(int&&)", "a::operator<<",
                              "a<(b<c>)1>::operator->*<d>() const [clone .cold]", "<init>")):
        put("demangle", f"source-{i}", name.encode())
    lines = b"".join(b"%x-%x %s %08x fe:01 %d                 %s\n" % row for row in (
        (0x55d0a4e00000, 0x55d0a4e06000, b"r--p", 0, 2099, b"/usr/bin/cat"),
        (0x55d0a4e06000, 0x55d0a4e0b000, b"r-xp", 0x6000, 2099, b"/usr/bin/cat"),
        (0x55d0a5a4a000, 0x55d0a5a6b000, b"rw-p", 0, 0, b"[heap]"),
        (0x7f6c0e400000, 0x7f6c0e555000, b"r-xp", 0x26000, 2097, b"/usr/lib/libc.so.6"),
        (0x7f6c0e600000, 0x7f6c0e601000, b"rwxp", 0, 0, b""),
        (0x7ffd8c4a2000, 0x7ffd8c4c3000, b"rw-p", 0, 0, b"[stack]"),
        (0x7ffd8c5f2000, 0x7ffd8c5f4000, b"r-xp", 0, 0, b"[vdso]")))
    here = b"7f12a1e00000-7f12a1f55000 r-xp 00026000 fe:01 2097                       "
    put("maps", "real", lines + b"\0" + lines[:len(lines) // 2])
    put("maps", "deleted", here + b"/tmp/a b\\012c (deleted)\n" + b"\0" + here + b"/tmp/other\n")
    put("maps", "grown", here + b"\n\0" + here.replace(b"7f12a1f55", b"7f12a1f56") + b"\n")
    put("maps", "vdso", b"7ffc8d5f2000-7ffc8d5f4000 r-xp 00000000 00:00 0      [vdso]\n")
    line = struct.pack("<BIII", 1, 0, 7, 4) + b"a.js" + struct.pack("<BIII", 1, 8, 9, 0xffffffff)
    symbols = b"".join(struct.pack("<BQQII", 0, start, size, lines, len(name)) + name for start, size, lines, name in (
        (0x1000, 16, 2, b"first"), (0x2000, 32, 0, b"second"), (0x1008, 0x1000, 0, b"over both")))
    moved = struct.pack("<BQ", 2, 42) + struct.pack("<BQQ", 3, 42, 0x3000)
    put("announce", "real", line + symbols + moved)
    put("announce", "cut", line + symbols[:-3])
    put("announce", "overflow", struct.pack("<BQQII", 0, 2**64 - 15, 17, 0, 1) + b"n")
    put("announce", "lines", struct.pack("<BQQII", 0, 0x1000, 16, 9, 1) + b"n")
    text = b"7f52a40012c0 1a4 LazyCompile:*handle /srv/app.js:10:3\n0x7f52a4001300 0x20 Stub\n7f52a4001000 1000 all\n"
    put("perf_map", "real", b"\x40\0" + text)
    put("perf_map", "again", b"\xff\xff" + text * 3)
    put("perf_map", "broken", b"\x10\0" + b"zz 1 a\n10 ffffffffffffffff b\n10 0 c\n10 1 \n" + text)
    put("perf_map", "long", b"\x10\0" + b"10 1 " + b"n" * 9000 + b"\n" + text)
    # Documentation/jitdump-specification.txt in the kernel's tools/perf
    code = b"\x90" * 32
    load = struct.pack("<IIQQQQ", 10, 10, 0x1000, 0x1000, len(code), 1) + b"handle\0" + code
    lines = struct.pack("<QQQII", 0x1000, 2, 0x1000, 3, 0) + b"a.js\0" + struct.pack("<QII", 0x1008, 4, 0) + b"\xff\0"
    move = struct.pack("<IIQQQQQ", 10, 10, 0x1000, 0x1000, 0x2000, len(code), 1)
    def record(kind, body):
        return struct.pack("<IIQ", kind, 16 + len(body), 5) + body
    header = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 10, 5, 0)
    put("jitdump", "load", header + record(0, load))
    put("jitdump", "lines", header + record(2, lines) + record(0, load))
    put("jitdump", "move", header + record(0, load) + record(1, move) + record(3, b""))
    put("jitdump", "cut", header + record(0, load)[:-8])
    put("procfs", "stat", b"1234 (a) name) S 1 1234 1234 0 -1 4194560 177 0 0 0 0 0 0 0 20 0 3 0 9056 1 2\n")
    put("procfs", "syscall", b"232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6\n")
    put("procfs", "outside-call", b"-1 0x7ffd8c4c2d30 0x7f6c0e5a1dd6\n")
    put("procfs", "schedstat", b"1187426 53201 37\n")
    put("procfs", "kernel-stack", b"[<0>] futex_wait_queue+0x60/0x90\n[<ffffffff8112a2b3>] ext4_file_read_iter+0x4d/0x120 [ext4]\n"
        b"[<0>] 0xffffffffc0a1\n[<ffffffffffffffff>] 0xffffffffffffffff\n")
    put("procfs", "status", b"Name:\tcat\nTgid:\t1234\nTracerPid:\t0\nvoluntary_ctxt_switches:\t36\n"
        b"nonvoluntary_ctxt_switches:\t1\n")

    # A slot: sequence, profile, value, tid, skip, stack_bytes, is_cut, next_free, registers, stack (values_format.h)
    def slot(sequence, profile, stack, skip=0):
        return struct.pack("<IIQIIIIQ8Q", sequence, profile, 5, 7, skip, len(stack), 0, 0, *range(4096, 4104)) + stack
    def piece(skip, data):
        return struct.pack("<I", skip)[:3] + bytes([len(data)]) + data
    def values(flags, counts, slabs, pieces, names=(b"files", b"locks", b"two words")):
        packed = bytes([flags]) + counts + b"".join(slabs)
        for name in names:
            packed += bytes([len(name)]) + name + b"\x02" + (b"\0" * 3 if flags & 8 else b"") + b"\x01"
        first, second = b"".join(pieces[0]), b"".join(pieces[1])
        size = max(len(first), len(second))
        return packed + first.ljust(size, b"\0") + second
    one = [piece(0, slot(2, 1, b"s" * 48)), piece(384 - 160, slot(4, 2, b"t" * 16, 3))]
    two = [piece(0, slot(4, 0, b"")), piece(1000, slot(3, 1, b""))]
    slabs = [b"\x01" + struct.pack("<H", 5), b"\x02" + struct.pack("<H", 9), b"\x00\0\0", b"\x07" + struct.pack("<H", 1)]
    put("values", "small", values(0, b"\x02\x04", slabs, (one, two)))
    put("values", "wrong-slab", values(0, b"\x02\x04", [b"\x09" + struct.pack("<H", 5)] + slabs[1:], (one, two)))
    put("values", "long-stack", values(0, b"\x03\x04", slabs, ([piece(0, slot(2, 1, b"")[:24] + b"\xff" * 8)], two)))
    put("values", "version", values(1, b"\x02\x04", slabs, (one, two)))
    put("values", "counts", values(8, struct.pack("<II", 2, 1 << 31),
                                   [struct.pack("<II", slab[0], 1) for slab in slabs], (one, two)))
    put("values", "size", values(4, struct.pack("<Q", 1 << 40) + b"\x02\x04", slabs, (one, two)))

    # The agent's ring: a flag, then 16 bytes, and so on; no flag before the last 16 bytes.
    def record(kind, bytes_, stack=b"", object_=1, room=0):
        registers = struct.pack("<8Q", *range(4096, 4104)) if stack else b""
        head = struct.pack("<QIHBBIIQQQ", 0, 0, kind, 0, 0, 7, len(stack), object_, bytes_, 9)
        body = head[8:] + registers + stack
        body += b"\0" * (-(len(body) + 8) % 16 + room)
        return struct.pack("<I", len(body) + 8) + body[4:]
    def ring(*records):
        packed = b""
        for data in records:
            packed += b"\x01" + data[:8] + b"\0" * 7
            for at in range(8, len(data), 16):
                packed += b"\0" + data[at:at + 15]
        return packed
    def agent(flags, header, first, second):
        size = max(len(first), len(second))
        return bytes([flags]) + header + first.ljust(size, b"\0") + second
    at = struct.pack("<H", 60)
    some = ring(record(2, 4096, b"s" * 64), record(3, 0), record(4, 0, b"t" * 8), record(2, 1, b"", 5, 64))
    put("agent", "records", agent(128, at, some, ring(record(3, 0), record(1, 0))))
    put("agent", "read-before", agent(16, at, some, some))
    put("agent", "ended", agent(64, at, some[16:] + some, some[:48]))
    put("agent", "position", agent(32, at + struct.pack("<Q", 1 << 20), some, some))
    put("agent", "version", agent(1, struct.pack("<I", 2) + at, some, some))
    put("agent", "magic", agent(2, b"\0" + at, some, some))
    put("agent", "sizes", agent(12, struct.pack("<QI", 1 << 40, 64) + at, some, some))

if __name__ == "__main__":
    os.umask(0o022)
    main()

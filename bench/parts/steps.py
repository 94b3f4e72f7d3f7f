"""Steps through real programs, instruction by instruction, and compares their true call stacks with
what unwinding finds (tests/tools/step_stacks.c)."""

import os
import re
import shutil
import subprocess
import tempfile

import programs
import tables

TITLE = "Stacks at each instruction"
TOOLS = ("gcc", "clang", "musl-gcc")
HEADER = ["program", "instructions compared", "frames", "equal", "cut", "missing", "in doubt",
          "wrong"]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
STEPS = os.path.join(SOURCE, "tests/fixtures/steps.c")
CXX = os.path.join(SOURCE, "tests/fixtures/steps.cc")

# From the first instruction, the dynamic linker's; from the program's own; or in the middle, where only the
# frames that are entered during the test are known.
START, ENTRY = [], ["--entry"]
WINDOWS = ["--after=200", "--windows=10", "--steps=20000"]

PYTHON = """
import json, re
while True:
    re.sub("(a|b)*c", "x", "abab" * 50); json.loads(json.dumps([1, 2.5, {"a": "b"}] * 30))
    sorted(range(500), key=lambda x: -x); "%s %f" % ("x", 1.5); [x for x in range(300)]
"""
PERL = "while (1) { my %h; $h{$_ * 7 % 101}++ for 1..200; join ',', sort map { s/1/x/r } keys %h }"
NODE = "for (;;) { [3, 1, 2].sort(); JSON.parse(JSON.stringify({a: [1, 2, 3]})); 'abc'.replace(/b/, 'x') }"
SQL = """with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000)
select count(*), sum(length(printf('%d %s', i, hex(i)))) from n;"""
GO = """package main
import ("fmt"; "sort"; "strings")
func main() { for { a := strings.Fields(strings.Repeat("c a b ", 50)); sort.Strings(a)
    _ = fmt.Sprint(len(a), 1.5) } }
"""
RUST = """use std::collections::HashMap;
fn main() { loop { let mut m = HashMap::new();
    for i in 0..500u64 { m.insert(format!("key{}", i % 100), i); }
    let mut v: Vec<_> = m.into_iter().collect(); v.sort();
    if v.len() == 1 { println!("{:?}", v); } } }
"""


def of_steps(compiler, *flags):
    return lambda stage: stage.compiled(compiler, STEPS, *flags, "-lm")


def of_cxx(compiler, *flags):
    return lambda stage: stage.compiled(compiler, CXX, *flags)


def plain(*command):
    return lambda stage: list(command)


def of_text(*command):
    return lambda stage: [*command, stage.text()]


PROGRAMS = {
    **{f"steps.c, {compiler} {' '.join(flags)}": (ENTRY, of_steps(compiler, *flags))
       for compiler, flags in [
           *((compiler, (level, *more)) for compiler in ("gcc", "clang")
             for level in ("-O0", "-O2", "-O3") for more in ((), ("-fno-omit-frame-pointer",))),
           ("gcc", ("-Os",)), ("gcc", ("-O2", "-fcf-protection=full")), ("gcc", ("-O2", "-fno-plt")),
           ("gcc", ("-O2", "-Wl,-z,now")), ("gcc", ("-O2", "-no-pie")), ("gcc", ("-O2", "-flto")),
           ("gcc", ("-O2", "-pg")), ("gcc", ("-O2", "-fstack-clash-protection")),
           ("gcc", ("-O2", "-mindirect-branch=thunk")), ("gcc", ("-O2", "-fuse-ld=gold")),
           ("gcc", ("-O2", "-fuse-ld=mold")), ("gcc", ("-O2", "-fuse-ld=lld")),
           ("clang", ("-O2", "-fuse-ld=lld")),
           ("gcc", ("-g", "-O2", "-fno-asynchronous-unwind-tables")),
           ("gcc", ("-O2", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer")),
           ("gcc", ("-O2", "-static")), ("gcc", ("-O2", "-static-pie")), ("musl-gcc", ("-O2",)),
           ("musl-gcc", ("-O2", "-static"))]},
    **{f"steps.cc, {compiler} {' '.join(flags)}": (ENTRY, of_cxx(compiler, *flags))
       for compiler, flags in [("g++", ("-O0",)), ("g++", ("-O2",)), ("g++", ("-O3",)),
                               ("g++", ("-O2", "-static")), ("clang++", ("-O0",)),
                               ("clang++", ("-O2",)), ("clang++", ("-O2", "-fuse-ld=lld"))]},
    "true, with ld.so": (START, plain("/bin/true")),
    "ls": (ENTRY, plain("/bin/ls", "-l", "/usr")),
    "sort": (ENTRY, of_text("sort")),
    "mawk": (ENTRY, of_text("mawk", "{ n[$1] += length($0) } END { for (i in n) print i, n[i] }")),
    "gzip": (WINDOWS, of_text("gzip", "-9c")),
    "xz": (WINDOWS, of_text("xz", "-9c")),
    "bash": (ENTRY, plain("bash", "-c", "for i in 1 2 3; do x=${i/1/2}; echo $((x * i)); done")),
    "git log": (ENTRY, plain("git", "-C", SOURCE, "log", "--stat", "-3")),
    "perl": (WINDOWS, plain("perl", "-e", PERL)),
    "python3": (WINDOWS, plain("/usr/bin/python3", "-c", PYTHON)),
    "sqlite3": (WINDOWS, plain("sqlite3", ":memory:", SQL)),
    **{f"openssl, {name}": (WINDOWS, plain("openssl", "speed", "-seconds", "10", *arguments))
       for name, arguments in {"sha256": ["sha256"], "aes-gcm": ["-evp", "aes-128-gcm"],
                               "chacha20": ["-evp", "chacha20-poly1305"], "rsa": ["rsa2048"],
                               "p256": ["ecdsap256"], "x25519": ["ecdhx25519"]}.items()},
    "node": (WINDOWS, plain("node", "-e", NODE)),
    "Rust": (WINDOWS, lambda stage: stage.built("busy.rs", RUST, "rustc", "-O", "-o")),
    "Go": (WINDOWS, lambda stage: stage.built("busy.go", GO, "go", "build", "-o")),
}


class Missing(Exception):
    """A program that is not installed."""


class Stage:
    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def compiled(self, compiler, *arguments):
        program = self.path("program")
        subprocess.run([compiler, "-w", *arguments, "-o", program], check=True)
        return [program]

    def built(self, name, text, *command):
        program = self.path("program")
        with open(self.path(name), "w") as file:
            file.write(text)
        if not shutil.which(command[0]):
            raise Missing(command[0])
        subprocess.run([*command, program, self.path(name)], check=True)
        return [program]

    def text(self):
        name = self.path("text")
        with open(name, "w") as file:
            file.writelines(f"{n * 7919 % 1009} {n * n} line\n" for n in range(200000))
        return name


def judge(world, name):
    """A row, and the differences."""
    how, prepare = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="fgprof-bench-") as directory:
        stage = Stage(directory)
        command = prepare(stage)
        if not shutil.which(command[0]):
            raise Missing(command[0])
        report_path = stage.path("report")
        done = subprocess.run(
            [world.program("step-stacks"), f"--report={report_path}",
             f"--seconds={world.pick(20, 1)}", f"--show={10 if world.options.show else 0}", *how,
             *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            cwd=directory)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{name}: {done.stderr}")
        with open(report_path) as file:
            first, *differences = file.read().splitlines()
    values = dict(re.findall(r"(\w+)=([\d.]+)", first))
    compared = int(values["compared"])
    shares = [f"{100 * int(values[key]) / max(compared, 1):.3f} %"
              for key in ("equal", "cut", "missing", "doubt")]
    return [name, compared, values["depth"], *shares, values["wrong"]], differences


def report(world):
    rows = []
    for name in world.chosen(PROGRAMS):
        programs.progress(f"  {name}")
        try:
            row, differences = judge(world, name)
            for difference in differences:
                programs.progress(f"    {difference}")
        except (Missing, FileNotFoundError) as program:
            row = [name, f"{program} is not installed"] + [""] * (len(HEADER) - 2)
        rows.append(row)
    return tables.table(HEADER, rows)

"""Compared with the truth: programs are stepped through, and at each instruction the unwound stack is
compared with the calls that were made (tests/tools/step_stacks.c)."""

import os
import platform
import re
import subprocess

from harness import Skip, need, tool, users_build

# Far more than any takes: what is left undone then is missed.
SECONDS = 250


def judge(world, *command, how="--entry"):
    """Steps through the program. Returns counts, the wrong functions, and the report."""
    judge_path = os.path.join(world.build, "tests/tools/step-stacks")
    report = world.path("steps")
    done = subprocess.run(
        ["timeout", str(SECONDS + 30), judge_path, f"--report={report}", f"--seconds={SECONDS}", "--show=1000",
         how, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    if done.returncode == 2 and "Operation not permitted" in done.stderr:
        raise Skip("no ptrace")
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    lines = open(report).read().splitlines()
    counts = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", lines[0])}
    wrong = {match[1] for line in lines if (match := re.match(r"wrong \d+ [^!]*!(\S+) ", line))}
    assert bool(wrong) == (counts["wrong"] > 0) == (done.returncode == 1), lines[0]
    return counts, wrong, lines


def check(world, *command, equal, instructions, how="--entry", known=frozenset()):
    """Fails if a frame is wrong except in `known` functions, or if fewer than that share of the stacks are
    right and complete."""
    counts, wrong, lines = judge(world, *command, how=how)
    assert wrong <= known, lines
    assert counts["compared"] > instructions, lines[0]
    assert counts["equal"] >= equal * counts["compared"], lines


def compiled(world, source, name, compiler, *flags):
    if "-fuse-ld=lld" in flags:
        need("ld.lld")
    program = world.path(name)
    tool(compiler, "-w", *flags, os.path.join(world.source, "tests/fixtures", source), "-o", program,
         "-lm")
    return program


# glibc's swapcontext on aarch64 has another address in the link register than its call frame information says.
WRONG = {"x86_64": set(), "aarch64": {"swapcontext"}}
# What keeps the shares below 1: some hundred instructions of longjmp, setcontext and swapcontext,
# which are between two stacks, and of code at the start and end of the C runtime without tables or
# symbols.
EQUAL = {"x86_64": 0.995, "aarch64": 0.98}


def check_steps(world, name, *flags):
    program = compiled(world, "steps.c", name, "gcc", *flags)
    check(world, program, equal=EQUAL[platform.machine()], instructions=10000, known=WRONG[platform.machine()])


def test_each_instruction_without_optimization(world):
    check_steps(world, "steps-O0", "-O0")


def test_each_instruction_at_O2(world):
    check_steps(world, "steps-O2", "-O2")


def test_each_instruction_with_frame_pointers(world):
    check_steps(world, "steps-fp", "-O3", "-fno-omit-frame-pointer")


def test_each_instruction_of_a_static_program(world):
    check_steps(world, "steps-static", "-O2", "-static")


def test_each_instruction_linked_by_lld(world):
    check_steps(world, "steps-lld", "-O2", "-fuse-ld=lld")


@users_build
def test_each_instruction_of_ld_so(world):
    check(world, "/bin/true", equal=0.999, instructions=50000, how="--every=1")


def test_each_instruction_of_dash(world):
    check(world, "/bin/dash", "-c", "x=1; echo $((x + 2))", equal=0.998, instructions=20000)


# Functions without tables, symbols or frame pointers, over stacks that are full of return addresses
# of earlier calls. One returns by a computed jump, which is not followed.

def check_untold(world, *flags):
    if platform.machine() != "x86_64":
        raise Skip("the functions are written for x86-64")
    sources = [os.path.join(world.source, "tests/fixtures", name) for name in ("untold.c", "untold.S")]
    program = world.path("untold")
    tool("gcc", "-O2", "-fomit-frame-pointer", "-rdynamic", *flags, *sources, "-o", program)
    check(world, program, equal=0.98, instructions=5000)


def test_each_instruction_of_code_without_tables(world):
    check_untold(world)


def test_each_instruction_of_code_without_tables_or_symbols(world):
    check_untold(world, "-s")


# ---- The judge itself ----

# A function that describes its frame wrongly, and for how many of its instructions: it claims that it has
# pushed a word more than it has, where its return is reported by itself; or that it has saved the link
# register.
LIES = {"x86_64": (".cfi_def_cfa_offset 16", 3),
        "aarch64": (".cfi_def_cfa_offset 16\\n.cfi_offset 30, -16", 4)}


def test_a_lie_is_found(world):
    lie, count = LIES[platform.machine()]
    source = world.path("liar.c")
    with open(source, "w") as file:
        file.write('#include <stdio.h>\n'
                   'void liar(void);\n'
                   '__asm__(".globl liar\\n.type liar,%function\\nliar:\\n.cfi_startproc\\n"\n'
                   f'        "{lie}\\nnop\\nnop\\nnop\\nret\\n.cfi_endproc\\n"\n'
                   '        ".size liar, .-liar\\n");\n'
                   'static void __attribute__((noinline)) call(void) { liar(); puts(""); }\n'
                   'int main(void) { call(); return 0; }\n')
    program = world.path("liar")
    tool("gcc", "-O1", source, "-o", program)
    lines = judge(world, program)[2]
    differing = [line for line in lines if re.match(rf"(wrong|missing|cut) {count} liar!liar ", line)]
    assert len(differing) == 1, lines

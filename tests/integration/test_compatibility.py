"""Programs that were built with the header of release 0.1 run with this library."""

import os
import re

from harness import tool

STRUCTS = "fgprof_progress", "fgprof_summary", "fgprof_function", "fgprof_activity"
# It says how many there are of the others.
GROWS = {"FGPROF_STATE_COUNT"}


def frozen(world):
    return os.path.join(world.source, "tests/compatibility/fgprof-0.1.h")


def todays(world):
    return os.path.join(world.source, "include/fgprof.h")


def without_comments(header):
    return re.sub(r"/\*.*?\*/", "", header, flags=re.S)


def struct_body(header, name):
    return re.search(r"struct " + name + r" \{\n(.*?)\n\};", header, re.S)[1]


def fields(header, name):
    declarations = struct_body(without_comments(header), name).split(";")
    return [part.split()[-1].strip("*").split("[")[0] for declaration in declarations if declaration.strip()
            for part in declaration.split(",")]


def changed(header, change):
    """The header with each struct's fields as `change` makes them."""
    header = without_comments(header)
    for name in STRUCTS:
        body = struct_body(header, name)
        header = header.replace(body, change(body))
    return header


def older(body):
    """The body without its last field."""
    return body[:body.rindex(";", 0, body.rindex(";")) + 1]


def later(body):
    return body + "\n    uint64_t added;"


def compile_with(world, header, source, name, *flags):
    """A program that is linked with the shared library of the build."""
    include = world.path(name + "-include")
    os.makedirs(include)
    with open(os.path.join(include, "fgprof.h"), "w") as file:
        file.write(header)
    sanitize = ["-fsanitize=address,undefined"] if world.is_sanitized else []
    program = world.path(name)
    tool("gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", *sanitize, *flags, "-I" + include,
         source, "-o", program, "-L" + world.build, "-l:libfgprof.so", "-Wl,-rpath," + world.build)
    return program


def told(world, name, header, *flags):
    """The program's output about a process, as {first word: the rest of its lines}."""
    source = os.path.join(world.source, "tests/compatibility/program.c")
    program = compile_with(world, header, source, name, *flags)
    lines = {}
    with world.running("states", 60) as target:
        for line in tool(program, target.pid).splitlines():
            word, rest = line.split(" ", 1)
            lines.setdefault(word, []).append(rest)
    number = {word: int(rest[0]) for word, rest in lines.items() if re.fullmatch(r"-?\d+", rest[0])}
    assert number["error"] == 0 and number["progress_duration_ns"] == 60 * 10**9, lines
    assert 400e6 < number["progress_elapsed_ns"] < 60e9, lines
    assert number["progress_elapsed_ns"] <= number["elapsed_ns"] < 60e9, lines
    assert number["progress_threads"] == number["threads_seen"] == 5, lines
    assert 0 < number["progress_stacks"] <= number["progress_samples"] <= number["samples"], lines
    # Five threads for all of the time, but for samples that were not captured.
    assert 2 * number["elapsed_ns"] < number["thread_ns"] < 5.5 * number["elapsed_ns"], lines
    names = [line.split()[0] for line in lines["function"]]
    assert "in_spin" in names and "in_sleep" in names, lines
    for line in lines["function"]:
        _, self_ns, total_ns = line.rsplit(" ", 2)
        assert int(self_ns) <= int(total_ns), line
    assert any(re.fullmatch(r"spinning 1 \S+", line) for line in lines["activity"]), lines
    assert lines["dump_threads"] == ["5 5"], lines
    return lines


def test_a_program_of_the_first_release(world):
    told(world, "first", open(frozen(world)).read())


def test_an_older_program_with_smaller_structs(world):
    told(world, "older", changed(open(frozen(world)).read(), older))


def test_a_later_program_with_larger_structs(world):
    """Fields that this library does not know are zero."""
    lines = told(world, "later", changed(open(todays(world)).read(), later), "-DLATER")
    assert lines["progress_lacks"] == ["1"] and lines["progress_added"] == ["0"], lines
    for what in "summary", "function", "activity":
        assert lines[what + "_added"] and set(lines[what + "_added"]) == {"0"}, lines


def test_todays_header_only_grows(world):
    """Each field and each value of an enum is where it was."""
    old = open(frozen(world)).read()
    plain = without_comments(old)
    values = set(re.findall(r"\bFGPROF_\w+(?= = \d+,|,| =|\n\})", "\n".join(
        re.findall(r"enum fgprof_\w+ \{(.*?\n)\}", plain, re.S)))) - GROWS
    assert len(values) > 20 and "FGPROF_STATE_STOPPED" in values, values
    source = world.path("layout.c")
    with open(source, "w") as file:
        file.write("#include <fgprof.h>\n#include <stdio.h>\nint main(void)\n{\n")
        for name in STRUCTS:
            for field in fields(old, name):
                place = f"offsetof(struct {name}, {field})"
                size = f"sizeof((struct {name}){{0}}.{field})"
                file.write(f'    printf("{name}.{field} %zu %zu\\n", {place}, {size});\n')
        for value in sorted(values):
            file.write(f'    printf("{value} %d\\n", (int){value});\n')
        file.write("}\n")
    layouts = [tool(compile_with(world, header, source, name)) for name, header in (
        ("layout-then", old), ("layout-now", open(todays(world)).read()))]
    assert len(layouts[0].splitlines()) > 70
    assert layouts[0] == layouts[1]


def test_functions_have_versions(world):
    """Functions of the first release keep their versions; a function that was added later has that of its
    release."""
    exported = {}
    for line in tool("nm", "-D", "--defined-only", world.build + "/libfgprof.so").splitlines():
        kind, name = line.split()[1:]
        if kind != "A":  # the version itself
            name, version = name.split("@@")
            exported[name] = version
    first = set(re.findall(r"FGPROF_API [^;]*?\b(fgprof_\w+)\(", without_comments(open(
        frozen(world)).read())))
    assert len(first) > 50, first
    assert {exported.get(name) for name in first} == {"FGPROF_0.1"}, first - exported.keys()
    assert all(name.startswith("fgprof_") and re.fullmatch(r"FGPROF_\d+\.\d+", version)
               for name, version in exported.items()), exported

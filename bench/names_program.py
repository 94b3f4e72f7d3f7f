"""Makes a program with any amount of debug information: names_program.build(directory, bytes).

A few C++ sources full of templates are compiled once. objcopy gives each copy of an object its own names, and
all copies are linked. So every copy is a unit of real DWARF with its own code, and the program takes seconds
to make; compiling that much would take an hour. Its main function runs through all units, again and again,
for a minute."""

import concurrent.futures
import os
import subprocess

SOURCES = 2
TEMPLATES = 60
VALUES = 6

TEMPLATE = """
template <int N, typename T> struct shape_{i} {{
    struct part {{ T first, second; unsigned char tag[N + 1]; part *next; }};
    part parts[N + 2];
    T sums[N + 1];
    T weigh(const T *values, int count) const;
    static inline T scale(T value, int by) {{ return value * by + N; }}
    T total(int rounds) {{
        T sum = T(0);
        for (int i = 0; i < rounds; i++) {{
            T step = scale(parts[i % (N + 2)].first, i);
            if (i % 3 == {i} % 3)
                step = scale(step, N) - parts[i % (N + 2)].second;
            sums[i % (N + 1)] += step;
            sum += step;
        }}
        return sum + weigh(sums, N);
    }}
}};
template <int N, typename T> __attribute__((noinline)) T shape_{i}<N, T>::weigh(const T *values, int count) const {{
    T weight = T(1);
    for (int i = 0; i < count; i++)
        weight = weight + shape_{i}<N, T>::scale(values[i], i + {i});
    return weight;
}}
template <typename T> __attribute__((noinline)) static long use_{i}(T &shape, int rounds) {{
    return (long)shape.total(rounds);
}}
"""


def source(number):
    text = [f"namespace source_{number} {{"]
    calls = []
    for i in range(TEMPLATES):
        text.append(TEMPLATE.format(i=i))
        for value in range(VALUES):
            for kind in "long", "int":
                calls.append(f"    {{ static shape_{i}<{value + number}, {kind}> shape; "
                             f"sum += use_{i}(shape, rounds); }}")
    text.append("}")
    text.append(f'extern "C" long entry(int rounds) {{ using namespace source_{number};\n    long sum = 0;')
    text += calls
    text.append("    return sum;\n}")
    return "\n".join(text)


MAIN = """
#include <stdio.h>
#include <time.h>
{declarations}
static long (*const entries[])(int) = {{ {entries} }};
int main(void)
{{
    time_t end = time(NULL) + 60;
    long sum = 0;
    puts("ready");
    fflush(stdout);
    while (time(NULL) < end) {{
        for (unsigned i = 0; i < sizeof entries / sizeof *entries; i++)
            sum += entries[i](20);
    }}
    return sum == 42;
}}
"""

SECTIONS = (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges", ".debug_loc",
            ".debug_loclists", ".debug_rnglists", ".debug_aranges", ".debug_line_str")


def debug_bytes(path):
    """How much debug information a file has."""
    total = 0
    for line in run("readelf", "-SW", path).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] in SECTIONS:
            total += int(words[5], 16)
    return total


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout


def build(directory, bytes_wanted):
    """Returns the program's path. An existing program is used again."""
    program = os.path.join(directory, f"names-{bytes_wanted >> 20}m")
    if os.path.exists(program):
        return program
    os.makedirs(directory, exist_ok=True)

    def path(name):
        return os.path.join(directory, name)

    def compile_source(number):
        with open(path(f"source_{number}.cc"), "w") as file:
            file.write(source(number))
        run("g++", "-g", "-O1", "-finline-functions", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-var-tracking",
            "-c",
            "-o", path(f"source_{number}.o"), path(f"source_{number}.cc"))
        return debug_bytes(path(f"source_{number}.o"))

    def copy(number):
        name = path(f"copy_{number}.o")
        run("objcopy", f"--prefix-symbols=unit_{number}_", path(f"source_{number % SOURCES}.o"), name)
        return name

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = list(pool.map(compile_source, range(SOURCES)))
        count = max(1, bytes_wanted * SOURCES // sum(sizes))
        copies = list(pool.map(copy, range(count)))
    entries = [f"unit_{number}_entry" for number in range(count)]
    with open(path("main.c"), "w") as file:
        file.write(MAIN.format(declarations="\n".join(f"long {name}(int);" for name in entries),
                               entries=", ".join(entries)))
    run("gcc", "-g", "-c", "-o", path("main.o"), path("main.c"))
    with open(path("objects"), "w") as file:
        file.write("\n".join(copies))
    # -O0: equal strings are not merged, which would take longest.
    run("gcc", "-fuse-ld=lld", "-Wl,-O0,--build-id=fast", "-o", program, path("main.o"), "@" + path("objects"))
    for name in copies:
        os.unlink(name)
    return program


if __name__ == "__main__":
    import sys
    print(build(sys.argv[1], int(sys.argv[2]) << 20))

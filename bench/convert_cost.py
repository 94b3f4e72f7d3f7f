#!/usr/bin/env python3
"""What `convert` costs on a large recording: time and memory of two builds, and their ratio.

usage: convert_cost.py BEFORE AFTER [STACKS [DEPTH]], with paths of two fgprof-c. The recording is made of
tests/golden/version-1.fgprof, with as many random stacks, each with a sample."""
import gzip
import multiprocessing
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/version-1.fgprof"
HEAD_BYTES = 12
FORMATS = "folded", "pprof", "html", "report"
ROUNDS = 3
FUNCTIONS = 20000
# src/recording/columns.h and columns.c
STRINGS, FUNCTION_COLUMNS, LINE_COLUMNS = 1, (2, 3, 4), (5, 6, 7)
LOCATION_COLUMNS = range(20, 29)
STACK_LOCATIONS, STACK_FIRST, STACK_DEPTH = 29, 30, 31
SAMPLE_COLUMNS = (*range(32, 40), 78)


def uleb(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def ulebs(data):
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number, shift = 0, 0
    return numbers


def sections_of(data):
    at, sections = HEAD_BYTES, {}
    while at < len(data):
        numbers = []
        for _ in range(2):
            end = next(i for i in range(at, len(data)) if data[i] < 128) + 1
            numbers += ulebs(data[at:end])
            at = end
        sections[numbers[0]] = data[at:at + numbers[1]]
        at += numbers[1]
    return sections


def make(path, stacks, depth):
    data = gzip.decompress(GOLDEN.read_bytes())
    sections, chance = sections_of(data), random.Random(1)

    def column(number, values):
        sections[number] = b"".join(uleb(value) for value in values)

    first = {number: ulebs(sections[number])[0] for number in (*LOCATION_COLUMNS, *SAMPLE_COLUMNS)}
    count, at = 0, 0
    while at < len(sections[STRINGS]):  # those of the golden file are shorter than 128 bytes
        at += 1 + sections[STRINGS][at]
        count += 1
    names = [b"function_of_the_program_%d" % i for i in range(FUNCTIONS)]
    sections[STRINGS] += b"".join(uleb(len(name)) + name for name in names)
    for number in FUNCTION_COLUMNS[:2]:
        column(number, range(count, count + FUNCTIONS))
    column(FUNCTION_COLUMNS[2], [0] * FUNCTIONS)
    column(LINE_COLUMNS[0], range(FUNCTIONS))
    for number in LINE_COLUMNS[1:]:
        column(number, [0] * FUNCTIONS)
    for number in LOCATION_COLUMNS:
        column(number, [first[number]] * FUNCTIONS)
    column(20, range(0x1000, 0x1000 + FUNCTIONS))
    column(23, range(FUNCTIONS))
    column(24, [1] * FUNCTIONS)
    column(STACK_LOCATIONS, (chance.randrange(FUNCTIONS) for _ in range(stacks * depth)))
    column(STACK_FIRST, range(0, stacks * depth, depth))
    column(STACK_DEPTH, [depth] * stacks)
    for number in SAMPLE_COLUMNS:
        column(number, [first[number]] * stacks)
    column(32, range(stacks))
    for number in [number for number in sections if number > 88]:
        del sections[number]  # the samples' other columns, which are optional
    with gzip.open(path, "wb", 1) as file:
        file.write(data[:HEAD_BYTES])
        for number, contents in sections.items():
            file.write(uleb(number) + uleb(len(contents)) + contents)
    print(f"{sum(map(len, sections.values())) / 1e6:.0f} MB when decompressed\n")


def run(program, recording, name, output):
    """(seconds, peak bytes of the largest process)"""
    begin = time.monotonic()
    pid = os.posix_spawn(program, [program, "convert", recording, "-f", name, "-o", output], os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (program, name, status)
    return time.monotonic() - begin, usage.ru_maxrss << 10


def main(before, after, stacks=40000, depth=30):
    with tempfile.TemporaryDirectory() as directory:
        recording, outputs = f"{directory}/big.fgprof", [f"{directory}/out.{i}" for i in range(2)]
        # In a process of its own: a program that is started inherits the peak of what started it.
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(recording, int(stacks), int(depth)))
        maker.start()
        maker.join()
        assert maker.exitcode == 0
        print("| format | time, s | ratio | memory, MB | ratio |\n|---|---|---|---|---|")
        for name in FORMATS:
            results = [[run(program, recording, name, output)
                        for program, output in zip((before, after), outputs)] for _ in range(ROUNDS)]
            times, sizes = ([statistics.median(both[i][part] for both in results) for i in range(2)] for part in range(2))
            print(f"| {name} | {times[0]:.2f} {times[1]:.2f} | {times[1] / times[0]:.2f} "
                  f"| {sizes[0] / 1e6:.0f} {sizes[1] / 1e6:.0f} | {sizes[1] / sizes[0]:.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])

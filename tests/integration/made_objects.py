"""Recordings that are edited as files, by their sections (src/recording/write.c describes the format). Time
becomes objects with the same stacks, whose code exists for the reading tools."""

import gzip

HEAP, ALLOCS, GROWTH, THREADCREATE, CUSTOM = range(5, 10)  # enum fgprof_kind

# The numbers of sections (src/recording/columns.c).
STRINGS, COUNT = 1, 38
KIND, NAME, RATE = 160, 161, 162
BYTES, MADE, GONE = 170, 171, 172


def uleb(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def number_at(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def read_sections(path):
    """{number: contents}."""
    data, at, sections = gzip.decompress(open(path, "rb").read()), 12, {}
    while at < len(data):
        number, at = number_at(data, at)
        length, at = number_at(data, at)
        sections[number] = data[at:at + length]
        at += length
    return sections


def write_sections(path, sections, version=1):
    data = b"fgprof-c" + version.to_bytes(4, "little")
    for number, contents in sections.items():
        data += uleb(number) + uleb(len(contents)) + contents
    with open(path, "wb") as file:
        file.write(gzip.compress(data))


def add_string(sections, text):
    """Adds a string that is not in the table yet. Returns its number."""
    data, at, count = sections[STRINGS], 0, 0
    while at < len(data):
        length, at = number_at(data, at)
        at += length
        count += 1
    sections[STRINGS] = data + uleb(len(text)) + text.encode()
    return count


def make_objects(source, path, kind, amounts, rate=0, name=None):
    """Makes the recording `path` of objects from `source`, one of time. amounts(i): the size of each
    object of sample number i, how many were made, and how many have gone. Returns them for all
    samples."""
    sections = read_sections(source)
    samples = sum(byte < 128 for byte in sections[COUNT])
    rows = [amounts(i) for i in range(samples)]
    for column, values in zip((BYTES, MADE, GONE), zip(*rows)):
        sections[column] = b"".join(map(uleb, values))
    sections[KIND], sections[RATE] = uleb(kind), uleb(rate)
    if name:
        sections[NAME] = uleb(add_string(sections, name))
    write_sections(path, sections, version=2)
    return rows

"""The stacks of a process, from fgprof-c and from gdb."""

import collections
import json
import os
import re
import subprocess

# A time limit, in case something hangs.
HANGS_S = 300
HERE = os.path.dirname(os.path.abspath(__file__))

# Leaf first. The address is where the frame's code is looked up; line 0: unknown; kind as in gdb; a
# note, such as "[truncated: max depth]", has no address.
Frame = collections.namedtuple("Frame", "address name line kind", defaults=("normal",))


def without_parameters(name):
    """Without a linkage name, gdb makes up a name with parameters: "in_sort(int)"."""
    name = name.removesuffix(" const")
    if name.startswith("_Z") or not name.endswith(")") or name.endswith("operator()"):
        return name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if not depth:
            return name[:at]
    return name


def demangled(names):
    """{mangled name: demangled name}, without parameters."""
    names = sorted(names)
    out = subprocess.run(["c++filt", "--no-params", "--no-verbose"], input="\n".join(map(without_parameters, names)),
                         stdout=subprocess.PIPE, text=True, timeout=HANGS_S, check=True).stdout
    return dict(zip(names, out.splitlines()))


# A stop that outlives gdb: it takes effect before anything else when gdb detaches from the process.
STOP_FOR_GOOD = "python import os, signal; os.kill(gdb.selected_inferior().pid, signal.SIGSTOP)"


def of_gdb(pid, program=None, commands=()):
    """({tid: [Frame, ...]}, files). `program`: a file that gdb reads instead of the process's own.
    `commands`: how gdb brings the process to the place to be compared, where it leaves it."""
    settings = ["set print demangle off", "set backtrace past-main on",
                "set backtrace past-entry on", "set debuginfod enabled off", *commands]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set auto-load off", *([program] if program else []),
         "-p", str(pid),
         *(word for command in settings for word in ("-ex", command)),
         "-x", os.path.join(HERE, "gdb_frames.py"), *(["-ex", STOP_FOR_GOOD] if commands else [])],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=HANGS_S)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) < 2:
        raise RuntimeError(f"gdb says nothing of {pid}: {done.stdout}{done.stderr}")
    readable = demangled({frame[1] for line in lines[1:] for frame in line["frames"] if frame[1]})
    stacks = {line["tid"]: [Frame(address, readable.get(name), number, kind)
                            for address, name, kind, number in line["frames"]]
              for line in lines[1:]}
    return stacks, lines[0]["files"]


def frame_of(row, files):
    """The frame in a row of the text format: "#\t0xPC\tFUNCTION+0xOFFSET\tFILE:LINE". Without a
    function, the row has the name of a file, or [unknown]."""
    cells = [cell for cell in row.split("\t")[1:] if cell]
    if cells[1].startswith("[truncated"):
        return Frame(None, cells[1], 0)
    name, plus, _ = cells[1].rpartition("+0x")
    line = int(cells[2].rpartition(":")[2]) if len(cells) > 2 else 0
    return Frame(int(cells[0], 16), name if plus and name not in files else None, line)


def mapped_files(pid):
    """The names of the mapped files, without directories."""
    with open(f"/proc/{pid}/maps") as maps:
        return {os.path.basename(line.split(None, 5)[5].strip()) for line in maps
                if len(line.split(None, 5)) == 6}


def of_fgprof(program, pid, *options, duration="100ms"):
    """({tid: {stack: count}}, {tid: thread's name}); each stack is a tuple of frames."""
    files = mapped_files(pid)
    done = subprocess.run([program, "attach", "-p", str(pid), "-d", duration, "--threads=tid", "-f",
                           "text", "--no-demangle", "--no-goroutines", *map(str, options)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANGS_S)
    if done.returncode:
        raise RuntimeError(done.stderr)
    stacks, names = collections.defaultdict(collections.Counter), {}
    for record in done.stdout.partition("\n")[2].split("\n\n"):
        lines = record.strip("\n").split("\n")
        if len(lines) < 3:
            continue
        tid = int(re.search(r'"tid":"(\d+)"', lines[1])[1])
        names[tid] = re.search(r'"thread":"([^"]*)"', lines[1])[1]
        stack = tuple(frame_of(line, files) for line in lines[2:])
        stacks[tid][stack] += int(lines[0].split()[0])
    readable = demangled({frame.name for counts in stacks.values() for stack in counts
                          for frame in stack if frame.name})
    return {tid: {tuple(frame._replace(name=readable.get(frame.name)) for frame in stack): count
                  for stack, count in counts.items()} for tid, counts in stacks.items()}, names


def copy_vdso(path):
    """Writes the vdso, which is not in any file, to one. It is the same in all processes."""
    for line in open("/proc/self/maps"):
        if line.rstrip().endswith("[vdso]"):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb") as memory, open(path, "wb") as file:
                memory.seek(start)
                file.write(memory.read(end - start))


class Aliases:
    """Names of one function: those with the same address in symbol tables."""

    def __init__(self, directory):
        self._of_file = {}
        self._vdso = os.path.join(directory, "vdso")
        copy_vdso(self._vdso)

    def _read(self, path):
        sets = collections.defaultdict(set)
        for table in ([], ["-D"]):
            out = subprocess.run(["nm", "--defined-only", *table, path], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, timeout=HANGS_S).stdout
            for line in out.splitlines():
                words = line.split()
                if len(words) == 3:
                    sets[words[0]].add(words[2].split("@")[0])
        by_name = collections.defaultdict(set)
        for names in sets.values():
            for name in names:
                by_name[name] |= names
        return by_name

    def are(self, one, other, files):
        """Whether the files have both names at one address."""
        for path in [*files, self._vdso]:
            if path not in self._of_file and os.path.isfile(path):
                self._of_file[path] = self._read(path)
            if other in self._of_file.get(path, {}).get(one, ()):
                return True
        return False

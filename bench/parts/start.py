"""Large programs from start to end: whether the first ticks come in time, and for how long threads are
paused, while the unwind tables of a large file are built for the first time."""

import re

import programs
import tables

TITLE = "Large programs from their start"
TOOLS = ("node", "clang", "rustc", "python3")
ROUNDS = 10
WORK_S = 0.6

SCRIPT = f"""const end = Date.now() + {1000 * WORK_S:.0f};
let sum = 0;
while (Date.now() < end) for (let i = 0; i < 1e5; i++) sum += Math.sqrt(i) % 7;
"""
PYTHON = f"""import time
end = time.monotonic() + {WORK_S}
while time.monotonic() < end:
    sum(i * i for i in range(1000))
"""
C_SOURCE = "\n".join(f"int f{i}(int n) {{ int s = {i}; for (int i = 0; i < n; i++) s += i * i % 7; "
                     f"return s; }}" for i in range(120))
RUST_SOURCE = "\n".join(f"pub fn f{i}(n: u64) -> u64 {{ (0..n).map(|x| x * x % {i + 2}).sum() }}"
                        for i in range(300))


def commands(world):
    """{name: command}, each with half a second to a second of work."""
    for name, text in (("work.js", SCRIPT), ("work.py", PYTHON), ("work.c", C_SOURCE),
                       ("work.rs", RUST_SOURCE)):
        with open(world.path(name), "w") as file:
            file.write(text)
    return {
        "node": ["node", world.path("work.js")],
        "clang": ["clang", "-O2", "-c", "-o", world.path("work.o"), world.path("work.c")],
        "rustc": ["rustc", "--crate-type", "lib", "--emit", "obj", "-o", world.path("work.ro"),
                  world.path("work.rs")],
        "python3": ["python3", world.path("work.py")],
    }


def run_once(world, fgprof, command):
    """(ticks planned, late, longest pause in ms) of one run."""
    usage = world.run(fgprof, "run", "-F", "99", "-o", world.path("profile.folded"), "--", *command)
    summary = programs.summary_of(usage)
    longest = re.search(r"([\d.]+) (us|ms|s) max", summary.pause_words)
    scale = {"us": 1e-3, "ms": 1, "s": 1e3}
    pause_ms = float(longest[1]) * scale[longest[2]] if longest else 0
    return summary.planned, summary.late, pause_ms


def row_of(name, who, runs):
    planned, late, pauses_ms = (list(values) for values in zip(*runs))
    shares = sorted(one / all_ for one, all_ in zip(late, planned))
    return [name, who, tables.count(sum(planned)), tables.percent(sum(late) / sum(planned)),
            tables.percent(shares[-1]), f"{sorted(pauses_ms)[len(pauses_ms) // 2]:.2f} ms",
            f"{max(pauses_ms):.2f} ms"]


def report(world):
    rounds, rows = world.pick(ROUNDS, 1), []
    builds = {"fgprof-c": world.fgprof}
    if world.options.other:
        builds["the other"] = world.options.other
    for name, command in commands(world).items():
        if not world.has(name):
            rows.append([name, tables.NOT_INSTALLED, *["-"] * 5])
            continue
        programs.progress(f"  {name} from its start")
        runs = {who: [] for who in builds}
        for _ in range(rounds):  # by turns
            for who, fgprof in builds.items():
                runs[who].append(run_once(world, fgprof, command))
        rows += [row_of(name, who, runs[who]) for who in builds]
    header = ["program", "sampled by", "ticks", "late", "late, worst run", "longest pause, median run",
              "longest of all"]
    return f"""`fgprof-c run` of programs with large files and half a second to a second of work, {rounds} runs
each, by turns. A tick is late if the sampling thread was not there when it was due; a pause is that of
one running thread for one copy.{" *The other* is another build of fgprof-c." if world.options.other else ""}

{tables.table(header, rows)}"""

"""--help: its form, that its examples work, and that the manual pages contain all of it."""

import glob
import os
import re
import shlex
import subprocess

from harness import need, need_flamegraph, users_build


def commands(world):
    text = world.fgprof("--help").stdout
    return re.findall(r"^  ([a-z]+) +\S", text.split("Commands:")[1], re.M)


def help_of(world, *command):
    done = world.fgprof(*command, "--help")
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def all_help(world):
    """{command: text}; the program's own text has no name."""
    names = commands(world)
    assert len(names) == len(set(names)) >= 6, names
    return {"": help_of(world)} | {name: help_of(world, name) for name in names}


def all_options(world):
    """{command: what --help-all says}"""
    texts = {}
    for name in commands(world):
        done = world.fgprof(name, "--help-all")
        assert done.returncode == 0 and not done.stderr, done
        texts[name] = done.stdout
    return texts


def examples(text):
    """The command lines of the examples, without their explanations."""
    return [line.split("  # ")[0].strip() for line in re.findall(r"^  (fgprof-c .*)$", text, re.M)]


def manual(world):
    """{name: the manual page as it is read}"""
    need("mandoc")
    pages = {}
    for file in sorted(os.listdir(world.source + "/man")):
        done = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=1000", f"{world.source}/man/{file}"],
                              stdout=subprocess.PIPE, text=True, check=True)
        pages[file] = re.sub(".\b", "", done.stdout).replace("\u2010", "-").replace("\u2212", "-")
    return pages


def section(page, name):
    """Empty if the page has none with this name."""
    found = re.search(rf"^{name}\n(.*?)(?=^[A-Z])", page, re.S | re.M)
    return found[1] if found else ""


def test_help_is_one_screen_and_begins_with_examples(world):
    for command, text in all_help(world).items():
        lines = text.splitlines()
        assert 5 < len(lines) <= 40 and max(map(len, lines)) <= 80, (command, len(lines), text)
        assert lines[0].startswith(f"usage: fgprof-c {command or 'COMMAND'}"), lines[0]
        assert 2 <= len(examples(text)) <= 4, examples(text)
        first_option = re.search(r"^ +(-\w, )?--", text, re.M)
        first_example = text.index("\n  fgprof-c ")
        assert not first_option or first_example < first_option.start(), text
        used = {word for line in examples(text) for word in shlex.split(line)[1:2]}
        assert used <= ({command} if command else set(commands(world))), used


def test_help_has_the_common_options_and_help_all_all(world):
    texts = all_help(world)
    for command, text in all_options(world).items():
        rows = re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M)
        listed = re.findall(r"^  (?:-\w, |    )--([a-z-]+)", texts[command], re.M)
        assert len(rows) == len(set(rows)), (command, rows)
        assert set(rows) <= set(re.findall(r"--([a-z-]+)", text)) <= set(rows) | {"help"}, command
        common = set(listed) - {"help", "help-all"}
        assert common <= set(rows) and ("help-all" in listed) == (common != set(rows)), (command, listed, rows)
        assert len(listed) <= 17, (command, listed)
        assert max(map(len, text.splitlines())) <= 80, text


def run_example(world, line, pid, name, directory):
    """Runs an example as a user's shell does, with a process and a duration that exist here."""
    line = line.replace("1234", str(pid)).replace("-d 30s", "-d 200ms").replace("-d 1h", "-d 200ms")
    line = line.replace("redis-server", name)
    if line.startswith("fgprof-c attach") and " -d " not in line:
        line = line.replace("attach", "attach -d 200ms")  # not until Ctrl-C
    return subprocess.run(["timeout", "60", "bash", "-o", "pipefail", "-c", line], cwd=directory,
                          env=dict(os.environ, PATH=directory + ":" + os.environ["PATH"]),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def script(path, text):
    with open(path, "w") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


@users_build
def test_examples_of_help_and_of_the_manual_page_work(world):
    """All examples are run, with these exceptions: of `top`, which needs a terminal, `serve` and `record`,
    which do not end, only the options are parsed, and examples that send requests to these are left out."""
    lines = {line for text in all_help(world).values() for line in examples(text)}
    assert len(lines) >= 12, lines
    for page in manual(world).values():
        lines |= set(re.findall(r"^ +(fgprof-c .*)$", section(page, "EXAMPLES"), re.M))
    assert len(lines) >= 20, lines
    directory = world.path("examples")
    os.mkdir(directory)
    os.symlink(world.program, directory + "/fgprof-c")
    flame_graph = need_flamegraph()
    script(directory + "/flamegraph.pl", f'exec perl {flame_graph} "$@"')
    for name in "cmd", "make":
        script(f"{directory}/{name}", "exec sleep 1")
    script(directory + "/less", "exec cat")
    # A name that no other test's process has.
    called = f"states{os.getpid()}"
    os.symlink(world.fixture("states"), f"{directory}/{called}")
    with world.running("states", 500, program=f"{directory}/{called}") as target:
        script(directory + "/pgrep", f"echo {target.pid}")
        for name in "kept", "before", "after":
            done = world.attach(target, "-o", f"{directory}/{name}.fgprof", duration="200ms")
        for line in sorted(lines):
            words = shlex.split(line)
            if "127.0.0.1:6060" in line.split("#")[0]:
                continue
            if {"top", "serve", "record"} & set(words):
                done = world.fgprof(*words[1:], "--help")
                assert done.returncode == 0 and len(done.stdout) > 100, (line, done)
                continue
            line = re.sub(r"--pgrep '\S+'", f"--pgrep '^{called}$'", line)
            done = run_example(world, line, target.pid, called, directory)
            assert done.returncode == 0, (line, done)
            written = re.findall(r"(?:-o |> ?)([\w.]+)(?= |$)", line)
            if written:
                assert os.path.getsize(f"{directory}/{written[-1]}") > 30, line
            else:
                assert len(done.stdout) > 100, (line, done)


def test_manual_pages_have_every_option_once_and_every_format(world):
    pages = manual(world)
    assert set(pages) == {"fgprof-c.1", "fgprof-c-formats.5"} | {f"fgprof-c-{name}.1" for name in commands(world)}
    texts = all_options(world)
    options = {option for text in texts.values()
               for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)} | {"--help", "--help-all", "--version"}
    source = open(world.source + "/src/cli/options/table.c").read()
    table = re.findall(r'^    \{"([a-z-]+)", ', source, re.M)
    assert len(table) >= 25 and options == {"--" + name for name in table} | {"--help", "--help-all",
                                                                                  "--version"}
    described = [option for name in pages for option in
                 re.findall(r"^\.It .*?\bFl -([a-z-]{2,})", open(f"{world.source}/man/{name}").read(), re.M)]
    assert sorted(described) == sorted(option[2:] for option in options)
    said = world.fgprof("attach", "-p", "1", "-f", "?").stderr
    formats = re.findall(r"\w+", said.split("give ")[1].replace(" or ", " "))
    said = world.fgprof("attach", "-p", "1", "-o", "x").stderr
    endings = re.search(r"\((.*)\)", said)[1].split()
    assert len(formats) >= 6 and len(endings) >= 9, said
    page = pages["fgprof-c-formats.5"]
    listed = section(page, "FORMATS")
    for command, text in texts.items():
        if "--format" in text and command != "diff":  # diff has two of them, and says so
            assert all(re.search(rf"\b{name} \(\.", text) for name in formats), (command, text)
            assert all(f"{ending}" in text for ending in endings), (command, text)
    for name in formats:
        assert re.search(rf"^ +{name}\b", listed, re.M), name
    for ending in endings:
        assert re.search(rf"(?<!\w){re.escape(ending)}(?![\w.])", page), ending


def test_options_of_other_commands_are_refused(world):
    for arguments, text in (
            (["run", "-p", "1", "--", "true"], "run has no option '-p': see fgprof-c run --help"),
            (["dump", "-p", "1", "--format=raw"], "dump has no option '--format=raw'"),
            (["top", "-p", "1", "--lines"], "top has no option '--lines'"),
            (["attach", "-p", "1", "-x"], "attach has no option '-x'"),
            (["attach", "-p", "1", "-qx"], "attach has no option '-x'"),
            (["attach", "-p"], "--pid needs a value: --pid PID[,...]"),
            (["attach", "--rate"], "--rate needs a value: --rate HZ"),
            (["attach", "--lines=1"], "--lines takes no value"),
            (["attach", "--help=1"], "--help takes no value"),
            (["convert", "a", "--tid", "5"], "convert has no option '--tid'"),
            (["attach", "--thr", "x"], "'--thr' is ambiguous: give --thread or --threads"),
            (["attach", "--no=1"], "'--no=1' is ambiguous: give --no-idle, --no-goroutines or --no-demangle"),
            (["attach", "--threadsx"], "attach has no option '--threadsx'")):
        done = world.fgprof(*arguments)
        assert done.returncode == (125 if arguments[0] == "run" else 2) and not done.stdout, done
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert f"fgprof-c: {text}" in done.stderr, (arguments, done.stderr)
    # Abbreviated, as getopt_long allows.
    done = world.fgprof("attach", "--dur", "12abc")
    assert done.returncode == 2 and "bad duration '12abc'" in done.stderr, done


def anchors(text):
    """The anchors that headings make, as on GitHub."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_the_documents_lead_somewhere(world):
    documents = [world.source + "/README.md", *sorted(glob.glob(world.source + "/docs/*.md"))]
    assert len(documents) > 8, documents
    readme = open(documents[0]).read()
    for path in documents:
        text = open(path).read()
        assert path == documents[0] or f"(docs/{os.path.basename(path)})" in readme, f"README does not link to {path}"
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match("https?:", target):
                continue
            file, _, anchor = target.partition("#")
            place = os.path.join(os.path.dirname(path), file) if file else path
            assert os.path.exists(place), (path, target)
            assert not anchor or anchor in anchors(open(place).read()), (path, target)
    assert len(readme.encode()) <= 9000, len(readme)

"""What a new user meets first: processes by name, a page on a terminal, messages about what was written, and
typing errors."""

import contextlib
import os
import pty
import re
import resource
import signal
import subprocess

from harness import HANGS_S, folded, users_build, wait_until_sampling


@contextlib.contextmanager
def named(world, count=1, fixture="workers"):
    """This many processes with a name that no other test's process has, and that name."""
    name = f"first{os.getpid()}"
    program = world.path(name)
    if not os.path.exists(program):
        os.symlink(world.fixture(fixture), program)
    with contextlib.ExitStack() as stack:
        yield name, [stack.enter_context(world.running(fixture, 60, 1, 1, program=program))
                     for _ in range(count)]


def on_terminal(world, *arguments, directory, environment=None, **options):
    """Runs the profiler with a terminal as its standard output. Returns its exit status, what it wrote
    there, and what it wrote to standard error."""
    main, side = pty.openpty()
    try:
        with subprocess.Popen([world.program, *map(str, arguments)], cwd=directory, text=True,
                              stdin=subprocess.DEVNULL, stdout=side, stderr=subprocess.PIPE,
                              env=dict(os.environ, **(environment or {})), **options) as profiler:
            os.close(side)
            _, said = profiler.communicate(timeout=HANGS_S)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(main, 4096):
                shown += part
        return profiler.returncode, shown.decode(), said
    finally:
        os.close(main)


def fresh_directory(world, name):
    os.mkdir(world.path(name))
    return world.path(name)


@users_build
def test_a_name_or_an_id_is_enough(world):
    with named(world) as (name, (target,)):
        for words in (["attach", name], ["attach", target.pid], [name], [target.pid],
                      ["attach", name[:-1]], ["attach", "-p", target.pid]):
            done = world.fgprof(*words, "-d", "200ms", "-t")
            assert done.returncode == 0 and folded(done.stdout), (words, done)
            is_named = str(words[-1]) in (name, name[:-1])
            assert (f" is process {target.pid}: " in done.stderr) == is_named, (words, done)
        done = world.fgprof("dump", name)
        assert done.returncode == 0 and f"{target.pid}" in done.stdout, done
        # Options may come after it, and -q is quiet of it, too.
        done = world.fgprof("attach", name, "-q", "-d", "200ms")
        assert done.returncode == 0 and not done.stderr, done


def test_of_several_that_match_none_is_sampled(world):
    with named(world, 2) as (name, targets):
        for command in ["attach", "-d", "5s"], ["top"], ["dump"], ["serve"], ["record", "-o", world.directory]:
            done = world.fgprof(*command, name)
            assert done.returncode == 1 and not done.stdout, done
            lines = done.stderr.splitlines()
            assert lines[0] == (f"fgprof-c: 2 processes match '{name}': give the id of one, or --pgrep "
                                f"{name}"), done
            assert sorted(int(line.split()[0]) for line in lines[1:]) == sorted(t.pid for t in targets), done
            assert all(name in line for line in lines[1:]), done


@users_build
def test_a_whole_name_comes_before_parts_of_others(world):
    with named(world) as (name, (target,)):
        longer = world.path(name + "x")
        os.symlink(world.fixture("workers"), longer)
        with world.running("workers", 60, 1, 1, program=longer):
            done = world.fgprof("attach", name, "-d", "200ms")
        assert done.returncode == 0 and f"{name} is process {target.pid}: " in done.stderr, done


@users_build
def test_a_name_that_the_kernel_cuts(world):
    """The kernel keeps 15 bytes."""
    name = f"longer-than-{os.getpid()}-the-kernel-keeps"
    program = world.path(name)
    os.symlink(world.fixture("workers"), program)
    with world.running("workers", 60, 1, 1, program=program) as target:
        done = world.fgprof("attach", name, "-d", "200ms")
        assert done.returncode == 0 and f"{name} is process {target.pid}: " in done.stderr, done


def test_words_that_name_nothing(world):
    for words, said in ((["nosuchprogram"], "no command or process is called 'nosuchprogram': see"),
                        (["atach"], "no command or process is called 'atach': did you mean attach?"),
                        (["help", "dmup"], "no command or process is called 'dmup': did you mean dump?"),
                        (["a\x1b[2J"], r"no command or process is called 'a\x1b[2J'")):
        done = world.fgprof(*words)
        assert done.returncode == 2 and not done.stdout and said in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done
    done = world.fgprof("attach", "nosuchprogram")
    assert done.returncode == 1 and done.stderr == "fgprof-c: no process's name matches 'nosuchprogram'\n", done
    done = world.fgprof("attach")
    assert done.returncode == 2 and "give its name or id, as in attach redis-server" in done.stderr, done


def test_slips_of_the_keyboard(world):
    for arguments, said in (
            (["attach", "1", "--durration=3s"], "did you mean --duration?"),
            (["attach", "1", "-f", "spedscope"], "did you mean speedscope?"),
            (["serve", "1", "--wiat"], "did you mean --wait?"),
            (["convert", "x.fgprof", "--kind", "mutx"], "did you mean mutex?"),
            (["attach", "1", "-o", "a.html", "-o", "b.html"], "bad output 'b.html': there is one already")):
        done = world.fgprof(*arguments)
        assert done.returncode == 2 and said in done.stderr, (arguments, done)
        assert len(done.stderr.splitlines()) == 1, done


def test_help_and_version_are_commands_too(world):
    for words, other in ((["help"], ["--help"]), (["help", "top"], ["top", "--help"]),
                         (["version"], ["--version"]), (["-V"], ["--version"])):
        done, expected = world.fgprof(*words), world.fgprof(*other)
        assert done.returncode == 0 and done.stdout == expected.stdout != "", (words, done)


def test_help_on_a_terminal_is_the_manual_page_if_there_is_one(world):
    directory = fresh_directory(world, "man")
    text = world.fgprof("help", "top").stdout
    status, shown, said = on_terminal(world, "help", "top", directory=directory,
                                      environment={"PATH": directory})
    assert status == 0 and not said and shown.replace("\r\n", "\n") == text, shown
    man = directory + "/man"
    with open(man, "w") as file:
        file.write('#!/bin/sh\n[ "$1" = -w ] && [ "$2" = 1 ] && echo "/$3.1" || echo "showing $*"\n')
    os.chmod(man, 0o755)
    path = {"PATH": f"{directory}:{os.environ['PATH']}"}
    status, shown, said = on_terminal(world, "help", "top", directory=directory, environment=path)
    assert status == 0 and not said and shown == "showing 1 fgprof-c-top\r\n", (shown, said)
    # Into a pipe, and by --help, it is the text.
    assert world.fgprof("help", "top", env=dict(os.environ, **path)).stdout == text
    status, shown, _ = on_terminal(world, "top", "--help", directory=directory, environment=path)
    assert status == 0 and shown.replace("\r\n", "\n") == text, shown


@users_build
def test_a_terminal_gets_a_page(world):
    directory = fresh_directory(world, "pages")
    with named(world) as (name, (target,)):
        status, shown, said = on_terminal(world, name, "-d", "300ms", directory=directory)
        assert status == 0 and not shown, (status, shown, said)
        page, = os.listdir(directory)
        assert re.fullmatch(rf"fgprof-{name}-{target.pid}-\d{{8}}-\d{{6}}\.html", page), page
        size = os.path.getsize(f"{directory}/{page}")
        assert f"fgprof-c: wrote {page}, {size / 1024:.0f} KiB: xdg-open {page}\n" in said, said
        assert open(f"{directory}/{page}").read().startswith("<!DOCTYPE html>")
        # Where one came by ssh there is no browser.
        status, _, said = on_terminal(world, target.pid, "-d", "300ms", directory=directory,
                                      environment={"SSH_CONNECTION": "::1 1 ::1 22"})
        assert status == 0 and "python3 -m http.server 8000 --bind 127.0.0.1" in said, said
        # As before where a format or an output is given.
        for arguments in ["-f", "folded"], ["-o", "-"]:
            status, shown, said = on_terminal(world, target.pid, "-d", "300ms", *arguments, directory=directory)
            assert status == 0 and folded(shown.replace("\r\n", "\n")) and "wrote" not in said, said
        for form in "html", "pprof", "raw":
            status, shown, said = on_terminal(world, target.pid, "-f", form, directory=directory)
            assert status == 2 and not shown and "a terminal can't show this format: give -o FILE" in said, said
    assert len(os.listdir(directory)) == 2, os.listdir(directory)


@users_build
def test_a_page_of_a_command(world):
    directory = fresh_directory(world, "of a command")
    # What a shell or a file system takes in its own way is not in the name.
    program = world.path("a $program")
    os.symlink(world.fixture("workers"), program)
    status, _, said = on_terminal(world, "run", "--", program, 0.3, 1, 1, directory=directory)
    page, = os.listdir(directory)
    assert status == 0 and re.fullmatch(r"fgprof-a__program-\d+-\d{8}-\d{6}\.html", page), page
    assert f"wrote {page}, " in said, said


@users_build
def test_a_page_leaves_other_files_alone(world):
    """The temporary name of the page is already taken by something else here."""
    elsewhere = fresh_directory(world, "elsewhere") + "/page.html"
    open(elsewhere, "w").close()
    with named(world) as (_, (target,)):
        for number, make in enumerate((lambda path: os.symlink(elsewhere, path), os.mkdir, os.mkfifo)):
            directory = fresh_directory(world, f"taken{number}")
            make(directory + "/fgprof.html")
            before = os.lstat(directory + "/fgprof.html")
            status, _, said = on_terminal(world, target.pid, "-d", "200ms", directory=directory)
            assert status == 0 and len(os.listdir(directory)) == 2, (number, status, said, os.listdir(directory))
            assert os.lstat(directory + "/fgprof.html").st_ino == before.st_ino


@users_build
def test_a_page_that_does_not_fit_is_named(world):
    directory = fresh_directory(world, "too small")
    with named(world) as (_, (target,)):
        status, _, said = on_terminal(world, target.pid, "-q", "-d", "200ms", directory=directory,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert status == 1 and not os.listdir(directory), (status, said)
    assert re.fullmatch(r"fgprof-c: the profile could not be written to fgprof-\S+-\d+\.html: .*\n", said), said


@users_build
def test_no_page_where_nothing_can_be_written(world):
    with named(world) as (_, (target,)):
        status, shown, said = on_terminal(world, target.pid, "-d", "200ms", directory="/proc")
    assert status == 1 and not shown, (status, shown)
    assert re.fullmatch(r"fgprof-c: no page can be written here: .*: give -o FILE\n", said), said


@users_build
def test_what_was_written_is_said(world):
    with named(world) as (_, (target,)):
        for ending, viewer in ((".html", "xdg-open "), (".fgprof", "fgprof-c report "), (".pb.gz", "go tool pprof "),
                               (".folded", "flamegraph.pl "), (".txt", "less "), (".speedscope.json", None)):
            path = world.path("a file" + ending)
            done = world.fgprof("attach", target.pid, "-d", "200ms", "-o", path)
            last = done.stderr.splitlines()[-1]
            assert last.startswith(f"fgprof-c: wrote {path}, "), done
            assert last.endswith(f"{viewer}'{path}'" if viewer else "B"), done
    done = world.fgprof("attach", target.pid, "-d", "200ms", "-q", "-o", path)
    assert "wrote" not in done.stderr, done


@users_build
def test_a_command_that_is_over_at_once(world):
    done = world.fgprof("run", "-F", "1", "--", "true")
    assert done.returncode == 0 and "no thread was seen at a tick: it ended too soon" in done.stderr, done
    assert "unknown" not in done.stderr, done


@users_build
def test_a_command_that_goes_on_after_the_profile(world):
    done = world.fgprof("run", "-d", "200ms", "--", "sleep", "1")
    assert re.search(r"fgprof-c: sleep is still running: waiting for process \d+ to exit\n", done.stderr), done
    done = world.fgprof("run", "--", "sleep", "0.3")
    assert "still running" not in done.stderr, done


@users_build
def test_a_name_to_wait_for(world):
    """With --wait, a word also names processes that come later."""
    name = f"later{os.getpid()}-than-the-first"  # the kernel keeps 15 bytes of it
    program, directory = world.path(name), fresh_directory(world, "kept")
    os.symlink(world.fixture("workers"), program)
    recorder = world.start("record", name, "--wait", "-o", directory, "--trigger", "exit")
    with world.running("workers", 60, 1, 1, program=program):
        wait_until_sampling(recorder)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(HANGS_S) == 0, recorder.stderr.read()

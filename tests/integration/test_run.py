"""`run`: the command's status, its files, its signals."""

import fcntl
import os
import pty
import re
import resource
import select
import signal
import subprocess
import time

from harness import (HANGS_S, by_root, children_of, folded, limit_on_an_old_kernel, status_field, ticks_planned,
                     wait_for, wait_for_ticks, wait_until_sampled)
from test_capture import refuse_record


def test_exit_status_is_the_commands(world):
    out = world.path("status.folded")
    for command, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7),
                            (["sh", "-c", "kill -TERM $$"], 143),
                            (["sh", "-c", "kill -KILL $$"], 137)):
        done = world.fgprof("run", "-q", "-o", out, "--", *command)
        assert done.returncode == status, (command, done)
        assert os.path.exists(out)
        os.unlink(out)


def test_exit_status_where_children_are_ignored(world):
    """As Perl's $SIG{CHLD} = 'IGNORE' passes it to the programs that it starts."""
    done = world.fgprof("run", "-q", "-o", world.path("ignored.folded"), "--", "sh", "-c", "exit 7",
                        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 7, done


def test_command_that_cannot_start(world):
    plain = world.path("plain")
    open(plain, "w").close()
    for command, status in (["/nonexistent/cmd"], 127), (["no-such-command-x"], 127), ([plain], 126):
        out = world.path("none.folded")
        done = world.fgprof("run", "-o", out, "--", *command)
        assert done.returncode == status, done
        assert command[0] in done.stderr
        assert not [name for name in os.listdir(world.directory) if "none.folded" in name]


def test_profiler_failure_is_125(world):
    for arguments in (["-o", "/nonexistent/x.folded", "--", "true"], ["-F", "0", "--", "true"], []):
        done = world.fgprof("run", *arguments)
        assert done.returncode == 125 and done.stderr, done


def test_profile_on_stdout_never_mixes(world):
    sampler = world.start("run", "-q", "--", "sh", "-c", "echo from-the-command; read line",
                          stdin=subprocess.PIPE)
    wait_for_ticks(sampler)
    stdout, stderr = sampler.communicate("end\n", timeout=30)
    assert sampler.returncode == 0
    assert "from-the-command" in stderr and "from-the-command" not in stdout
    assert folded(stdout)


def test_the_command_has_our_limit_of_locked_memory(world):
    """We raise our own limit on a kernel that charges BPF to it, and so does libbpf if there is no BPF."""
    limit = 64 << 10, 128 << 10
    command = "ulimit -S -l; ulimit -H -l; sleep 0.5; grep 'Max locked memory' /proc/$PPID/limits"

    def on_an_old_kernel():
        limit_on_an_old_kernel(resource.RLIMIT_MEMLOCK, limit)

    def without_bpf():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limit)
        refuse_record()
    for prepare, ours in (on_an_old_kernel, r"(131072|unlimited) +\1"), (without_bpf, "65536 +131072"):
        done = world.fgprof("run", "-q", "-o", world.path("limited.folded"), "--", "sh", "-c", command,
                            preexec_fn=prepare)
        assert re.fullmatch(rf"64\n128\nMax locked memory +{ours} .*\n", done.stdout), done


def test_files_are_the_commands_own(world):
    done = subprocess.run([world.program, "run", "-q", "-o", world.path("cat.folded"), "--", "cat"],
                          input="through\n", stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "through\n"


def test_a_forwarded_signal_ends_the_command_and_the_profile_is_written(world):
    for number, status in (signal.SIGINT, 130), (signal.SIGTERM, 143):
        out = world.path("signal.folded")
        sampler = world.start("run", "-o", out, "--", world.fixture("states"), 60)
        # The command writes to the profiler's stdout, so its ready line comes here.
        assert sampler.stdout.readline() == "ready\n"
        wait_until_sampled(children_of(sampler.pid)[0], "spinning")
        sampler.send_signal(number)
        _, stderr = sampler.communicate(timeout=HANGS_S)
        assert sampler.returncode == status, stderr
        assert any("in_spin" in stack for stack in folded(open(out).read()))
        os.unlink(out)


def test_signals_after_the_commands_end(world):
    """The first signal lets the profile be written; the second ends the profiler, as with attach."""
    for options in (), ("-d", "0.2s"):
        for is_read in True, False:
            path = world.path("pipe")
            os.mkfifo(path)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)  # less than a page has, which so waits to be read
            sampler = world.start("run", *options, "-f", "html", "-o", path, "--", "sleep", "0.5")
            wait_for(lambda: select.select([reader], [], [], 0)[0], "the profile")
            wait_for(lambda: all(status_field(child, "State").startswith("Z") for child in children_of(sampler.pid)),
                     "the command's end")
            sampler.send_signal(signal.SIGTERM)
            if is_read:
                os.set_blocking(reader, True)
                with os.fdopen(reader) as file:
                    assert file.read().rstrip().endswith("</html>")
                assert sampler.wait(timeout=HANGS_S) == 0, sampler.stderr.read()
            else:
                def has_ended():
                    sampler.send_signal(signal.SIGTERM)
                    return sampler.poll() is not None
                wait_for(has_ended, "the profiler's end")
                assert sampler.returncode == -signal.SIGTERM, sampler.returncode
                os.close(reader)
            os.unlink(path)


def live_lines(shown):
    """The seconds, threads, samples, stacks and late ticks of each progress line."""
    return re.findall(rb"(\d+\.\d) s  (\d+) threads  (\d+) samples  (\d+) stacks  (\d+) ticks late",
                      shown)


def test_ctrl_c_on_a_terminal(world):
    out = world.path("terminal.folded")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(world.program, [world.program, "run", "-o", out, "--",
                                 world.fixture("states"), "60"])
    shown, status = b"", None
    end = time.monotonic() + 30
    sent = False
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                break
        live = live_lines(shown)
        if not sent and b"ready" in shown and len(live) >= 3 and int(live[-1][1]) == 5:
            wait_until_sampled(children_of(pid)[0], "spinning")
            os.write(terminal, b"\x03")
            sent = True
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert sent, shown
    assert os.waitstatus_to_exitcode(status) == 130, shown
    assert any("in_spin" in stack for stack in folded(open(out).read()))
    live = live_lines(shown)
    assert int(live[-1][2]) > int(live[0][2]), shown


def test_quit_on_a_terminal(world):
    """A command that survives Ctrl-\, as Java does, is still sampled."""
    out = world.path("quit.folded")
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # background jobs of shells ignore it
        os.execv(world.program, [world.program, "run", "-q", "-o", out, "--", "sh", "-c",
                                 "trap 'exit 5' QUIT; echo ready; while :; do sleep 0.1; done"])
    shown, end, sent = b"", time.monotonic() + 30, False
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                break
        if not sent and b"ready" in shown:
            os.write(terminal, b"\x1c")
            sent = True
    os.close(terminal)  # a hang-up ends what has not ended yet
    _, status = os.waitpid(pid, 0)
    assert sent and os.waitstatus_to_exitcode(status) == 5, shown
    assert os.path.exists(out)


def test_duration_ends_sampling_but_not_the_command(world):
    out = world.path("short.folded")
    begin = time.monotonic()
    done = world.fgprof("run", "-d", "500ms", "-t", "-o", out, "--", "sleep", 3)
    assert done.returncode == 0 and time.monotonic() - begin >= 3
    planned = ticks_planned(done.stderr)
    taken = by_root(folded(open(out).read()))["sleep"]
    # On a machine that stalls the last tick comes late.
    assert 49 <= planned < 200 and abs(taken - planned) <= 1, (taken, planned)


def test_a_command_that_execs_and_forks(world):
    # A shell that becomes another program, and a child that outlives the command.
    done = world.fgprof("run", "-q", "--", "sh", "-c",
                        f"sleep 5 >/dev/null 2>&1 & exec {world.fixture('deep')} 1 50", timeout=20)
    assert done.returncode == 0, done.stderr
    assert any(stack.count("recurse") == 51 for stack in folded(done.stdout)), done.stdout

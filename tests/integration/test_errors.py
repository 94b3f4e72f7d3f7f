"""Bad input: a clear error, the right exit status, nothing hangs, nothing is half written."""

import ctypes
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from harness import (Skip, folded, status_field, wait_for, wait_until_sampled, wait_until_sampling)

PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 3


def refused(world, arguments, status, *words, **options):
    begin = time.monotonic()
    done = world.fgprof(*arguments, **options)
    assert done.returncode == status, (arguments, done)
    assert time.monotonic() - begin < 20
    assert not done.stdout, done.stdout
    for word in words:
        assert re.search(word, done.stderr), (word, done.stderr)
    assert len(done.stderr.splitlines()) <= 2, done.stderr


def test_command_line(world):
    for arguments, word in (
            ([], "usage"), (["nonsense"], "nonsense"), (["attach"], "give its name or id, as in attach redis-server"),
            (["attach", "-p", "12abc"], "12abc"), (["attach", "-p", ""], "process id"),
            (["attach", "-p", "1,,2"], "process id"), (["attach", "-p", "-5"], "-5"),
            (["attach", "-p", "99999999999999999999"], "9999"),
            (["attach", "-p", "1", "-d", "12abc"], "12abc"),
            (["attach", "-p", "1", "-d", "0"], "duration"),
            (["attach", "-p", "1", "-d", "-3s"], "-3s"),
            (["attach", "-p", "1", "-d", "nan"], "nan"),
            (["attach", "-p", "1", "-d", "1e9s"], "1e9s"),
            (["attach", "-p", "1", "-F", "0"], "rate"), (["attach", "-p", "1", "-F", "1001"], "1001"),
            (["attach", "-p", "1", "-F", "99x"], "99x"),
            (["attach", "-p", "1", "--seed", "12x"], "12x"),
            (["attach", "-p", "1", "--seed", "18446744073709551616"], "seed"),
            (["attach", "-p", "1", "-f", "svg"], "svg"),
            (["attach", "-p", "1", "-o", "x.svg"], "x.svg"),
            (["attach", "-p", "1", "--max-depth", "0"], "depth"),
            (["attach", "-p", "1", "--max-pause", "0"], "pause"),
            (["attach", "-p", "1", "--max-pause", "101"], "pause"),
            (["attach", "-p", "1", "--max-pause", "nan"], "pause"),
            (["attach", "-p", "1", "--max-pause", "0x10"], "pause"),
            (["attach", "-p", "1", "--max-pause", "1e1"], "pause"),
            (["attach", "-p", "1", "--threads=pid"], "pid"),
            (["attach", "-p", "1", "--nonsense"], "nonsense"),
            (["serve", "--wait", "name", "-p", "1"], "--wait is for one name"),
            (["serve", "--wait", "one", "other"], "--wait has no name"),
            (["serve", "--wait", "-p", "1"], "--wait has no name")):
        done = world.fgprof(*arguments)
        assert done.returncode == 2 and not done.stdout, (arguments, done)
        assert word in done.stderr, (arguments, done.stderr)


def test_no_such_process(world):
    refused(world, ["attach", "-p", "4194303"], 1, "no process 4194303")


def test_kernel_thread(world):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            flags = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[6])
        except OSError:
            continue  # it has gone meanwhile
        if flags & 0x00200000:
            return refused(world, ["attach", "-p", pid], 1, "kernel thread")
    raise Skip("no kernel thread in sight")


def test_zombie(world):
    child = subprocess.Popen(["true"])
    wait_for(lambda: status_field(child.pid, "State").startswith("Z"), "the zombie")
    refused(world, ["attach", "-p", str(child.pid)], 1, "zombie")
    child.wait()


def write_32_bit_program(path):
    """An ELF file of one segment: pause(), again and again."""
    code = bytes.fromhex("b81d000000"  # mov $29 (pause), %eax
                         "cd80"        # int $0x80
                         "ebf7")       # jmp to the start
    base, header_bytes = 0x8048000, 52 + 32
    size = header_bytes + len(code)
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")  # 32 bits, least significant byte first
    header = struct.pack("<16sHHIIIIIHHHHHH", ident, 2, 3, 1, base + header_bytes, 52, 0, 0, 52, 32,
                         1, 40, 0, 0)
    segment = struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096)
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o755)


def test_32_bit_program(world):
    program = world.path("32-bit")
    write_32_bit_program(program)
    try:
        target = subprocess.Popen([program])
    except OSError as error:
        raise Skip(f"a 32-bit program: {error.strerror}")
    try:
        refused(world, ["attach", "-p", str(target.pid)], 1,
                f"process {target.pid} is a 32-bit program, which is not supported")
        assert target.poll() is None
    finally:
        target.kill()
        target.wait()


def test_itself(world):
    done = subprocess.run(["sh", "-c", 'exec "$0" attach -p $$', world.program],
                          stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 1 and "itself" in done.stderr, done


def test_thread_id(world):
    with world.running("states", 30) as target:
        # Ids may have wrapped around: the process's own need not be the smallest.
        tid = next(tid for tid in map(int, os.listdir(f"/proc/{target.pid}/task"))
                   if tid != target.pid)
        refused(world, ["attach", "-p", str(tid)], 1, f"thread of process {target.pid}")


def test_already_traced(world):
    with world.running("states", 30) as target:
        assert libc.ptrace(PTRACE_SEIZE, target.pid, None, None) == 0
        refused(world, ["attach", "-p", str(target.pid)], 1,
                f"already traced by process {os.getpid()} \\(python")
        # Once untraced it can be profiled: PTRACE_DETACH needs it stopped.
        libc.ptrace(PTRACE_INTERRUPT, target.pid, None, None)
        os.waitpid(target.pid, 0x40000000)
        assert libc.ptrace(PTRACE_DETACH, target.pid, None, None) == 0
        world.attach(target, duration="200ms")


def test_other_users_process(world):
    if os.geteuid() != 0:
        return refused(world, ["attach", "-p", "1"], 1, "another user", "CAP_SYS_PTRACE")
    program = world.path("fgprof-c")
    shutil.copy(world.program, program)
    with world.running("states", 30) as target:
        done = subprocess.run([program, "attach", "-p", str(target.pid)], user=65534, group=65534,
                              extra_groups=[], stderr=subprocess.PIPE, text=True, timeout=20)
    assert done.returncode == 1, done
    assert "another user (uid 0)" in done.stderr and "CAP_SYS_PTRACE" in done.stderr, done.stderr


def test_unwritable_output_is_found_before_sampling(world):
    with world.running("states", 60) as target:
        for path in "/nonexistent/x.folded", world.directory + "/", world.directory:
            refused(world, ["attach", "-p", str(target.pid), "-d", "50s", "-f", "folded", "-o", path],
                    1, "can't be written")


def test_fifo_without_a_reader(world):
    fifo = world.path("fifo")
    os.mkfifo(fifo)
    with world.running("states", 60) as target:
        refused(world, ["attach", "-p", str(target.pid), "-f", "folded", "-o", fifo], 1,
                "can't be written")


def test_full_disk(world):
    with world.running("states", 30) as target:
        done = world.fgprof("attach", "-q", "-p", target.pid, "-d", "300ms", "-f", "folded", "-o",
                            "/dev/full")
        assert done.returncode == 1 and "No space left" in done.stderr, done

        # A file that may not grow: what was there stays, and nothing is left beside it.
        directory = world.path("full")
        os.mkdir(directory)
        path = os.path.join(directory, "old.folded")
        with open(path, "w") as old:
            old.write("precious 1\n")
        done = world.fgprof(
            "attach", "-q", "-p", target.pid, "-d", "300ms", "-o", path,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    assert done.returncode == 1 and "could not be written" in done.stderr, done
    assert open(path).read() == "precious 1\n"
    assert os.listdir(directory) == ["old.folded"]


def test_stdout_closed_early(world):
    with world.running("states", 30) as target:
        sampler = world.start("attach", "-p", target.pid, "-d", "500ms")
        sampler.stdout.close()
        assert sampler.wait(timeout=30) == 1
        assert "Broken pipe" in sampler.stderr.read()
        sampler.stderr.close()


def test_what_is_not_written_to_a_terminal(world):
    for arguments in ["attach", "-p", "1", "-f", "pprof"], ["diff", "-f", "html", "a", "b"]:
        leader, follower = os.openpty()
        done = subprocess.run([world.program, *arguments], stdout=follower, stderr=subprocess.PIPE, text=True,
                              timeout=20)
        os.close(leader)
        os.close(follower)
        assert done.returncode == 2 and "terminal" in done.stderr, done


def test_interrupted_attach_writes_what_it_has(world):
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        with world.running("states", 60) as target:
            sampler = world.start("attach", "-p", target.pid)
            wait_until_sampling(sampler)
            wait_until_sampled(target.pid, "spinning")
            sampler.send_signal(number)
            stdout, stderr = sampler.communicate(timeout=30)
        assert sampler.returncode == 0, stderr
        assert any("in_spin" in stack for stack in folded(stdout))

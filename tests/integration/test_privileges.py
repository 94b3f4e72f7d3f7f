"""The rights that a profiler keeps while it samples if root started it, and that they are enough."""

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess

from harness import Skip, end, folded, limit_on_an_old_kernel, status_field, wait_for, wait_until_sampling
from test_containers import INSIDE, ROOTLESS, container, tree
from test_kernel import skip_unless_permitted
from test_record import recording
from test_serve import serving

NOBODY = 65534
# linux/capability.h
NAMES = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "NET_BIND_SERVICE": 10, "IPC_LOCK": 14,
         "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_RESOURCE": 24, "SYSLOG": 34, "PERFMON": 38, "BPF": 39,
         "CHECKPOINT_RESTORE": 40}
# With CAP_SYS_ADMIN where the kernel wants it.
SAMPLING = {"DAC_READ_SEARCH", "IPC_LOCK", "SYS_PTRACE", "SYS_NICE", "SYSLOG", "PERFMON", "BPF", "CHECKPOINT_RESTORE"}
WRITING = {"DAC_OVERRIDE", "FOWNER"}


def need_root():
    if os.geteuid():
        raise Skip("needs root")


def is_admin_needed():
    """As described in docs/permissions-and-containers.md."""
    with open("/proc/sys/kernel/cap_last_cap") as last, open("/proc/sys/kernel/perf_event_paranoid") as paranoid:
        has_all = int(last.read()) >= NAMES["CHECKPOINT_RESTORE"] and int(paranoid.read()) <= 2
    return not has_all or not any(os.path.exists(f"/sys/kernel/{place}/events/task/task_newtask/id")
                                  for place in ("tracing", "debug/tracing"))


def bits(pid, key):
    return int(status_field(pid, key), 16)


def check_kept(pid, names):
    """All threads have these capabilities, as far as this process has them, and no others."""
    wanted = sum(1 << NAMES[name] for name in names) & bits("self", "CapPrm")
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            for key in "CapPrm", "CapEff":
                kept = bits(f"{pid}/task/{tid}", key)
                assert kept == wanted, (tid, key, hex(kept), hex(wanted))


def kept_by_server():
    return SAMPLING | ({"SYS_ADMIN"} if is_admin_needed() else set())


def can_record_switches(world):
    """With all of root's rights: the command of `run` is started with them."""
    return world.fgprof("run", "--capture=record", "-o", world.path("able.folded"), "--", "sleep", "0.1").returncode == 0


def test_serve_gives_up_what_it_does_not_need(world):
    """And it still samples another user's processes, and a container's."""
    need_root()
    with world.running("holders", 60, user=NOBODY, group=NOBODY, extra_groups=[]) as target:
        capture = ["--capture=record"] if can_record_switches(world) else []
        with serving(world, "-p", target.pid, *capture) as server:
            assert "inner_hold" in server.text("/debug/fgprof?seconds=1&format=folded")
            check_kept(server.sampler.pid, kept_by_server())
            assert status_field(server.sampler.pid, "NoNewPrivs") == "1"
    with tree(world) as root:
        for how in INSIDE, ROOTLESS:
            with container(root, ["/workers", "30", "1", "2"], how) as pid, serving(world, "-p", pid, *capture) as server:
                names = server.text("/debug/fgprof?seconds=1&format=folded")
                assert "main" in names and "nanosleep" in names, names
                check_kept(server.sampler.pid, kept_by_server())


def test_the_limit_of_locked_memory_is_raised_before(world):
    """To the hard limit at least, and above it by CAP_SYS_RESOURCE, which is then given up."""
    before = 64 << 10, 128 << 10
    may_lift = bits("self", "CapEff") >> NAMES["SYS_RESOURCE"] & 1
    raised = (resource.RLIM_INFINITY,) * 2 if may_lift else (before[1],) * 2
    with world.running("holders", 60) as target:
        for kernel, expected in (limit_on_an_old_kernel, raised), (resource.setrlimit, before):
            sampler = world.start("attach", "-p", target.pid, "--capture=ptrace", "-o", world.path("raised.folded"),
                                  preexec_fn=lambda kernel=kernel: kernel(resource.RLIMIT_MEMLOCK, before))
            wait_until_sampling(sampler)
            limit = resource.prlimit(sampler.pid, resource.RLIMIT_MEMLOCK)
            _, stderr = end(sampler)
            assert limit == expected, (limit, expected, stderr)


def test_serve_names_kernel_functions(world):
    need_root()
    skip_unless_permitted()
    with world.running("sleepers-O2-omit", 60, user=NOBODY, group=NOBODY, extra_groups=[]) as target, \
            serving(world, "-p", target.pid, "--kernel") as server:
        text = server.text("/debug/fgprof?seconds=1&format=folded")
        assert re.search(r";\w*epoll_wait\w*_\[k\]", text), text
        check_kept(server.sampler.pid, SAMPLING | {"SYS_ADMIN"})


def free_low_port():
    for port in range(1023, 900, -1):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Skip("no port is free")


def test_serve_at_a_privileged_address(world):
    """A low port, and a socket in another user's directory, which is removed at the end."""
    need_root()
    directory = world.path("of-nobody")
    os.mkdir(directory, 0o700)
    os.chown(directory, NOBODY, NOBODY)
    with world.running("holders", 60) as target:
        with serving(world, "-p", target.pid, listen=f"127.0.0.1:{free_low_port()}") as server:
            assert "inner_hold" in server.text("/debug/fgprof?seconds=1&format=folded")
            check_kept(server.sampler.pid, kept_by_server())
        with serving(world, "-p", target.pid, listen=f"unix:{directory}/socket") as server:
            check_kept(server.sampler.pid, kept_by_server() | WRITING)
            server.sampler.send_signal(signal.SIGINT)
            server.sampler.wait(60)
            assert not os.listdir(directory)


def test_files_in_another_users_directory(world):
    need_root()
    directory, own = world.path("theirs"), world.path("ours")
    os.mkdir(own)
    os.mkdir(directory, 0o700)
    os.chown(directory, NOBODY, NOBODY)
    with world.running("holders", 60) as target:
        for place, kept in (own, kept_by_server()), (directory, kept_by_server() | WRITING):
            with recording(world, "-p", target.pid, directory=place) as recorder:
                check_kept(recorder.sampler.pid, kept)
                recorder.ask()
                recorder.next_file()
                assert len(os.listdir(place)) == 1
        output = f"{directory}/out.folded"
        with open(output, "w", encoding="ascii") as file:
            os.chown(file.fileno(), NOBODY, NOBODY)
        assert world.attach(target, "-o", output, duration="500ms").returncode == 0
        with open(output) as file:
            assert folded(file.read())


def test_a_command_has_all_rights(world):
    """The command of `run`, and that of a trigger."""
    need_root()
    show = ["grep", "-E", "^(CapPrm|CapEff|CapBnd|NoNewPrivs):", "/proc/self/status"]
    own = subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout
    done = world.fgprof("run", "-o", world.path("out.folded"), "--", *show)
    assert done.returncode == 0 and done.stdout == own, (done, own)
    shown = world.path("shown")
    with world.running("holders", 60) as target, \
            recording(world, "-p", target.pid, "--trigger", f"command grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs):' "
                      f"/proc/self/status >{shown}.part && mv {shown}.part {shown}") as recorder:
        wait_for(lambda: os.path.exists(shown), "the command")
        check_kept(recorder.sampler.pid, kept_by_server() | {"KILL"})
    with open(shown) as file:
        assert file.read() == own

"""What a recording keeps if it covers everything since its start: no more than --keep-memory."""

import re
import resource
import signal
import subprocess

from harness import folded, kept_open, soak_until, soaking, users_build


def grows_by(world, kind, warm_up, more, *arguments):
    """By how many KiB the memory of `attach` grows, and its open files, for this many more things that come
    and go, after this many have gone; its output; and the profile, folded."""
    output = world.path(f"{kind}.folded")
    with soaking(world, kind) as target:
        sampler = world.start("attach", "-p", target.pid, "-o", output, "--keep-memory", 1, *arguments)

        def look(least):
            soak_until(target, least, kind)
            return kept_open(sampler.pid)
        early_kb, early_files = look(warm_up)
        late_kb, late_files = look(warm_up + more)
        sampler.send_signal(signal.SIGINT)
        _, said = sampler.communicate(timeout=60)
    assert sampler.returncode == 0, said
    with open(output) as file:
        return late_kb - early_kb, late_files - early_files, said, folded(file.read())


@users_build
def test_processes_that_have_ended_are_joined(world):
    """By their program's name; and all of them stay counted."""
    grown_kb, grown_files, said, stacks = grows_by(world, "processes", 2000, 4000, "--children", "--processes")
    joined = int(re.search(r"(\d+) processes that have ended are shown together", said)[1])
    seen = int(re.search(r"(\d+) processes seen", said)[1])
    assert seen / 2 < joined < seen, said
    assert re.search(r"memory kept: [\d.]+ [KM]iB: stacks [\d.]+ KiB, .*processes [\d.]+ KiB", said), said
    by_process = {stack[0] for stack in stacks}
    assert {f"tool-{number}" for number in range(4)} < by_process, by_process
    # As long as the last ones were not joined yet, these are one each.
    assert len(by_process) < seen / 2, len(by_process)
    assert grown_kb < 2500 and grown_files < 100, (grown_kb, grown_files)


@users_build
def test_libraries_that_were_unloaded_are_closed(world):
    """Once as many stacks are kept as fit. Without this, each 1,000 took 6.9 MiB and 400 open files."""
    grown_kb, grown_files, said, stacks = grows_by(world, "libraries", 5000, 4000, "-F", 999)
    assert re.search(r"[\d.]+ % of samples have no stack", said), said
    assert any("[truncated: stack not kept]" in stack for stack in stacks), stacks
    assert any("spin_once" in stack for stack in stacks), stacks
    assert grown_kb < 10000 and grown_files < 1000, (grown_kb, grown_files)


FILES_MAX = 400


def limit_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))


@users_build
def test_libraries_that_were_unloaded_leave_files_for_others(world):
    """At most a quarter of the limit is kept open for names. Without this, none was left for later libraries,
    in which stacks then ended."""
    output = world.path("libraries.folded")
    with soaking(world, "libraries") as target:
        sampler = world.start("attach", "-p", target.pid, "-o", output, "-F", 999, preexec_fn=limit_files)
        soak_until(target, 3000, "libraries")
        _, files = kept_open(sampler.pid)
        sampler.send_signal(signal.SIGINT)
        _, said = sampler.communicate(timeout=60)
    assert sampler.returncode == 0, said
    with open(output) as file:
        stacks = folded(file.read())
    assert files < FILES_MAX * 3 / 4, files
    assert any("spin_once" in stack for stack in stacks), stacks

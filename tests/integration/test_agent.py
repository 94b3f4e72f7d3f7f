"""The agent in programs that execute others."""

import os
import re
import subprocess

FUNCTIONS = ["execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execlp", "execle"]
# Says what is wanted of the agent in the process (agent/format.h).
SAY_WANTED = "import os; print('wanted', int.from_bytes(os.pread(960, 4, 128), 'little'))"
GREP = ("/usr/bin/grep", "-c", "libfgprof-agent", "/proc/self/maps")


def has_agent(world, *how):
    """Whether the program that the fixture executes has the agent."""
    fixture = os.path.join(world.build, "tests", "fixtures", "agent", "fixture-executes")
    agent = os.path.join(world.build, "libfgprof-agent.so")
    done = subprocess.run([fixture, *how, *GREP], env={**os.environ, "LD_PRELOAD": agent}, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.stdout and not done.stderr, done
    return int(done.stdout) > 0


def test_agent_goes_along_with_a_program_that_executes_another(world):
    for function in FUNCTIONS:
        assert has_agent(world, function), function


def test_children_are_without_the_agent(world):
    for function in FUNCTIONS:
        assert not has_agent(world, "fork", function), function
    for function in ("execve", "execv", "execl", "execle"):
        assert not has_agent(world, "vfork", function), function


def test_program_is_executed_on_a_small_stack(world):
    for function in FUNCTIONS:
        assert has_agent(world, "small", function), function
        assert not has_agent(world, "small-vfork", function), function


def test_programs_that_one_without_the_agent_starts(world):
    """They have the agent, which knows that the profiler does not read it."""
    fixture = os.path.join(world.build, "tests", "fixtures", "agent", "fixture-executes-static")
    done = world.fgprof("run", "--kind", "heap", "-o", world.path("out.folded"), "--",
                        fixture, "fork", "execv", "/usr/bin/python3", "-c", SAY_WANTED)
    assert done.stdout == "wanted 0\n", done


def test_program_that_may_not_make_files_any_larger(world):
    # Bash, because at its end a program that the agent is in waits until it has been seen; dash does not let it.
    done = world.fgprof("run", "--kind", "heap", "-o", world.path("out.folded"), "--", "bash", "-c",
                        "ulimit -f 100; (echo child); echo parent")
    assert done.returncode == 0 and done.stdout == "child\nparent\n", done


def test_script_that_executes_what_allocates(world):
    done = world.fgprof("run", "--kind", "heap", "--", "sh", "-c", "exec python3 -c 'b = [bytes(9000000)] * 9'")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b[1-9]\d* allocations? sampled", done.stderr), done.stderr

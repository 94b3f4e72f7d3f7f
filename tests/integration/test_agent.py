"""The agent in programs that execute others."""

import os
import re
import subprocess

FUNCTIONS = ["execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execlp", "execle"]
GREP = ("/usr/bin/grep", "-c", "libfgprof-agent", "/proc/self/maps")


def has_agent(world, *how):
    """Whether the program that the fixture executes has the agent."""
    fixture = os.path.join(world.build, "tests", "fixtures", "agent", "fixture-executes")
    agent = os.path.join(world.build, "libfgprof-agent.so")
    done = subprocess.run([fixture, *how, *GREP], env={**os.environ, "LD_PRELOAD": agent}, text=True,
                          capture_output=True, timeout=60, check=False)
    assert not done.stderr, done.stderr
    return int(done.stdout) > 0


def test_agent_goes_along_with_a_program_that_executes_another(world):
    for function in FUNCTIONS:
        assert has_agent(world, function), function


def test_children_are_without_the_agent(world):
    for function in FUNCTIONS:
        assert not has_agent(world, "fork", function), function
    for function in ("execve", "execv", "execl", "execle"):
        assert not has_agent(world, "vfork", function), function


def test_script_that_executes_what_allocates(world):
    done = world.fgprof("run", "--kind", "heap", "--", "sh", "-c", "exec python3 -c 'b = [bytes(9000000)] * 9'")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b[1-9]\d* allocations? sampled", done.stderr), done.stderr

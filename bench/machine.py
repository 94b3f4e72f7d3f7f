"""The head of a report: what was measured, when and where."""

import datetime
import os
import re
import subprocess

import programs


def _first_match(path, pattern, otherwise="unknown"):
    with open(path) as file:
        match = re.search(pattern, file.read(), re.MULTILINE)
    return match[1].strip() if match else otherwise


def _output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=programs.ENVIRONMENT, timeout=20)
    return done.stdout.strip()


def _version(tool):
    """The number in the first line of the output of --version."""
    option = {"nginx": "-v", "wrk": "-v", "go": "version"}.get(tool, "--version")
    first = _output(tool, option).split("\n")[0]
    number = re.search(r"\d+(\.\d+)+", re.sub(r"\(.*?\)", "", first) + " " + first)
    return number[0] if number else "unknown version"


def _commit(source):
    """The commit, and whether files other than reports differ from it."""
    commit = _output("git", "-C", source, "rev-parse", "--short", "HEAD")
    changed = _output("git", "-C", source, "status", "--porcelain", "--", ".", ":!bench/results")
    return commit + (" with changes" if changed else "")


def versions(world, tools):
    return ", ".join(f"{tool} {_version(tool)}" for tool in tools if world.has(tool))


def package_version(package):
    """Of a Debian package; None if it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    state, _, version = done.stdout.partition(" ")
    return version if state == "installed" else None


def heading(world, part, title, tools):
    cpu = _first_match("/proc/cpuinfo", r"^model name\s*:(.*)$")
    is_virtual = _first_match("/proc/cpuinfo", r"^flags\s*:.*\b(hypervisor)\b", "")
    memory_kib = int(_first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)"))
    system = _first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)')
    kernel = os.uname()
    load = _first_match("/proc/loadavg", r"^(\S+)")
    present = versions(world, tools)
    absent = [tool for tool in tools if not world.has(tool)]
    lines = [
        f"# {title}",
        "",
        f"Written by `scripts/bench {part}`" +
        (" --quick: a smoke test, the figures mean nothing" if world.is_quick else "") + ".",
        "",
        f"- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"- fgprof-c: {_output(world.fgprof, '--version').split()[-1]}, commit "
        f"{_commit(world.source)}, built with {_output('cc', '--version').splitlines()[0]}",
        f"- CPU: {cpu}, {len(os.sched_getaffinity(0))} CPUs" + (", virtual" if is_virtual else ""),
        f"- memory: {memory_kib / 1024 / 1024:.1f} GiB",
        f"- system: {system}, kernel {kernel.release} {kernel.machine}",
        f"- load average at the start: {load}",
    ]
    if present:
        lines.append("- beside it: " + present)
    if absent:
        lines.append("- not installed: " + ", ".join(absent))
    return "\n".join(lines) + "\n"

"""What is installed, and what is said about it."""

import os
import re
import subprocess

from harness import tool

USER = r"""
#include <fgprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    fgprof_options *options;
    fgprof_recorder *recorder;
    fgprof_profile *profile;
    if (argc != 2 || fgprof_options_new(&options))
        return 1;
    fgprof_options_set_duration_ns(options, 500000000);
    if (fgprof_recorder_new(options, &recorder) ||
        fgprof_recorder_attach(recorder, atoi(argv[1])) || fgprof_recorder_run(recorder, &profile))
        return 2;
    fgprof_recorder_free(recorder);
    int err = fgprof_profile_write(profile, FGPROF_FOLDED, STDOUT_FILENO);
    fgprof_profile_free(profile);
    fgprof_options_free(options);
    return err ? 3 : 0;
}
"""


def test_installed_library_can_be_used(world):
    prefix = world.path("prefix")
    tool("cmake", "--install", world.build, "--prefix", prefix)
    library = subprocess.run(["find", prefix, "-name", "fgprof.pc"], stdout=subprocess.PIPE,
                             text=True).stdout.strip()
    assert library and os.path.exists(prefix + "/bin/fgprof-c")
    for page in os.listdir(world.source + "/man"):
        assert os.path.exists(f"{prefix}/share/man/man{page[-1]}/{page}.gz"), page
    source = world.path("user.c")
    with open(source, "w") as file:
        file.write(USER)
    # A build for another prefix: its pkg-config file is told where it was installed.
    flags = tool("pkg-config", "--define-variable=prefix=" + prefix, "--cflags", "--libs", library)
    sanitize = ["-fsanitize=address,undefined"] if world.is_sanitized else []
    directory = os.path.dirname(os.path.dirname(library))
    tool("gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-pedantic", *sanitize, source, "-o",
         world.path("user"), *flags.split(), "-Wl,-rpath," + directory)
    with world.running("states", 30) as target:
        out = tool(world.path("user"), target.pid)
    assert "in_spin" in out
    exported = tool("nm", "-D", "--defined-only", directory + "/libfgprof.so")
    names = [line.split()[-1] for line in exported.splitlines() if line.split()[1] != "A"]
    assert names and all(re.fullmatch(r"fgprof_\w+@@FGPROF_0\.1", name) for name in names), names

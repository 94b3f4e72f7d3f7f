"""The installed files, and the information about them."""

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile

from harness import Skip, folded, need, tool, users_build, wait_for
from receiver import certificate, receiving

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


# For a system whose C library is musl.
MUSL_PROGRAM = """
#include <time.h>
static volatile unsigned long work;
__attribute__((noinline)) static void in_spin(void)
{
    for (int i = 0; i < 1000000; i++)
        work++;
}
int main(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        in_spin();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 2);
    return 0;
}
"""


def unpack_image(image, directory):
    """Unpacks the only layer of an OCI image into `directory`, and checks the references."""
    def blob(of):
        data = tar.extractfile("blobs/" + of["digest"].replace(":", "/")).read()
        assert hashlib.sha256(data).hexdigest() == of["digest"].split(":")[1] and len(data) == of["size"], of
        return data

    with tarfile.open(image) as tar:
        assert json.load(tar.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
        manifest = json.loads(blob(json.load(tar.extractfile("index.json"))["manifests"][0]))
        config = json.loads(blob(manifest["config"]))
        assert config["config"]["Entrypoint"] == ["/bin/fgprof-c"], config
        packed = os.path.join(directory, "layer.tar.gz")
        with open(packed, "wb") as file:
            file.write(blob(manifest["layers"][0]))
    with gzip.open(packed) as layer:
        assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer.read()).hexdigest()]
    seen = json.loads(tool("skopeo", "inspect", "oci-archive:" + image))
    assert (seen["Os"], seen["Architecture"]) == (config["os"], config["architecture"]), seen
    assert seen["Layers"] == [manifest["layers"][0]["digest"]], seen
    root = os.path.join(directory, "root")
    os.mkdir(root)
    tool("tar", "-C", root, "-xzf", packed)
    return root


def in_root(root, *command):
    """The command that runs one in another root, with this system's /proc."""
    os.makedirs(root + "/proc", exist_ok=True)
    return ["unshare", "--mount", "--propagation=private", "sh", "-c",
            'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"', root, *command]


def check_musl(world, archive):
    """The tarball runs where there is no glibc, and samples a program of the C library that is there."""
    root, source = world.path("musl"), world.path("spin.c")
    for directory in "bin", "lib", "opt", "tmp":
        os.makedirs(os.path.join(root, directory))
    library = f"/lib/ld-musl-{os.uname().machine}.so.1"
    shutil.copy(library, root + library)
    with open(source, "w") as file:
        file.write(MUSL_PROGRAM)
    tool("musl-gcc", "-O1", "-g", source, "-o", root + "/bin/spin")
    tool("tar", "-C", root + "/opt", "--strip-components=1", "-xzf", archive)
    out = tool(*in_root(root, "/opt/bin/fgprof-c", "run", "-f", "folded", "--", "/bin/spin"))
    assert any("main" in stack and "in_spin" in stack for stack in folded(out)), out


@contextlib.contextmanager
def installed_package(package, root):
    """An RPM package installed in a directory, with its own database."""
    to_root = "--root", root, "--dbpath", "/rpm"
    os.makedirs(root)
    requires = tool("rpm", "-qp", "--requires", package)
    assert "libc" not in requires, requires
    tool("rpm", "-i", *to_root, "--nodeps", package)
    tool("rpm", "-V", *to_root, "--nodeps", "fgprof-c")
    yield root + "/usr/bin/fgprof-c"
    tool("rpm", "-e", *to_root, "fgprof-c")
    assert not os.path.exists(root + "/usr/bin/fgprof-c")


def check_push(world, root, command):
    """libcurl is loaded, with what it needs for TLS."""
    path, context = certificate(world)
    shutil.copy(path, root + "/ca.pem")
    with receiving(context=context) as receiver:
        server = subprocess.Popen([*command, "--listen", "none", "--push", "otlp=" + receiver.url, "--push-every", "1s",
                                   "--push-ca", "/ca.pem", "--push-spool", "/tmp/spool"], env={}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: receiver.requests or server.poll() is not None, "a push")
            server.terminate()
            _, said = server.communicate(timeout=60)
        finally:
            server.kill()
        assert receiver.requests and server.returncode == 0, said


def check_no_places(world):
    """Nothing says where it was built, not even debug information, on which build IDs depend: the same source
    gives the same bytes in any directory."""
    for name in "fgprof-c", "libfgprof-agent.so", "src/launcher/fgprof-launcher":
        with open(os.path.join(world.build, name), "rb") as file:
            data = file.read()
        for place in world.source, os.path.abspath(world.build):
            assert b".debug_info" in data and place.encode() not in data, f"{name} says that it was built in {place}"


@users_build
def test_a_release_runs_where_nothing_else_is(world):
    """The image has everything that the program needs: it samples a process from its own root directory. The
    installed program runs with the system's glibc, if there is one."""
    if os.getuid():
        raise Skip("changing the root needs root")
    need("skopeo", "musl-gcc")
    release = os.path.join(world.source, "scripts/release")
    tool(release, world.build, world.path("release"))
    sums = open(world.path("release/SHA256SUMS")).read()
    tool(release, world.build, world.path("again"))
    assert sums == open(world.path("again/SHA256SUMS")).read(), sums
    check_no_places(world)
    files = [line.split()[1] for line in sums.splitlines()]
    tool("sh", "-c", 'cd "$0" && sha256sum -c SHA256SUMS', world.path("release"))
    image = next(file for file in files if file.endswith(".oci.tar"))
    root = unpack_image(os.path.join(world.path("release"), image), world.path(""))
    unpacked = world.path("unpacked")
    os.mkdir(unpacked)
    archive = os.path.join(world.path("release"), next(file for file in files if file.endswith(".tar.gz")))
    check_musl(world, archive)
    tool("tar", "-C", unpacked, "--strip-components=1", "-xzf", archive)
    for name in "lib/libfgprof-agent.so", "LICENSE", "share/man/man1/fgprof-c.1.gz":
        assert os.path.exists(os.path.join(unpacked, name)), name
    shutil.rmtree(unpacked + "/lib/fgprof-c/glibc")  # the system's is enough here
    package = next(file for file in files if file.endswith(".rpm"))
    with world.running("states", 30) as target, \
            installed_package(os.path.join(world.path("release"), package), world.path("rpm")) as program:
        for runs_here in program, unpacked + "/bin/fgprof-c":
            out = tool(runs_here, "attach", "-p", target.pid, "-d", "500ms", "-f", "folded")
            assert any("in_spin" in stack for stack in folded(out)), out
        image_command = in_root(root, "/bin/fgprof-c")
        in_image = [*image_command, "attach", "-p", str(target.pid), "-d", "500ms"]
        out = tool(*in_image)
        assert any("in_spin" in stack for stack in folded(out)), out
        check_push(world, root, [*image_command, "serve", "-p", str(target.pid)])
        shutil.rmtree(root + "/lib/fgprof-c/glibc")
        done = subprocess.run(in_image, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 127 and "can't be started: No such file" in done.stderr, done

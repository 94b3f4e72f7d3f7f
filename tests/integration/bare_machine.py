"""A tree in which only some of this machine's packages are installed, to build in by chroot(1): what a new
user's machine has after `scripts/setup build`."""

import os
import re
import shutil
import stat
import subprocess

from harness import Missing, Skip, need, tool

# Nothing that a build reads.
LEFT_OUT = tuple(f"/usr/share/{name}/" for name in ("doc", "info", "locale", "man"))
OUTPUT = re.compile(r"node_modules|__pycache__")
BUILT = re.compile(r"build.*|\..*|demo\..*")


def installed_packages():
    """{name: (whether each Debian has it, what it depends on)} and {virtual name: the packages that provide
    it}. What a package depends on is a list of alternatives."""
    fields = ("${Package}", "${db:Status-Status}", "${Essential}", "${Priority}", "${Pre-Depends}", "${Depends}",
              "${Provides}")
    packages, providers = {}, {}
    for line in tool("dpkg-query", "-W", "-f", "\t".join(fields) + "\n").splitlines():
        name, status, essential, priority, before, depends, provides = line.split("\t")
        if status != "installed":
            continue
        needs = [[re.match(r"[^ :(]+", word.strip())[0] for word in alternatives.split("|")]
                 for alternatives in f"{before}, {depends}".split(",") if alternatives.strip()]
        packages[name] = essential == "yes" or priority == "required", needs
        for provided in filter(None, (word.strip().split(" ")[0] for word in provides.split(","))):
            providers.setdefault(provided, []).append(name)
    return packages, providers


def with_what_they_need(wanted):
    """These packages, those that every Debian has, and all that they depend on."""
    packages, providers = installed_packages()
    missing = sorted(set(wanted) - set(packages))
    if missing:
        raise Missing(f"no {', '.join(missing)}")
    found = {name for name, (is_base, _) in packages.items() if is_base}
    todo = sorted(found) + sorted(wanted)
    found.update(wanted)
    while todo:
        for alternatives in packages[todo.pop()][1]:
            able = [name for word in alternatives
                    for name in ([word] if word in packages else []) + providers.get(word, [])]
            # One that another package needs in any case is as good as the first.
            if able and not found & set(able):
                found.add(able[0])
                todo.append(able[0])
    return found


def copy_file(path, root):
    """Copies a file, a link or an empty directory to the same place below `root`."""
    directory = os.path.realpath(root + os.path.dirname(path))
    assert (directory + "/").startswith(root + "/"), path  # a link that leads out of the tree
    os.makedirs(directory, exist_ok=True)
    place = f"{directory}/{os.path.basename(path)}"
    mode = os.lstat(path).st_mode
    if os.path.lexists(place):
        return
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(path), place)
    elif stat.S_ISDIR(mode):
        os.mkdir(place, stat.S_IMODE(mode))
    elif stat.S_ISREG(mode):
        shutil.copy2(path, place)


def choose_alternatives(root):
    """Points the links of update-alternatives(1), which belong to no package, to programs in the tree: this
    machine may have selected a program that is not in it."""
    os.makedirs(root + "/etc/alternatives", exist_ok=True)
    shutil.copytree("/var/lib/dpkg/alternatives", root + "/var/lib/dpkg/alternatives", dirs_exist_ok=True)
    for name in os.listdir("/var/lib/dpkg/alternatives"):
        # Fails where none of them is in the tree.
        subprocess.run(["chroot", root, "update-alternatives", "--quiet", "--auto", name],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def copy_checkout(source, to):
    """Copies the sources to a new directory, without any build results."""
    shutil.copytree(source, to, ignore=lambda directory, names: [
        name for name in names if OUTPUT.fullmatch(name) or directory == source and BUILT.fullmatch(name)])


class BareMachine:
    """The tree, with a copy of the sources in /checkout in which nothing has been built."""

    def __init__(self, world, packages):
        if os.geteuid():
            raise Skip("needs root")
        need("dpkg-query", "unshare")
        self.root = world.path("bare-machine")
        os.mkdir(self.root)
        files = tool("dpkg-query", "-L", *sorted(with_what_they_need(packages))).splitlines()
        for path in sorted(set(files)):
            # dpkg-divert(1) is told of in lines of words.
            if path.startswith("/") and path != "/." and os.path.lexists(path) and not path.startswith(LEFT_OUT):
                copy_file(path, self.root)
        choose_alternatives(self.root)
        for name in "/etc/passwd", "/etc/group":
            copy_file(name, self.root)
        for name in "/dev", "/proc", "/tmp", "/results":
            os.makedirs(self.root + name, exist_ok=True)
        os.chmod(self.root + "/tmp", 0o1777)
        copy_checkout(world.source, self.root + "/checkout")

    def command(self, *command, user=0, read_only=False):
        """The command that runs another command in the tree, in /, as this user. dpkg's database is this
        machine's, and can't be changed."""
        script = f"""
            cd '{self.root}'
            mkdir -p var/lib/dpkg
            mount --bind /var/lib/dpkg var/lib/dpkg
            mount -o remount,bind,ro var/lib/dpkg
            mount --rbind /dev dev
            mount --rbind /proc proc
            {"mount --bind checkout checkout; mount -o remount,bind,ro checkout" if read_only else ""}
            exec chroot --userspec={user}:{user} --groups= . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
                HOME=/nonexistent LANG=C.UTF-8 TERM=dumb ${{DEMO_SECONDS:+DEMO_SECONDS=$DEMO_SECONDS}} "$@"
        """
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", *command]

    def run(self, *command, seconds=900, **options):
        """Runs a command there. Returns it with returncode, stdout and stderr."""
        return subprocess.run(["timeout", "-k", "5", str(seconds), *self.command(*command, **options)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

"""What bash, zsh and fish offer in a real shell, compared with --help."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from harness import need, need_file

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
# One that lists at the first Tab, without asking and in one page.
SET_UP = {
    "bash": ("PS1='@> '; bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0';"
             " bind 'set page-completions off'; bind 'set enable-bracketed-paste off';"
             " source " + BASH_COMPLETION + "; source {directory}/fgprof-c.bash"),
    "zsh": ("PS1='@> '; LISTMAX=9999; unset zle_bracketed_paste;"
            " unsetopt list_ambiguous always_last_prompt prompt_sp prompt_cr;"
            " fpath=({directory} $fpath); autoload -Uz compinit; compinit -u -d {dump};"
            " zstyle ':completion:*' list-prompt ''"),
}
COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


def read_until(fd, mark):
    text = b""
    while not re.search(mark, text):
        assert select.select([fd], [], [], 90)[0], f"waited in vain for {mark}: {text}"
        text += os.read(fd, 65536)  # an error if the shell has ended
    return text.decode(errors="replace")


def press_tab(world, shell, line):
    """Types the line and a Tab into an interactive shell. Returns what it shows then."""
    main, side = pty.openpty()
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 2000, 200, 0, 0))
    target = subprocess.Popen(["timeout", "--foreground", "100", *COMMAND[shell]], stdin=side,
                              stdout=side, stderr=side, start_new_session=True,
                              env=dict(os.environ, TERM="dumb", INPUTRC="/dev/null"))
    os.close(side)
    try:
        set_up = SET_UP[shell].format(directory=world.source + "/completions",
                                     dump=world.path("zcompdump"))
        os.write(main, f"{set_up}; echo BE''GIN\n".encode())
        read_until(main, rb"BEGIN\r\n[^@]*@> ")
        os.write(main, line.encode() + b"\t")
        # Deletes the line, so that the shell can say that it is done.
        os.write(main, b"\x15echo EN''D\n")
        shown = read_until(main, rb"END\r\n")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    finally:
        target.kill()
        target.wait()
        os.close(main)


def offered(world, shell, line):
    """What the shell offers for the line, as one text."""
    need(shell)
    if shell == "bash":
        need_file("bash-completion", BASH_COMPLETION)
    if shell != "fish":
        return press_tab(world, shell, line)
    script = ("set fish_complete_path /usr/share/fish/completions;"
              f" source {world.source}/completions/fgprof-c.fish; complete -C $argv")
    done = subprocess.run(["fish", "-N", "-c", script, line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def words(text, pattern):
    return set(re.findall(rf"(?<!\S){pattern}(?=\s|=|$)", text))


def commands(world):
    text = world.fgprof("--help").stdout
    found = re.findall(r"^  ([a-z]+) +\S", text, re.M)
    return {name for name in found if name != "fgprof"}


def check(world, shell):
    names = commands(world)
    assert {"attach", "run", "top", "dump", "convert", "diff"} <= names, names
    assert words(offered(world, shell, "fgprof-c "), "[a-z]+") >= names
    assert words(offered(world, shell, "fgprof-c at"), "attach"), "the begin of a name"
    for name in names:
        text = world.fgprof(name, "--help-all").stdout
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) | {"--help", "--help-all"}
        assert len(options) >= 3, text
        found = words(offered(world, shell, f"fgprof-c {name} --"), "--[a-z][a-z-]+")
        assert found == options, (shell, name, "missing", options - found, "too many",
                                  found - options)


def check_values(world, shell):
    # What the program itself says.
    said = world.fgprof("attach", "-p", "1", "-f", "?").stderr
    formats = set(re.findall(r"\w+", said.split("give ")[1])) - {"or"}
    assert {"folded", "pprof"} <= formats, said
    for option in "attach -f ", "attach --format=", "convert -f ":
        shown = offered(world, shell, f"fgprof-c {option}")
        found = {word.rsplit("=", 1)[-1] for word in re.findall(r"\S+", shown)}
        assert found & (formats | {"svg", "json", "pdf"}) == formats, (option, formats, shown)
    with world.running("deep", 300, 10) as target:
        shown = offered(world, shell, "fgprof-c attach -p ")
        assert re.search(rf"(?m)(?<!\d){target.pid}\b.*fixture-deep", shown), shown
        assert str(target.pid) in offered(world, shell, f"fgprof-c attach -p 1,{target.pid}")
    file = world.path("wall.folded")
    open(file, "w").close()
    assert file in offered(world, shell, f"fgprof-c attach -o {file[:-4]}")
    kept = world.path("kept.fgprof")
    open(kept, "w").close()
    for command in "convert ", "diff ", f"diff {kept} ", "report ":
        shown = offered(world, shell, f"fgprof-c {command}{world.directory}/")
        assert "kept.fgprof" in shown.replace(f"{command}", ""), (command, shown)
        assert shell == "fish" or "wall.folded" not in shown, (command, shown)
    # After -- the line is the command's own.
    assert "mkfifo" in offered(world, shell, "fgprof-c run -- mkfif")
    assert "mkfifo" in offered(world, shell, "fgprof-c run -q -d 5s -- mkfif")
    assert "--invert-match" in offered(world, shell, "fgprof-c run -- grep --inv")


def test_bash_completes_commands_and_options(world):
    check(world, "bash")


def test_zsh_completes_commands_and_options(world):
    check(world, "zsh")


def test_fish_completes_commands_and_options(world):
    check(world, "fish")


def test_bash_completes_values(world):
    check_values(world, "bash")


def test_zsh_completes_values(world):
    check_values(world, "zsh")


def test_fish_completes_values(world):
    check_values(world, "fish")

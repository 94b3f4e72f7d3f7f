"""What frames are called."""

from harness import folded, has, tool

SHORT = "std::vector::push_back", "operator<<", "core::fmt::Write::write_fmt"
FULL = ("std::vector<int, std::allocator<int> >::push_back(int&&)",
        "std::ostream& operator<< <int>(std::ostream&, int)", "core::fmt::Write::write_fmt")
RAW = ("_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZlsIiERSoS0_T_",
       "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE")


def follow(stack, names):
    """Whether the names are frames of the stack, one right after the other."""
    return any(stack[i:i + len(names)] == names for i in range(len(stack)))


def test_namings(world):
    with world.running("names", 30) as target:
        for names, flags in (SHORT, []), (FULL, ["--full-names"]), (RAW, ["--no-demangle"]):
            stacks = folded(world.attach(target, *flags, duration="200ms").stdout)
            assert stacks and all(follow(stack, ("main", *names)) for stack in stacks), stacks


def test_pprof_has_both_names(world):
    path = world.path("names.pb.gz")
    with world.running("names", 30) as target:
        world.attach(target, "-o", path, duration="200ms")
    raw = tool("go", "tool", "pprof", "-raw", path)
    for short, symbol in zip(SHORT, RAW):
        assert f" {short} " in raw and f"({symbol})" in raw, raw


def test_one_naming_at_a_time(world):
    for flags in ["--full-names", "--no-demangle"], ["--no-demangle", "--full-names"]:
        done = world.fgprof("attach", "-p", 1, *flags)
        assert done.returncode == 2 and "exclude each other" in done.stderr, done

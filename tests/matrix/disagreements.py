"""Where fgprof-c and gdb are known to differ, which is right, and why. What is no disagreement at all
is said in compare.py.

An entry stands for all threads of all rows that it matches: if one of them agrees after all, the
test fails, and the entry must be removed or narrowed."""

import collections
import re

# rows and threads are regular expressions for whole titles and names.
Known = collections.namedtuple("Known", "rows threads right why")

UNWINDING = [
    Known(r"cases\.c (gcc|clang) (-O0|-O2 -fno-omit-frame-pointer)", r"alternate", "gdb",
          "asleep in pause, which does not survive a stop, and the frame pointer that was found is "
          "not proved: the proof would end on the other stack"),
    Known(r"cases\.c (gcc|clang) (-O1|-O2|-O3|-O0 -fomit-frame-pointer)"
          r"(?! -fno-omit-frame-pointer)(?!.*without CFI).*", r"alloca|aligned", "gdb",
          "asleep in pause, in a function with alloca that was called indirectly: its instructions "
          "do not tell where the frame pointer is, nor is a call to it found"),
    Known(r"contexts\.c gcc -O[02]", r"other_register", "gdb",
          "asleep in pause, and the CFA is in a register that the kernel does not show"),
    # The code pushed __start_context as the return address. It is a function's first byte, and the
    # address before it belongs to no function.
    Known(r"contexts\.c gcc -O[02]", r"context_(mapped|heap|own)\+?", "fgprof-c",
          "the first frame of a context: gdb does not know it, and goes on to one in no code"),
]

# musl has neither unwind tables nor frame pointers.
MUSL = [
    Known(r"cases\.c musl-gcc -O2", r"(?!handler\+|trap\+|alternate\+|nowhere\+).*", "neither",
          "stacks end in musl: fgprof-c says so, gdb guesses or does not say so"),
    Known(r"cases\.c musl-gcc -O2", r"(handler|trap|alternate|nowhere)\+", "fgprof-c",
          "gdb does not know the trampoline, for which musl has another name near: fgprof-c goes on "
          "to what was interrupted"),
    Known(r"cases\.c musl-gcc -O2 -static", r".*", "fgprof-c",
          "it finds the return addresses by musl's code, where gdb goes astray"),
]

NAMES = [
    Known(r"cases\.cc g\+\+ -std=c\+\+17 -O0", r"(lambda|sort|std_thread)\+?", "both",
          "lambdas have no name for the linker in the debug information, and each makes up its own"),
    Known(r"cases\.cc g\+\+ -std=c\+\+17 -O2.*", r"(lambda|method|sort|std_thread)\+?", "both",
          "the same, and methods of types in a nameless namespace"),
]

KNOWN = [*UNWINDING, *MUSL, *NAMES]


def find(title, thread):
    for known in KNOWN:
        if re.fullmatch(known.rows, title) and re.fullmatch(known.threads, thread):
            return known
    return None

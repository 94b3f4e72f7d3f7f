"""Compares one thread's stack by fgprof-c with gdb's, frame by frame.

These differences do not count as disagreements:

- gdb infers frames of functions that ended in a tail call from the call sites in the debug
  information. They are no longer on the stack, and fgprof-c shows only what is. Both are right.
- A function may have several names in the symbol tables (clone3 and __clone3). Both are right.
- For a function without a linkage name, such as a lambda, gdb shows less of its scope
  (operator(), f()::{lambda(int)#1}::operator()). Both are right.
- If fgprof-c is limited to a number of frames, or gdb has call frame information that fgprof-c
  lacks, a stack from fgprof-c may be cut. It must say so.
"""

import collections
import re

# words: both stacks side by side.
Result = collections.namedtuple("Result", "frames same differing is_cut words")


def without_tail_calls(frames):
    """The frames that are on the stack: without tail calls, and functions inlined in them."""
    kept, group = [], []
    for frame in frames:
        group.append(frame)
        if frame.kind != "inlined":
            kept += group if frame.kind != "tail call" else []
            group = []
    return kept + group


def without_inlined(mine):
    """The last of the frames at each address. Equal frames are kept: the function called itself."""
    return [frame for i, frame in enumerate(mine)
            if i + 1 == len(mine) or frame.address != mine[i + 1].address or frame == mine[i + 1]]


def is_same(mine, judge, aliases, files):
    if mine.address != judge.address or (mine.line != judge.line and mine.line and judge.line):
        return False
    if not mine.name or not judge.name:
        return mine.name == judge.name
    return (mine.name == judge.name or mine.name.endswith("::" + judge.name)
            or aliases.are(mine.name, judge.name, files))


def is_same_place(mine, judge):
    """The same for a program without names."""
    return mine.address == judge.address and mine.name in (None, judge.name)


def text_of(frame):
    if frame is None:
        return "-"
    address = "" if frame.address is None else f"{frame.address:#x} "
    return f"{address}{frame.name or '??'}:{frame.line}"


def common_part(mine, judge, may_be_cut):
    """The frames to compare if fgprof-c's stack may be cut, but not wrong. It may also lack names,
    and so inlined functions."""
    judge = [frame for frame in judge if frame.kind != "inlined"]
    if mine and mine[-1].address is None and re.search(may_be_cut, mine[-1].name):
        mine = without_inlined(mine[:-1])
        return mine, judge[:len(mine)]
    return without_inlined(mine), judge


def compare(mine, judge, aliases, files, may_be_cut=None):
    judge = without_tail_calls(judge)
    is_cut = bool(mine and mine[-1].address is None)
    if may_be_cut:
        mine, judge = common_part(mine, judge, may_be_cut)
    same, words = 0, []
    length = max(len(mine), len(judge))
    for i in range(length):
        my_frame = mine[i] if i < len(mine) else None
        its_frame = judge[i] if i < len(judge) else None
        agree = bool(my_frame and its_frame) and (
            is_same_place(my_frame, its_frame) if may_be_cut and not my_frame.line
            else is_same(my_frame, its_frame, aliases, files))
        same += agree
        words.append(f"{' ' if agree else '!'} {text_of(my_frame):60} | {text_of(its_frame)}")
    return Result(length, same, length - same, is_cut, words)

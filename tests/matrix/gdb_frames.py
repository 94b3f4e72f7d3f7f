"""Runs inside gdb (-x) and prints a process's stacks as lines of JSON: first the files with its code,
including separate debug information, then each thread:

    {"files": [PATH, ...]}
    {"tid": 12, "frames": [[address, name for the linker, kind, line], ...]}

leaf first. The address is where the frame's code is looked up: in the call instruction for a caller,
and at the exact pc for the leaf, for a frame that a signal interrupted, and for the trampoline that
a handler returns to. A caller at 0 is left out: gdb shows the zero that ends a stack as a frame."""

import json

import gdb

KINDS = {gdb.NORMAL_FRAME: "normal", gdb.INLINE_FRAME: "inlined", gdb.SIGTRAMP_FRAME: "signal",
         gdb.TAILCALL_FRAME: "tail call"}
FRAMES_MAX = 1100


def name_of(frame):
    if frame.type() == gdb.SIGTRAMP_FRAME:
        return "<signal handler called>"  # as gdb shows it
    function = frame.function()
    return function.linkage_name if function else frame.name()


def frames_of(thread):
    thread.switch()
    frames, frame, newer, is_call = [], gdb.newest_frame(), None, False
    while frame and len(frames) < FRAMES_MAX:
        kind = KINDS.get(frame.type(), "other")
        # A frame and the functions inlined in it have one address.
        if newer != "inlined":
            is_call = newer is not None and newer != "signal" and kind != "signal"
        if is_call and not frame.pc():
            break
        frames.append([frame.pc() - is_call, name_of(frame), kind, frame.find_sal().line])
        newer = kind
        frame = frame.older()
    return frames


print(json.dumps({"files": [file.filename for file in gdb.objfiles()]}))
for thread in gdb.selected_inferior().threads():
    try:
        print(json.dumps({"tid": thread.ptid[1] or thread.ptid[0], "frames": frames_of(thread)}))
    except gdb.error as error:
        print(json.dumps({"tid": thread.ptid[1] or thread.ptid[0], "frames": [],
                          "error": str(error)}))

/* Replaces the interpreter's own frames on a thread's native stack by the thread's Python frames.
 */
#ifndef FGPROF_RUNTIME_PYTHON_MERGE_H
#define FGPROF_RUNTIME_PYTHON_MERGE_H

#include "runtime/python/frames.h"

enum native_kind {
    NATIVE_OTHER,       /* a frame of the program's libraries: it stays */
    NATIVE_INTERPRETER, /* of the interpreter's file: it goes */
    NATIVE_EVALUATION,  /* a call of the evaluation loop: replaced by the Python frames that it
                           runs */
};

/* A native stack, leaf first. */
struct native_stack {
    const uint64_t *addresses;
    const enum native_kind *kinds;
    size_t depth;
    bool is_cut;            /* at the root */
    bool keeps_interpreter; /* NATIVE_INTERPRETER and NATIVE_EVALUATION stay, too; each call of the
                               loop is then above its Python frames */
};

/* Merges both, leaf first, into `ret_addresses`, which has room for all. `python_addresses` stand
 * for the Python frames. Returns the depth; 0: they do not match, because one has more calls of the
 * evaluation loop than the other. */
size_t python_merge(const struct native_stack *native, const struct python_frames *frames,
                    const uint64_t *python_addresses, uint64_t *ret_addresses);

#endif

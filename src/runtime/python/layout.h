/* Where CPython keeps the state of its threads: the layout of its structures, which differs by
 * version.
 *
 * From 3.13 on the interpreter publishes its own layout, in `_PyRuntime.debug_offsets`
 * (Include/internal/pycore_debug_offsets.h; in 3.13 pycore_runtime.h). For earlier versions, the
 * table in layout.c has it. */
#ifndef FGPROF_RUNTIME_PYTHON_LAYOUT_H
#define FGPROF_RUNTIME_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PYTHON_NOWHERE UINT16_MAX /* the structure has no such field */

/* How a code object tells the lines of its instructions. */
enum python_line_table {
    PYTHON_LOCATIONS,  /* from 3.11 on: Objects/locations.md of CPython */
    PYTHON_LINE_TABLE, /* 3.10: Objects/lnotab_notes.txt */
    PYTHON_LNOTAB,     /* 3.9: the same file of that version */
};

struct python_layout {
    /* Before 3.11 a frame is an object of its own, and each has a call of the evaluation loop. It
     * has the number of its instruction (f_lasti), and a thread is identified by its pthread_t. */
    bool has_frame_objects;
    enum python_line_table line_table;
    /* The rest are offsets in bytes. */
    /* _PyRuntimeState */
    uint16_t runtime_interpreters; /* the newest one; the main one's address follows */
    uint16_t runtime_gil;          /* PYTHON_NOWHERE: interpreters have it */
    /* PyInterpreterState */
    uint16_t interpreter_next, interpreter_threads;
    uint16_t interpreter_gil; /* where its address is */
    /* PyThreadState */
    uint16_t thread_next;
    uint16_t thread_native_id; /* with frame objects its pthread_t */
    uint16_t thread_frame;     /* the frame that runs, or where that is noted: */
    uint16_t noted_frame; /* _PyCFrame: that frame; PYTHON_NOWHERE: there is no such structure */
    /* _PyInterpreterFrame, or PyFrameObject */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
    uint16_t frame_is_entry; /* it is the first of its call of the evaluation loop.
                                PYTHON_NOWHERE: that call has a frame of its own, with the owner
                                PYTHON_OWNED_BY_C */
    /* PyObject, PyCodeObject */
    uint16_t object_type;
    uint16_t code_filename, code_qualname, code_first_line, code_lines, code_instructions;
    /* PyASCIIObject, PyCompactUnicodeObject, PyBytesObject */
    uint16_t text_length, text_state, ascii_text, other_text, bytes_length, bytes_data;
};

/* FRAME_OWNED_BY_CSTACK of 3.12 and 3.13 (pycore_frame.h), FRAME_OWNED_BY_INTERPRETER from 3.14 on
 * (pycore_interpframe_structs.h). */
#define PYTHON_OWNED_BY_C 3
/* From 3.14 on a frame refers to its code object by an address with tags in these bits
 * (pycore_stackref.h). Objects are aligned to more than that. */
#define PYTHON_TAG_BITS 3ull

/* The layout of PY_VERSION_HEX; NULL if the table does not have it. */
const struct python_layout *python_layout_of(uint32_t version);

/* The longest that _Py_DebugOffsets is, of the versions that are known. */
#define PYTHON_OFFSETS_BYTES 1024u

/* Whether the data at `_PyRuntime` is from a build without a GIL. */
bool python_layout_is_free_threaded(const void *offsets, size_t bytes);

/* Reads the layout that an interpreter of 3.13 to 3.15 publishes: `offsets` is what is at
 * `_PyRuntime`. Returns 0, -ENOTSUP if it is of an unknown version or build, or -EBADMSG. */
int python_layout_read(const void *offsets, size_t bytes, struct python_layout *ret_layout);

#endif

/* The Python frames of a thread, leaf first, as they are in its memory: which code, and where in
 * it. Names are looked up later, see code.h. */
#ifndef FGPROF_RUNTIME_PYTHON_FRAMES_H
#define FGPROF_RUNTIME_PYTHON_FRAMES_H

#include "proc/stack_areas.h"
#include "runtime/python/layout.h"

#include <sys/types.h>

#define PYTHON_FRAMES_MAX 1024

struct python_frame {
    uint64_t code;        /* the address of the code object */
    uint64_t instruction; /* and of the instruction in it that runs, or that made a call: see
                             python_code_offset */
    bool is_entry;        /* the evaluation loop was called for it; the next frames belong to the
                             next call of the loop on the native stack */
};

enum python_frames_state {
    PYTHON_FRAMES_NOT_READ,
    PYTHON_FRAMES_READ,
    PYTHON_FRAMES_UNREADABLE, /* some were not, or make no sense; what was read is no use */
    PYTHON_FRAMES_OF_ANOTHER, /* the thread state belongs to another thread by now */
};

struct python_frames {
    enum python_frames_state state;
    bool is_cut; /* there are more, at the root */
    size_t count;
    struct python_frame items[PYTHON_FRAMES_MAX];
};

/* A thread of Python. */
struct python_thread {
    const struct python_layout *layout; /* NULL: it is not known as one */
    uint64_t state;                     /* the address of its PyThreadState */
    uint64_t id;                        /* what its thread_native_id is */
};

/* A frame as it is in memory. */
struct python_frame_seen {
    uint64_t code, previous, instruction;
    uint8_t owner, is_entry;
};

/* For frames that somebody else has read: begins with none. */
void python_frames_begin(struct python_frames *frames);

/* Adds the next frame, unless it belongs to the evaluation loop itself. Beyond PYTHON_FRAMES_MAX
 * sets is_cut. */
void python_frames_add(struct python_frames *frames, const struct python_layout *layout,
                       const struct python_frame_seen *seen);

/* Reads the frames of a thread that sleeps or is stopped. `tid` is a live thread of the process,
 * and `areas` what is known of its mappings. */
void python_frames_read(const struct python_thread *thread, pid_t tid,
                        const struct stack_areas *areas, struct python_frames *frames);

#endif

/* Frames made by a runtime, such as an interpreter: functions that have no address of their own.
 * They get addresses at which no process can have code. */
#ifndef FGPROF_COUNT_RUNTIME_FRAMES_H
#define FGPROF_COUNT_RUNTIME_FRAMES_H

#include "base/strings.h"

/* More are counted as one, STRING_OTHER. */
#define RUNTIME_FRAMES_MAX 65536u

struct runtime_frame {
    uint32_t name, file; /* numbers in `strings` */
    uint32_t line;       /* 0: not known */
};

/* Zeroed at first. */
struct runtime_frames {
    struct runtime_frame *items;
    size_t count, capacity;
    struct index index;
    struct strings strings;
};

/* These functions return 0 or -ENOMEM. */

/* The number of a name or a file, which is copied. Beyond the limit, that of STRING_OTHER. */
int runtime_frames_text(struct runtime_frames *frames, const char *text, uint32_t *ret_text);

/* Sets *ret_address to what stands for the frame in stacks. */
int runtime_frames_add(struct runtime_frames *frames, const struct runtime_frame *frame,
                       uint64_t *ret_address);

/* The frame that the address stands for; NULL if the address belongs to a process. `frames` may be
 * NULL: none. */
const struct runtime_frame *runtime_frames_find(const struct runtime_frames *frames,
                                                uint64_t address);

size_t runtime_frames_bytes(const struct runtime_frames *frames);
void runtime_frames_free(struct runtime_frames *frames);

#endif

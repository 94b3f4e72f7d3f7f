/* Frames made by a runtime, such as an interpreter: functions that have no address of their own.
 * They get addresses at which no process can have code. */
#ifndef FGPROF_COUNT_RUNTIME_FRAMES_H
#define FGPROF_COUNT_RUNTIME_FRAMES_H

#include "base/strings.h"

/* More than fit at a time are counted as one, STRING_OTHER. */
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
    size_t kept_count, kept_texts; /* how many the last runtime_frames_keep left */
    uint32_t times_renumbered;
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

/* The same as a number, from 0; INDEX_NONE if the address belongs to a process. And back. */
uint32_t runtime_frames_number(const struct runtime_frames *frames, uint64_t address);
uint64_t runtime_frames_address(uint32_t number);

/* Whether as much was added since the last runtime_frames_keep as still fits. */
bool runtime_frames_are_crowded(const struct runtime_frames *frames);

/* Keeps the texts of the frames that stay, and "". */
void runtime_frames_keep_texts(const struct runtime_frames *frames, const struct renumber *rows,
                               struct renumber *texts);

/* Keeps only these frames and texts. They get new numbers, and frames new addresses. */
void runtime_frames_keep(struct runtime_frames *frames, const struct renumber *rows,
                         const struct renumber *texts);

size_t runtime_frames_bytes(const struct runtime_frames *frames);
void runtime_frames_free(struct runtime_frames *frames);

#endif

/* Python's global interpreter lock, which only one of an interpreter's threads holds at a time. */
#ifndef FGPROF_WORKER_GIL_H
#define FGPROF_WORKER_GIL_H

#include "observe/observation.h"
#include "runtime/python/layout.h"
#include "wait/lock.h"

struct gil {
    uint32_t program; /* the number of the program that has it */
    uint64_t address; /* of its struct _gil_runtime_state */
    struct python_layout layout;
};

/* Those of all programs. Zeroed at first. */
struct gils {
    struct gil *items;
    size_t count, capacity;
};

/* Returns 0 or -ENOMEM. */
int gils_add(struct gils *gils, const struct gil *gil);
void gils_forget(struct gils *gils, uint32_t program);
void gils_free(struct gils *gils);

/* If the futex that the thread waits for is part of its program's GIL, sets `lock` to the GIL, with
 * the owner that it has according to the futex's memory. */
void gils_note(const struct gils *gils, const struct observation *observation,
               const struct call_memory *memory, struct lock *lock);

#endif

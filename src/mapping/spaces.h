/* All address spaces of a recording, in the order in which they began: those of each process, of
 * each program that it executed, and of each time that what it had mapped was contradicted. */
#ifndef FGPROF_MAPPING_SPACES_H
#define FGPROF_MAPPING_SPACES_H

#include "mapping/space.h"

struct spaces {
    struct space **items;
    size_t count, capacity;
};

/* Reads the maps of thread `tid` from `maps_fd` into a new space of process `pid`. Returns 0 or a
 * negative errno: -ESRCH where there are no maps any more. */
int spaces_add(struct spaces *spaces, struct modules *modules, pid_t pid, int proc_fd, pid_t tid,
               int maps_fd, struct space **ret_space);

/* Reads the maps again and adds what is new to *space, or makes *space a new one where something
 * contradicts it. *ret_changed: whether anything is new. Returns 0 or a negative errno. */
int spaces_refresh(struct spaces *spaces, struct modules *modules, int proc_fd, pid_t tid,
                   int maps_fd, struct space **space, bool *ret_changed);

/* Makes *space a new one that is like it. Returns 0 or -ENOMEM. */
int spaces_branch(struct spaces *spaces, struct space **space);

void spaces_free(struct spaces *spaces);

#endif

/* All address spaces of a recording. A process gets a new one for each program that it executes,
 * and whenever its mappings contradict the known ones. */
#ifndef FGPROF_MAPPING_SPACES_H
#define FGPROF_MAPPING_SPACES_H

#include "base/renumber.h"
#include "mapping/space.h"

struct spaces {
    struct space **items;
    size_t count, capacity;
    size_t first_free; /* no space before it is free */
    size_t free_count;
    struct space *shared; /* see spaces_share; NULL: not needed so far */
};

/* Reads the maps of thread `tid` from `maps_fd` into a new space of process `pid`. Returns 0 or a
 * negative errno: -ESRCH if there are no maps any more. */
int spaces_add(struct spaces *spaces, struct modules *modules, pid_t pid, int proc_fd, pid_t tid,
               int maps_fd, struct space **ret_space);

/* Rereads the maps and adds new mappings to *space; if they contradict it, sets *space to another
 * one. *ret_changed says whether anything is new. Returns 0 or a negative errno: -ESRCH if there
 * are no maps any more. */
int spaces_refresh(struct spaces *spaces, struct modules *modules, int proc_fd, pid_t tid,
                   int maps_fd, struct space **space, bool *ret_changed);

/* Sets *space to a new one with the same contents. Returns 0 or -ENOMEM. */
int spaces_branch(struct spaces *spaces, struct space **space);

/* How many spaces share this generated code. */
size_t spaces_with_jit(const struct spaces *spaces, const struct jit *jit);

/* Translates an address to the shared space, in which each file has one place, wherever processes
 * have it mapped: code or data that several processes share has one address there. *ret_address is
 * 0, which no mapping holds, if the address is in no file. Returns 0 or -ENOMEM. */
int spaces_share(struct spaces *spaces, struct space *space, uint64_t address,
                 uint64_t *ret_address);

/* Empties the spaces that no program uses and that `rows` does not keep; their numbers are reused.
 * In the shared space, keeps the mappings that were sampled. */
void spaces_forget(struct spaces *spaces, const struct renumber *rows);

void spaces_free(struct spaces *spaces);

/* Copies the spaces with what is known of generated code so far, so that another thread can read
 * them while the originals change. The modules are not copied; they stay in use until the copy is
 * freed, by the thread that made it. Returns 0 or -ENOMEM. */
int spaces_copy(const struct spaces *spaces, struct spaces *ret_copy);

#endif

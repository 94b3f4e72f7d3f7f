/* All address spaces of a recording: one for each process, for each program that it executed, and
 * for each time that its mappings were contradicted. */
#ifndef FGPROF_MAPPING_SPACES_H
#define FGPROF_MAPPING_SPACES_H

#include "base/renumber.h"
#include "mapping/space.h"

struct spaces {
    struct space **items;
    size_t count, capacity;
    struct space *shared; /* see spaces_share; NULL: there was no need for it */
};

/* Reads the maps of thread `tid` from `maps_fd` into a new space of process `pid`. Returns 0 or a
 * negative errno: -ESRCH if there are no maps any more. */
int spaces_add(struct spaces *spaces, struct modules *modules, pid_t pid, int proc_fd, pid_t tid,
               int maps_fd, struct space **ret_space);

/* Reads the maps again and adds what is new to *space; if something contradicts it, sets *space to
 * another one. *ret_changed says whether anything is new. Returns 0 or a negative errno: -ESRCH if
 * there are no maps any more. */
int spaces_refresh(struct spaces *spaces, struct modules *modules, int proc_fd, pid_t tid,
                   int maps_fd, struct space **space, bool *ret_changed);

/* Sets *space to a new one with the same contents. Returns 0 or -ENOMEM. */
int spaces_branch(struct spaces *spaces, struct space **space);

/* An address in a space that is all processes', in which each file lies at a place of its own:
 * equal code, or data, of several processes has one address there. It is 0, where nothing is, for
 * what is in no file. Returns 0 or -ENOMEM. */
int spaces_share(struct spaces *spaces, struct space *space, uint64_t address,
                 uint64_t *ret_address);

/* Empties the spaces that no program is in and that do not stay by these rows: nothing refers to
 * them. Their numbers are used again. Of the shared space, only mappings that were sampled stay. */
void spaces_forget(struct spaces *spaces, const struct renumber *rows);

void spaces_free(struct spaces *spaces);

/* Copies the spaces with what is known of generated code so far, for another thread to read while
 * the spaces change. The modules are not copied, but are in use until the copy is freed, by the
 * thread that made it. Returns 0 or -ENOMEM. */
int spaces_copy(const struct spaces *spaces, struct spaces *ret_copy);

#endif

/* Which of the counted pages (OBJECT_PAGE of objects/source.h) are still resident.
 *
 * A page that is freed and touched again is reported again, by its key; pages that go for good must
 * be looked for.
 *
 * Many programs free everything before they exit. So for an exited process, the pages count that
 * were resident at the check that found the most. */
#ifndef FGPROF_WORKER_PAGES_H
#define FGPROF_WORKER_PAGES_H

#include "base/throttle.h"
#include "sampler/channel.h"
#include "worker/results.h"

struct checked_process {
    struct throttle checked;
    uint64_t most_bytes; /* that were resident at any check */
};

/* Zeroed at first. */
struct page_checks {
    struct checked_process *processes;
    size_t process_count, process_capacity;
    struct listed_object *rows; /* room for the known pages of a process */
    size_t row_capacity;
    uint64_t *addresses;
    size_t address_capacity;
    bool *present;
    size_t present_capacity;
};

/* Handles an OBJECT_CHECKED, unless it is not due and the last check was costly. Nothing is known
 * any more about a process that has ended. Returns 0 or -ENOMEM. */
int pages_check(struct page_checks *checks, struct results *results, struct channel *channel,
                const struct object_news *news);

/* Takes in an OBJECT_FORGOTTEN: the process has executed another program. */
void pages_forget(struct page_checks *checks, struct results *results, uint32_t process);

/* Takes in an OBJECT_LEFT. Returns 0 or -ENOMEM. */
int pages_leave(struct page_checks *checks, struct results *results, uint32_t process);

/* Takes in more of an OBJECT_MADE, after the object was counted. */
void pages_made(struct results *results, uint32_t process, const struct object_news *news);

void page_checks_free(struct page_checks *checks);

#endif

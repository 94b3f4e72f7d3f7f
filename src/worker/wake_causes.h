/* Takes in the ends of waits: finds out what ended them, and moves what was counted for them. */
#ifndef FGPROF_WORKER_WAKE_CAUSES_H
#define FGPROF_WORKER_WAKE_CAUSES_H

#include "observe/wake.h"
#include "worker/kernel_names.h"
#include "worker/threads.h"

/* What chains of the kernel's functions were found to tell, by their hashes. Zeroed at first. */
#define WAKE_CAUSES_MAX 1024
struct wake_causes {
    struct {
        uint64_t hash; /* 0: none */
        enum waker_kind kind;
    } items[WAKE_CAUSES_MAX];
};

/* Finds out what ended a wait, from the kernel's functions, and names it. `process`: the stack
 * table's row of the process that ran, or PROCESS_NONE if it is not sampled. Does not set the
 * waker's stacks. Returns 0 or -ENOMEM. */
int wake_find_waker(struct results *results, struct kernel_names *names, struct wake_causes *causes,
                    const struct wake_seen *seen, uint32_t process, struct waker *ret_waker);

/* Sets waker->kernel_stack. Returns 0 or -ENOMEM. */
int wake_find_functions(struct results *results, struct kernel_names *names,
                        const struct wake_seen *seen, struct waker *waker);

/* The thread's wait has ended; `departed_ns` as in struct wake_seen. Returns 0 or -ENOMEM. */
int wake_end_wait(struct results *results, struct counted_thread *thread, uint64_t departed_ns,
                  const struct waker *waker);

#endif

/* Counts the goroutines of a Go program: a parked one is counted where it is, for as long as it
 * stays there. A goroutine on a thread is counted as the thread. */
#ifndef FGPROF_WORKER_GOROUTINES_H
#define FGPROF_WORKER_GOROUTINES_H

#include "runtime/go/find.h"
#include "sampler/channel.h"
#include "unwind/unwind.h"
#include "worker/means.h"
#include "worker/program_maps.h"
#include "worker/runtime_tasks.h"

struct counted_goroutine {
    uint32_t sample_plus_1; /* in the stack table: where it is parked; 0: it is not */
    uint64_t since_ns;      /* CLOCK_MONOTONIC: since then its time is not counted yet */
};

struct known_go_function {
    uint64_t address; /* 0: none */
    struct go_function function;
};
#define KNOWN_GO_FUNCTIONS 1024

/* Zeroed at first. */
struct program_goroutines {
    struct go go;
    size_t mapping_count;            /* of the space when it was last searched for a runtime */
    uint64_t searched_ns;            /* CLOCK_MONOTONIC: when its list was, in vain */
    uint64_t unread;                 /* what the summary says of it: see go_version in fgprof.h */
    bool is_told;                    /* it was reported to the sampling thread */
    struct counted_goroutine *items; /* by number, as in allgs */
    size_t count, capacity;
    uint64_t seen_ns;                /* when parked goroutines were last known to be in place */
    uint64_t carry_ns;               /* less than a tick, of time that was counted */
    struct known_go_function *known; /* KNOWN_GO_FUNCTIONS by hash of the address; NULL: none yet */
};

struct goroutine_batch {
    uint32_t process; /* a row of the stack table */
    pid_t tid;        /* a live thread */
    struct program *program;
    const struct goroutine_changes *changes;
};

/* These functions return 0 or -ENOMEM. */

/* Searches for a runtime if something new is mapped, and tells the sampling thread of one. */
int program_goroutines_update(struct program_goroutines *goroutines, const struct means *means,
                              struct program_maps *maps, const struct observation *observation);

/* Whether the thread with this stack has no goroutine to run: then it is left out. */
bool program_goroutines_is_idle(const struct program_goroutines *goroutines,
                                const struct observation *observation, const struct stack *stack);

/* The id of the goroutine that the thread runs, from its registers; 0: it runs none, or that is not
 * known, because it is in C or its registers were not read. */
uint32_t program_goroutines_current(const struct program_goroutines *goroutines,
                                    const struct program_maps *maps,
                                    const struct observation *observation);

/* Counts the news. */
int program_goroutines_take(struct program_goroutines *goroutines, const struct means *means,
                            struct program_maps *maps, const struct goroutine_batch *batch,
                            struct stack *stack);

/* Counts the time up to when goroutines were last seen. */
void program_goroutines_close(struct program_goroutines *goroutines, const struct means *means);

void program_goroutines_free(struct program_goroutines *goroutines);

#endif

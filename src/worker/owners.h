/* The owners of what threads wait for (locks, and the resources of peer_waits.c), and where these
 * owners are at the same tick. An owning process with a single thread counts as that thread.
 *
 * An owner's observation may come later in a round than that of its waiter, so waits that have an
 * owner are held until the end of the round. */
#ifndef FGPROF_WORKER_OWNERS_H
#define FGPROF_WORKER_OWNERS_H

#include "worker/gil.h"
#include "worker/lock_sites.h"
#include "worker/threads.h"

struct held_wait {
    uint32_t thread; /* the number of the thread that waits, */
    uint32_t owner;  /* and that of the one it waits for, or WAIT_NO_OWNER */
    bool has_owner;  /* a thread has it, or may have it, which need not be known yet */
    uint64_t at_ns;
    uint64_t owner_read_ns;   /* in memory */
    uint64_t departed_ns;     /* which wait, for its waker: as in struct thread_wakers */
    struct counted_wait wait; /* without its owner */
    uint32_t sample;          /* its sample without the owner, */
    uint64_t last_tick;       /* at which it was seen, */
    uint64_t ticks;           /* for how many ticks it stands, */
    uint64_t missed_ticks;    /* and for how many before, as of its observation, */
    uint64_t sleeps;          /* and for how many sleeps that began */
    bool is_being_resolved, is_resolved;
    uint32_t wait_plus_1; /* once it is resolved: the row of the wait with its owner */
};

/* The live threads of a process. */
struct process_threads {
    uint32_t count, all; /* how many, and the exclusive or of their numbers */
};

struct owners {
    struct counted_threads *threads;
    struct process_threads *processes; /* by number */
    size_t process_count, process_capacity;
    struct peer_waits peers;
    struct index by_id; /* numbers of threads by process and id; those of gone threads stay */
    struct lock_sites sites;
    struct gils gils;
    uint64_t tick; /* of the waits that are held: */
    struct held_wait *held;
    size_t held_count, held_capacity;
    bool tells_threads_apart;
};

/* Stores the thread's process and its id there. Returns 0 or -ENOMEM. */
int owners_note_thread(struct owners *owners, const struct observation *observation,
                       struct counted_thread *thread);

/* Finds what the thread waits for from its stack and its observation: sets the wait and its owner.
 * Its kind is RESOURCE_NOT_KNOWN if nothing is known. Returns 0 or -ENOMEM. */
int owners_read(struct owners *owners, struct results *results,
                const struct observation *observation, uint32_t stack, struct held_wait *ret_wait);

/* Holds a wait until the round is over. Returns 0 or -ENOMEM. */
int owners_hold(struct owners *owners, const struct held_wait *wait);

/* Finds the owners of held waits. The caller uses them and then calls owners_drop. Returns 0 or
 * -ENOMEM. */
int owners_resolve(struct owners *owners, struct results *results, uint64_t period_ns);
void owners_drop(struct owners *owners);

/* Stores which thread this one waits for, and adds a deadlock to the results if that completes a
 * new cycle of threads that wait for each other. Returns 0 or -ENOMEM.
 *
 * The owners of two threads in a cycle are read at different moments: in between, locks may have
 * changed hands, so a cycle may consist of waits that never existed at the same time. It is a
 * deadlock if each owner was read when all threads of the cycle were already asleep, and none has
 * moved since: a sleeping thread releases nothing. */
int owners_detect_deadlock(struct owners *owners, struct results *results,
                           const struct held_wait *held);

/* The end of a held wait's chain within its process: the number of the last sleeping thread. */
uint32_t owners_end_of_chain(const struct owners *owners, const struct held_wait *held);

/* The process has ended, and its row will be another's. */
void owners_forget_process(struct owners *owners, uint32_t process);

void owners_free(struct owners *owners);

#endif

/* What ended the waits of threads, by the kernel's record of switches.
 *
 * A wait is identified by when its thread left its CPU. The time and ticks counted for it are noted
 * until it ends: then its waker is known, and all of them move to a sample that has it. If a
 * checkpoint comes first, what was counted before it stays where it is, because checkpoints can't
 * be changed. A wait that is over when it is first seen is counted with its waker immediately. */
#ifndef FGPROF_WORKER_WAKERS_H
#define FGPROF_WORKER_WAKERS_H

#include "count/ledger.h"
#include "worker/results.h"

struct waker {
    enum waker_kind kind;
    uint32_t process_plus_1, name, tid, stack_plus_1, kernel_stack; /* as in struct counted_wait */
};

/* What was counted for a wait that is not known to have ended. */
struct open_wait {
    uint64_t departed_ns; /* CLOCK_MONOTONIC; 0: none */
    uint32_t sample;
    uint64_t window_ticks; /* in the open window of the ledger */
    struct share given;    /* from windows that have closed */
    uint64_t sleeps;
};

struct ended_wait {
    uint64_t departed_ns;
    struct waker waker;
};

/* Stands for a wait that began before the record did. */
#define WAIT_BEFORE_RECORD 1

/* What is known of how a thread's waits end. Zeroed at first. */
#define OPEN_WAITS_MAX 4
#define ENDED_WAITS_MAX 2
struct thread_wakers {
    uint64_t departed_ns; /* the wait that it was last seen in, or WAIT_BEFORE_RECORD; 0: none */
    struct open_wait open[OPEN_WAITS_MAX];
    struct ended_wait ended[ENDED_WAITS_MAX];
    unsigned next_open, next_ended; /* to be overwritten */
};

/* Replaces *sample by the one with the wait's waker, if that is known. Returns 0 or -ENOMEM. */
int wakers_place(const struct thread_wakers *wakers, struct results *results, uint64_t departed_ns,
                 uint32_t *sample);

/* Notes what was counted for a wait. If its waker is not known yet, that moves once it is. */
void wakers_note(struct thread_wakers *wakers, uint64_t departed_ns, uint32_t sample,
                 uint64_t ticks, uint64_t sleeps);

/* The window of the thread's sleeps has closed: notes which part of it open waits were given. */
void wakers_settle(struct thread_wakers *wakers, const struct settlement *settlements,
                   unsigned count);

/* The wait that the thread was in when the record began is over, and its waker is not known. */
void wakers_forget_before_record(struct thread_wakers *wakers);

/* What was counted so far stays where it is. */
void wakers_forget(struct thread_wakers *wakers);

/* The waker of the thread's wait is known. */
void wakers_note_ended(struct thread_wakers *wakers, uint64_t departed_ns,
                       const struct waker *waker);

/* Replaces *sample by the one with this waker. Returns 0 or -ENOMEM. */
int waker_place(struct results *results, const struct waker *waker, uint32_t *sample);

#endif

/* When each thread was where: what it was counted for, in the order of time.
 *
 * A run is a time that a thread spent in one sample of the stack table; successive equal runs are
 * merged. The runs of all threads are in one array, in the order in which they began, and each
 * names its thread.
 *
 * A thread's time is booked to accounts, and the next sample of an account is given all of it: the
 * time that a thread ran since the last look goes to where it is next found running. So the runs of
 * an account add up to the time that its samples have in the profile, but a single sample's need
 * not: the profile divides the time by ticks (count/window.h). Time that an account owes for long
 * is placed immediately, so that later time does not move forward, and gets its sample once that is
 * known. So the runs of the time between two looks follow each other, account by account, and each
 * account's runs are placed correctly to within a tick.
 *
 * Everything is bounded. Once the maximum of runs is kept, the timelines of all threads end and no
 * new ones begin, but counting goes on; or, if only the last part of a recording matters, the
 * earlier half of the kept runs is forgotten. */
#ifndef FGPROF_COUNT_TIMELINE_H
#define FGPROF_COUNT_TIMELINE_H

#include "count/tick_runs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_ACCOUNTS 3
#define TIMELINE_RUNS_MAX (4u << 20) /* 64 MiB */
#define TIMELINE_NO_SAMPLE UINT32_MAX

struct timeline_run {
    uint64_t time_ns;
    uint32_t sample; /* in the stack table, or TIMELINE_NO_SAMPLE: the thread was absent */
    uint32_t thread : 31;
    uint32_t is_owed : 1; /* its sample is not known: `sample` is the account's next owed run + 1 */
};

struct timeline_thread {
    uint32_t tid;
    uint32_t name;     /* its last name, in the recording's strings */
    uint64_t begin_ns; /* CLOCK_MONOTONIC: of its first run */
    uint64_t lost_ns;  /* counted, but after the end of the timeline */
    uint32_t last_run_plus_1;
    uint32_t owed_runs_plus_1[TIMELINE_ACCOUNTS]; /* the last one of each account */
    uint32_t serial;  /* which thread's row it is; 0: no thread's any more */
    bool has_ended;   /* no more is booked */
    bool is_unused;   /* it has ended, and all of its runs are forgotten */
    bool is_left_out; /* it is not shown */
};

struct timeline {
    bool is_wanted; /* false: nothing is kept */
    bool is_ring;   /* old runs are forgotten to make room */
    bool is_full;
    uint64_t start_ns;     /* CLOCK_MONOTONIC: when the recording began */
    uint64_t forgotten_ns; /* CLOCK_MONOTONIC: nothing is kept of the time before; 0: all is */
    uint64_t latest_ns;    /* CLOCK_MONOTONIC: the latest time that was booked */
    uint64_t grain_ns;     /* how much may be owed to an account before it is placed */
    size_t runs_max;
    struct timeline_run *runs;
    size_t run_count, run_capacity;
    struct timeline_thread *threads;
    size_t thread_count, thread_capacity;
    uint32_t first_unused_plus_1; /* all threads before it are in use; 0: all are */
    uint32_t threads_begun;       /* ever */
    uint64_t lost_ns;             /* of all threads */
    struct tick_runs ticks;       /* by the same threads, and never in a ring */
};

/* One thread's position in the timeline. Zeroed at first. */
struct timeline_cursor {
    uint32_t thread_plus_1;
    uint32_t serial;                         /* the row's, as long as it is this thread's */
    uint64_t unplaced_ns[TIMELINE_ACCOUNTS]; /* owed, but in no run yet */
    uint64_t begin_ns, until_ns;             /* CLOCK_MONOTONIC: the time that was booked */
};

/* Keeps up to `runs_max` runs of threads that are looked at every `period_ns`: the first runs or,
 * if `is_ring`, the last ones. */
void timeline_want(struct timeline *timeline, uint64_t period_ns, size_t runs_max, bool is_ring);
void timeline_free(struct timeline *timeline);

/* Books the time from `from_ns` on: this much to each account. Between the end of what was booked
 * before and `from_ns` the thread was absent. */
void timeline_book(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t tid,
                   uint64_t from_ns, const uint64_t booked_ns[TIMELINE_ACCOUNTS]);

/* Gives the sample all that is owed to the account. */
void timeline_give(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t thread_name,
                   unsigned account, uint32_t sample);

/* Corrects the thread's last run: if it was on the sample `from`, it was on `to`. */
void timeline_correct(struct timeline *timeline, const struct timeline_cursor *cursor,
                      uint32_t from, uint32_t to);

/* Discards what is owed to any account. */
void timeline_drop_owed(struct timeline *timeline, struct timeline_cursor *cursor);

/* The thread has ended: when its runs are forgotten, so is the thread. */
void timeline_end(struct timeline *timeline, const struct timeline_cursor *cursor);

/* Forgets the time before `before_ns`. Returns 0 or -ENOMEM. */
int timeline_forget(struct timeline *timeline, uint64_t before_ns);

/* All samples that the runs refer to stay; and get these numbers. */
void timeline_keep_samples(const struct timeline *timeline, struct renumber *samples);
void timeline_renumber_samples(struct timeline *timeline, const struct renumber *samples);

/* The names of its threads stay; and get these numbers. */
void timeline_keep_names(const struct timeline *timeline, struct renumber *strings);
void timeline_renumber_names(struct timeline *timeline, const struct renumber *strings);

size_t timeline_bytes(const struct timeline *timeline);

/* Replaces a copy, which is zeroed at first and can't be added to. Returns 0 or -ENOMEM. */
int timeline_copy(const struct timeline *timeline, struct timeline *copy);

#endif

/* Semaphores that serve as locks: a thread that waits for one also ends the waits of others, from
 * the same function, again and again. A semaphore has no owner that could tell.
 *
 * Python's locks are such semaphores, and from 3.13 on each thread waits for one of its own
 * (Python/parking_lot.c), so that there the function alone must do. Python's queues and conditions
 * end waits in other functions, but SimpleQueue has none that Python sees: workers of a pool that
 * end wake each other once (concurrent/futures/thread.py), and stages that pass work on in one
 * function look like users of a lock. */
#include "output/report/report.h"
#include "base/text.h"
#include "profile/kind.h"
#include "wait/resource.h"

#include <errno.h>
#include <stdlib.h>

/* A thread that waits for a resource. */
struct waiter {
    uint32_t resource, process, name, tid;
};

struct search {
    const struct fgprof_profile *profile;
    struct waiter *waiters;
    size_t waiter_count, waiter_capacity;
    struct index waiter_index;
};

/* Locks of programs without symbols are only known to be a futex. */
static bool may_be_a_lock(const struct fgprof_profile *profile, const struct profile_wait *wait)
{
    static const enum resource_kind kinds[] = {RESOURCE_SEMAPHORE, RESOURCE_FUTEX};
    return profile_wait_is_one_of(profile, wait, kinds, COUNT_OF(kinds));
}

static int collect_waiters(struct search *search)
{
    const struct fgprof_profile *profile = search->profile;
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_wait *wait = sample_wait(profile, sample);
        uint32_t number;
        if (!wait || !may_be_a_lock(profile, wait))
            continue;
        const struct waiter waiter = {wait->resource, sample->process, sample->thread_name,
                                      sample->tid};
        err = INDEX_INTERN(&search->waiter_index, sizeof waiter, &waiter, &search->waiters,
                           &search->waiter_count, &search->waiter_capacity, &number);
    }
    return err;
}

/* The function that called the C library at the end of the stack, whatever the kernel did then.
 * NULL: none with a name. */
static const struct profile_function *find_caller(const struct fgprof_profile *profile,
                                                  uint32_t stack)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    bool is_called = false;
    while (frame_next_from_leaf(profile, &profile->stacks[stack], &walk, &frame)) {
        if (frame.location->is_kernel)
            continue;
        if (!place_is_in_library(profile, frame.location, PLACE_C_LIBRARY))
            return is_called && frame.line ? &profile->functions[frame.line->function] : NULL;
        is_called = true;
    }
    return NULL;
}

static bool is_python(const struct fgprof_profile *profile, const struct profile_function *function)
{
    return text_ends(strings_get(&profile->strings, function->file), ".py");
}

static bool waits_too(const struct search *search, const struct profile_wait *wait)
{
    const struct waiter waker = {wait->resource, wait->waker_process_plus_1 - 1, wait->waker,
                                 wait->waker_tid};
    return INDEX_FIND(&search->waiter_index, sizeof waker, &waker, search->waiters) != INDEX_NONE;
}

static bool is_given_back(const struct search *search, const struct profile_sample *sample,
                          const struct profile_wait *wait)
{
    const struct fgprof_profile *profile = search->profile;
    if (!may_be_a_lock(profile, wait) || !wait->waker_process_plus_1 || !wait->waker_stack_plus_1)
        return false;
    const struct profile_function *taker = find_caller(profile, sample->stack);
    return taker && taker == find_caller(profile, wait->waker_stack_plus_1 - 1) &&
           (is_python(profile, taker) || waits_too(search, wait));
}

/* What is known of one stack's waits. */
struct evidence {
    uint64_t lock_ns, other_ns;
    uint64_t locks, lock_rows; /* waits for locks, and the samples that count them */
};

static bool is_of_lock(const struct evidence *evidence)
{
    return evidence->lock_ns > evidence->other_ns && evidence->locks > evidence->lock_rows;
}

static void note(const struct search *search, const struct profile_sample *sample,
                 struct evidence *evidence)
{
    const struct profile_wait *wait = sample_wait(search->profile, sample);
    if (sample->state != THREAD_SLEEPING)
        return;
    if (!wait || !is_given_back(search, sample, wait)) {
        evidence->other_ns += sample->time_ns;
        return;
    }
    evidence->lock_ns += sample->time_ns;
    evidence->locks += sample_contentions(search->profile, sample);
    evidence->lock_rows++;
}

int report_find_semaphores(const struct fgprof_profile *profile, uint32_t *ret_takers)
{
    struct search search = {.profile = profile};
    struct evidence *evidence = calloc(profile->stack_count + 1, sizeof *evidence);
    int err = evidence ? collect_waiters(&search) : -ENOMEM;
    for (size_t i = 0; i < profile->sample_count && !err; i++)
        note(&search, &profile->samples[i], &evidence[profile->samples[i].stack]);
    for (size_t i = 0; i < profile->stack_count && !err; i++)
        ret_takers[i] =
            is_of_lock(&evidence[i]) ? find_caller(profile, (uint32_t)i)->name : NO_TAKER;
    free(evidence);
    free(search.waiters);
    index_free(&search.waiter_index);
    return err;
}

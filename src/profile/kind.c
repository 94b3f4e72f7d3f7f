#include "profile/kind.h"
#include "base/array.h"
#include "wait/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest chain of owners that is shown. */
#define CHAIN_MAX 64

bool profile_wait_is_one_of(const struct fgprof_profile *profile, const struct profile_wait *wait,
                            const enum resource_kind *kinds, size_t count)
{
    const char *name = strings_get(&profile->strings, wait->kind);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, resource_kind_name(kinds[i])) == 0)
            return true;
    }
    return false;
}

bool profile_wait_is_for_threads(const struct fgprof_profile *profile,
                                 const struct profile_wait *wait)
{
    static const enum resource_kind kinds[] = {
        RESOURCE_FUTEX,     RESOURCE_MUTEX,      RESOURCE_RWLOCK, RESOURCE_CONDITION,
        RESOURCE_SEMAPHORE, RESOURCE_BARRIER,    RESOURCE_ONCE,   RESOURCE_PARKING,
        RESOURCE_CHANNEL,   RESOURCE_WAIT_GROUP, RESOURCE_GIL,    RESOURCE_THREAD};
    return profile_wait_is_one_of(profile, wait, kinds, sizeof kinds / sizeof *kinds);
}

static bool is_lock(const struct fgprof_profile *profile, const struct profile_wait *wait)
{
    static const enum resource_kind kinds[] = {RESOURCE_MUTEX, RESOURCE_RWLOCK, RESOURCE_GIL};
    return profile_wait_is_one_of(profile, wait, kinds, sizeof kinds / sizeof *kinds);
}

static bool has_owner(const struct profile_wait *wait)
{
    return wait->owner_process != PROFILE_NO_OWNER;
}

/* If nobody is known to have had what it waited for, the thread that ended the wait is blamed. */
static bool has_thread_waker(const struct profile_wait *wait)
{
    return !has_owner(wait) && wait->waker_process_plus_1;
}

static void push_thread(struct made_stack *chain, uint32_t name)
{
    const char *known = strings_get(&chain->profile->strings, name);
    made_stack_push_note(chain, "%s", *known ? known : "[unnamed]");
}

/* The owner's stack. A process with several threads has no single place. */
static void push_place(struct made_stack *chain, const struct profile_wait *wait)
{
    if (wait->owner_stack != PROFILE_NO_STACK)
        made_stack_push_stack(chain, wait->owner_stack);
    else
        made_stack_push_note(chain, profile_wait_is_for_threads(chain->profile, wait)
                                        ? "[not sampled then]"
                                        : "[place not known]");
}

/* The sample becomes one of that thread. What it says of the thread or the goroutine that waits
 * does not hold for that one. */
static void give(struct profile_sample *sample, uint32_t process, uint32_t name, uint32_t tid)
{
    sample->process = process;
    sample->thread_name = name;
    sample->tid = tid;
    sample->goroutine = 0;
    sample->is_goroutine = sample->is_task = sample->never_moved = false;
}

static void push_waker(struct made_stack *chain, const struct profile_wait *wait)
{
    const char *resource = strings_get(&chain->profile->strings, wait->resource);
    made_stack_push_note(chain, "[ends wait%s%s]", *resource ? " for " : "", resource);
    if (wait->waker_stack_plus_1)
        made_stack_push_stack(chain, wait->waker_stack_plus_1 - 1);
    else
        made_stack_push_note(chain, "[place not known]");
}

/* Puts the waiter's stack on its owner's, the owner's on the next owner's, and so on. */
static void blame(struct made_stack *chain, struct profile_sample *sample)
{
    uint32_t wait_plus_1 = sample->wait_plus_1, name = sample->thread_name;
    made_stack_push_stack(chain, sample->stack);
    for (unsigned i = 0; wait_plus_1 && i < CHAIN_MAX && !chain->error; i++) {
        const struct profile_wait wait = chain->profile->waits[wait_plus_1 - 1];
        if (has_thread_waker(&wait)) {
            push_thread(chain, name);
            push_waker(chain, &wait);
            give(sample, wait.waker_process_plus_1 - 1, wait.waker, wait.waker_tid);
            break;
        }
        if (!has_owner(&wait))
            break;
        push_thread(chain, name);
        /* "[end of thread x]": nobody holds that. */
        made_stack_push_note(chain, "[%s%s]", is_lock(chain->profile, &wait) ? "holds " : "",
                             strings_get(&chain->profile->strings, wait.resource));
        push_place(chain, &wait);
        give(sample, wait.owner_process, wait.owner_name, wait.owner_tid);
        name = wait.owner_name;
        wait_plus_1 = wait.owner_wait_plus_1;
    }
}

/* Moves the sample to the stack of the thread that holds the lock, or puts that below its own. */
static void move(struct made_stack *chain, enum fgprof_kind kind, struct profile_sample *sample)
{
    chain->count = 0;
    if (kind == FGPROF_KIND_BLAME) {
        blame(chain, sample);
    } else {
        const struct profile_wait *wait = &chain->profile->waits[sample->wait_plus_1 - 1];
        push_place(chain, wait);
        give(sample, wait->owner_process, wait->owner_name, wait->owner_tid);
    }
    made_stack_add(chain, &sample->stack);
}

/* Converts a sample of wall-clock time to the other kind. Returns whether that includes it. */
static bool convert(struct made_stack *chain, enum fgprof_kind kind, struct profile_sample *sample)
{
    const struct fgprof_profile *profile = chain->profile;
    const struct profile_wait *wait = sample_wait(profile, sample);
    const struct profile_wait *ended = sample_waker(profile, sample);
    bool is_owned = wait && has_owner(wait);
    bool belongs = kind == FGPROF_KIND_CPU     ? sample_is_on_cpu(sample)
                   : kind == FGPROF_KIND_BLOCK ? wait && profile_wait_is_for_threads(profile, wait)
                   : kind == FGPROF_KIND_MUTEX ? is_owned && is_lock(profile, wait)
                                               : is_owned || (ended && has_thread_waker(ended));
    bool is_moved = kind == FGPROF_KIND_MUTEX || kind == FGPROF_KIND_BLAME;
    if (belongs && is_moved)
        move(chain, kind, sample);
    if (kind != FGPROF_KIND_CPU)
        sample->elapsed_ns = 0; /* the time of waits is that of threads */
    if (is_moved)               /* the owner is in the stack now */
        sample->wait_plus_1 = sample->syscall_name = sample->wait_channel = 0;
    return belongs;
}

const char *profile_contentions_note(const struct fgprof_profile *profile)
{
    if (!profile_is_of_contentions(profile))
        return NULL;
    return profile->has_sleeps
               ? "contentions: estimated from the kernel's count of context switches; delay: exact "
                 "in each thread's total, with places that are sampled"
               : "contentions: at how many ticks threads were seen waiting, as the recording does "
                 "not count waits; delay: exact in each thread's total, with places that are "
                 "sampled";
}

int profile_make_kind(struct fgprof_profile *profile, enum fgprof_kind kind)
{
    /* Only its samples are used. */
    struct fgprof_profile made = {0};
    struct made_stack chain = {.profile = profile};
    for (size_t i = 0; i < profile->sample_count && !chain.error; i++) {
        struct profile_sample sample = profile->samples[i];
        if (convert(&chain, kind, &sample) && !chain.error)
            chain.error = profile_add_sample(&made, &sample, NULL);
    }
    free(chain.locations);
    if (chain.error) {
        free(made.samples);
        index_free(&made.sample_index);
        return chain.error;
    }
    profile_replace_samples(profile, &made);
    profile->kind = kind;
    profile->has_elapsed = profile->has_elapsed && kind == FGPROF_KIND_CPU;
    return 0;
}

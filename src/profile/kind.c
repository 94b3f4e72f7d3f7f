#include "profile/kind.h"
#include "base/array.h"
#include "wait/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest chain of owners that is shown. */
#define CHAIN_MAX 64

struct chained {
    uint32_t *locations; /* leaf first */
    size_t count, capacity;
};

static bool is_one_of(const struct fgprof_profile *profile, const struct profile_wait *wait,
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
    return is_one_of(profile, wait, kinds, sizeof kinds / sizeof *kinds);
}

static bool is_lock(const struct fgprof_profile *profile, const struct profile_wait *wait)
{
    static const enum resource_kind kinds[] = {RESOURCE_MUTEX, RESOURCE_RWLOCK, RESOURCE_GIL};
    return is_one_of(profile, wait, kinds, sizeof kinds / sizeof *kinds);
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

static int push(struct chained *chained, uint32_t location)
{
    if (array_reserve(&chained->locations, &chained->capacity, chained->count + 1))
        return -ENOMEM;
    chained->locations[chained->count++] = location;
    return 0;
}

static int push_stack(const struct fgprof_profile *profile, struct chained *chained, uint32_t stack)
{
    const struct profile_stack *from = &profile->stacks[stack];
    int err = 0;
    for (size_t i = 0; i < from->depth && !err; i++)
        err = push(chained, profile->stack_locations[from->first_location + i]);
    return err;
}

static int push_note(struct fgprof_profile *profile, struct chained *chained, const char *text)
{
    uint32_t note;
    int err = profile_add_note(profile, text, &note);
    return err ? err : push(chained, note);
}

/* The owner's stack. A process with several threads has no single place. */
static int push_place(struct fgprof_profile *profile, struct chained *chained,
                      const struct profile_wait *wait)
{
    if (wait->owner_stack != PROFILE_NO_STACK)
        return push_stack(profile, chained, wait->owner_stack);
    return push_note(profile, chained,
                     profile_wait_is_for_threads(profile, wait) ? "[not sampled then]"
                                                                : "[place not known]");
}

/* "[holds mutex g_lock]", or "[end of thread x]": nobody holds that. */
static int push_resource(struct fgprof_profile *profile, struct chained *chained,
                         const struct profile_wait *wait)
{
    const char *resource = strings_get(&profile->strings, wait->resource);
    char *text;
    if (asprintf(&text, is_lock(profile, wait) ? "[holds %s]" : "[%s]", resource) < 0)
        return -ENOMEM;
    int err = push_note(profile, chained, text);
    free(text);
    return err;
}

static int push_thread(struct fgprof_profile *profile, struct chained *chained, uint32_t name)
{
    const char *known = strings_get(&profile->strings, name);
    char *text = strdup(*known ? known : "[unnamed]"); /* as the note's string may move it */
    int err = text ? push_note(profile, chained, text) : -ENOMEM;
    free(text);
    return err;
}

static void give_to_owner(const struct profile_wait *wait, struct profile_sample *sample)
{
    sample->process = wait->owner_process;
    sample->thread_name = wait->owner_name;
    sample->tid = wait->owner_tid;
}

static int push_waker(struct fgprof_profile *profile, struct chained *chained,
                      const struct profile_wait *wait)
{
    const char *resource = strings_get(&profile->strings, wait->resource);
    char *text;
    if (asprintf(&text, *resource ? "[ends wait for %s]" : "[ends wait]%s", resource) < 0)
        return -ENOMEM;
    int err = push_note(profile, chained, text);
    free(text);
    if (err)
        return err;
    return wait->waker_stack_plus_1 ? push_stack(profile, chained, wait->waker_stack_plus_1 - 1)
                                    : push_note(profile, chained, "[place not known]");
}

static void give_to_waker(const struct profile_wait *wait, struct profile_sample *sample)
{
    sample->process = wait->waker_process_plus_1 - 1;
    sample->thread_name = wait->waker;
    sample->tid = wait->waker_tid;
}

/* Puts the waiter's stack on its owner's, the owner's on the next owner's, and so on. */
static int blame(struct fgprof_profile *profile, struct chained *chained,
                 struct profile_sample *sample)
{
    uint32_t wait_plus_1 = sample->wait_plus_1, name = sample->thread_name;
    chained->count = 0;
    int err = push_stack(profile, chained, sample->stack);
    for (unsigned i = 0; wait_plus_1 && i < CHAIN_MAX && !err; i++) {
        const struct profile_wait wait = profile->waits[wait_plus_1 - 1];
        if (has_thread_waker(&wait)) {
            err = push_thread(profile, chained, name);
            if (!err)
                err = push_waker(profile, chained, &wait);
            give_to_waker(&wait, sample);
            break;
        }
        if (!has_owner(&wait))
            break;
        err = push_thread(profile, chained, name);
        if (!err)
            err = push_resource(profile, chained, &wait);
        if (!err)
            err = push_place(profile, chained, &wait);
        give_to_owner(&wait, sample);
        name = wait.owner_name;
        wait_plus_1 = wait.owner_wait_plus_1;
    }
    return err ? err
               : profile_add_stack(profile, chained->locations, chained->count, &sample->stack);
}

/* Moves the sample to the stack of the thread that holds the lock. */
static int accuse(struct fgprof_profile *profile, struct chained *chained,
                  struct profile_sample *sample)
{
    const struct profile_wait wait = profile->waits[sample->wait_plus_1 - 1];
    chained->count = 0;
    int err = push_place(profile, chained, &wait);
    give_to_owner(&wait, sample);
    return err ? err
               : profile_add_stack(profile, chained->locations, chained->count, &sample->stack);
}

/* Converts a sample of wall-clock time to the other kind. *ret_belongs: the other kind includes
 * it. */
static int convert(struct fgprof_profile *profile, enum fgprof_kind kind, struct chained *chained,
                   struct profile_sample *sample, bool *ret_belongs)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    const struct profile_wait *ended = sample_waker(profile, sample);
    bool is_owned = wait && has_owner(wait);
    int err = 0;
    *ret_belongs = kind == FGPROF_KIND_CPU     ? sample_is_on_cpu(sample)
                   : kind == FGPROF_KIND_BLOCK ? wait && profile_wait_is_for_threads(profile, wait)
                   : kind == FGPROF_KIND_MUTEX ? is_owned && is_lock(profile, wait)
                                               : is_owned || (ended && has_thread_waker(ended));
    if (*ret_belongs && kind == FGPROF_KIND_MUTEX)
        err = accuse(profile, chained, sample);
    else if (*ret_belongs && kind == FGPROF_KIND_BLAME)
        err = blame(profile, chained, sample);
    if (kind != FGPROF_KIND_CPU)
        sample->elapsed_ns = 0; /* the time of waits is that of threads */
    /* The owner is in the stack now. */
    if (kind == FGPROF_KIND_MUTEX || kind == FGPROF_KIND_BLAME)
        sample->wait_plus_1 = sample->syscall_name = sample->wait_channel = 0;
    return err;
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
    struct chained chained = {0};
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        struct profile_sample sample = profile->samples[i];
        bool belongs;
        err = convert(profile, kind, &chained, &sample, &belongs);
        if (!err && belongs)
            err = profile_add_sample(&made, &sample, NULL);
    }
    free(chained.locations);
    if (err) {
        free(made.samples);
        index_free(&made.sample_index);
        return err;
    }
    profile_replace_samples(profile, &made);
    profile->kind = kind;
    profile->has_elapsed = profile->has_elapsed && kind == FGPROF_KIND_CPU;
    return 0;
}

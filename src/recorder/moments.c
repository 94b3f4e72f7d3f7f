#include "recorder/moments.h"
#include "base/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The last second stays: where its ticks belong is known only when it has passed
 * (count/elapsed.h), so the samples could not be forgotten anyway. */
#define KEPT_MIN_NS 1000000000u

struct moments {
    uint64_t keep_ns;
    bool may_forget;
    pthread_mutex_t lock; /* protects what follows */
    unsigned users;       /* the recorder, and the moments that callers hold */
    struct moment **kept; /* the oldest first */
    size_t kept_count, kept_capacity;
    struct fgprof_moment *held; /* a list */
    bool have_been_given_up;
    uint64_t forgotten_ns; /* CLOCK_MONOTONIC: not all that came before is known; 0: it is */
};

struct fgprof_moment {
    struct moment *moment;
    struct moments *moments;
    struct fgprof_moment *next;
};

int moments_new(uint64_t keep_ns, bool may_forget, struct moments **ret_moments)
{
    struct moments *moments = calloc(1, sizeof *moments);
    if (!moments)
        return -ENOMEM;
    pthread_mutex_init(&moments->lock, NULL);
    moments->keep_ns = keep_ns;
    moments->may_forget = may_forget;
    moments->users = 1;
    *ret_moments = moments;
    return 0;
}

/* Gives up the oldest `count` of those that are kept. */
static void give_up(struct moments *moments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        moment_free(moments->kept[i]);
    moments->kept_count -= count;
    memmove(moments->kept, &moments->kept[count], moments->kept_count * sizeof *moments->kept);
    moments->have_been_given_up = true;
}

void moments_release(struct moments *moments)
{
    if (!moments)
        return;
    pthread_mutex_lock(&moments->lock);
    bool is_last = --moments->users == 0;
    pthread_mutex_unlock(&moments->lock);
    if (!is_last)
        return;
    for (size_t i = 0; i < moments->kept_count; i++)
        moment_free(moments->kept[i]);
    free(moments->kept);
    pthread_mutex_destroy(&moments->lock);
    free(moments);
}

int moments_keep(struct moments *moments, struct moment *moment)
{
    uint64_t now_ns = moment_at_ns(moment);
    pthread_mutex_lock(&moments->lock);
    int err = array_reserve(&moments->kept, &moments->kept_capacity, moments->kept_count + 1);
    if (!err) {
        moments->kept[moments->kept_count++] = moment;
        while (moments->kept_count > 1 &&
               moment_at_ns(moments->kept[1]) + moments->keep_ns <= now_ns)
            give_up(moments, 1);
    }
    pthread_mutex_unlock(&moments->lock);
    return err;
}

bool moments_give_up(struct moments *moments)
{
    pthread_mutex_lock(&moments->lock);
    size_t kept = moments->kept_count, count = (kept + 3) / 4;
    while (count && (count == kept || moment_at_ns(moments->kept[kept - 1]) <
                                          moment_at_ns(moments->kept[count]) + KEPT_MIN_NS))
        count--;
    if (count)
        give_up(moments, count);
    pthread_mutex_unlock(&moments->lock);
    return count;
}

bool moments_need(struct moments *moments, bool is_crowded, struct worker_moments *ret_moments)
{
    pthread_mutex_lock(&moments->lock);
    bool may_forget = moments->may_forget && moments->have_been_given_up && moments->kept_count;
    const struct moment *first = moments->kept_count ? moments->kept[0] : NULL;
    struct worker_moments needed = {.bytes = 0};
    if (first && moments->have_been_given_up)
        needed.begin_ns = moment_at_ns(first);
    for (size_t i = 0; i < moments->kept_count; i++)
        needed.bytes += moment_bytes(moments->kept[i]);
    for (const struct fgprof_moment *held = moments->held; held; held = held->next) {
        needed.bytes += moment_bytes(held->moment);
        if (first && !is_crowded && moment_at_ns(held->moment) < moment_at_ns(first))
            first = held->moment;
    }
    if (first)
        needed.epoch = moment_epoch(first);
    if (may_forget && moment_at_ns(first) > moments->forgotten_ns)
        moments->forgotten_ns = moment_at_ns(first);
    pthread_mutex_unlock(&moments->lock);
    *ret_moments = needed;
    return may_forget;
}

int moments_hold(struct moments *moments, struct moment *moment, struct fgprof_moment **ret_moment)
{
    struct fgprof_moment *held = malloc(sizeof *held);
    if (!held)
        return -ENOMEM;
    pthread_mutex_lock(&moments->lock);
    *held = (struct fgprof_moment){.moment = moment, .moments = moments, .next = moments->held};
    moments->held = held;
    moments->users++;
    pthread_mutex_unlock(&moments->lock);
    *ret_moment = held;
    return 0;
}

void moments_drop(struct fgprof_moment *held)
{
    if (!held)
        return;
    struct moments *moments = held->moments;
    pthread_mutex_lock(&moments->lock);
    struct fgprof_moment **link = &moments->held;
    while (*link != held)
        link = &(*link)->next;
    *link = held->next;
    pthread_mutex_unlock(&moments->lock);
    moment_free(held->moment);
    free(held);
    moments_release(moments);
}

const struct moment *moments_lock(struct moments *moments, const struct fgprof_moment *since,
                                  uint64_t begin_ns)
{
    const struct moment *found = NULL;
    pthread_mutex_lock(&moments->lock);
    if (since && moment_at_ns(since->moment) >= moments->forgotten_ns)
        return since->moment;
    for (size_t i = 0; i < moments->kept_count; i++) {
        if (!since && moment_at_ns(moments->kept[i]) <= begin_ns)
            found = moments->kept[i];
    }
    if (!found && moments->forgotten_ns && moments->kept_count)
        found = moments->kept[0];
    return found;
}

void moments_unlock(struct moments *moments)
{
    pthread_mutex_unlock(&moments->lock);
}

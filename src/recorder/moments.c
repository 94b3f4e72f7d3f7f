#include "recorder/moments.h"
#include "base/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What changes of a sample. */
struct figures {
    uint64_t serial; /* which sample it is */
    uint32_t sleeps;
    uint64_t count, time_ns, part_ns;
    double waited_ticks;
};

struct moment {
    uint64_t at_ns, ticks_planned;
    uint32_t epoch;
    struct sampling_counts sampling;
    struct result_counts results;
    struct figures *samples; /* in the order of the stack table, by serial */
    size_t sample_count;
    uint64_t *idle_ticks; /* by process; with those that may still be shared out */
    size_t process_count;
    struct parallelism parallelism;
};

static uint64_t idle_ticks_of(const struct elapsed *process)
{
    return process->idle_ticks + process->pending;
}

int moment_take(const struct results *results, const struct sampling_state *state,
                uint64_t ticks_planned, struct moment **ret_moment)
{
    struct moment *moment = calloc(1, sizeof *moment);
    if (!moment)
        return -ENOMEM;
    moment->samples = calloc(results->stacks.sample_count + 1, sizeof *moment->samples);
    moment->idle_ticks = calloc(results->elapsed_count + 1, sizeof *moment->idle_ticks);
    if (!moment->samples || !moment->idle_ticks) {
        moment_free(moment);
        return -ENOMEM;
    }
    moment->at_ns = state->now_ns;
    moment->epoch = results->stacks.epoch;
    moment->ticks_planned = ticks_planned;
    moment->sampling = state->counts;
    moment->results = results->counts;
    moment->parallelism = results->parallelism;
    for (; moment->sample_count < results->stacks.sample_count; moment->sample_count++) {
        const struct counted_sample *sample = &results->stacks.samples[moment->sample_count];
        moment->samples[moment->sample_count] = (struct figures){
            .serial = sample->serial,
            .sleeps = sample->sleeps,
            .count = sample->count,
            .time_ns = sample->time_ns,
            .part_ns = sample->part_ns,
            .waited_ticks = sample->waited_ticks,
        };
    }
    for (; moment->process_count < results->elapsed_count; moment->process_count++)
        moment->idle_ticks[moment->process_count] =
            idle_ticks_of(&results->elapsed[moment->process_count]);
    *ret_moment = moment;
    return 0;
}

void moment_free(struct moment *moment)
{
    if (!moment)
        return;
    free(moment->samples);
    free(moment->idle_ticks);
    free(moment);
}

uint64_t moment_at_ns(const struct moment *moment)
{
    return moment->at_ns;
}

/* Samples that were counted since have a later one (count/stack_table.h). */
static uint32_t moment_epoch(const struct moment *moment)
{
    return moment->epoch;
}

/* How much memory it takes. */
static size_t moment_bytes(const struct moment *moment)
{
    return sizeof *moment + moment->sample_count * sizeof *moment->samples +
           moment->process_count * sizeof *moment->idle_ticks;
}

uint64_t moment_ticks_planned(const struct moment *moment)
{
    return moment->ticks_planned;
}

/* Some figures can be taken back: what was counted as a sleep, or as idle. */
static uint64_t less(uint64_t all, uint64_t before)
{
    return all > before ? all - before : 0;
}

static void subtract_samples(const struct moment *moment, struct stack_table *table)
{
    size_t next = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *sample = &table->samples[i];
        while (next < moment->sample_count && moment->samples[next].serial < sample->serial)
            next++; /* it was forgotten */
        const struct figures *before = &moment->samples[next];
        if (next == moment->sample_count || before->serial != sample->serial)
            continue;
        sample->sleeps = (uint32_t)less(sample->sleeps, before->sleeps);
        sample->count = less(sample->count, before->count);
        sample->time_ns = less(sample->time_ns, before->time_ns);
        sample->part_ns = less(sample->part_ns, before->part_ns);
        sample->waited_ticks -= before->waited_ticks;
        if (sample->waited_ticks < 0)
            sample->waited_ticks = 0;
    }
}

static void subtract_elapsed(const struct moment *moment, struct results *results)
{
    for (size_t i = 0; i < results->elapsed_count; i++) {
        struct elapsed *process = &results->elapsed[i];
        if (process->begin_ns < moment->at_ns)
            process->begin_ns = moment->at_ns;
        if (i < moment->process_count)
            process->idle_ticks = less(idle_ticks_of(process), moment->idle_ticks[i]);
        else
            process->idle_ticks = idle_ticks_of(process);
        process->pending = 0;
    }
    for (size_t i = 0; i <= PARALLELISM_MAX; i++)
        results->parallelism.ticks[i] -= moment->parallelism.ticks[i];
}

static void subtract_sampling(const struct moment *moment, struct sampling_counts *counts)
{
    const struct sampling_counts *before = &moment->sampling;
    counts->ticks_taken -= before->ticks_taken;
    counts->samples_assumed -= before->samples_assumed;
    counts->samples_thinned -= before->samples_thinned;
    counts->observations_put_off -= before->observations_put_off;
    counts->recorded_samples -= before->recorded_samples;
    counts->recorded_lost -= before->recorded_lost;
    counts->kernel_samples -= before->kernel_samples;
    counts->kernel_samples_lost -= before->kernel_samples_lost;
    counts->kernel_samples_dropped -= before->kernel_samples_dropped;
    histogram_subtract(&counts->pauses, &before->pauses);
}

static void subtract_counts(const struct moment *moment, struct result_counts *results)
{
    results->samples = less(results->samples, moment->results.samples);
    results->samples_cut = less(results->samples_cut, moment->results.samples_cut);
    results->samples_not_captured =
        less(results->samples_not_captured, moment->results.samples_not_captured);
    results->running_ns -= moment->results.running_ns;
    results->labels_read -= moment->results.labels_read;
    results->labels_later -= moment->results.labels_later;
    results->labels_changed -= moment->results.labels_changed;
    results->labels_unreadable -= moment->results.labels_unreadable;
    results->labels_bad -= moment->results.labels_bad;
    results->labels_limited -= moment->results.labels_limited;
    results->spans_kept -= moment->results.spans_kept;
    results->spans_dropped -= moment->results.spans_dropped;
    results->spans_dropped_ns -= moment->results.spans_dropped_ns;
    results->jit_files_refused -= moment->results.jit_files_refused;
    results->jit_bytes_unread -= moment->results.jit_bytes_unread;
}

void moment_subtract(const struct moment *moment, struct results *results,
                     struct sampling_counts *counts)
{
    subtract_samples(moment, &results->stacks);
    subtract_elapsed(moment, results);
    subtract_counts(moment, &results->counts);
    subtract_sampling(moment, counts);
}

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

#include "recorder/checkpoints.h"
#include "base/array.h"
#include "fgprof.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The figures of a sample. */
struct figures {
    uint64_t serial; /* which sample it is */
    uint64_t sleeps, count, time_ns, part_ns;
    double waited_ticks;
};

struct checkpoint {
    uint64_t at_ns, ticks_planned;
    uint32_t epoch; /* samples counted since have a later one (count/stack_table.h) */
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

/* Omits samples from which nothing is subtracted: empty ones, and those of threads that have ended,
 * which subtract_samples empties. */
static void copy_samples(struct checkpoint *checkpoint, const struct stack_table *table)
{
    for (size_t i = 0; i < table->sample_count; i++) {
        const struct counted_sample *sample = &table->samples[i];
        if (sample->labels.has_ended || counted_sample_is_empty(sample))
            continue;
        checkpoint->samples[checkpoint->sample_count++] = (struct figures){
            .serial = sample->serial,
            .sleeps = sample->sleeps,
            .count = sample->count,
            .time_ns = sample->time_ns,
            .part_ns = sample->part_ns,
            .waited_ticks = sample->waited_ticks,
        };
    }
    struct figures *fewer =
        realloc(checkpoint->samples, (checkpoint->sample_count + 1) * sizeof *checkpoint->samples);
    if (fewer)
        checkpoint->samples = fewer;
}

int checkpoint_take(const struct results *results, const struct sampling_state *state,
                    uint64_t ticks_planned, struct checkpoint **ret_checkpoint)
{
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return -ENOMEM;
    checkpoint->samples = calloc(results->stacks.sample_count + 1, sizeof *checkpoint->samples);
    checkpoint->idle_ticks = calloc(results->elapsed_count + 1, sizeof *checkpoint->idle_ticks);
    if (!checkpoint->samples || !checkpoint->idle_ticks) {
        checkpoint_free(checkpoint);
        return -ENOMEM;
    }
    checkpoint->at_ns = state->now_ns;
    checkpoint->epoch = results->stacks.epoch;
    checkpoint->ticks_planned = ticks_planned;
    checkpoint->sampling = state->counts;
    checkpoint->results = results->counts;
    checkpoint->parallelism = results->parallelism;
    copy_samples(checkpoint, &results->stacks);
    for (; checkpoint->process_count < results->elapsed_count; checkpoint->process_count++)
        checkpoint->idle_ticks[checkpoint->process_count] =
            idle_ticks_of(&results->elapsed[checkpoint->process_count]);
    *ret_checkpoint = checkpoint;
    return 0;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    free(checkpoint->samples);
    free(checkpoint->idle_ticks);
    free(checkpoint);
}

uint64_t checkpoint_at_ns(const struct checkpoint *checkpoint)
{
    return checkpoint->at_ns;
}

static size_t checkpoint_bytes(const struct checkpoint *checkpoint)
{
    return sizeof *checkpoint + checkpoint->sample_count * sizeof *checkpoint->samples +
           checkpoint->process_count * sizeof *checkpoint->idle_ticks;
}

uint64_t checkpoint_ticks_planned(const struct checkpoint *checkpoint)
{
    return checkpoint->ticks_planned;
}

/* Not below 0: sleeps and idle time may have been taken back since. */
static uint64_t less(uint64_t all, uint64_t before)
{
    return all > before ? all - before : 0;
}

static void subtract_samples(const struct checkpoint *checkpoint, struct stack_table *table)
{
    size_t next = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *sample = &table->samples[i];
        /* All of it was counted before any checkpoint. */
        if (sample->labels.has_ended)
            counted_sample_empty(sample);
        while (next < checkpoint->sample_count && checkpoint->samples[next].serial < sample->serial)
            next++; /* it was forgotten */
        const struct figures *before = &checkpoint->samples[next];
        if (next == checkpoint->sample_count || before->serial != sample->serial)
            continue;
        sample->sleeps = less(sample->sleeps, before->sleeps);
        sample->count = less(sample->count, before->count);
        sample->time_ns = less(sample->time_ns, before->time_ns);
        sample->part_ns = less(sample->part_ns, before->part_ns);
        sample->waited_ticks -= before->waited_ticks;
        if (sample->waited_ticks < 0)
            sample->waited_ticks = 0;
    }
}

static void subtract_elapsed(const struct checkpoint *checkpoint, struct results *results)
{
    for (size_t i = 0; i < results->elapsed_count; i++) {
        struct elapsed *process = &results->elapsed[i];
        /* Since then another process may have got the row. */
        bool was_there = i < checkpoint->process_count && process->begin_ns < checkpoint->at_ns;
        if (process->begin_ns < checkpoint->at_ns)
            process->begin_ns = checkpoint->at_ns;
        process->settled_ns = 0; /* all of that was before any checkpoint */
        if (was_there)
            process->idle_ticks = less(idle_ticks_of(process), checkpoint->idle_ticks[i]);
        else
            process->idle_ticks = idle_ticks_of(process);
        process->pending = 0;
    }
    for (size_t i = 0; i <= PARALLELISM_MAX; i++)
        results->parallelism.ticks[i] -= checkpoint->parallelism.ticks[i];
}

/* Structs of counts begin with this many sums. */
static void subtract_sums(void *counts, const void *before, size_t count)
{
    uint64_t *sums = counts;
    const uint64_t *sums_before = before;
    for (size_t i = 0; i < count; i++)
        sums[i] = less(sums[i], sums_before[i]);
}

void checkpoint_subtract(const struct checkpoint *checkpoint, struct results *results,
                         struct sampling_counts *counts)
{
    subtract_samples(checkpoint, &results->stacks);
    subtract_elapsed(checkpoint, results);
    subtract_sums(&results->counts, &checkpoint->results, RESULT_SUMS);
    subtract_sums(counts, &checkpoint->sampling, SAMPLING_SUMS);
    counts->cpu_losses.throttled_ns -= checkpoint->sampling.cpu_losses.throttled_ns;
    counts->cpu_losses.steal_ns -= checkpoint->sampling.cpu_losses.steal_ns;
    histogram_subtract(&counts->pauses, &checkpoint->sampling.pauses);
}

/* Samples of the last second could not be dropped anyway: its ticks are placed once it has passed
 * (count/elapsed.h). */
#define KEPT_MIN_NS 1000000000u

struct checkpoints {
    uint64_t keep_ns;
    bool may_forget;
    pthread_mutex_t lock;     /* protects what follows */
    unsigned users;           /* the recorder, and the checkpoints that callers hold */
    struct checkpoint **kept; /* the oldest first */
    size_t kept_count, kept_capacity;
    struct fgprof_moment *held; /* a list */
    bool have_been_given_up;
    uint64_t forgotten_ns; /* CLOCK_MONOTONIC: not all that came before is known; 0: it is */
};

struct fgprof_moment {
    struct checkpoint *checkpoint;
    struct checkpoints *checkpoints;
    struct fgprof_moment *next;
};

int checkpoints_new(uint64_t keep_ns, bool may_forget, struct checkpoints **ret_checkpoints)
{
    struct checkpoints *checkpoints = calloc(1, sizeof *checkpoints);
    if (!checkpoints)
        return -ENOMEM;
    pthread_mutex_init(&checkpoints->lock, NULL);
    checkpoints->keep_ns = keep_ns;
    checkpoints->may_forget = may_forget;
    checkpoints->users = 1;
    *ret_checkpoints = checkpoints;
    return 0;
}

/* Drops the oldest `count` checkpoints. */
static void give_up(struct checkpoints *checkpoints, size_t count)
{
    for (size_t i = 0; i < count; i++)
        checkpoint_free(checkpoints->kept[i]);
    checkpoints->kept_count -= count;
    memmove(checkpoints->kept, &checkpoints->kept[count],
            checkpoints->kept_count * sizeof *checkpoints->kept);
    checkpoints->have_been_given_up = true;
}

void checkpoints_release(struct checkpoints *checkpoints)
{
    if (!checkpoints)
        return;
    pthread_mutex_lock(&checkpoints->lock);
    bool is_last = --checkpoints->users == 0;
    pthread_mutex_unlock(&checkpoints->lock);
    if (!is_last)
        return;
    for (size_t i = 0; i < checkpoints->kept_count; i++)
        checkpoint_free(checkpoints->kept[i]);
    free(checkpoints->kept);
    pthread_mutex_destroy(&checkpoints->lock);
    free(checkpoints);
}

int checkpoints_keep(struct checkpoints *checkpoints, struct checkpoint *checkpoint)
{
    uint64_t now_ns = checkpoint_at_ns(checkpoint);
    pthread_mutex_lock(&checkpoints->lock);
    int err =
        array_reserve(&checkpoints->kept, &checkpoints->kept_capacity, checkpoints->kept_count + 1);
    if (!err) {
        checkpoints->kept[checkpoints->kept_count++] = checkpoint;
        while (checkpoints->kept_count > 1 &&
               now_ns - checkpoint_at_ns(checkpoints->kept[1]) >= checkpoints->keep_ns)
            give_up(checkpoints, 1);
    }
    pthread_mutex_unlock(&checkpoints->lock);
    return err;
}

bool checkpoints_give_up(struct checkpoints *checkpoints)
{
    pthread_mutex_lock(&checkpoints->lock);
    size_t kept = checkpoints->kept_count, count = (kept + 3) / 4;
    while (count && (count == kept || checkpoint_at_ns(checkpoints->kept[kept - 1]) <
                                          checkpoint_at_ns(checkpoints->kept[count]) + KEPT_MIN_NS))
        count--;
    if (count)
        give_up(checkpoints, count);
    pthread_mutex_unlock(&checkpoints->lock);
    return count;
}

bool checkpoints_need(struct checkpoints *checkpoints, bool is_crowded,
                      struct worker_checkpoints *ret_checkpoints)
{
    pthread_mutex_lock(&checkpoints->lock);
    const struct checkpoint *first = checkpoints->kept_count ? checkpoints->kept[0] : NULL;
    struct worker_checkpoints needed = {.are_last = first && checkpoints->have_been_given_up};
    bool may_forget = checkpoints->may_forget && needed.are_last;
    if (needed.are_last)
        needed.begin_ns = checkpoint_at_ns(first);
    for (size_t i = 0; i < checkpoints->kept_count; i++)
        needed.bytes += checkpoint_bytes(checkpoints->kept[i]);
    for (const struct fgprof_moment *held = checkpoints->held; held; held = held->next) {
        needed.bytes += checkpoint_bytes(held->checkpoint);
        if (first && !is_crowded && checkpoint_at_ns(held->checkpoint) < checkpoint_at_ns(first))
            first = held->checkpoint;
    }
    if (first)
        needed.epoch = first->epoch;
    if (may_forget && checkpoint_at_ns(first) > checkpoints->forgotten_ns)
        checkpoints->forgotten_ns = checkpoint_at_ns(first);
    pthread_mutex_unlock(&checkpoints->lock);
    *ret_checkpoints = needed;
    return may_forget;
}

int checkpoints_hold(struct checkpoints *checkpoints, struct checkpoint *checkpoint,
                     struct fgprof_moment **ret_checkpoint)
{
    struct fgprof_moment *held = malloc(sizeof *held);
    if (!held)
        return -ENOMEM;
    pthread_mutex_lock(&checkpoints->lock);
    *held = (struct fgprof_moment){
        .checkpoint = checkpoint, .checkpoints = checkpoints, .next = checkpoints->held};
    checkpoints->held = held;
    checkpoints->users++;
    pthread_mutex_unlock(&checkpoints->lock);
    *ret_checkpoint = held;
    return 0;
}

uint32_t checkpoints_held_since(struct checkpoints *checkpoints, uint32_t epoch)
{
    pthread_mutex_lock(&checkpoints->lock);
    for (const struct fgprof_moment *held = checkpoints->held; held; held = held->next) {
        if (held->checkpoint->epoch < epoch)
            epoch = held->checkpoint->epoch;
    }
    pthread_mutex_unlock(&checkpoints->lock);
    return epoch;
}

void fgprof_moment_free(fgprof_moment *held)
{
    if (!held)
        return;
    struct checkpoints *checkpoints = held->checkpoints;
    pthread_mutex_lock(&checkpoints->lock);
    struct fgprof_moment **link = &checkpoints->held;
    while (*link != held)
        link = &(*link)->next;
    *link = held->next;
    pthread_mutex_unlock(&checkpoints->lock);
    checkpoint_free(held->checkpoint);
    free(held);
    checkpoints_release(checkpoints);
}

const struct checkpoint *checkpoints_lock(struct checkpoints *checkpoints,
                                          const struct fgprof_moment *since, uint64_t begin_ns)
{
    const struct checkpoint *found = NULL;
    pthread_mutex_lock(&checkpoints->lock);
    if (since && checkpoint_at_ns(since->checkpoint) >= checkpoints->forgotten_ns)
        return since->checkpoint;
    for (size_t i = 0; i < checkpoints->kept_count; i++) {
        if (!since && checkpoint_at_ns(checkpoints->kept[i]) <= begin_ns)
            found = checkpoints->kept[i];
    }
    if (!found && checkpoints->forgotten_ns && checkpoints->kept_count)
        found = checkpoints->kept[0];
    return found;
}

void checkpoints_unlock(struct checkpoints *checkpoints)
{
    pthread_mutex_unlock(&checkpoints->lock);
}

#include "recorder/moment.h"

#include <errno.h>
#include <stdlib.h>

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

uint32_t moment_epoch(const struct moment *moment)
{
    return moment->epoch;
}

size_t moment_bytes(const struct moment *moment)
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

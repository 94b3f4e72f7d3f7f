#include "worker/idle.h"
#include "base/array.h"
#include "proc/tids.h"

int idle_note(struct results *results, pid_t tid)
{
    return array_append(&results->idle_tids, &results->idle_tid_count, &results->idle_tid_capacity,
                        tid);
}

void idle_sort(struct results *results)
{
    array_sort(results->idle_tids, results->idle_tid_count, tids_compare);
}

bool idle_has(const struct results *results, uint32_t thread_id)
{
    return tids_have(results->idle_tids, results->idle_tid_count, (pid_t)thread_id);
}

static void drop(struct results *results, struct counted_sample *sample)
{
    struct result_counts *counts = &results->counts;
    enum stack_cut cut = (enum stack_cut)results->stacks.stacks[sample->stack].cut;
    counts->idle_ns += sample->time_ns;
    results->elapsed[sample->labels.process].idle_ticks += (uint64_t)sample->waited_ticks;
    results_count_samples(counts, cut, -(uint64_t)sample->count);
    counted_sample_empty(sample);
}

static void leave_out_timelines(struct results *results)
{
    struct timeline *timeline = &results->timeline;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        struct timeline_thread *thread = &timeline->threads[i];
        thread->is_left_out = idle_has(results, thread->tid);
        if (thread->is_left_out)
            timeline->lost_ns -= thread->lost_ns;
    }
}

void idle_drop(struct results *results, bool keeps_ids)
{
    struct stack_table *stacks = &results->stacks;
    leave_out_timelines(results);
    for (size_t i = 0; i < stacks->sample_count; i++) {
        struct counted_sample *sample = &stacks->samples[i];
        if (idle_has(results, sample_labels_thread(&sample->labels)))
            drop(results, sample);
        /* Samples that become equal are merged when they are named. */
        if (!keeps_ids)
            sample->labels.tid = 0;
    }
}

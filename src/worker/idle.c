#include "worker/idle.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int idle_note(struct results *results, pid_t tid)
{
    if (array_reserve(&results->idle_tids, &results->idle_tid_capacity,
                      results->idle_tid_count + 1))
        return -ENOMEM;
    results->idle_tids[results->idle_tid_count++] = tid;
    return 0;
}

static int compare_tids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static bool is_idle(const struct results *results, uint32_t thread_id)
{
    pid_t tid = (pid_t)thread_id;
    return results->idle_tid_count && bsearch(&tid, results->idle_tids, results->idle_tid_count,
                                              sizeof *results->idle_tids, compare_tids);
}

static void drop(struct results *results, struct counted_sample *sample)
{
    struct result_counts *counts = &results->counts;
    uint32_t cut = results->stacks.stacks[sample->stack].cut;
    counts->idle_ns += sample->time_ns;
    counts->samples -= sample->count;
    if (cut != STACK_WHOLE)
        counts->samples_cut -= sample->count;
    if (cut == STACK_CUT_NOT_CAPTURED)
        counts->samples_not_captured -= sample->count;
    sample->count = sample->time_ns = 0;
}

static void leave_out_timelines(struct results *results)
{
    struct timeline *timeline = &results->timeline;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        struct timeline_thread *thread = &timeline->threads[i];
        thread->is_left_out = is_idle(results, thread->tid);
        if (thread->is_left_out)
            timeline->lost_ns -= thread->lost_ns;
    }
}

void idle_drop(struct results *results, bool keeps_ids)
{
    struct stack_table *stacks = &results->stacks;
    if (results->idle_tid_count)
        qsort(results->idle_tids, results->idle_tid_count, sizeof *results->idle_tids,
              compare_tids);
    leave_out_timelines(results);
    for (size_t i = 0; i < stacks->sample_count; i++) {
        struct counted_sample *sample = &stacks->samples[i];
        if (is_idle(results, sample->labels.tid))
            drop(results, sample);
        /* Samples that become equal are added up when they get their names. */
        if (!keeps_ids)
            sample->labels.tid = 0;
    }
}

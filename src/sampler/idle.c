#include "sampler/idle.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int idle_note(struct recording *recording, const struct thread *thread)
{
    if (thread->has_moved || !thread_is_counted(thread))
        return 0;
    if (array_reserve(&recording->idle_tids, &recording->idle_tid_capacity,
                      recording->idle_tid_count + 1))
        return -ENOMEM;
    recording->idle_tids[recording->idle_tid_count++] = thread->tid;
    return 0;
}

static int compare_tids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static bool is_idle(const struct recording *recording, uint32_t thread_id)
{
    pid_t tid = (pid_t)thread_id;
    return recording->idle_tid_count &&
           bsearch(&tid, recording->idle_tids, recording->idle_tid_count,
                   sizeof *recording->idle_tids, compare_tids);
}

static void drop(struct recording *recording, struct counted_sample *sample)
{
    uint32_t cut = recording->stacks.stacks[sample->stack].cut;
    recording->idle_ns += sample->time_ns;
    recording->samples -= sample->count;
    if (cut != STACK_WHOLE)
        recording->samples_cut -= sample->count;
    if (cut == STACK_CUT_NOT_CAPTURED)
        recording->samples_not_captured -= sample->count;
    sample->count = sample->time_ns = 0;
}

static void leave_out_timelines(struct recording *recording)
{
    struct timeline *timeline = &recording->timeline;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        struct timeline_thread *thread = &timeline->threads[i];
        thread->is_left_out = is_idle(recording, thread->tid);
        if (thread->is_left_out)
            timeline->lost_ns -= thread->lost_ns;
    }
}

void idle_drop(struct recording *recording, bool keeps_ids)
{
    struct stack_table *stacks = &recording->stacks;
    if (recording->idle_tid_count)
        qsort(recording->idle_tids, recording->idle_tid_count, sizeof *recording->idle_tids,
              compare_tids);
    leave_out_timelines(recording);
    for (size_t i = 0; i < stacks->sample_count; i++) {
        struct counted_sample *sample = &stacks->samples[i];
        if (is_idle(recording, sample->labels.tid))
            drop(recording, sample);
        /* Those that are alike then are added up where they get their names. */
        if (!keeps_ids)
            sample->labels.tid = 0;
    }
}

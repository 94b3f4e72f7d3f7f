#include "worker/results.h"

#include <stdlib.h>

int results_init(struct results *results)
{
    *results = (struct results){0};
    return strings_init(&results->strings);
}

void results_free(struct results *results)
{
    stack_table_free(&results->stacks);
    waits_free(&results->waits);
    objects_free(&results->objects);
    deadlocks_free(&results->deadlocks);
    label_sets_free(&results->label_sets);
    runtime_frames_free(&results->runtime_frames);
    for (size_t i = 0; i < results->elapsed_count; i++)
        elapsed_free(&results->elapsed[i]);
    free(results->elapsed);
    timeline_free(&results->timeline);
    spaces_free(&results->spaces);
    modules_free(&results->modules);
    strings_free(&results->strings);
    free(results->idle_tids);
    *results = (struct results){0};
}

void results_count_samples(struct result_counts *counts, enum stack_cut cut, uint64_t ticks)
{
    counts->samples += ticks;
    if (cut != STACK_WHOLE && cut != STACK_KERNEL_ONLY)
        counts->samples_cut += ticks;
    if (cut == STACK_CUT_NOT_CAPTURED)
        counts->samples_not_captured += ticks;
    if (cut == STACK_CUT_NOT_KEPT)
        counts->samples_not_kept += ticks;
}

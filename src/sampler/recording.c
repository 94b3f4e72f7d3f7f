#include "sampler/recording.h"
#include "base/clock.h"

#include <stdlib.h>

int recording_init(struct recording *recording)
{
    *recording = (struct recording){0};
    int err = unwinder_new(&recording->unwinder);
    if (!err)
        err = reaper_new(&recording->reaper);
    return err ? err : strings_init(&recording->strings);
}

void recording_free(struct recording *recording)
{
    stack_table_free(&recording->stacks);
    timeline_free(&recording->timeline);
    unwinder_free(recording->unwinder);
    reaper_free(recording->reaper);
    spaces_free(&recording->spaces);
    modules_free(&recording->modules);
    strings_free(&recording->strings);
    free(recording->idle_tids);
}

uint64_t recording_now_ns(const struct recording *recording)
{
    return recording->end_ns ? recording->end_ns : monotonic_ns();
}

uint64_t recording_tick_at(const struct recording *recording, uint64_t now_ns)
{
    return now_ns < recording->start_ns ? 0 : (now_ns - recording->start_ns) / recording->period_ns;
}

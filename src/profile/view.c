#include "profile/view.h"

#include <stdlib.h>

int profile_view_make(const struct fgprof_profile *profile, bool tells_places,
                      struct profile_view *ret_view)
{
    /* Only its samples are used: this way the rule for equal samples is in one place. */
    struct fgprof_profile merged = {0};
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        struct profile_sample sample = profile->samples[i];
        if (!profile_keeps(profile, &sample))
            continue;
        if (profile->threads == FGPROF_THREADS_BY_NAME)
            sample.tid = 0;
        if (sample.wait_plus_1 && !tells_places)
            sample.wait_plus_1 = profile->waits[sample.wait_plus_1 - 1].label + 1;
        err = profile_add_sample(&merged, &sample, NULL);
    }
    index_free(&merged.sample_index);
    if (err)
        free(merged.samples);
    else
        *ret_view = (struct profile_view){merged.samples, merged.sample_count};
    return err;
}

void profile_view_free(struct profile_view *view)
{
    free(view->samples);
    *view = (struct profile_view){0};
}

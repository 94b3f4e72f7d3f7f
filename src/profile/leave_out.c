#include "profile/leave_out.h"
#include "profile/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool stack_has(const struct fgprof_profile *profile, const struct profile_stack *stack,
                      const char *function)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    while (frame_next_from_leaf(profile, stack, &walk, &frame)) {
        if (frame.line && strcmp(strings_get(&profile->strings,
                                             profile->functions[frame.line->function].system_name),
                                 function) == 0)
            return true;
    }
    return false;
}

int profile_leave_out(struct fgprof_profile *profile, const char *function)
{
    uint32_t kept = 0, *numbers = calloc(profile->sample_count + 1, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (stack_has(profile, &profile->stacks[profile->samples[i].stack], function)) {
            numbers[i] = PROFILE_NO_SAMPLE;
        } else {
            numbers[i] = kept;
            profile->samples[kept++] = profile->samples[i];
        }
    }
    profile->sample_count = kept;
    for (size_t i = 0; i < profile->run_count; i++) {
        if (profile->runs[i].sample != PROFILE_NO_SAMPLE)
            profile->runs[i].sample = numbers[profile->runs[i].sample];
    }
    free(numbers);
    /* The rows have changed under the index, which is not needed any more. */
    index_free(&profile->sample_index);
    profile->sample_index = (struct index){0};
    return 0;
}

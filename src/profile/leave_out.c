#include "profile/leave_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool location_has(const struct fgprof_profile *profile, uint32_t number,
                         const char *function)
{
    const struct profile_location *location = &profile->locations[number];
    for (uint32_t i = 0; i < location->line_count; i++) {
        uint32_t of_line = profile->lines[location->first_line + i].function;
        uint32_t name = profile->functions[of_line].system_name;
        if (strcmp(strings_get(&profile->strings, name), function) == 0)
            return true;
    }
    return false;
}

static bool stack_has(const struct fgprof_profile *profile, uint32_t number, const char *function)
{
    const struct profile_stack *stack = &profile->stacks[number];
    for (size_t i = 0; i < stack->depth; i++) {
        if (location_has(profile, profile->stack_locations[stack->first_location + i], function))
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
        if (stack_has(profile, profile->samples[i].stack, function)) {
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

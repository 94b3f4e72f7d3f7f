/* What is known of a profile once all of its locations have names. */
#include "profile/profile.h"

/* pprof does not symbolize a mapping that claims to be symbolized, so each claim is made only if it
 * holds for all that was sampled there. */
static void set_mapping_claims(struct fgprof_profile *profile)
{
    for (size_t i = 0; i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        if (location->mapping == PROFILE_NO_MAPPING)
            continue;
        struct profile_mapping *mapping = &profile->mappings[location->mapping];
        bool has_name = location->line_count > 0, has_file = has_name, has_line = has_name;
        for (uint32_t j = 0; j < location->line_count; j++) {
            const struct profile_line *line = &profile->lines[location->first_line + j];
            has_file = has_file && profile->functions[line->function].file;
            has_line = has_line && line->line;
        }
        bool is_first = !mapping->is_sampled;
        mapping->is_sampled = true;
        mapping->has_functions = has_name && (is_first || mapping->has_functions);
        mapping->has_files = has_file && (is_first || mapping->has_files);
        mapping->has_lines = has_line && (is_first || mapping->has_lines);
        mapping->has_inlined = location->has_debug_info && (is_first || mapping->has_inlined);
    }
}

static void count_unnamed(struct fgprof_profile *profile)
{
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_stack *stack = &profile->stacks[profile->samples[i].stack];
        for (size_t j = 0; j < stack->depth; j++) {
            if (!stack_location(profile, stack, j)->line_count) {
                profile->summary.samples_unnamed +=
                    profile->samples[i].count + profile->samples[i].made;
                break;
            }
        }
    }
}

void profile_finish(struct fgprof_profile *profile)
{
    set_mapping_claims(profile);
    count_unnamed(profile);
}

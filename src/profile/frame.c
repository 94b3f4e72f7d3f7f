#include "profile/frame.h"

#include <inttypes.h>
#include <string.h>

static bool next(const struct fgprof_profile *profile, const struct profile_location *location,
                 bool is_from_root, struct frame_walk *walk, struct profile_frame *ret_frame)
{
    uint32_t count = location->line_count;
    uint32_t line = location->first_line + (is_from_root ? count - 1 - walk->lines : walk->lines);
    *ret_frame = (struct profile_frame){location, count ? &profile->lines[line] : NULL};
    if (++walk->lines >= count) {
        walk->lines = 0;
        walk->locations++;
    }
    return true;
}

bool frame_next_from_leaf(const struct fgprof_profile *profile, const struct profile_stack *stack,
                          struct frame_walk *walk, struct profile_frame *ret_frame)
{
    return walk->locations < stack->depth &&
           next(profile, stack_location(profile, stack, walk->locations), false, walk, ret_frame);
}

bool frame_next_from_root(const struct fgprof_profile *profile, const struct profile_stack *stack,
                          struct frame_walk *walk, struct profile_frame *ret_frame)
{
    return walk->locations < stack->depth &&
           next(profile, stack_location(profile, stack, stack->depth - 1 - walk->locations), true,
                walk, ret_frame);
}

bool stack_has_function(const struct fgprof_profile *profile, const struct profile_stack *stack,
                        const char *name, bool in_symbols)
{
    struct frame_walk walk = {0};
    struct profile_frame frame;
    uint32_t sought;
    if (!strings_find(&profile->strings, name, &sought))
        return false;
    while (frame_next_from_leaf(profile, stack, &walk, &frame)) {
        const struct profile_function *function =
            frame.line ? &profile->functions[frame.line->function] : NULL;
        if (function && (in_symbols ? function->system_name : function->name) == sought)
            return true;
    }
    return false;
}

void frame_append_unnamed(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location, bool with_address)
{
    const struct profile_mapping *mapping = NULL;
    if (location->mapping != PROFILE_NO_MAPPING)
        mapping = &profile->mappings[location->mapping];
    const char *path = mapping ? strings_get(&profile->strings, mapping->path) : "";
    const char *file = strchr(path, '/') ? basename(path) : "";
    bool is_special = path[0] == '[' && strcmp(path, "[anon]") != 0; /* [vdso], [heap] */
    with_address = with_address && mapping && mapping->has_bias;
    if (is_special) {
        name_append(buffer, path);
    } else if (!*file) {
        buffer_puts(buffer, "[unknown]");
        return;
    } else {
        buffer_puts(buffer, with_address ? "" : "[");
        name_append(buffer, file);
        buffer_puts(buffer, with_address ? "" : "]");
    }
    if (with_address) {
        buffer_print(buffer, "+0x%" PRIx64, location->address - mapping->bias);
    }
}

#include "profile/kernel_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t lines_of(const char *text)
{
    size_t lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

/* Adds the location of the name that ends at the next line feed; *names moves past it. */
static int add_location(struct fgprof_profile *profile, const char **names, uint32_t *ret_location)
{
    size_t bytes = strcspn(*names, "\n");
    char *name = strndup(*names, bytes);
    if (!name)
        return -ENOMEM;
    int err = profile_add_kernel_function(profile, name, ret_location);
    free(name);
    *names += bytes + 1;
    return err;
}

int kernel_frames_add(struct fgprof_profile *profile, const char *names, uint32_t *stack)
{
    const struct profile_stack below = profile->stacks[*stack];
    size_t depth = lines_of(names);
    uint32_t *locations = malloc((depth + below.depth) * sizeof *locations + 1);
    int err = locations ? 0 : -ENOMEM;
    for (size_t i = 0; i < depth && !err; i++)
        err = add_location(profile, &names, &locations[i]);
    for (size_t i = 0; i < below.depth && !err; i++)
        locations[depth + i] = profile->stack_locations[below.first_location + i];
    if (!err)
        err = profile_add_stack(profile, locations, depth + below.depth, stack);
    free(locations);
    return err;
}

#include "output/frame.h"

#include <string.h>

void frame_append_unnamed(struct text_buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location)
{
    const char *path = "";
    if (location->mapping != PROFILE_NO_MAPPING)
        path = strings_get(&profile->strings, profile->mappings[location->mapping].path);
    const char *slash = strrchr(path, '/');
    if (path[0] == '[' && strcmp(path, "[anon]") != 0) { /* [vdso], [heap] */
        text_append_name(buffer, path);
    } else if (!slash || !slash[1]) {
        text_append(buffer, "[unknown]");
    } else {
        text_append(buffer, "[");
        text_append_name(buffer, slash + 1);
        text_append(buffer, "]");
    }
}

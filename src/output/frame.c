#include "output/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

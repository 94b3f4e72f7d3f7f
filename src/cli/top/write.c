#include "cli/top/write.h"
#include "cli/options/formats.h"
#include "cli/output_file.h"

#include <stdio.h>
#include <string.h>

void top_write(const fgprof_profile *profile, const char *path, char *message, size_t message_bytes)
{
    enum fgprof_format format;
    struct output_file file;
    if (!format_of_ending(path, &format)) {
        snprintf(message, message_bytes,
                 "not written: the ending names no format; use one such as .folded or .pb.gz");
        return;
    }
    int err = output_file_open(&file, path);
    if (!err) {
        err = fgprof_profile_write(profile, format, file.fd);
        if (!err)
            err = output_file_commit(&file);
        else
            output_file_abandon(&file);
    }
    if (err)
        snprintf(message, message_bytes, "not written to %s: %s", path, strerror(-err));
    else
        snprintf(message, message_bytes, "written to %s", path);
}

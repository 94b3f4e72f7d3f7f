#include "output/dump/dump.h"

#include <errno.h>
#include <stdlib.h>

int output_dump(const struct fgprof_dump *dump, enum fgprof_dump_format format, int fd)
{
    static void (*const writers[])(const struct fgprof_dump *, struct sink *) = {
        [FGPROF_DUMP_TEXT] = output_dump_text,
        [FGPROF_DUMP_GROUPED] = output_dump_grouped,
        [FGPROF_DUMP_JSON] = output_dump_json,
    };
    if ((size_t)format >= sizeof writers / sizeof *writers)
        return -EINVAL;
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return -ENOMEM;
    sink_open(sink, fd, false);
    writers[format](dump, sink);
    int err = sink_close(sink);
    free(sink);
    return err;
}

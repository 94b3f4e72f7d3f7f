#include "output/dump/dump.h"
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>

/* Threads of equal stack, name and state are one sample. */
static int write_pprof(const struct fgprof_dump *dump, int fd)
{
    struct fgprof_profile profile = *dump->profile;
    profile.is_of_threads = true;
    profile.threads = FGPROF_THREADS_BY_NAME;
    profile.has_elapsed = false;
    return output_write(&profile, FGPROF_PPROF, fd);
}

int output_dump(const struct fgprof_dump *dump, enum fgprof_dump_format format, int fd)
{
    static void (*const writers[])(const struct fgprof_dump *, struct sink *) = {
        [FGPROF_DUMP_TEXT] = output_dump_text,
        [FGPROF_DUMP_GROUPED] = output_dump_grouped,
        [FGPROF_DUMP_JSON] = output_dump_json,
    };
    if (format == FGPROF_DUMP_PPROF)
        return write_pprof(dump, fd);
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

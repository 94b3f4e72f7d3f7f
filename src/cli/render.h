/* What the commands that render kept recordings have in common. */
#ifndef FGPROF_CLI_RENDER_H
#define FGPROF_CLI_RENDER_H

#include "fgprof.h"

struct render_options {
    enum fgprof_format format;
    bool has_format;    /* -f was given */
    const char *output; /* "-": standard output */
    unsigned folded_flags;
    enum fgprof_threads threads;
    enum fgprof_kept kept;
    bool is_normalized;
    char **inputs; /* the recordings' files, `input_count` of them */
};

enum render_parsed { RENDER_OK, RENDER_HELP, RENDER_WRONG };

/* Parses `argv`, whose first word is the command's name. `is_difference`: of two recordings, in one
 * format. Says on stderr what is wrong. */
enum render_parsed render_parse(int argc, char **argv, bool is_difference,
                                struct render_options *ret_options);

/* The recording in `path`, set to be written as the options say; NULL where it can't be read, which
 * is said on stderr. */
fgprof_profile *render_read(const struct render_options *options, const char *path);

/* Writes to the options' output by `write`, which gets `context` and returns 0 or a negative errno.
 * Says on stderr what went wrong. Returns the command's exit status. */
typedef int render_fn(const struct render_options *options, void *context, int fd);
int render_write(const struct render_options *options, render_fn *write, void *context);

#endif

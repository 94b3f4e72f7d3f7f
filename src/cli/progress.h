/* The live progress line on stderr. */
#ifndef FGPROF_CLI_PROGRESS_H
#define FGPROF_CLI_PROGRESS_H

#include "base/throttle.h"
#include "cli/options/options.h"

/* What the line is made of. */
struct progress {
    const struct cli_options *options;
    fgprof_recorder *recorder; /* NULL: not made yet */
    struct throttle naming;    /* of `busiest` */
    char busiest[64];          /* the function with the most time on a CPU so far; "": none yet */
};

/* Makes `library` show progress if stderr is a terminal and the user has not given -q. `progress`,
 * whose options are set, must live as long as `library`. */
void progress_enable(struct progress *progress, fgprof_options *library);

/* Makes `library` fetch debug information, with progress, if the user asked for that. Returns false
 * if it can't be fetched, and prints the reason on stderr. */
bool progress_enable_fetch(const struct cli_options *options, fgprof_options *library);

/* Erases the progress line if it was shown. */
void progress_clear(const struct cli_options *options);

#endif

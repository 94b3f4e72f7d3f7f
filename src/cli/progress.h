/* The live line on a terminal's stderr. */
#ifndef FGPROF_CLI_PROGRESS_H
#define FGPROF_CLI_PROGRESS_H

#include "cli/options/options.h"

/* Has `library` show it, where stderr is a terminal and the user wants it. */
void progress_enable(const struct cli_options *options, fgprof_options *library);

/* Has debug information fetched where that is wanted, and shows how far it is. Says on stderr why
 * that can't be. */
bool progress_enable_fetch(const struct cli_options *options, fgprof_options *library);

/* Takes it off the screen, where it was shown. */
void progress_clear(const struct cli_options *options);

#endif

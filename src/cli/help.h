#ifndef FGPROF_CLI_HELP_H
#define FGPROF_CLI_HELP_H

#include "cli/options/options.h"

/* Prints the command's --help text. */
void help(enum cli_command command);

#endif

#ifndef FGPROF_CLI_HELP_H
#define FGPROF_CLI_HELP_H

#include "cli/options/options.h"

/* Prints what --help of the command says. */
void help(enum cli_command command);

#endif

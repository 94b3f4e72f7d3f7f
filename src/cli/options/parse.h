/* Parses the command line. */
#ifndef FGPROF_CLI_OPTIONS_PARSE_H
#define FGPROF_CLI_OPTIONS_PARSE_H

#include "cli/options/options.h"

enum parse_result { PARSE_OK, PARSE_HELP, PARSE_WRONG };

/* Parses `argv`, whose first word is the command's name. Prints errors on stderr. */
enum parse_result options_parse(int argc, char **argv, enum cli_command command,
                                struct cli_options *ret_options);

#endif

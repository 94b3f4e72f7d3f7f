/* The options of `top`. */
#ifndef FGPROF_CLI_TOP_OPTIONS_H
#define FGPROF_CLI_TOP_OPTIONS_H

#include "options.h"

/* Says on stderr what is wrong. For options_free, whatever it returns. */
enum parse_result top_options_parse(int argc, char **argv, struct cli_options *options);

#endif

/* The commands. Each returns the exit status. */
#ifndef FGPROF_CLI_COMMANDS_H
#define FGPROF_CLI_COMMANDS_H

#include "cli/options/options.h"

enum {
    EXIT_WRITTEN = 0,
    EXIT_NOT_WRITTEN = 1,
    EXIT_USAGE = 2,
    /* for `run`, with the same meaning as in env(1) and timeout(1) */
    EXIT_SAMPLER_FAILED = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL_BASE = 128,
};

int command_attach(const struct cli_options *options);
int command_run(const struct cli_options *options);
/* Also `report`, whose format is given. */
int command_convert(const struct cli_options *options);
int command_diff(const struct cli_options *options);
int command_dump(const struct cli_options *options);
/* Also `record`. */
int command_serve(const struct cli_options *options);
/* Answers one request to a program that profiles itself: see fgprof_http_handle. */
int serve_once(pid_t pid, const char *path, const char *query, int fd);
int command_top(const struct cli_options *options);

#endif

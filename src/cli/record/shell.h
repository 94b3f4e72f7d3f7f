/* A shell's command that is asked whether something holds. */
#ifndef FGPROF_CLI_RECORD_SHELL_H
#define FGPROF_CLI_RECORD_SHELL_H

#include <stdbool.h>

/* Runs `sh -c command`, with nothing to read and its output thrown away, and returns whether it
 * exits with 0. It is killed, with all processes of its group, if it takes longer than 10 seconds
 * or as soon as `stop_fd` is readable. */
bool shell_succeeds(const char *command, int stop_fd);

#endif

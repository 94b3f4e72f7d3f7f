/* Makes the profile of the kind that the options ask for. */
#ifndef FGPROF_CLI_RECORDED_H
#define FGPROF_CLI_RECORDED_H

#include "cli/targets.h"

/* Whether objects can be recorded of process `pid`, which was added, if the options ask for these;
 * else true. If not, prints the reason. */
bool recorded_check(const struct cli_options *options, fgprof_recorder *recorder, pid_t pid);

/* Whether one of the processes has the custom profile that the options ask for, if they do; else
 * true. If not, prints the reason. */
bool recorded_find_custom(const struct cli_options *options, const struct targets *targets);

/* Samples to the end. If that fails, or there are none of the objects that the options ask for,
 * prints the reason and returns NULL. The caller frees the profile. */
fgprof_profile *recorded_run(const struct cli_options *options, fgprof_recorder *recorder);

/* Prints why objects can't be recorded of a command: an error of fgprof_recorder_spawn. */
void recorded_complain(const struct cli_options *options, int err);

#endif

/* What the recording commands have in common: a recorder and an output file as in the options,
 * signals while sampling, and the profile of the requested kind. */
#ifndef FGPROF_CLI_RUN_RECORDER_H
#define FGPROF_CLI_RUN_RECORDER_H

#include "cli/select_pids.h"

struct output_file;

/* Whether objects of process `pid`, which was added, can be recorded, if the options ask for
 * objects; otherwise true. If not, prints the reason. */
bool check_objects(const struct cli_options *options, fgprof_recorder *recorder, pid_t pid);

/* Whether one of the processes has the custom profile that the options ask for; true if they ask
 * for none. If not, prints the reason. */
bool check_custom(const struct cli_options *options, const struct selected_pids *targets);

/* Samples to the end. If that fails, or there are none of the requested objects, prints the reason
 * and returns NULL. The caller frees the profile. */
fgprof_profile *run_recorder(const struct cli_options *options, fgprof_recorder *recorder);

/* If no other output was requested, names the page of `pid` after the process's name, its id and
 * the time. If that fails, prints the reason and returns false. */
bool name_page(const struct cli_options *options, pid_t pid, struct output_file *file);

/* Prints why objects can't be recorded of process `pid`; 0: of a command. */
void complain_of_objects(const struct cli_options *options, pid_t pid, int err);

/* From now on SIGINT, SIGTERM and SIGHUP end `recorder`'s sampling. */
void interrupt_stops(fgprof_recorder *recorder);

/* From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT are for the command that `recorder` has started.
 * A signal from the terminal has reached it already; a signal sent to this process is forwarded.
 * Sampling ends when the command exits; after that, a second signal ends this process. */
void interrupt_forwards(fgprof_recorder *recorder);

/* The same for signals that came before there was a command. */
void interrupt_forward_early(fgprof_recorder *recorder);

/* Whether the command, which is a child of this process, has not exited. */
bool command_goes_on(pid_t child);

/* Makes a recorder with these options. On failure, prints the reason on stderr and returns NULL. */
fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library);

/* Records, and writes to `file`, which is open and which it may commit. Returns the command's exit
 * status. */
typedef int record_fn(const struct cli_options *options, fgprof_recorder *recorder,
                      struct output_file *file);

/* Opens a file and makes a recorder as in the options, calls `record_to`, and frees both. The file
 * comes first, so that nothing is sampled in vain. If either fails, prints the reason on stderr and
 * returns `failed`. */
int record_to_output(const struct cli_options *options, record_fn *record_to, int failed);

#endif

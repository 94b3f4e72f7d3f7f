/* Pushes samples to servers, one interval after the other. */
#ifndef FGPROF_CLI_PUSH_PUSH_H
#define FGPROF_CLI_PUSH_PUSH_H

#include "cli/serve/session.h"

struct pusher;

/* Call this before there are threads, and before anything of a target is read. If it can't push,
 * prints the reason and returns NULL. */
struct pusher *pusher_new(const struct cli_options *options);

/* Opens the spool, and starts to send its requests. On failure, prints the reason and returns
 * false. */
bool pusher_start(struct pusher *pusher, struct session *session);

/* To be called whenever processes begin to be sampled: see session_init. */
void pusher_begin(struct pusher *pusher);

/* Prints where it pushes to. */
void pusher_describe(const struct pusher *pusher);

/* Once the session has ended, waits a few seconds for the rest to be sent. Does nothing if the
 * pusher was not started, or is NULL. */
void pusher_stop(struct pusher *pusher);
void pusher_free(struct pusher *pusher);

/* Writes what was pushed, in Prometheus' text format. */
void pusher_write_metrics(struct pusher *pusher, int fd);

#endif

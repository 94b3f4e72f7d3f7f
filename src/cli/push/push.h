/* Pushes what is sampled to servers, part after part. */
#ifndef FGPROF_CLI_PUSH_PUSH_H
#define FGPROF_CLI_PUSH_PUSH_H

#include "cli/serve/session.h"

struct pusher;

/* Opens the spool, and starts what sends. Prints why it can't, and returns NULL. */
struct pusher *pusher_start(const struct cli_options *options, struct session *session);

/* To be called whenever processes begin to be sampled: see session_init. */
void pusher_begin(struct pusher *pusher);

/* Prints where it pushes to. */
void pusher_describe(const struct pusher *pusher);

/* Waits a few seconds for what is left to be sent. Call it when the session has ended. */
void pusher_stop(struct pusher *pusher);

/* Writes what was pushed, in Prometheus' text format. */
void pusher_write_metrics(struct pusher *pusher, int fd);

#endif

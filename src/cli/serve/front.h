/* The server, as the profiler has it: the process that speaks HTTP (http.h), which is started again
 * if it ends, and the answers to what comes through it. */
#ifndef FGPROF_CLI_SERVE_FRONT_H
#define FGPROF_CLI_SERVE_FRONT_H

#include "cli/serve/listen.h"
#include "cli/serve/session.h"

struct front;

/* To be called before there are threads, and before anything of a target is read. Returns 0 or a
 * negative errno. */
int front_new(struct front **ret_front);

/* Begins to answer requests. Returns 0 or a negative errno. */
int front_start(struct front *front, const struct listener *listener, struct session *session);

/* Takes no more connections, and waits a while for the answers under way, once the session has
 * ended. Nothing is done if it was not started, or is NULL. */
void front_stop(struct front *front);
void front_free(struct front *front);

#endif

/* The signals that end a session: SIGINT, SIGTERM and SIGHUP. */
#ifndef FGPROF_CLI_SERVE_SIGNALS_H
#define FGPROF_CLI_SERVE_SIGNALS_H

#include "cli/serve/session.h"

/* Blocks them, and SIGCHLD, which is the sampling thread's, in all threads to come. */
void signals_block(void);

/* Begins to wait for them in a thread of its own: the first one ends the session with what is under
 * way, the second the program at once. Returns 0 or a negative errno. */
int signals_begin(struct session *session, pthread_t *ret_thread);
void signals_end(pthread_t thread);

#endif

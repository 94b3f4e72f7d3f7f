/* The signals that end a session: SIGINT, SIGTERM and SIGHUP. */
#ifndef FGPROF_CLI_SERVE_SIGNALS_H
#define FGPROF_CLI_SERVE_SIGNALS_H

#include "cli/serve/session.h"

/* Blocks them, and SIGCHLD, which is the sampling thread's, in all threads to come. */
void signals_block(void);

/* Starts to wait for them in a separate thread: the first signal ends the session and the requests
 * under way, the second one the program immediately. Returns 0 or a negative errno. */
int signals_begin(struct session *session, pthread_t *ret_thread);
void signals_end(pthread_t thread);

#endif

/* The server, as the profiler has it: the process that speaks HTTP (http.h), which is started again
 * if it ends, and the answers to what comes through it. */
#ifndef FGPROF_CLI_SERVE_HTTP_SERVER_H
#define FGPROF_CLI_SERVE_HTTP_SERVER_H

#include "cli/serve/listen.h"
#include "cli/serve/session.h"

#include <stdbool.h>

struct http_server;

/* Call this before there are threads, and before anything of a target is read. Returns 0 or a
 * negative errno. */
int http_server_new(struct http_server **ret_server);

/* Begins to answer requests. Returns 0 or a negative errno. */
int http_server_start(struct http_server *server, const struct listener *listener,
                      struct session *session);

/* Takes no more connections, and waits a while for the answers under way, once the session has
 * ended. Returns false if it had to end the session, since nothing could speak HTTP any more.
 * Nothing is done if it was not started, or is NULL. */
bool http_server_stop(struct http_server *server);
void http_server_free(struct http_server *server);

#endif

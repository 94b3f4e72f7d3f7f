/* HTTP/1.1, by libmicrohttpd: a thread for each connection. */
#ifndef FGPROF_CLI_SERVE_HTTP_H
#define FGPROF_CLI_SERVE_HTTP_H

#include "cli/serve/listen.h"
#include "cli/serve/session.h"

struct http;

/* Begins to answer requests. Returns NULL if it can't. */
struct http *http_start(const struct listener *listener, struct session *session);

/* Takes no more connections, waits a while for the answers under way, and ends. */
void http_stop(struct http *http);

#endif

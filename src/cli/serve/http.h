/* HTTP/1.1, by libmicrohttpd, with a thread for each connection. It runs in a separate process
 * without privileges, because it parses what anybody may send; it gets its answers from the
 * profiler (http_packet.h). */
#ifndef FGPROF_CLI_SERVE_HTTP_H
#define FGPROF_CLI_SERVE_HTTP_H

#include "base/starter.h"

/* The most requests that are answered at once. */
#define CONNECTIONS_MAX 128
/* How long to wait for answers under way once the profiler has announced its end. */
#define HTTP_END_MS 5000

extern const struct helper_role http_role;

#endif

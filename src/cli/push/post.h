/* Requests over HTTP, by libcurl. Each is sent by a separate process without privileges, because
 * TLS and HTTP parse what a server sends. */
#ifndef FGPROF_CLI_PUSH_POST_H
#define FGPROF_CLI_PUSH_POST_H

#include "base/starter.h"

#include <stdbool.h>

/* Loads the library, before these processes are started. Returns false if it is not there. */
bool post_load(void);

/* Takes a request, and answers it (post_packet.h). */
extern const struct helper_role post_role;

#endif

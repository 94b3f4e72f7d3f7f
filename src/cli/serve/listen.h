/* The address at which requests come in. */
#ifndef FGPROF_CLI_SERVE_LISTEN_H
#define FGPROF_CLI_SERVE_LISTEN_H

#include "cli/options/options.h"

struct listener {
    int fd;
    char host[256];   /* as it was given; "": a Unix socket */
    char shown[320];  /* "http://127.0.0.1:6060/" or "unix:PATH" */
    char path[108];   /* of a Unix socket: removed at the end; "": none */
    bool is_loopback; /* nobody elsewhere can reach it */
};

/* Listens where the options say. Prints why it can't, and returns false. */
bool listener_open(const struct cli_options *options, struct listener *ret_listener);
void listener_close(struct listener *listener);

/* Whether a request with this "Host" header was meant for this server, and was not sent by a page
 * whose name was made to resolve to this machine (DNS rebinding). The header must name a loopback
 * address or the listening address; if others can reach that, any numeric address and the machine's
 * name are accepted too. NULL: there is no header. */
bool listener_is_named(const struct listener *listener, const char *host_header);

#endif

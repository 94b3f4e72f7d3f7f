/* A reader process, and what all its users have in common. */
#ifndef FGPROF_READER_CONNECTION_H
#define FGPROF_READER_CONNECTION_H

#include "base/packet.h"
#include "base/starter.h"

struct connection {
    unsigned limit_ms; /* for each question */
    uint64_t until_ns; /* the deadline of this question */
    struct starter starter;
    bool has_starter;
    int socket; /* to the reader process; -1: there is none */
    struct packet packet;
};

/* Call this before any file of a target is opened. `connection` may be freed afterwards in any
 * case. Returns 0 or a negative errno. */
int connection_open(struct connection *connection, const struct helper_role *role,
                    unsigned limit_ms);
void connection_free(struct connection *connection);

/* Makes sure that there is a reader, and starts the clock of a question. *ret_is_new: it has not
 * been asked anything yet. Returns 0 or a negative errno. */
int connection_begin(struct connection *connection, bool *ret_is_new);

/* Gives up a reader that failed. It is ended when another one starts. */
void connection_drop(struct connection *connection);

/* Why a question failed, in words. */
const char *connection_why(int err);

#endif

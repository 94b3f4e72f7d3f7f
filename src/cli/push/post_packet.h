/* What the profiler and a process that sends a request tell each other: packets (base/packet.h). */
#ifndef FGPROF_CLI_PUSH_POST_PACKET_H
#define FGPROF_CLI_PUSH_POST_PACKET_H

#include "base/packet.h"
#include "cli/push/credentials.h"

/* A packet that has begun to arrive, or is sent at once, is there within this time. */
#define POST_WAIT_NS 10000000000u
#define RETRY_AFTER_MAX_S 3600u

struct post {
    const char *url, *type;   /* Content-Type */
    bool is_gzip, is_connect; /* see body.h */
    const void *body;
    size_t body_bytes;
    const struct credentials *credentials;
    const char *ca_file; /* NULL: the system's certificates */
};

struct post_answer {
    long status;             /* 0: there was none */
    uint64_t retry_after_ns; /* how long the server wants to be left alone; 0: it does not say */
    char why[256];           /* what went wrong, if there was no status */
    char body[4096];         /* its beginning */
    size_t body_bytes;
};

/* Sends a request, with its body as a file. Returns 0 or a negative errno. */
int post_send(int socket, const struct post *post);

/* Reads a request, which is valid as long as the packet; its body is left in the packet's file.
 * Returns 0 or -EPROTO. */
int post_read(const struct packet *packet, struct post *ret_post);

/* Returns 0 or a negative errno. */
int post_answer_send(int socket, const struct post_answer *answer);

/* Reads what the process says, which a server may have taken over. Returns 0 or -EPROTO. */
int post_answer_read(const struct packet *packet, struct post_answer *ret_answer);

#endif

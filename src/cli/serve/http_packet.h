/* The packets (base/packet.h) about a request between the process that speaks HTTP and the
 * profiler. The text of a question comes from the network. */
#ifndef FGPROF_CLI_SERVE_HTTP_PACKET_H
#define FGPROF_CLI_SERVE_HTTP_PACKET_H

#include "base/packet.h"
#include "cli/serve/request.h"

enum http_packet_kind {
    HTTP_LISTEN,   /* to the process that speaks HTTP: the socket at which it listens */
    HTTP_REQUEST,  /* from it: a socket, through which these two are sent: */
    HTTP_QUESTION, /* the request; the client's socket */
    HTTP_ANSWER,   /* the answer; its body */
};

/* A request as it came in. NULL: it has no such header. */
struct question {
    enum request_method method;
    const char *path, *host, *authorization;
    const char *site, *mode, *destination; /* Sec-Fetch-Site, -Mode and -Dest
                                              (www.w3.org/TR/fetch-metadata) */
    struct parameters parameters;
};

/* Sends it with the client's socket. Returns 0 or a negative errno. */
int question_send(int socket, const struct question *question, int client_fd);

/* Reads one, which is valid as long as the packet. Returns 0 or -EPROTO. */
int question_read(const struct packet *packet, struct question *ret_question);

/* Sends it with its body. Returns 0 or a negative errno. */
int answer_send(int socket, const struct answer *answer);

/* Reads an answer, which is valid as long as the packet; the caller closes the body. Returns 0 or
 * -EPROTO. */
int answer_read(const struct packet *packet, struct answer *ret_answer);

#endif

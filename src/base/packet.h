/* The messages between us and a helper process (base/starter.h): what kind of thing it is, its
 * bytes, and at most one open file, over a stream socket.
 *
 * Both are the same program, so numbers are as in memory. But the helper reads what anybody may
 * have made, so what it says is checked as that is. */
#ifndef FGPROF_BASE_PACKET_H
#define FGPROF_BASE_PACKET_H

#include "base/buffer.h"
#include "base/bytes.h"

#define PACKET_BYTES_MAX (64u << 20)

struct packet {
    unsigned kind; /* each pair of processes has its own */
    struct buffer body;
    int fd; /* -1: none */
};

void packet_put_number(struct buffer *body, uint64_t number);
/* NULL is not the same as "". */
void packet_put_text(struct buffer *body, const char *text);
/* The same for at most so many bytes of it, cut between characters. */
void packet_put_cut_text(struct buffer *body, const char *text, size_t bytes_max);

uint64_t packet_number(struct bytes *body);
/* Valid as long as the packet. Sets `failed` if the bytes are no text. */
const char *packet_text(struct bytes *body);
struct bytes packet_bytes(const struct packet *packet);

/* Sends the bytes and the file, which stays the caller's; -1: none. Returns 0 or a negative
 * errno. */
int packet_send(int socket, unsigned kind, const struct buffer *body, int fd);

/* Receives the next packet into `packet`, whose buffer is used again; a file in it is the caller's
 * to close. Returns 0; -EPIPE if the other end has gone; -ETIMEDOUT if it has not arrived
 * by `until_ns` (CLOCK_MONOTONIC; 0: it may take any time); -EPROTO if it is not a packet; or
 * -ENOMEM: then it is lost, and the next one can be received. */
int packet_receive(int socket, uint64_t until_ns, struct packet *packet);

#endif

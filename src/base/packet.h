/* The messages between us and a helper process (base/starter.h) over a stream socket: a kind,
 * bytes, and at most one open file.
 *
 * Both ends are the same program, so numbers are sent as they are in memory. But the helper reads
 * files that anybody may have made, so its messages are checked like those files. */
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
/* The same for at most this many bytes of it, cut between characters. */
void packet_put_cut_text(struct buffer *body, const char *text, size_t bytes_max);

uint64_t packet_number(struct bytes *body);
/* Valid as long as the packet. Sets `failed` if the bytes are no text. */
const char *packet_text(struct bytes *body);
struct bytes packet_bytes(const struct packet *packet);

/* A field of a struct, which is an unsigned number in the packet. */
struct packet_field {
    size_t offset;
    unsigned bytes; /* 1 to 8 */
    uint64_t max;
};
#define PACKET_FIELD(type, field, max)                                                             \
    {                                                                                              \
        offsetof(type, field), sizeof(((type *)0)->field), max                                     \
    }

/* Puts these fields of a struct into the packet, or takes them from it. A number above a field's
 * maximum sets `failed`, and the field is 0. */
void packet_put_fields(struct buffer *body, const struct packet_field *fields, size_t count,
                       const void *from);
void packet_take_fields(struct bytes *body, const struct packet_field *fields, size_t count,
                        void *to);

/* Sends the bytes and the file, which still belongs to the caller; -1: none. Returns 0 or a
 * negative errno. */
int packet_send(int socket, unsigned kind, const struct buffer *body, int fd);

/* Receives the next packet into `packet`, whose buffer is reused; the caller closes the file in it.
 * Returns 0; -EPIPE if the other end has closed; -ETIMEDOUT if no packet arrived by `until_ns`
 * (CLOCK_MONOTONIC; 0: no limit); -EPROTO if it is not a packet; or -ENOMEM: then this packet is
 * lost, and the next one can be received. */
int packet_receive(int socket, uint64_t until_ns, struct packet *packet);

#endif

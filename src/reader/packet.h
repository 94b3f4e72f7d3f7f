/* The messages between us and the reader process: what kind of thing it is, its bytes, and at most
 * one open file, over a stream socket.
 *
 * Both are the same program, so numbers are as in memory. But the reader reads files that anybody
 * may have made, so what it says is checked as such a file is. */
#ifndef FGPROF_READER_PACKET_H
#define FGPROF_READER_PACKET_H

#include "base/buffer.h"
#include "base/bytes.h"

enum packet_kind {
    /* To the reader: */
    PACKET_OPEN,      /* a module: its serial, path, whether it is readable, its error; the file */
    PACKET_NAME,      /* addresses of that module: how to show names, count, addresses */
    PACKET_VARIABLE,  /* which variable is at an address of that module */
    PACKET_CLASS,     /* to which class objects belong that point to that address */
    PACKET_SHOW,      /* how to show names, and a name */
    PACKET_FILE,      /* what was asked for: 0 or a negative errno, a path or none; the file */
    PACKET_LOAD,      /* the same as PACKET_OPEN, with the module's slot in place of its number */
    PACKET_LOOK_UP,   /* for unwinding: the module's slot, what to look up */
    PACKET_QUERY,     /* the module's slot, and what to look up by name */
    PACKET_HEADERS,   /* the module's slot: what its headers say; and queries */
    PACKET_READ_CODE, /* a perf map or jitdump: how far it was read, how much to read; the file */
    /* From the reader: */
    PACKET_OPENED,    /* before the first symbols: 0 or a negative errno, and why */
    PACKET_SYMBOLS,   /* of the next addresses: count, symbols */
    PACKET_FOUND,     /* the variable or class: 0 or a negative errno, name, offset */
    PACKET_SHOWN,     /* the name to show, or none if it is the same */
    PACKET_WANTED,    /* it needs a file: its path */
    PACKET_FETCHED,   /* it needs a file from a server: the build id's length, and its bytes */
    PACKET_LOOKED_UP, /* 0 or a negative errno, the answer */
    PACKET_ANSWERED,  /* the same, to PACKET_QUERY and PACKET_HEADERS; then, for each of the
                         queries, whether its symbol was found, and the answer */
    PACKET_CODE_READ, /* the same: how far it was read, what it says */
};

#define PACKET_BYTES_MAX (64u << 20)

struct packet {
    enum packet_kind kind;
    struct buffer body;
    int fd; /* -1: none */
};

void packet_put_number(struct buffer *body, uint64_t number);
/* NULL is not the same as "". */
void packet_put_text(struct buffer *body, const char *text);

uint64_t packet_number(struct bytes *body);
/* Valid as long as the packet. Sets `failed` if the bytes are no text. */
const char *packet_text(struct bytes *body);
struct bytes packet_bytes(const struct packet *packet);

/* Sends the bytes and the file, which stays the caller's; -1: none. Returns 0 or a negative
 * errno. */
int packet_send(int socket, enum packet_kind kind, const struct buffer *body, int fd);

/* Receives the next packet into `packet`, whose buffer is used again; a file in it is the caller's
 * to close. Returns 0; -EPIPE if the other end has gone; -ETIMEDOUT if it has not arrived
 * by `until_ns` (CLOCK_MONOTONIC; 0: it may take any time); -EPROTO if it is not a packet; or
 * -ENOMEM. */
int packet_receive(int socket, uint64_t until_ns, struct packet *packet);

#endif

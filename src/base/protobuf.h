/* The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a
 * sequence of fields, each a tag (number << 3 | wire type) and a value. */
#ifndef FGPROF_BASE_PROTOBUF_H
#define FGPROF_BASE_PROTOBUF_H

#include "base/buffer.h"
#include "base/bytes.h"

#include <stdint.h>

enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5,
};

void protobuf_varint(struct buffer *message, uint64_t value);
/* A number; 0 is the default and is not written. */
void protobuf_number(struct buffer *message, unsigned field, uint64_t value);
/* One of 64 bits, whose size does not depend on its value. 0 is not written. */
void protobuf_fixed64(struct buffer *message, unsigned field, uint64_t value);
void protobuf_bytes(struct buffer *message, unsigned field, const void *bytes, size_t length);
void protobuf_string(struct buffer *message, unsigned field, const char *text);

/* Begins a field of packed repeated numbers, as in proto3, or a nested message; its contents are
 * appended to `message` until protobuf_end. */
size_t protobuf_begin(struct buffer *message, unsigned field);
void protobuf_end(struct buffer *message, size_t begin);

struct protobuf_field {
    uint64_t number;
    unsigned type;
    uint64_t value;       /* of PROTOBUF_VARINT */
    struct bytes content; /* of the other types */
};

/* Reads the next field of a message, which may be arbitrary bytes. Returns false at the end, or if
 * the message is damaged, which sets message->failed. */
bool protobuf_next(struct bytes *message, struct protobuf_field *ret_field);

#endif

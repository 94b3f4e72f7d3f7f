/* The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a
 * sequence of fields, each a tag (number << 3 | wire type) and a value. */
#ifndef FGPROF_BASE_PROTOBUF_H
#define FGPROF_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

struct protobuf {
    unsigned char *bytes;
    size_t length, capacity;
    int error; /* 0 or -ENOMEM; the first error stays */
};

/* Appends bytes as they are, without a tag. */
void protobuf_append(struct protobuf *message, const void *bytes, size_t length);
void protobuf_varint(struct protobuf *message, uint64_t value);
/* A number; 0 is the default and is not written. */
void protobuf_number(struct protobuf *message, unsigned field, uint64_t value);
/* One of 64 bits, whose size does not depend on its value. 0 is not written. */
void protobuf_fixed64(struct protobuf *message, unsigned field, uint64_t value);
void protobuf_bytes(struct protobuf *message, unsigned field, const void *bytes, size_t length);
void protobuf_string(struct protobuf *message, unsigned field, const char *text);

/* Repeated numbers are packed, as in proto3: protobuf_varint appends the values between these two
 * calls. A nested message goes between them in the same way. */
size_t protobuf_begin(struct protobuf *message, unsigned field);
void protobuf_end(struct protobuf *message, size_t begin);

void protobuf_free(struct protobuf *message);

#endif

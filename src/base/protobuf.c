#include "base/protobuf.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define WIRE_VARINT 0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES 2u
#define VARINT_MAX_BYTES 10

void protobuf_append(struct protobuf *message, const void *bytes, size_t length)
{
    if (message->error || !length)
        return;
    message->error = array_reserve(&message->bytes, &message->capacity, message->length + length);
    if (message->error)
        return;
    memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

static size_t encode_varint(unsigned char *to, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        to[length++] = (unsigned char)(value | 0x80);
    to[length++] = (unsigned char)value;
    return length;
}

void protobuf_varint(struct protobuf *message, uint64_t value)
{
    unsigned char bytes[VARINT_MAX_BYTES];
    protobuf_append(message, bytes, encode_varint(bytes, value));
}

void protobuf_number(struct protobuf *message, unsigned field, uint64_t value)
{
    if (!value)
        return;
    protobuf_varint(message, field << 3 | WIRE_VARINT);
    protobuf_varint(message, value);
}

void protobuf_fixed64(struct protobuf *message, unsigned field, uint64_t value)
{
    unsigned char bytes[8];
    if (!value)
        return;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    protobuf_varint(message, field << 3 | WIRE_FIXED64);
    protobuf_append(message, bytes, sizeof bytes);
}

void protobuf_bytes(struct protobuf *message, unsigned field, const void *bytes, size_t length)
{
    protobuf_varint(message, field << 3 | WIRE_BYTES);
    protobuf_varint(message, length);
    protobuf_append(message, bytes, length);
}

void protobuf_string(struct protobuf *message, unsigned field, const char *text)
{
    protobuf_bytes(message, field, text, strlen(text));
}

size_t protobuf_begin(struct protobuf *message, unsigned field)
{
    protobuf_varint(message, field << 3 | WIRE_BYTES);
    return message->length;
}

/* The length precedes the content, which moves up to make room for it. */
void protobuf_end(struct protobuf *message, size_t begin)
{
    unsigned char length[VARINT_MAX_BYTES];
    size_t content_bytes = message->length - begin;
    size_t length_bytes = encode_varint(length, content_bytes);
    protobuf_append(message, length, length_bytes); /* only makes room */
    if (message->error)
        return;
    memmove(message->bytes + begin + length_bytes, message->bytes + begin, content_bytes);
    memcpy(message->bytes + begin, length, length_bytes);
}

void protobuf_free(struct protobuf *message)
{
    free(message->bytes);
    *message = (struct protobuf){0};
}

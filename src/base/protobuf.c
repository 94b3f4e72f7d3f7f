#include "base/protobuf.h"

#include <string.h>

#define VARINT_MAX_BYTES 10

static size_t encode_varint(unsigned char *to, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        to[length++] = (unsigned char)(value | 0x80);
    to[length++] = (unsigned char)value;
    return length;
}

void protobuf_varint(struct buffer *message, uint64_t value)
{
    unsigned char bytes[VARINT_MAX_BYTES];
    buffer_write(message, bytes, encode_varint(bytes, value));
}

void protobuf_number(struct buffer *message, unsigned field, uint64_t value)
{
    if (!value)
        return;
    protobuf_varint(message, field << 3 | PROTOBUF_VARINT);
    protobuf_varint(message, value);
}

void protobuf_fixed64(struct buffer *message, unsigned field, uint64_t value)
{
    unsigned char bytes[8];
    if (!value)
        return;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    protobuf_varint(message, field << 3 | PROTOBUF_FIXED64);
    buffer_write(message, bytes, sizeof bytes);
}

void protobuf_bytes(struct buffer *message, unsigned field, const void *bytes, size_t length)
{
    protobuf_varint(message, field << 3 | PROTOBUF_BYTES);
    protobuf_varint(message, length);
    buffer_write(message, bytes, length);
}

void protobuf_string(struct buffer *message, unsigned field, const char *text)
{
    protobuf_bytes(message, field, text, strlen(text));
}

size_t protobuf_begin(struct buffer *message, unsigned field)
{
    protobuf_varint(message, field << 3 | PROTOBUF_BYTES);
    return message->length;
}

/* The length precedes the content, which moves up to make room for it. */
void protobuf_end(struct buffer *message, size_t begin)
{
    unsigned char length[VARINT_MAX_BYTES];
    size_t content_bytes = message->length - begin;
    size_t length_bytes = encode_varint(length, content_bytes);
    buffer_write(message, length, length_bytes); /* only makes room */
    if (message->error)
        return;
    memmove(message->bytes + begin + length_bytes, message->bytes + begin, content_bytes);
    memcpy(message->bytes + begin, length, length_bytes);
}

bool protobuf_next(struct bytes *message, struct protobuf_field *ret_field)
{
    if (!bytes_left(message))
        return false;
    uint64_t tag = bytes_uleb(message), length = 0;
    *ret_field = (struct protobuf_field){.number = tag >> 3, .type = tag & 7};
    switch (ret_field->type) {
    case PROTOBUF_VARINT:
        ret_field->value = bytes_uleb(message);
        break;
    case PROTOBUF_FIXED64:
        length = 8;
        break;
    case PROTOBUF_FIXED32:
        length = 4;
        break;
    case PROTOBUF_BYTES:
        length = bytes_uleb(message);
        break;
    default:
        message->failed = true;
    }
    ret_field->content.at = message->at;
    bytes_skip(message, length);
    ret_field->content.end = message->at;
    return !message->failed;
}

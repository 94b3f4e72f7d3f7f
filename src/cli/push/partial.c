#include "cli/push/partial.h"

#include <stdbool.h>

/* collector/profiles/v1development/profiles_service.proto */
enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_REJECTED_PROFILES = 1,
    PARTIAL_ERROR_MESSAGE = 2,
};

/* Wire types (protobuf.dev/programming-guides/encoding). */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct message {
    const unsigned char *at, *end;
};

struct field {
    uint64_t number, type;
    uint64_t value;         /* a VARINT's */
    struct message content; /* of BYTES */
};

static bool read_varint(struct message *message, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && message->at < message->end; shift += 7) {
        unsigned char byte = *message->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* Takes the next field. Returns false at the end, and if there is none to be read. */
static bool next_field(struct message *message, struct field *field)
{
    uint64_t tag, bytes = 0;
    if (!read_varint(message, &tag))
        return false;
    *field = (struct field){.number = tag >> 3, .type = tag & 7};
    switch (field->type) {
    case VARINT:
        return read_varint(message, &field->value);
    case FIXED64:
        bytes = 8;
        break;
    case FIXED32:
        bytes = 4;
        break;
    case BYTES:
        if (!read_varint(message, &bytes))
            return false;
        break;
    default:
        return false;
    }
    if (bytes > (uint64_t)(message->end - message->at))
        return false;
    field->content = (struct message){message->at, message->at + bytes};
    message->at += bytes;
    return true;
}

static void read_partial(struct message message, struct partial_success *partial)
{
    struct field field;
    while (next_field(&message, &field)) {
        if (field.number == PARTIAL_REJECTED_PROFILES && field.type == VARINT)
            partial->rejected = field.value <= INT64_MAX ? field.value : 0;
        if (field.number == PARTIAL_ERROR_MESSAGE && field.type == BYTES) {
            partial->message = (const char *)field.content.at;
            partial->message_bytes = (size_t)(field.content.end - field.content.at);
        }
    }
}

void partial_success_read(const void *answer, size_t bytes, struct partial_success *ret_partial)
{
    const unsigned char *begin = answer;
    struct message response = {begin, begin + bytes};
    struct field field;
    *ret_partial = (struct partial_success){0};
    while (next_field(&response, &field)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.type == BYTES)
            read_partial(field.content, ret_partial);
    }
}

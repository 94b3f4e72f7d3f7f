#include "cli/push/partial.h"
#include "base/bytes.h"
#include "base/protobuf.h"

/* collector/profiles/v1development/profiles_service.proto */
enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_REJECTED_PROFILES = 1,
    PARTIAL_ERROR_MESSAGE = 2,
};

struct field {
    uint64_t number;
    unsigned type;
    uint64_t value;       /* a PROTOBUF_VARINT's */
    struct bytes content; /* of PROTOBUF_BYTES */
};

/* Takes the next field. Returns false at the end, and if there is none to be read. */
static bool next_field(struct bytes *message, struct field *field)
{
    if (!bytes_left(message))
        return false;
    uint64_t tag = bytes_uleb(message), length = 0;
    *field = (struct field){.number = tag >> 3, .type = tag & 7};
    switch (field->type) {
    case PROTOBUF_VARINT:
        field->value = bytes_uleb(message);
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
        return false;
    }
    field->content.at = message->at;
    bytes_skip(message, length);
    field->content.end = message->at;
    return !message->failed;
}

static void read_partial(struct bytes message, struct partial_success *partial)
{
    struct field field;
    while (next_field(&message, &field)) {
        if (field.number == PARTIAL_REJECTED_PROFILES && field.type == PROTOBUF_VARINT)
            partial->rejected = field.value <= INT64_MAX ? field.value : 0;
        if (field.number == PARTIAL_ERROR_MESSAGE && field.type == PROTOBUF_BYTES) {
            partial->message = (const char *)field.content.at;
            partial->message_bytes = bytes_left(&field.content);
        }
    }
}

void partial_success_read(const void *answer, size_t bytes, struct partial_success *ret_partial)
{
    const unsigned char *begin = answer;
    struct bytes response = {.at = begin, .end = begin + bytes};
    struct field field;
    *ret_partial = (struct partial_success){0};
    while (next_field(&response, &field)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.type == PROTOBUF_BYTES)
            read_partial(field.content, ret_partial);
    }
}

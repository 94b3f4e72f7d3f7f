#include "cli/push/partial.h"
#include "base/protobuf.h"

/* collector/profiles/v1development/profiles_service.proto */
enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_REJECTED_PROFILES = 1,
    PARTIAL_ERROR_MESSAGE = 2,
};

static void read_partial(struct bytes message, struct partial_success *partial)
{
    struct protobuf_field field;
    while (protobuf_next(&message, &field)) {
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
    struct protobuf_field field;
    *ret_partial = (struct partial_success){0};
    while (protobuf_next(&response, &field)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.type == PROTOBUF_BYTES)
            read_partial(field.content, ret_partial);
    }
}

/* Reads protocol buffers (protobuf.dev/programming-guides/encoding), field by field. */
#ifndef FGPROF_TESTS_READ_PROTOBUF_H
#define FGPROF_TESTS_READ_PROTOBUF_H

#include "unit.h"

#include <stdlib.h>
#include <zlib.h>

struct bytes {
    const unsigned char *at, *end;
};

struct field {
    unsigned number;
    bool is_bytes;
    uint64_t value;     /* of a varint, or of 64 bits */
    struct bytes bytes; /* of all other types */
};

static inline uint64_t read_varint(struct bytes *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(from->at < from->end);
        assert_true(shift < 64);
        unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline bool read_field(struct bytes *from, struct field *field)
{
    if (from->at == from->end)
        return false;
    uint64_t tag = read_varint(from);
    *field = (struct field){.number = (unsigned)(tag >> 3), .is_bytes = (tag & 7) == 2};
    assert_true(field->number > 0);
    if ((tag & 7) == 1) {
        assert_true(from->end - from->at >= 8);
        memcpy(&field->value, from->at, 8);
        from->at += 8;
        return true;
    }
    if (!field->is_bytes) {
        assert_int_equal(tag & 7, 0);
        field->value = read_varint(from);
        return true;
    }
    uint64_t length = read_varint(from);
    assert_true(length <= (uint64_t)(from->end - from->at));
    field->bytes = (struct bytes){from->at, from->at + length};
    from->at += length;
    return true;
}

/* The caller frees what `at` points at. */
static inline struct bytes gunzip(const char *packed, size_t length)
{
    size_t capacity = 4u << 20;
    unsigned char *plain = malloc(capacity);
    assert_non_null(plain);
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (uInt)length,
                       .next_out = plain,
                       .avail_out = (uInt)capacity};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
    return (struct bytes){plain, plain + stream.total_out};
}

#endif

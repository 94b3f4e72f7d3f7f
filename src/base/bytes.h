/* Reads DWARF numbers from bytes that may be damaged: a missing number reads as 0 and sets
 * `failed`. Little-endian, as both architectures are. */
#ifndef FGPROF_BASE_BYTES_H
#define FGPROF_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at, *end;
    bool failed; /* a read went past the end, or a number has no end or is too long */
};

/* The word `at` bytes behind `bytes`, which need not be aligned. */
static inline uint64_t load_word(const void *bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, (const char *)bytes + at, sizeof word);
    return word;
}

static inline size_t bytes_left(const struct bytes *bytes)
{
    return (size_t)(bytes->end - bytes->at);
}

static inline void bytes_skip(struct bytes *bytes, uint64_t count)
{
    if (count > bytes_left(bytes)) {
        bytes->failed = true;
        count = bytes_left(bytes);
    }
    bytes->at += count;
}

/* A number of `size` bytes; more than 8 fail. */
static inline uint64_t bytes_unsigned(struct bytes *bytes, unsigned size)
{
    uint64_t value = 0;
    if (size > sizeof value || size > bytes_left(bytes)) {
        bytes->failed = true;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static inline int64_t bytes_signed(struct bytes *bytes, unsigned size)
{
    unsigned unused_bits = 64 - 8 * size;
    return (int64_t)(bytes_unsigned(bytes, size) << unused_bits) >> unused_bits;
}

#define LEB_BITS_MAX 70 /* ten bytes of seven */

/* LEB128 numbers (DWARF 5, 7.6) of at most 64 bits. Encodings of more bytes than that needs fail,
 * because readers disagree about their value. */
static inline uint64_t bytes_leb(struct bytes *bytes, unsigned *ret_bits, bool *ret_is_negative)
{
    uint64_t value = 0;
    unsigned bits = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)bytes_unsigned(bytes, 1);
        if (bits < 64)
            value |= (uint64_t)(byte & 0x7f) << bits;
        bits += 7;
    } while (byte & 0x80 && !bytes->failed);
    if (bits > LEB_BITS_MAX)
        bytes->failed = true;
    *ret_bits = bits;
    *ret_is_negative = byte & 0x40;
    return value;
}

static inline uint64_t bytes_uleb(struct bytes *bytes)
{
    unsigned bits;
    bool is_negative;
    return bytes_leb(bytes, &bits, &is_negative);
}

static inline int64_t bytes_sleb(struct bytes *bytes)
{
    unsigned bits;
    bool is_negative;
    uint64_t value = bytes_leb(bytes, &bits, &is_negative);
    if (is_negative && bits < 64)
        value |= ~(uint64_t)0 << bits;
    return (int64_t)value;
}

#endif

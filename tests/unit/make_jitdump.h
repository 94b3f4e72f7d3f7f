/* Jitdumps built by hand, in either byte order. */
#ifndef FGPROF_TESTS_MAKE_JITDUMP_H
#define FGPROF_TESTS_MAKE_JITDUMP_H

#include "unit.h"

#include <byteswap.h>

#define MADE_HEADER_BYTES 40

struct made_dump {
    uint8_t bytes[1 << 15];
    size_t length;
    bool is_swapped;
};

struct made_jit_line {
    uint64_t address;
    uint32_t line;
    const char *file; /* NULL ends the array */
};

static inline void put_bytes(struct made_dump *made, const void *bytes, size_t count)
{
    assert_true(count <= sizeof made->bytes - made->length);
    memcpy(made->bytes + made->length, bytes, count);
    made->length += count;
}

static inline void put_32(struct made_dump *made, uint32_t value)
{
    value = made->is_swapped ? bswap_32(value) : value;
    put_bytes(made, &value, sizeof value);
}

static inline void put_64(struct made_dump *made, uint64_t value)
{
    value = made->is_swapped ? bswap_64(value) : value;
    put_bytes(made, &value, sizeof value);
}

static inline void make_header(struct made_dump *made)
{
    put_32(made, 0x4A695444); /* magic, version, size, machine, padding, pid, time, flags */
    put_32(made, 1);
    put_32(made, MADE_HEADER_BYTES);
    put_32(made, 62);
    put_32(made, 0);
    put_32(made, 7);
    put_64(made, 1);
    put_64(made, 0);
}

static inline void put_record_header(struct made_dump *made, uint32_t id, size_t bytes)
{
    put_32(made, id);
    put_32(made, (uint32_t)bytes);
    put_64(made, 2);
}

/* A record of zeros. */
static inline void make_record(struct made_dump *made, uint32_t id, size_t bytes)
{
    static const uint8_t zeros[256];
    put_record_header(made, id, bytes);
    put_bytes(made, zeros, bytes > 16 ? bytes - 16 : 0);
}

static inline void put_load(struct made_dump *made, uint64_t start, uint64_t size, uint64_t id,
                            const char *name, size_t code_bytes)
{
    put_record_header(made, 0, 56 + strlen(name) + 1 + code_bytes);
    put_32(made, 7); /* pid, tid, address, address, size, id */
    put_32(made, 7);
    put_64(made, start);
    put_64(made, start);
    put_64(made, size);
    put_64(made, id);
    put_bytes(made, name, strlen(name) + 1);
    for (size_t i = 0; i < code_bytes; i++)
        put_bytes(made, "\x90", 1);
}

static inline void make_load(struct made_dump *made, uint64_t start, uint64_t size, uint64_t id,
                             const char *name)
{
    put_load(made, start, size, id, name, size);
}

static inline void make_load_of_size(struct made_dump *made, uint64_t start, uint64_t size,
                                     const char *name)
{
    put_load(made, start, size, 1, name, 1);
}

static inline void make_move(struct made_dump *made, uint64_t from, uint64_t to, uint64_t size,
                             uint64_t id)
{
    put_record_header(made, 1, 64);
    put_32(made, 7);
    put_32(made, 7);
    put_64(made, to);
    put_64(made, from);
    put_64(made, to);
    put_64(made, size);
    put_64(made, id);
}

static inline void make_lines(struct made_dump *made, uint64_t start,
                              const struct made_jit_line *lines)
{
    size_t bytes = 32, count = 0;
    for (; lines[count].file; count++)
        bytes += 16 + strlen(lines[count].file) + 1;
    put_record_header(made, 2, bytes);
    put_64(made, start);
    put_64(made, count);
    for (size_t i = 0; i < count; i++) {
        put_64(made, lines[i].address);
        put_32(made, lines[i].line);
        put_32(made, 0);
        put_bytes(made, lines[i].file, strlen(lines[i].file) + 1);
    }
}

#endif

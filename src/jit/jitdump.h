/* A jitdump: the file in which a process records the code that it generates, with its names, its
 * lines and the code itself (Documentation/jitdump-specification.txt of the kernel's tools/perf).
 *
 * A header, then records, of which the last may not be whole yet. It is the process's own and can
 * say anything. */
#ifndef FGPROF_JIT_JITDUMP_H
#define FGPROF_JIT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So much of a record is looked at: all of one of lines; of one with code, the name before it. */
#define JITDUMP_BUFFER_BYTES (256u << 10)

enum jitdump_kind {
    JITDUMP_OTHER, /* nothing to be named by */
    JITDUMP_LOAD,  /* code is there */
    JITDUMP_MOVE,  /* code is elsewhere now */
    JITDUMP_LINES, /* of the code that is loaded next, if it is at `start` */
};

struct jitdump_record {
    enum jitdump_kind kind;
    uint64_t start, size; /* of the code, where it is now; start + size does not overflow */
    uint64_t id;          /* of the code: what moves is known by it */
    const char *name;     /* of what is loaded; not ended by NUL, not empty */
    size_t name_bytes;
    const uint8_t *lines; /* for jitdump_next_line, and how many there are still */
    size_t line_bytes;
    uint64_t line_count;
    const char *file; /* of the last one */
    size_t file_bytes;
    bool is_swapped;
    bool is_too_long; /* it was not looked at */
};

struct jitdump_line {
    uint64_t address;
    const char *file; /* not ended by NUL */
    size_t file_bytes;
    uint32_t line;
};

/* Where a reading stands. Zeroed at first. */
struct jitdump {
    bool has_header;
    bool is_swapped; /* of the other byte order */
};

enum jitdump_result { JITDUMP_RECORD, JITDUMP_NEEDS_MORE, JITDUMP_BROKEN };

/* Takes the next record, the header too, off `bytes`, of which there are `length`, and in the file
 * from there on `available`. *ret_used: how long it is, which may be more than `length`. More than
 * JITDUMP_BUFFER_BYTES are never needed. After JITDUMP_BROKEN there is no going on. */
enum jitdump_result jitdump_next(struct jitdump *dump, const uint8_t *bytes, size_t length,
                                 uint64_t available, struct jitdump_record *ret_record,
                                 uint64_t *ret_used);

/* Takes the next line off a record of lines. Returns false at its end, or where it is broken: then
 * record->line_count is not 0. */
bool jitdump_next_line(struct jitdump_record *record, struct jitdump_line *ret_line);

#endif

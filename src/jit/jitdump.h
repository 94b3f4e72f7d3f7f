/* A jitdump: the file in which a process records the code that it generates, with its names, its
 * lines and the code itself (Documentation/jitdump-specification.txt of the kernel's tools/perf).
 *
 * A header, then records; the last one may be incomplete. The process writes the file, so its
 * contents are not trusted. */
#ifndef FGPROF_JIT_JITDUMP_H
#define FGPROF_JIT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much of a record is read: all of a record of lines; a record with code up to the end of its
 * name. */
#define JITDUMP_BUFFER_BYTES (256u << 10)

enum jitdump_kind {
    JITDUMP_OTHER, /* names nothing */
    JITDUMP_LOAD,  /* code was loaded */
    JITDUMP_MOVE,  /* code was moved */
    JITDUMP_LINES, /* lines of the code that is loaded next, if that is at `start` */
};

struct jitdump_record {
    enum jitdump_kind kind;
    uint64_t start, size; /* of the code, where it is now; start + size does not overflow */
    uint64_t id;          /* of the code: identifies it when it moves */
    const char *name;     /* of the loaded code; not ended by NUL, not empty */
    size_t name_bytes;
    const uint8_t *lines; /* for jitdump_next_line, like the next two: what is left */
    size_t line_bytes;
    uint64_t line_count;
    const char *file; /* of the last line */
    size_t file_bytes;
    bool is_swapped;
    bool is_too_long; /* it was skipped */
};

struct jitdump_line {
    uint64_t address;
    const char *file; /* not ended by NUL */
    size_t file_bytes;
    uint32_t line;
};

/* The state of a reading. Starts zeroed. */
struct jitdump {
    bool has_header;
    bool is_swapped; /* in the other byte order */
};

enum jitdump_result { JITDUMP_RECORD, JITDUMP_NEEDS_MORE, JITDUMP_BROKEN };

/* Parses the next record, or the header, at `bytes`, which has `length` bytes; the file has
 * `available` bytes from there on. *ret_used is the record's length, which may be more than
 * `length`. More than JITDUMP_BUFFER_BYTES are never needed. After JITDUMP_BROKEN, reading can't go
 * on. */
enum jitdump_result jitdump_next(struct jitdump *dump, const uint8_t *bytes, size_t length,
                                 uint64_t available, struct jitdump_record *ret_record,
                                 uint64_t *ret_used);

/* Takes the next line from a record of lines. Returns false at its end, or if it is broken; then
 * record->line_count is not 0. */
bool jitdump_next_line(struct jitdump_record *record, struct jitdump_line *ret_line);

#endif

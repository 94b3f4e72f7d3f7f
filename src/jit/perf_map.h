/* A perf map: the text in which a process names the code that it generates, one function a line,
 * such as
 *   7f52a40012c0 1a4 LazyCompile:*handle /srv/app.js:10:3
 * with its start and its size in hex, with or without 0x, and its name up to the end of the line
 * (Documentation/jit-interface.txt of the kernel's tools/perf). */
#ifndef FGPROF_JIT_PERF_MAP_H
#define FGPROF_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer lines are cut: nobody can read such a name, and a line may have no end. */
#define PERF_MAP_LINE_MAX 4096u

struct perf_map_entry {
    uint64_t start, size; /* size > 0, and start + size does not overflow */
    const char *name;     /* points into the line; not ended by NUL, not empty */
    size_t name_bytes;
};

/* Parses one line, without its line feed. Returns false if it is not an entry. */
bool perf_map_parse_line(const char *line, size_t bytes, struct perf_map_entry *ret_entry);

/* The state of a reading. Starts zeroed. */
struct perf_map {
    bool is_in_long_line; /* the rest of the line must be skipped */
};

typedef void perf_map_visit_fn(void *context, const struct perf_map_entry *entry);

/* Reads the complete lines in the next `bytes` bytes of a map. An incomplete line is left for the
 * next call, with what has been added to it by then. Returns the number of bytes consumed. */
size_t perf_map_read(struct perf_map *map, const char *text, size_t bytes, perf_map_visit_fn *visit,
                     void *context);

#endif

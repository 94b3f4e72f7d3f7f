/* A perf map: the text in which a process names the code that it generates, one line a function, as
 *   7f52a40012c0 1a4 LazyCompile:*handle /srv/app.js:10:3
 * with its start and its size in hex, with or without 0x, and its name up to the end of the line
 * (Documentation/jit-interface.txt of the kernel's tools/perf). */
#ifndef FGPROF_JIT_PERF_MAP_H
#define FGPROF_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer lines are cut: so long a name is nothing to read, and a line may have no end. */
#define PERF_MAP_LINE_MAX 4096u

struct perf_map_entry {
    uint64_t start, size; /* size > 0, and start + size does not overflow */
    const char *name;     /* points into the line; not ended by NUL; not empty */
    size_t name_bytes;
};

/* Parses one line, without its line feed. Returns false where it is no entry. */
bool perf_map_parse_line(const char *line, size_t bytes, struct perf_map_entry *ret_entry);

/* Where a reading stands. Zeroed at first. */
struct perf_map {
    bool is_in_long_line; /* the rest of it is to be skipped */
    uint64_t lines_ignored;
};

/* Returns 0, or what ends the reading. */
typedef int perf_map_visit_fn(void *context, const struct perf_map_entry *entry);

/* Reads the whole lines of the next `bytes` bytes of a map. A line that has not ended yet is left
 * for the next call, with what has been written of it by then. *ret_used: the bytes that are done
 * with. Returns what the last visit did. */
int perf_map_read(struct perf_map *map, const char *text, size_t bytes, perf_map_visit_fn *visit,
                  void *context, size_t *ret_used);

#endif

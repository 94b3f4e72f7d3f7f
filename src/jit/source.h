/* A perf map or a jitdump that is still being written: reads what was added to it, on demand. */
#ifndef FGPROF_JIT_SOURCE_H
#define FGPROF_JIT_SOURCE_H

#include "jit/announce.h"
#include "jit/jitdump.h"
#include "jit/perf_map.h"

#include <sys/types.h>

/* Starts zeroed. */
struct jit_source {
    bool is_open;
    bool is_dump;
    bool is_spent; /* broken or too large: nothing more is read */
    bool is_full;  /* the code has reached a limit */
    int fd;
    off_t size;            /* when jit_source_has_more last looked */
    off_t end;             /* its size when its end was last reached; 0: it was not */
    off_t offset;          /* how far it has been read; the end may be inside a record */
    off_t bytes_read;      /* since its end was last reached */
    uint64_t bytes_unread; /* how much was left out */
    struct perf_map map;
    struct jitdump dump;
    uint64_t lines_start; /* in a dump: start of the code that the last lines belong to */
    uint32_t line_count;  /* in a dump: how many lines those are */
};

/* Takes over `fd`, a regular file. If a map is very large already, only its end is read. */
void jit_source_open(struct jit_source *source, int fd, bool is_dump);
void jit_source_close(struct jit_source *source);

/* Whether there is anything new to read: not if the file ends where it did when its end was last
 * reached. A file that has become shorter was rewritten, and is read from its start. A deleted map
 * is closed once all of it was read, unless it ends within a line: its writer goes on. */
bool jit_source_has_more(struct jit_source *source);

/* What was read of a source. Zeroed at first; its buffer is used again. */
struct jit_reading {
    struct jit_source source; /* its state after the read */
    bool is_at_end;           /* there is nothing more to read now */
    uint64_t cpu_ns;          /* what it took */
    struct buffer announced;
};

/* Reads about `most` more bytes. For a target's file, a process without privileges does this (see
 * unwind/lookup.h). Returns 0 or -ENOMEM. */
int jit_source_read(const struct jit_source *source, off_t most, struct jit_reading *reading);

/* Announces what was read to `code`, and continues after it. If it does not fit, or can't come from
 * a file, the source is marked full or spent. Returns 0 or -ENOMEM. */
int jit_source_take(struct jit_source *source, const struct jit_reading *reading,
                    struct jit_code *code);

#endif

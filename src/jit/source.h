/* A perf map or a jitdump that is being written: what was added to it is read when asked for. */
#ifndef FGPROF_JIT_SOURCE_H
#define FGPROF_JIT_SOURCE_H

#include "jit/code.h"
#include "jit/jitdump.h"
#include "jit/perf_map.h"

#include <sys/types.h>

/* Zeroed at first. */
struct jit_source {
    bool is_open;
    bool is_dump;
    bool is_spent; /* it is broken, or too much: nothing more is read */
    int fd;
    off_t offset; /* it is read up to there */
    off_t bytes_read;
    uint64_t bytes_unread; /* what was left out */
    struct perf_map map;
    struct jitdump dump;
    uint64_t lines_start; /* in a dump: of the code that the lines are of which were read last, */
    uint32_t line_count;  /* and how many they are */
};

/* Takes over `fd`, a regular file. Of a map that is very large already, the end is read. */
void jit_source_open(struct jit_source *source, int fd, bool is_dump);
void jit_source_close(struct jit_source *source);

/* Whether there is anything new. One that has become shorter was written anew, and is read from its
 * start; one that has been deleted and has nothing new is closed. */
bool jit_source_has_more(struct jit_source *source);

/* Reads on, some `most` bytes, and announces to `code` what it finds. Returns 1 where it came to
 * the end, 0 where there is more, or -ENOMEM. */
int jit_source_read(struct jit_source *source, struct jit_code *code, off_t most);

#endif

/* The contents of a perf map or jitdump, as bytes. A process without privileges reads such a file
 * and passes on what it says; the receiver checks that like the file itself. */
#ifndef FGPROF_JIT_ANNOUNCE_H
#define FGPROF_JIT_ANNOUNCE_H

#include "base/buffer.h"
#include "base/bytes.h"
#include "jit/code.h"

/* Append the arguments of jit_code_add, jit_code_add_line, jit_code_identify and jit_code_move. If
 * `file` is NULL, it is the same as for the previous line. An error stays in the buffer. */
void announce_symbol(struct buffer *to, uint64_t start, uint64_t size, const char *name,
                     size_t name_bytes, uint32_t line_count);
void announce_line(struct buffer *to, uint32_t offset, const char *file, size_t file_bytes,
                   uint32_t line);
void announce_id(struct buffer *to, uint64_t id);
void announce_move(struct buffer *to, uint64_t id, uint64_t start);

/* Announces all of it to `code`. Returns 0, -EPROTO if it has another form, -ENOSPC if a limit of
 * the code is reached, or -ENOMEM. */
int announced_take(struct bytes announced, struct jit_code *code);

#endif

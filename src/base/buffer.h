/* Bytes in memory that grow. The first error stays, and later writes do nothing. */
#ifndef FGPROF_BASE_BUFFER_H
#define FGPROF_BASE_BUFFER_H

#include <stddef.h>

struct buffer {
    char *bytes; /* a NUL follows them, once anything was written */
    size_t length, capacity;
    int error; /* 0 or a negative errno */
};

/* Makes room for `length` more bytes. Returns buffer->error. */
int buffer_reserve(struct buffer *buffer, size_t length);

void buffer_write(struct buffer *buffer, const void *bytes, size_t length);
void buffer_puts(struct buffer *buffer, const char *text);
void buffer_print(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends a word as a shell takes it: in single quotes if it needs any. */
void buffer_put_quoted(struct buffer *buffer, const char *word);

void buffer_free(struct buffer *buffer);

#endif

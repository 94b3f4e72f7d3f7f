/* Text that grows, and target names made fit for an output. */
#ifndef FGPROF_OUTPUT_TEXT_BUFFER_H
#define FGPROF_OUTPUT_TEXT_BUFFER_H

#include "base/sink.h"

#include <stddef.h>

struct text_buffer {
    char *text; /* ends with NUL once anything was appended */
    size_t length, capacity;
    int error; /* 0 or -ENOMEM; the first error stays */
};

void text_append(struct text_buffer *buffer, const char *text);
void text_append_bytes(struct text_buffer *buffer, const char *text, size_t bytes);

/* Appends a name, with control characters and bytes that are not UTF-8 as \xHH: a name is data of
 * the target and could otherwise end a line, control a terminal, or make the output unreadable. */
void text_append_name(struct text_buffer *buffer, const char *name);

/* The same in at most `columns` columns, at least 8: a longer name loses its middle, and has "..."
 * there. A character counts as one column. */
void text_append_short_name(struct text_buffer *buffer, const char *name, size_t columns);

/* Appends as printf(3) does. */
void text_print(struct text_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How many characters of UTF-8 there are in the text. */
size_t text_columns(const char *text, size_t bytes);

void text_free(struct text_buffer *buffer);

/* Writes the text, and frees it. Errors of both are in the sink. */
void text_put(struct sink *sink, struct text_buffer *buffer);

#endif

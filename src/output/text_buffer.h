/* Text that grows, and target names made fit for an output. */
#ifndef FGPROF_OUTPUT_TEXT_BUFFER_H
#define FGPROF_OUTPUT_TEXT_BUFFER_H

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

void text_free(struct text_buffer *buffer);

#endif

/* Bytes in memory that grow, and fields of protocol buffers in them
 * (protobuf.dev/programming-guides/encoding). */
#ifndef FGPROF_CLI_PUSH_MEMORY_H
#define FGPROF_CLI_PUSH_MEMORY_H

#include "fgprof.h"

#include <stddef.h>

struct memory {
    char *bytes; /* the owner frees them */
    size_t length, capacity;
    int error; /* 0 or a negative errno; the first one stays */
};

void memory_add(struct memory *memory, const void *bytes, size_t length);
void memory_print(struct memory *memory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A field of bytes: a string, or a message. */
void memory_add_field(struct memory *memory, unsigned field, const void *bytes, size_t length);
void memory_add_text(struct memory *memory, unsigned field, const char *text);

/* The profile in this format. */
void memory_add_profile(struct memory *memory, const fgprof_profile *profile,
                        enum fgprof_format format);

#endif

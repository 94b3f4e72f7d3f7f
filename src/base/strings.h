/* Interned strings: each distinct string is stored once and has a number. Number 0 is "". */
#ifndef FGPROF_BASE_STRINGS_H
#define FGPROF_BASE_STRINGS_H

#include "base/index.h"
#include "base/renumber.h"

/* Stands for all names beyond a limit. */
#define STRING_OTHER "[other]"

struct strings {
    char **items;
    size_t count;
    size_t capacity;
    struct index index;
    size_t text_bytes; /* of all strings */
};

/* Returns 0, or -ENOMEM, and then nothing has to be freed. */
int strings_init(struct strings *strings);
void strings_free(struct strings *strings);

/* Sets *ret_id to the number of `text`, which is copied when first seen. Returns 0 or -ENOMEM. */
int strings_intern(struct strings *strings, const char *text, uint32_t *ret_id);

/* The same for a text that is made as by printf(3). */
int strings_print(struct strings *strings, uint32_t *ret_id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, but adds nothing: returns false if the string is not there. */
bool strings_find(const struct strings *strings, const char *text, uint32_t *ret_id);

/* Keeps only these strings, which get new numbers. "" must be among them. */
void strings_keep(struct strings *strings, const struct renumber *rows);

size_t strings_bytes(const struct strings *strings);

const char *strings_get(const struct strings *strings, uint32_t id);

#endif

/* What a mistyped word probably means. */
#ifndef FGPROF_CLI_SUGGEST_H
#define FGPROF_CLI_SUGGEST_H

#include <stddef.h>

/* How many letters to insert, delete, replace or swap with the next to get from one word to the
 * other: the optimal string alignment distance. Words of over 63 letters are cut. */
size_t edit_distance(const char *one, const char *other);

/* The nearest of the words that is near: at most one edit for each three letters of `word`. NULL:
 * there is none. */
const char *suggest(const char *word, const char *const *words, size_t count);

#endif

/* What a mistyped word probably means. */
#ifndef FGPROF_CLI_SUGGEST_H
#define FGPROF_CLI_SUGGEST_H

#include <stddef.h>

/* The optimal string alignment distance: how many letters must be inserted, deleted, replaced or
 * swapped with the next to turn one word into the other. Words of over 63 letters are cut. */
size_t edit_distance(const char *one, const char *other);

/* The closest of the words, with at most one edit for each three letters of `word`. NULL: there is
 * none. */
const char *suggest(const char *word, const char *const *words, size_t count);

#endif

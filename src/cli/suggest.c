#include "cli/suggest.h"

#include <string.h>

#define LENGTH_MAX 63
#define LETTERS_PER_EDIT 3

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

size_t edit_distance(const char *one, const char *other)
{
    /* The distances of the first i letters of `one`, of one fewer, and of two fewer, to the first j
     * letters of the other word. */
    size_t rows[3][LENGTH_MAX + 1];
    size_t length = strnlen(one, LENGTH_MAX), columns = strnlen(other, LENGTH_MAX);
    for (size_t j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length; i++) {
        size_t *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t replaced = before[j - 1] + (one[i - 1] != other[j - 1]);
            row[j] = least(replaced, least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                row[j] = least(row[j], two_before[j - 2] + 1);
        }
    }
    return rows[length % 3][columns];
}

const char *suggest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t edits_max = (strlen(word) + LETTERS_PER_EDIT - 1) / LETTERS_PER_EDIT;
    size_t edits_least = edits_max + 1;
    for (size_t i = 0; i < count; i++) {
        size_t edits = edit_distance(word, words[i]);
        if (edits >= edits_least)
            continue;
        edits_least = edits;
        nearest = words[i];
    }
    return nearest;
}

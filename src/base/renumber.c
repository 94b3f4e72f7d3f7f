#include "base/renumber.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int renumber_init(struct renumber *rows, size_t count)
{
    rows->to = malloc(count * sizeof *rows->to + 1);
    rows->count = rows->to ? count : 0;
    for (size_t i = 0; i < rows->count; i++)
        rows->to[i] = ROW_GONE;
    return rows->to ? 0 : -ENOMEM;
}

void renumber_free(struct renumber *rows)
{
    free(rows->to);
    *rows = (struct renumber){0};
}

void renumber_keep(struct renumber *rows, uint32_t row)
{
    if (row < rows->count)
        rows->to[row] = 0;
}

void renumber_assign(struct renumber *rows)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->to[i] != ROW_GONE)
            rows->to[i] = kept++;
    }
}

size_t renumber_kept(const struct renumber *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++)
        kept += rows->to[i] != ROW_GONE;
    return kept;
}

uint32_t renumber_of(const struct renumber *rows, uint32_t row)
{
    return row < rows->count ? rows->to[row] : row;
}

uint32_t renumber_plus_1(const struct renumber *rows, uint32_t row_plus_1)
{
    uint32_t to = row_plus_1 ? renumber_of(rows, row_plus_1 - 1) : ROW_GONE;
    return to == ROW_GONE ? 0 : to + 1;
}

void renumber_move(const struct renumber *rows, void *items, size_t row_bytes)
{
    char *bytes = items;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->to[i] != ROW_GONE && rows->to[i] != i)
            memcpy(&bytes[rows->to[i] * row_bytes], &bytes[i * row_bytes], row_bytes);
    }
}

/* New numbers for the rows of a table that loses some of them. Rows keep their order. */
#ifndef FGPROF_BASE_RENUMBER_H
#define FGPROF_BASE_RENUMBER_H

#include <stddef.h>
#include <stdint.h>

#define ROW_GONE UINT32_MAX

struct renumber {
    uint32_t *to; /* by old number: ROW_GONE, or the new number once renumber_assign was called */
    size_t count;
};

/* At first all of the `count` rows go. Returns 0 or -ENOMEM. */
int renumber_init(struct renumber *rows, size_t count);
void renumber_free(struct renumber *rows);

/* The row stays. A number that no row has is ignored. */
void renumber_keep(struct renumber *rows, uint32_t row);

/* Gives those that stay their numbers, from 0. */
void renumber_assign(struct renumber *rows);

/* How many rows stay. */
size_t renumber_kept(const struct renumber *rows);

/* The row's new number. A number that no row had stays as it is. */
uint32_t renumber_of(const struct renumber *rows, uint32_t row);

/* The same for numbers + 1, where 0 is no row: a row that goes becomes 0. */
uint32_t renumber_plus_1(const struct renumber *rows, uint32_t row_plus_1);

/* Moves the rows that stay together. `items` is an array of rows of `row_bytes`. */
void renumber_move(const struct renumber *rows, void *items, size_t row_bytes);

#endif

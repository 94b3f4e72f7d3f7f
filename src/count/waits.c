#include "count/waits.h"

#include <stdlib.h>

/* Adds no more than `rows_max` rows: beyond them *ret_wait_plus_1 is 0. */
static int add(struct waits *waits, const struct counted_wait *row, size_t rows_max,
               uint32_t *ret_wait_plus_1)
{
    uint32_t number = INDEX_FIND(&waits->index, sizeof *row, row, waits->rows);
    int err = 0;
    if (number == INDEX_NONE && waits->count < rows_max)
        err = INDEX_INTERN(&waits->index, sizeof *row, row, &waits->rows, &waits->count,
                           &waits->capacity, &number);
    *ret_wait_plus_1 = number + 1; /* 0: it is INDEX_NONE */
    return err;
}

int waits_add(struct waits *waits, const struct counted_wait *wait, uint32_t *ret_wait_plus_1)
{
    struct counted_wait row = *wait;
    if (waits->count >= WAITS_MAX / 2) {
        row.owner_stack = WAIT_NO_STACK;
        row.owner_wait_plus_1 = 0;
        row.waker_stack_plus_1 = row.waker_kernel_stack = 0;
    }
    int err = add(waits, &row, WAITS_MAX, ret_wait_plus_1);
    if (err || *ret_wait_plus_1)
        return err;
    struct counted_wait other = wait_of_nothing(wait->process);
    other.kind = wait->kind;
    other.space = UINT32_MAX;
    waits->limited++;
    return add(waits, &other, WAITS_MAX + WAITS_OTHER_MAX, ret_wait_plus_1);
}

void waits_keep_chains(const struct waits *waits, struct renumber *rows)
{
    for (size_t i = waits->count; i-- > 0;) {
        if (renumber_of(rows, (uint32_t)i) != ROW_GONE && waits->rows[i].owner_wait_plus_1)
            renumber_keep(rows, waits->rows[i].owner_wait_plus_1 - 1);
    }
}

void waits_keep(struct waits *waits, const struct renumber *rows, const struct renumber *stacks)
{
    for (size_t i = 0; i < waits->count; i++) {
        struct counted_wait *row = &waits->rows[i];
        if (renumber_of(rows, (uint32_t)i) == ROW_GONE)
            continue;
        row->owner_wait_plus_1 = renumber_plus_1(rows, row->owner_wait_plus_1);
        if (row->owner_stack != WAIT_NO_STACK)
            row->owner_stack = renumber_of(stacks, row->owner_stack);
        row->waker_stack_plus_1 = renumber_plus_1(stacks, row->waker_stack_plus_1);
    }
    renumber_move(rows, waits->rows, sizeof *waits->rows);
    waits->count = renumber_kept(rows);
    INDEX_AGAIN(&waits->index, sizeof *waits->rows, waits->rows, waits->count);
}

void waits_free(struct waits *waits)
{
    free(waits->rows);
    index_free(&waits->index);
    *waits = (struct waits){0};
}

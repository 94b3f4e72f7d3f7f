/* Growing arrays: the items, how many there are, and how many fit. */
#ifndef FGPROF_BASE_ARRAY_H
#define FGPROF_BASE_ARRAY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How many items an array has that is no pointer. */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Makes room for at least `needed` items at `items`, which has room for *capacity items of
 * `item_bytes` each. The capacity at least doubles, so that appending takes linear time overall.
 * Returns where the items are now, and sets *capacity. If there is no memory, nothing changes and
 * *capacity stays less than `needed`. */
void *array_grow(void *items, size_t *capacity, size_t needed, size_t item_bytes);

/* The same for *items, a pointer of the items' own type. Evaluates to 0 or -ENOMEM; on -ENOMEM
 * nothing has changed. The arguments are evaluated more than once. */
#define array_reserve(items, capacity, needed)                                                     \
    (*(items) = array_grow(*(items), (capacity), (needed), sizeof **(items)),                      \
     *(capacity) >= (needed) ? 0 : -ENOMEM)

/* Appends a value, which may be a compound literal, to *items, an array of *count items. Evaluates
 * to 0, or to -ENOMEM, and then nothing has changed. Every argument but the value is evaluated more
 * than once. */
#define array_append(items, count, capacity, ...)                                                  \
    (array_reserve(items, capacity, *(count) + 1) ? -ENOMEM                                        \
                                                  : ((*(items))[(*(count))++] = (__VA_ARGS__), 0))

/* Makes it at least `wanted` items; new ones are zeroed. Evaluates to 0 or -ENOMEM. */
#define array_extend(items, count, capacity, wanted)                                               \
    (array_reserve(items, capacity, wanted)                                                        \
         ? -ENOMEM                                                                                 \
         : (array_zero(*(items), (count), (wanted), sizeof **(items)), 0))
void array_zero(void *items, size_t *count, size_t wanted, size_t item_bytes);

/* Makes room for an item at index `at`. If there are already `max` items, the last one is dropped;
 * if `at` is `max`, nothing is done and the result is false. The array must have the capacity. */
bool array_shift(void *items, size_t *count, size_t max, size_t at, size_t item_bytes);

/* Keeps a value among at most `max`: see array_shift. */
#define array_place(items, count, max, at, ...)                                                    \
    ((void)(array_shift((items), (count), (max), (at), sizeof *(items)) &&                         \
            ((items)[at] = (__VA_ARGS__), true)))

/* As array_append, but before number `at`. */
#define array_insert(items, count, capacity, at, ...)                                              \
    (array_reserve(items, capacity, *(count) + 1)                                                  \
         ? -ENOMEM                                                                                 \
         : (array_place(*(items), count, SIZE_MAX, at, __VA_ARGS__), 0))

/* Removes the item at `item`. */
#define array_remove(items, count, item)                                                           \
    ((void)memmove((item), (item) + 1, (size_t)((items) + --*(count) - (item)) * sizeof *(item)))

/* Sorts by `compare` (qsort(3)). If `count` is 0, `items` may be NULL. `count` is evaluated twice.
 */
#define array_sort(items, count, compare)                                                          \
    ((count) ? qsort((items), (count), sizeof *(items), (compare)) : (void)0)

/* A result for `compare`: negative, 0 or positive if `left` is less than, equal to or greater than
 * `right`. Both are evaluated twice. */
#define ORDER(left, right) (((left) > (right)) - ((left) < (right)))

/* Frees memory if less than a quarter is used, and keeps twice the used amount. */
void *array_shrink(void *items, size_t *capacity, size_t used, size_t item_bytes);
#define array_trim(items, capacity, used)                                                          \
    ((void)(*(items) = array_shrink(*(items), (capacity), (used), sizeof **(items))))

#endif

#include "base/array.h"

void *array_grow(void *items, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity)
        return items;
    size_t grown = *capacity ? *capacity : 16;
    while (grown < needed) {
        if (__builtin_mul_overflow(grown, (size_t)2, &grown))
            return items;
    }
    void *moved = reallocarray(items, grown, item_bytes);
    if (!moved)
        return items;
    *capacity = grown;
    return moved;
}

void array_zero(void *items, size_t *count, size_t wanted, size_t item_bytes)
{
    if (wanted <= *count)
        return;
    memset((char *)items + *count * item_bytes, 0, (wanted - *count) * item_bytes);
    *count = wanted;
}

bool array_shift(void *items, size_t *count, size_t max, size_t at, size_t item_bytes)
{
    if (at == max)
        return false;
    size_t moved = (*count < max ? (*count)++ : max - 1) - at;
    char *place = (char *)items + at * item_bytes;
    memmove(place + item_bytes, place, moved * item_bytes);
    return true;
}

#define TRIM_MIN 1024 /* items: less is not worth it */

void *array_shrink(void *items, size_t *capacity, size_t used, size_t item_bytes)
{
    if (*capacity < TRIM_MIN || used >= *capacity / 4)
        return items;
    size_t smaller = 2 * used + 1;
    void *moved = realloc(items, smaller * item_bytes);
    if (!moved)
        return items;
    *capacity = smaller;
    return moved;
}

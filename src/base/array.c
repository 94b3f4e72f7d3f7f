#include "base/array.h"

#include <stdlib.h>

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

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int array_reserve(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
    if (needed <= *capacity)
        return 0;
    size_t grown = *capacity ? *capacity : 16;
    while (grown < needed) {
        if (__builtin_mul_overflow(grown, (size_t)2, &grown))
            return -ENOMEM;
    }
    void *moved = reallocarray(*items, grown, item_bytes);
    if (!moved)
        return -ENOMEM;
    *items = moved;
    *capacity = grown;
    return 0;
}

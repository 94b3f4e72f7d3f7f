#include "count/deadlocks.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int deadlocks_add(struct deadlocks *deadlocks, struct deadlock_thread *threads, size_t count)
{
    uint32_t number = deadlocks->count;
    if (number < DEADLOCKS_MAX) {
        if (array_reserve(&deadlocks->rows, &deadlocks->capacity, deadlocks->row_count + count))
            return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
            threads[i].deadlock = number;
            deadlocks->rows[deadlocks->row_count++] = threads[i];
        }
    }
    deadlocks->count++;
    return 0;
}

void deadlocks_free(struct deadlocks *deadlocks)
{
    free(deadlocks->rows);
    *deadlocks = (struct deadlocks){0};
}

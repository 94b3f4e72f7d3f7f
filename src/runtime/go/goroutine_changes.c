#include "runtime/go/goroutine_changes.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int goroutine_changes_add(struct goroutine_changes *changes, const struct goroutine_seen *seen,
                          unsigned char **ret_stack)
{
    if (changes->stack_bytes &&
        seen->stack_bytes + changes->stack_bytes > GOROUTINE_CHANGES_STACK_BYTES)
        return -ENOSPC;
    if (array_reserve(&changes->stacks, &changes->stack_capacity,
                      changes->stack_bytes + seen->stack_bytes) ||
        array_append(&changes->items, &changes->count, &changes->capacity, *seen))
        return -ENOMEM;
    changes->items[changes->count - 1].stack_at = changes->stack_bytes;
    *ret_stack = changes->stacks + changes->stack_bytes;
    changes->stack_bytes += seen->stack_bytes;
    return 0;
}

int goroutine_changes_label(struct goroutine_changes *changes, const char *labels, size_t bytes)
{
    struct goroutine_seen *seen = &changes->items[changes->count - 1];
    if (array_reserve(&changes->stacks, &changes->stack_capacity, changes->stack_bytes + bytes))
        return -ENOMEM;
    memcpy(changes->stacks + changes->stack_bytes, labels, bytes);
    seen->label_at = changes->stack_bytes;
    seen->label_bytes = bytes;
    changes->stack_bytes += bytes;
    return 0;
}

void goroutine_changes_free(struct goroutine_changes *changes)
{
    if (!changes)
        return;
    free(changes->items);
    free(changes->stacks);
    free(changes);
}

#include "unwind/walk.h"
#include "base/array.h"

#include <errno.h>

int walk_push(struct walk *walk, uint64_t address)
{
    struct stack *stack = walk->stack;
    if (stack->depth == stack->capacity &&
        array_reserve(&stack->addresses, &stack->capacity, stack->depth + 1))
        return -ENOMEM;
    stack->addresses[stack->depth++] = address;
    return 0;
}

#include "observe/snapshot.h"
#include "proc/memory.h"

#include <stdlib.h>

#define STACK_PAGE_BYTES 4096u /* the smallest page there is */

void snapshot_clear(struct snapshot *snapshot)
{
    free(snapshot->stack.memory);
    free(snapshot->other_stack.memory);
    free(snapshot->kernel_stack);
    free(snapshot->context);
    *snapshot = (struct snapshot){0};
}

static bool make_room(struct stack_copy *copy, size_t bytes)
{
    if (copy->capacity >= bytes)
        return true;
    unsigned char *memory = malloc(bytes);
    if (!memory)
        return false;
    free(copy->memory);
    copy->memory = memory;
    copy->capacity = bytes;
    return true;
}

bool snapshot_make_room(struct snapshot *snapshot, size_t stack_limit,
                        const struct stack_place *other)
{
    return make_room(&snapshot->stack, stack_limit) &&
           make_room(&snapshot->other_stack, other->address ? other->bytes : 0);
}

void snapshot_forget_context(struct snapshot *snapshot)
{
    if (snapshot->context)
        snapshot->context->state = CONTEXT_NOT_READ;
}

struct thread_context *snapshot_context(struct snapshot *snapshot)
{
    if (!snapshot->context)
        snapshot->context = calloc(1, sizeof *snapshot->context);
    return snapshot->context;
}

static void copy_stack(struct stack_copy *copy, pid_t tid, uint64_t address, uint64_t end,
                       size_t limit)
{
    uint64_t room = end - address;
    copy->address = address;
    copy->end = end;
    copy->bytes = memory_read(tid, address, copy->memory, room < limit ? room : limit);
}

void snapshot_copy_stacks(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                          size_t stack_limit, const struct stack_place *other)
{
    struct stack_copy *stack = &snapshot->stack, *other_stack = &snapshot->other_stack;
    uint64_t sp = registers_sp(&snapshot->registers);
    uint64_t end = stack_areas_end(areas, sp);
    stack->end_is_known = end != 0;
    if (!end)
        end = sp - sp % STACK_PAGE_BYTES + STACK_PAGE_BYTES;
    copy_stack(stack, tid, sp, end, stack_limit);
    other_stack->bytes = 0;
    end = other->address ? stack_areas_end(areas, other->address) : 0;
    other_stack->end_is_known = end != 0;
    if (end)
        copy_stack(other_stack, tid, other->address, end, other->bytes);
}

void snapshot_end_stack(struct snapshot *snapshot, const struct stack_areas *areas)
{
    struct stack_copy *stack = &snapshot->stack;
    uint64_t end = stack_areas_end(areas, stack->address);
    stack->end_is_known = end != 0;
    stack->end = end ? end : stack->address + stack->bytes;
    if (stack->bytes > stack->end - stack->address)
        stack->bytes = stack->end - stack->address;
}

#include "observe/snapshot.h"
#include "proc/memory.h"

#include <stdlib.h>

#define STACK_PAGE_BYTES 4096u /* the smallest page there is */

void snapshot_clear(struct snapshot *snapshot)
{
    free(snapshot->stack.memory);
    free(snapshot->other_stack.memory);
    free(snapshot->kernel_stack);
    free(snapshot->kernel_chain.addresses);
    free(snapshot->context);
    free(snapshot->python);
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

void snapshot_forget(struct snapshot *snapshot)
{
    if (snapshot->context)
        snapshot->context->state = CONTEXT_NOT_READ;
    if (snapshot->python)
        snapshot->python->state = PYTHON_FRAMES_NOT_READ;
    if (snapshot->kernel_stack)
        snapshot->kernel_stack[0] = '\0';
    snapshot->kernel_chain.count = 0;
}

struct kernel_chain *snapshot_kernel_chain(struct snapshot *snapshot)
{
    struct kernel_chain *chain = &snapshot->kernel_chain;
    if (!chain->addresses)
        chain->addresses = calloc(KERNEL_CHAIN_MAX, sizeof *chain->addresses);
    return chain->addresses ? chain : NULL;
}

struct python_frames *snapshot_python(struct snapshot *snapshot)
{
    if (!snapshot->python)
        snapshot->python = malloc(sizeof *snapshot->python);
    if (snapshot->python)
        snapshot->python->state = PYTHON_FRAMES_NOT_READ;
    return snapshot->python;
}

void snapshot_copy_python(struct snapshot *snapshot, const struct python_thread *thread, pid_t tid,
                          const struct stack_areas *areas)
{
    struct python_frames *frames =
        thread->layout || snapshot->python ? snapshot_python(snapshot) : NULL;
    if (thread->layout && frames)
        python_frames_read(thread, tid, areas, frames);
}

struct thread_context *snapshot_context(struct snapshot *snapshot)
{
    if (!snapshot->context)
        snapshot->context = calloc(1, sizeof *snapshot->context);
    return snapshot->context;
}

/* Copies more of the stack, up to `end`, but at most `limit` bytes in total. */
static void copy_rest(struct stack_copy *copy, pid_t tid, const struct stack_areas *areas,
                      uint64_t end, size_t limit)
{
    uint64_t room = end - copy->address, bytes = room < limit ? room : limit;
    copy->end = end;
    if (copy->bytes >= bytes)
        copy->bytes = bytes;
    else
        copy->bytes += memory_read(tid, areas, copy->address + copy->bytes,
                                   copy->memory + copy->bytes, bytes - copy->bytes);
    copy->is_unreadable = copy->bytes < bytes;
}

void snapshot_copy_rest(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                        size_t stack_limit, const struct stack_place *other)
{
    struct stack_copy *stack = &snapshot->stack, *other_stack = &snapshot->other_stack;
    uint64_t end = stack_areas_end(areas, stack->address);
    stack->end_is_known = end != 0;
    if (!end && stack->bytes)
        end = stack->address + stack->bytes;
    else if (!end)
        end = stack->address - stack->address % STACK_PAGE_BYTES + STACK_PAGE_BYTES;
    copy_rest(stack, tid, areas, end, stack_limit);
    if (other_stack->address != other->address)
        other_stack->bytes = 0;
    other_stack->address = other->address;
    end = other->address ? stack_areas_end(areas, other->address) : 0;
    other_stack->end_is_known = end != 0;
    if (end)
        copy_rest(other_stack, tid, areas, end, other->bytes);
    else
        other_stack->bytes = 0;
}

void snapshot_copy_stacks(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                          size_t stack_limit, const struct stack_place *other)
{
    snapshot->stack.address = registers_sp(&snapshot->registers);
    snapshot->stack.bytes = snapshot->other_stack.bytes = 0;
    snapshot_copy_rest(snapshot, tid, areas, stack_limit, other);
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

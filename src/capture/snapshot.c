#include "capture/snapshot.h"
#include "target/memory.h"

#include <stdlib.h>

#define STACK_PAGE_BYTES 4096u /* the smallest there is */

void snapshot_free(struct snapshot *snapshot)
{
    free(snapshot->stack);
    *snapshot = (struct snapshot){0};
}

bool snapshot_make_room(struct snapshot *snapshot, size_t stack_bytes)
{
    if (snapshot->stack_capacity >= stack_bytes)
        return true;
    unsigned char *stack = malloc(stack_bytes);
    if (!stack)
        return false;
    free(snapshot->stack);
    snapshot->stack = stack;
    snapshot->stack_capacity = stack_bytes;
    return true;
}

void snapshot_copy_stack(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                         size_t stack_limit)
{
    uint64_t sp = registers_sp(&snapshot->registers);
    uint64_t end = stack_areas_end(areas, sp);
    snapshot->stack_end_is_known = end != 0;
    uint64_t room = end ? end - sp : STACK_PAGE_BYTES - sp % STACK_PAGE_BYTES;
    size_t bytes = room < stack_limit ? room : stack_limit;
    snapshot->stack_address = sp;
    snapshot->stack_end = sp + room;
    snapshot->stack_bytes = memory_read(tid, sp, snapshot->stack, bytes);
}

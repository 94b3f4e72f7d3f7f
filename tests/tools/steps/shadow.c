#include "shadow.h"
#include "machine.h"
#include "base/array.h"

#include <stdlib.h>
#include <sys/syscall.h>

/* If the stack pointer moves down by less than this, it allocates space on the same stack. */
#define ROOM_BYTES_MAX (64u << 10)

static struct shadow_region *region_of(struct shadow_chain *chain)
{
    return &chain->regions[chain->region_count - 1];
}

static bool push(struct shadow_chain *chain, struct shadow_entry entry)
{
    if (array_reserve(&chain->entries, &chain->capacity, chain->count + 1))
        return false;
    chain->entries[chain->count++] = entry;
    return true;
}

/* The topmost entry on the current stack, or NULL. */
static const struct shadow_entry *top_of(struct shadow_chain *chain)
{
    return chain->count > region_of(chain)->first ? &chain->entries[chain->count - 1] : NULL;
}

/* Removes entries below `sp` on the current stack. */
static void drop_below(struct shadow_chain *chain, uint64_t sp)
{
    while (top_of(chain) && top_of(chain)->slot < sp)
        chain->count--;
}

/* For architectures on which a call pushes nothing, so that the stack pointer is the same before a
 * call and after its return. Removes the call that returns to where the thread is now, and those it
 * made. If no call returns there, a return or long jump has left all of them, as a caught exception
 * does; a mere jump has left none. */
static void drop_returned(struct shadow_chain *chain, struct shadow_place after, bool was_jump)
{
    drop_below(chain, after.sp);
    if (architecture.link == REGISTERS_MAX)
        return;
    size_t first = region_of(chain)->first, found = chain->count;
    for (size_t i = chain->count; i-- > first && chain->entries[i].slot == after.sp;) {
        bool is_it = chain->entries[i].return_address == after.pc;
        if (is_it || !was_jump)
            found = i;
        if (is_it)
            break;
    }
    chain->count = found;
}

static bool add_region(struct shadow_chain *chain, uint64_t base)
{
    if (chain->region_count == SHADOW_REGIONS_MAX)
        return false;
    chain->regions[chain->region_count++] =
        (struct shadow_region){.base = base, .left_sp = base, .first = chain->count};
    return true;
}

/* Returns to a lower stack; those above it are gone. */
static void go_back_to_region(struct shadow_chain *chain, size_t number)
{
    chain->count = chain->regions[number + 1].first;
    chain->region_count = number + 1;
}

static struct shadow_chain *add_chain(struct shadow *shadow, uint64_t sp, bool is_whole)
{
    if (shadow->chain_count == SHADOW_CHAINS_MAX)
        return NULL;
    struct shadow_chain *chain = &shadow->chains[shadow->chain_count++];
    chain->count = chain->region_count = 0;
    chain->is_whole = is_whole;
    add_region(chain, sp);
    return chain;
}

void shadow_begin(struct shadow *shadow, uint64_t sp, bool is_whole)
{
    shadow->chain_count = 0;
    shadow->current = add_chain(shadow, sp, is_whole);
}

static bool holds(const struct shadow_region *region, uint64_t sp)
{
    return sp >= region->left_sp && sp <= region->base;
}

/* Switches to the stack that contains `sp`, among those that were left. Returns false if there is
 * none. */
static bool switch_to_known(struct shadow *shadow, uint64_t sp)
{
    struct shadow_chain *current = shadow->current;
    for (size_t i = current->region_count - 1; i-- > 0;) {
        if (holds(&current->regions[i], sp)) {
            go_back_to_region(current, i);
            return true;
        }
    }
    for (size_t i = 0; i < shadow->chain_count; i++) {
        if (&shadow->chains[i] != current && holds(region_of(&shadow->chains[i]), sp)) {
            shadow->current = &shadow->chains[i];
            return true;
        }
    }
    return false;
}

/* The stack pointer was set by an instruction that may have set it to anything. */
static bool move(struct shadow *shadow, const struct instruction *instruction, uint64_t before,
                 uint64_t after)
{
    struct shadow_region *region = region_of(shadow->current);
    if (after >= before && after <= region->base)
        return true;
    /* A move from a register may switch stacks: its form does not show whether it does. */
    bool has_loads = architecture.link == REGISTERS_MAX;
    bool is_near = !instruction->loads_sp && before - after + ROOM_BYTES_MAX < 2 * ROOM_BYTES_MAX;
    region->left_sp = before;
    if (!has_loads && switch_to_known(shadow, after))
        return true;
    if (is_near && after < before)
        return true;
    if (switch_to_known(shadow, after))
        return true;
    /* Upwards, to frames from before we started. */
    if (is_near && !shadow->current->is_whole) {
        region->base = after;
        return true;
    }
    struct shadow_chain *chain = add_chain(shadow, after, false);
    if (!chain)
        return false;
    shadow->current = chain;
    return true;
}

/* A handler ends whose frame is at `sp`: removes its entries, down to that of the interrupted code,
 * where the thread is at `interrupted_sp`. */
static void leave_handler(struct shadow *shadow, uint64_t sp, uint64_t interrupted_sp)
{
    struct shadow_chain *chain = shadow->current;
    bool is_known = false;
    while (chain->count && !is_known) {
        struct shadow_entry entry = chain->entries[--chain->count];
        is_known = entry.is_exact && entry.slot == sp;
    }
    while (chain->region_count > 1 && chain->count <= region_of(chain)->first)
        chain->region_count--;
    if (!is_known)
        shadow_begin(shadow, interrupted_sp, false);
}

bool shadow_step(struct shadow *shadow, const struct instruction *instruction, uint64_t number,
                 struct shadow_place before, struct shadow_place after)
{
    struct shadow_chain *chain = shadow->current;
    bool done = true;
    switch (instruction->kind) {
    case INSTRUCTION_CALL:
        drop_below(chain, before.sp);
        done = push(chain, (struct shadow_entry){.slot = after.sp,
                                                 .return_address = before.pc + instruction->bytes});
        break;
    case INSTRUCTION_RETURN:
    case INSTRUCTION_LONG_JUMP:
        drop_returned(chain, after, false);
        break;
    case INSTRUCTION_JUMP:
        drop_returned(chain, after, true);
        break;
    case INSTRUCTION_SYSCALL:
        if (number == SYS_rt_sigreturn)
            leave_handler(shadow, before.sp, after.sp);
        break;
    case INSTRUCTION_OTHER:
        if (after.sp != before.sp && !instruction->steps_sp)
            done = move(shadow, instruction, before.sp, after.sp);
        break;
    }
    /* Back to callers from before we started. */
    struct shadow_region *region = region_of(shadow->current);
    if (after.sp > region->base && !shadow->current->is_whole)
        region->base = after.sp;
    return done;
}

bool shadow_enter_handler(struct shadow *shadow, const struct shadow_signal *signal)
{
    struct shadow_chain *chain = shadow->current;
    bool is_on_own = signal->sp - signal->stack < signal->stack_bytes;
    bool was_on_own = signal->interrupted_sp - signal->stack < signal->stack_bytes;
    if (is_on_own && !was_on_own) {
        region_of(chain)->left_sp = signal->interrupted_sp;
        if (!add_region(chain, signal->stack + signal->stack_bytes))
            return false;
    }
    /* The trampoline is also at its exact address, because it was not called. */
    return push(chain, (struct shadow_entry){.slot = signal->end_sp,
                                             .return_address = signal->interrupted_pc,
                                             .is_exact = true}) &&
           push(chain, (struct shadow_entry){.slot = signal->sp,
                                             .return_address = signal->restorer,
                                             .is_exact = true});
}

void shadow_free(struct shadow *shadow)
{
    for (size_t i = 0; i < SHADOW_CHAINS_MAX; i++)
        free(shadow->chains[i].entries);
    *shadow = (struct shadow){0};
}

#include "unwind/frame_pointer.h"
#include "elf/stubs.h"
#include "unwind/code/calls.h"
#include "unwind/code_address.h"
#include "unwind/rule_tables.h"

#include <string.h>

/* How far up the stack to search: a frame is seldom larger. */
#define SEARCH_BYTES (32u << 10)

struct search {
    struct rule_tables *rules;
    struct space *space;
    struct snapshot *snapshot;
    size_t max_depth;
    uint64_t function; /* the function that needs the frame pointer */
    struct stack *scratch;
};

/* Which calls a frame of the function is taken to return to. */
enum calls {
    CALLS_OF_FUNCTION,
    CALLS_OF_UNKNOWN, /* also those that may be calls of it */
    CALLS_OF_ANY,     /* also of functions that may have jumped to it at their end */
};

/* The stub is one for any function of another module. */
static bool is_stub(struct space *space, uint64_t address)
{
    uint8_t code[STUB_BYTES];
    uint64_t slot;
    return space_read_file(space, address, code, sizeof code) &&
           stub_slot(code, sizeof code, address, &slot);
}

static bool can_return_to(const struct search *search, uint64_t return_address, enum calls calls)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target;
    if (!space_find(search->space, address_of_call(return_address)) ||
        !space_read_file(search->space, return_address - CALL_BYTES_MAX, before, sizeof before))
        return false;
    switch (call_before(before, return_address, &target)) {
    case CALL_DIRECT:
        return target == search->function || calls == CALLS_OF_ANY ||
               (calls == CALLS_OF_UNKNOWN && is_stub(search->space, target));
    case CALL_INDIRECT:
        return calls != CALLS_OF_FUNCTION;
    case CALL_NONE:
        break;
    }
    return false;
}

static void set_frame_pointer(struct snapshot *snapshot, uint64_t value)
{
    registers_set(&snapshot->registers, architecture.frame_pointer, value);
}

/* Whether the frame pointer can point to `address`. */
static bool fits(const struct search *search, uint64_t address, enum calls calls)
{
    struct snapshot *snapshot = search->snapshot;
    struct unwind_hints hints;
    uint64_t return_address, at = address - snapshot->stack.address;
    if (at > snapshot->stack.bytes || snapshot->stack.bytes - at < 16)
        return false;
    memcpy(&return_address, snapshot->stack.memory + at + 8, sizeof return_address);
    return_address &= registers_code_mask();
    if (!can_return_to(search, return_address, calls))
        return false;
    set_frame_pointer(snapshot, address);
    if (unwind_snapshot(search->rules, search->space, snapshot, search->max_depth, search->scratch,
                        &hints))
        return false;
    /* The stack reaches the first frame, or as far as was asked for or copied. */
    return search->scratch->cut == STACK_WHOLE || search->scratch->cut == STACK_CUT_AT_MAX_DEPTH ||
           hints.needs_more_stack;
}

/* The only place from `from` on that fits with certainty, or 0. */
static uint64_t find_certain(const struct search *search, uint64_t from)
{
    uint64_t found = 0;
    for (uint64_t address = from; address - from < SEARCH_BYTES; address += 8) {
        if (!fits(search, address, CALLS_OF_FUNCTION))
            continue;
        if (found)
            return 0;
        found = address;
    }
    return found;
}

/* Where it must be so that the function's returns restore it, or 0. */
static uint64_t find_by_returns(const struct search *search, const struct unwind_hints *hints)
{
    const struct mapping *mapping = space_find(search->space, hints->function_address);
    if (!mapping || !mapping->has_bias)
        return 0;
    struct rule rule = rule_tables_returns(search->rules, mapping->module,
                                           hints->function_address - mapping->bias);
    if (rule.kind != RULE_CALLER || !rule.has_frame_pointer || !rule.frame_pointer.is_in_memory ||
        rule.frame_pointer.register_number != architecture.sp)
        return 0;
    uint64_t found = hints->function_sp + (uint64_t)(int64_t)rule.frame_pointer.offset;
    return fits(search, found, CALLS_OF_ANY) ? found : 0;
}

/* Where its first instructions put it, or 0. */
static uint64_t find_by_code(const struct search *search, const struct unwind_hints *hints)
{
    const struct mapping *mapping = space_find(search->space, hints->function_address);
    if (!mapping || !mapping->has_bias)
        return 0;
    struct lookup_prologue prologue =
        rule_tables_prologue(search->rules, mapping->module, hints->function - mapping->bias,
                             hints->function_address - mapping->bias);
    for (size_t i = 0; i < prologue.count; i++) {
        if (fits(search, hints->function_sp + prologue.distances[i], CALLS_OF_UNKNOWN))
            return hints->function_sp + prologue.distances[i];
    }
    return 0;
}

bool frame_pointer_find(struct rule_tables *rules, struct space *space, struct snapshot *snapshot,
                        size_t max_depth, const struct unwind_hints *hints, uint64_t expected,
                        struct stack *scratch)
{
    const struct search search = {rules, space, snapshot, max_depth, hints->function, scratch};
    if (!hints->function_address)
        return false;
    uint64_t found = expected && fits(&search, expected, CALLS_OF_UNKNOWN) ? expected : 0;
    if (!found)
        found = find_by_returns(&search, hints);
    if (!found && hints->function)
        found = find_by_code(&search, hints);
    if (!found && hints->function)
        found = find_certain(&search, hints->function_sp);
    if (found)
        set_frame_pointer(snapshot, found);
    else
        snapshot->registers.known &= ~(1ull << architecture.frame_pointer);
    return found != 0;
}

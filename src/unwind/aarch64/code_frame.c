/* Follows the stack pointer, the frame pointer and the link register through all ways of a function
 * from its start. Where ways meet, what they disagree on is unknown. */
#include "unwind/code/code_frame.h"
#include "unwind/aarch64/instruction.h"
#include "unwind/aarch64/values.h"

#include <stdlib.h>
#include <string.h>

#define INSTRUCTIONS_MAX (CODE_FRAME_BYTES_MAX / INSTRUCTION_BYTES)
#define STATES_MAX 128 /* a function has few different ones */
#define PASSES_MAX 64
#define WORD_BYTES 8
#define NOP 0xd503201fu
/* Stands for the stack pointer after it was moved by an unknown number of bytes. `then_offset`
 * tells apart by which instruction. */
#define MOVED 0xfe

struct flow {
    const uint8_t *code;
    size_t count; /* of instructions */
    struct values states[STATES_MAX];
    unsigned state_count;
    uint8_t before[INSTRUCTIONS_MAX]; /* the number of the state before it, from 1 on; 0: not
                                         reached yet */
    /* Only reached behind a call that may not return. */
    bool is_doubtful[INSTRUCTIONS_MAX];
    bool is_due[INSTRUCTIONS_MAX]; /* its state has changed since it was followed */
    bool has_changed, has_failed;
};

static bool is_same(const struct values *left, const struct values *right)
{
    if (!value_is_same(&left->sp, &right->sp) ||
        !value_is_same(&left->frame_pointer, &right->frame_pointer) ||
        !value_is_same(&left->link, &right->link) || left->stored_count != right->stored_count)
        return false;
    for (unsigned i = 0; i < left->stored_count; i++) {
        if (!value_is_same(&left->stored[i].at, &right->stored[i].at) ||
            !value_is_same(&left->stored[i].value, &right->stored[i].value))
            return false;
    }
    return true;
}

static bool has_stored(const struct values *values, const struct stored *wanted)
{
    for (unsigned i = 0; i < values->stored_count; i++) {
        if (value_is_same(&values->stored[i].at, &wanted->at) &&
            value_is_same(&values->stored[i].value, &wanted->value))
            return true;
    }
    return false;
}

static struct code_value common_value(const struct code_value *left, const struct code_value *right)
{
    return value_is_same(left, right) ? *left : unknown_value;
}

/* What holds whichever way was taken. */
static struct values common(const struct values *left, const struct values *right)
{
    struct values both = {
        .sp = common_value(&left->sp, &right->sp),
        .frame_pointer = common_value(&left->frame_pointer, &right->frame_pointer),
        .link = common_value(&left->link, &right->link),
    };
    for (unsigned i = 0; i < left->stored_count; i++) {
        if (has_stored(right, &left->stored[i]))
            both.stored[both.stored_count++] = left->stored[i];
    }
    return both;
}

/* The number of a state, which is added if it is new; 0 if there is no room. */
static uint8_t number_of(struct flow *flow, const struct values *values)
{
    unsigned i = 0;
    while (i < flow->state_count && !is_same(&flow->states[i], values))
        i++;
    if (i == STATES_MAX) {
        flow->has_failed = true;
        return 0;
    }
    if (i == flow->state_count)
        flow->states[flow->state_count++] = *values;
    return (uint8_t)(i + 1);
}

/* A way leads to the instruction with this number. One that is certain says more than one that is
 * doubtful. */
static void arrive(struct flow *flow, uint64_t at, const struct values *values, bool is_doubtful)
{
    if (at >= flow->count)
        return;
    uint8_t *before = &flow->before[at], old = *before;
    struct values now = *values;
    if (old && is_doubtful && !flow->is_doubtful[at])
        return;
    if (old && is_doubtful == flow->is_doubtful[at])
        now = common(&flow->states[old - 1], values);
    *before = number_of(flow, &now);
    flow->is_due[at] |= *before != old || is_doubtful != flow->is_doubtful[at];
    flow->has_changed |= flow->is_due[at];
    flow->is_doubtful[at] = is_doubtful;
}

/* Nothing keeps what is below the stack pointer. */
static void drop_released(struct values *values)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < values->stored_count; i++) {
        const struct stored *stored = &values->stored[i];
        bool is_released = values->sp.kind == CODE_VALUE_REGISTER &&
                           stored->at.register_number == values->sp.register_number &&
                           stored->at.then_offset == values->sp.then_offset &&
                           stored->at.offset < values->sp.offset;
        if (!is_released)
            values->stored[kept++] = *stored;
    }
    values->stored_count = kept;
}

static uint32_t instruction_at(const struct flow *flow, size_t at)
{
    uint32_t instruction;
    memcpy(&instruction, flow->code + at * INSTRUCTION_BYTES, sizeof instruction);
    return instruction;
}

static void follow(struct flow *flow, size_t at)
{
    struct values values = flow->states[flow->before[at] - 1];
    uint32_t instruction = instruction_at(flow, at);
    uint64_t target;
    values_follow(&values, instruction);
    if (values.sp.kind == CODE_VALUE_UNKNOWN)
        values.sp = (struct code_value){CODE_VALUE_REGISTER, MOVED, 0, (int32_t)at};
    drop_released(&values);
    if (branch_target(instruction, at * INSTRUCTION_BYTES, &target))
        arrive(flow, target / INSTRUCTION_BYTES, &values, false);
    bool is_doubtful = is_call(instruction) || (flow->is_doubtful[at] && instruction == NOP);
    if (!ends_way(instruction))
        arrive(flow, at + 1, &values, is_doubtful);
}

/* Returns false if the code is too intricate. */
static bool follow_all(struct flow *flow)
{
    const struct values begin = values_begin();
    arrive(flow, 0, &begin, false);
    for (unsigned pass = 0; flow->has_changed && pass < PASSES_MAX; pass++) {
        flow->has_changed = false;
        for (size_t at = 0; at < flow->count && !flow->has_failed; at++) {
            if (!flow->is_due[at])
                continue;
            flow->is_due[at] = false;
            follow(flow, at);
        }
    }
    return !flow->has_changed && !flow->has_failed;
}

/* Whether it is what the register was at the start: its caller's. */
static bool is_callers(const struct code_value *value, unsigned number)
{
    return value->kind == CODE_VALUE_REGISTER && value->register_number == number && !value->offset;
}

static bool is_on_stack(const struct code_value *value)
{
    return value->kind == CODE_VALUE_REGISTER && value->register_number == STACK_POINTER &&
           value->offset <= 0;
}

/* Where the caller's value of a register was saved; NULL if it was not. */
static const struct code_value *find_saved(const struct values *values, unsigned number)
{
    for (unsigned i = 0; i < values->stored_count; i++) {
        const struct stored *stored = &values->stored[i];
        if (is_callers(&stored->value, number) && is_on_stack(&stored->at))
            return &stored->at;
    }
    return NULL;
}

static bool holds_callers(const struct values *values, struct code_value at, unsigned number)
{
    const struct stored wanted = {at, {CODE_VALUE_REGISTER, (uint8_t)number, 0, 0}};
    return has_stored(values, &wanted);
}

/* Whether the frame pointer points to a frame record: the caller's frame pointer, and then the
 * return address (AAPCS64, 6.4.6). */
static bool has_record(const struct values *values)
{
    struct code_value saved = values->frame_pointer, return_address = saved;
    return_address.offset += WORD_BYTES;
    return holds_callers(values, saved, FRAME_POINTER) &&
           holds_callers(values, return_address, LINK);
}

/* `is_in_call`: its link register has been overwritten by the time that this is asked. */
static struct code_frame frame_of(const struct values *values, bool is_in_call)
{
    const struct code_value *saved = find_saved(values, FRAME_POINTER);
    const struct code_value *return_address = find_saved(values, LINK);
    bool is_in_link = !return_address && !is_in_call && is_callers(&values->link, LINK);
    if (has_record(values))
        return (struct code_frame){.kind = CODE_FRAME_BY_POINTER};
    if (!is_on_stack(&values->sp) || (!return_address && !is_in_link))
        return (struct code_frame){.kind = CODE_FRAME_LOST};
    int32_t sp = values->sp.offset;
    return (struct code_frame){
        .kind = CODE_FRAME_BY_SP,
        .caller_sp = -sp,
        .is_in_link = is_in_link,
        .return_address = return_address ? return_address->offset - sp : 0,
        .has_saved_frame_pointer = saved != NULL,
        .saved_frame_pointer = saved ? saved->offset - sp : 0,
        .has_lost_frame_pointer = !saved && !is_callers(&values->frame_pointer, FRAME_POINTER),
    };
}

struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at)
{
    struct code_frame found = {.kind = CODE_FRAME_UNKNOWN};
    size_t count = code_bytes / INSTRUCTION_BYTES, number = at / INSTRUCTION_BYTES;
    struct flow *flow = calloc(1, sizeof *flow);
    if (!flow)
        return found;
    flow->code = code;
    flow->count = count < INSTRUCTIONS_MAX ? count : INSTRUCTIONS_MAX;
    if (number < flow->count && follow_all(flow) && flow->before[number])
        found = frame_of(&flow->states[flow->before[number] - 1], at % INSTRUCTION_BYTES != 0);
    free(flow);
    return found;
}

/* The first stub, which calls the dynamic linker when a function is first called, pushes two words:
 *     stp x16, x30, [sp, #-16]!; adrp x16, GOT; ldr x17, [x16, ...]; add x16, x16, ...; br x17
 * (ELF for the Arm 64-bit Architecture, "Procedure Linkage Table"; ld's PLT0). */
struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    enum { STEPS = 5 };
    static const struct form steps[STEPS] = {{0xffffffffu, 0xa9bf7bf0u},
                                             {0x9f00001fu, 0x90000010u},
                                             {0xffc003ffu, 0xf9400211u},
                                             {0xffc003ffu, 0x91000210u},
                                             {0xffffffffu, 0xd61f0220u}};
    for (size_t here = 1; here < STEPS; here++) {
        size_t fitting = 0;
        for (size_t i = 0; i < STEPS; i++) {
            uint32_t word;
            memcpy(&word, code + CODE_STUB_BYTES_BEFORE + 4 * i - 4 * here, sizeof word);
            fitting += has_form(word, steps[i]);
        }
        if (fitting == STEPS)
            return (struct code_frame){
                .kind = CODE_FRAME_BY_SP, .caller_sp = 16, .return_address = 8};
    }
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

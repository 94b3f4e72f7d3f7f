/* Follows a function's instructions one after the other, whichever way they are reached. */
#include "unwind/code/prologue.h"
#include "unwind/aarch64/instruction.h"
#include "unwind/aarch64/values.h"

#include <string.h>

struct tracking {
    struct values now, body; /* the body is between the function's beginning and its ends */
    bool has_frame_pointer;  /* it has been set */
    int64_t distance;        /* how far the stack pointer is below it */
    int64_t body_distance, deepest;
};

static bool is_by_sp(const struct code_value *value)
{
    return value->kind == CODE_VALUE_REGISTER && value->register_number == STACK_POINTER;
}

static void follow(struct tracking *tracking, uint32_t instruction)
{
    struct values *now = &tracking->now;
    const struct values before = *now;
    values_follow(now, instruction);
    if (!is_by_sp(&now->sp)) {
        /* A large frame, whose frame pointer is set after this, or an array of variable size, after
         * which nothing can be said. */
        *now = values_begin();
        return;
    }
    if (is_by_sp(&now->frame_pointer)) {
        tracking->has_frame_pointer = true;
        tracking->distance = now->frame_pointer.offset - now->sp.offset;
        if (!is_by_sp(&before.frame_pointer) || now->sp.offset < before.sp.offset) {
            tracking->body = *now;
            tracking->body_distance = tracking->distance;
        }
        if (tracking->distance > tracking->deepest)
            tracking->deepest = tracking->distance;
    }
    /* Jumps from the body lead to what comes after. */
    if (ends_way(instruction) && tracking->has_frame_pointer) {
        *now = tracking->body;
        tracking->distance = tracking->body_distance;
    }
}

size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX])
{
    struct tracking tracking = {.now = values_begin(), .deepest = -1};
    uint32_t instruction;
    for (size_t at = 0; code_bytes - at >= sizeof instruction; at += sizeof instruction) {
        memcpy(&instruction, code + at, sizeof instruction);
        follow(&tracking, instruction);
    }
    if (!tracking.has_frame_pointer)
        return 0;
    const int64_t distances[] = {tracking.distance, tracking.body_distance, tracking.deepest};
    size_t count = 0;
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        size_t known = 0;
        while (known < count && ret_candidates[known] != (uint64_t)distances[i])
            known++;
        if (known == count && distances[i] >= 0)
            ret_candidates[count++] = (uint64_t)distances[i];
    }
    return count;
}

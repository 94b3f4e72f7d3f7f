/* Arm Architecture Reference Manual for A-profile, C6.2: BL (100101 imm26), BLR, and variants of
 * BLR such as BLRAA, which check a signature. */
#include "unwind/code/calls.h"
#include "unwind/aarch64/instruction.h"

#include <string.h>

enum call_form call_before(const uint8_t before[CALL_BYTES_MAX], uint64_t return_address,
                           uint64_t *ret_target)
{
    uint32_t instruction;
    memcpy(&instruction, before + CALL_BYTES_MAX - sizeof instruction, sizeof instruction);
    if (return_address % INSTRUCTION_BYTES)
        return CALL_NONE;
    if ((instruction & 0xfc000000u) == 0x94000000u) {
        int64_t words = signed_field(instruction, 0, 26);
        *ret_target = return_address - INSTRUCTION_BYTES + (uint64_t)words * INSTRUCTION_BYTES;
        return CALL_DIRECT;
    }
    bool is_plain = (instruction & 0xfffffc1fu) == 0xd63f0000u;
    bool is_checked = (instruction & 0xfffff81fu) == 0xd63f081fu || /* blraaz, blrabz */
                      (instruction & 0xfffff800u) == 0xd73f0800u;   /* blraa, blrab */
    return is_plain || is_checked ? CALL_INDIRECT : CALL_NONE;
}

/* B (000101 imm26) and B.cond (01010100 imm19 0 cond). */
bool jump_is_at(const uint8_t code[JUMP_BYTES], uint64_t address, uint64_t *ret_target)
{
    uint32_t instruction;
    memcpy(&instruction, code, sizeof instruction);
    bool may_leave =
        is_unconditional_branch(instruction) || (instruction & 0xff000010u) == 0x54000000u;
    return may_leave && address % INSTRUCTION_BYTES == 0 &&
           branch_target(instruction, address, ret_target);
}

/* svc #0 */
unsigned system_call_before(const uint8_t before[SYSTEM_CALL_BYTES_MAX])
{
    static const uint8_t svc[] = {0x01, 0x00, 0x00, 0xd4};
    return memcmp(before, svc, sizeof svc) == 0 ? sizeof svc : 0;
}

/* mov x8, #220 or #435 */
bool system_call_is_clone(const uint8_t before[CLONE_BYTES])
{
    static const uint8_t clone[] = {0x88, 0x1b, 0x80, 0xd2}, clone3[] = {0x68, 0x36, 0x80, 0xd2};
    return system_call_before(before + CLONE_BYTES - SYSTEM_CALL_BYTES_MAX) &&
           (memmem(before, CLONE_BYTES, clone, sizeof clone) ||
            memmem(before, CLONE_BYTES, clone3, sizeof clone3));
}

/* exit, which is system call 93: mov x8, #93; svc #0. */
bool call_is_last(const uint8_t after[THREAD_END_BYTES])
{
    static const uint8_t exit_call[] = {0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
    return memmem(after, THREAD_END_BYTES, exit_call, sizeof exit_call) != NULL;
}

/* mov x0, x19 (__startcontext in setcontext.S) */
bool call_is_context_end(const uint8_t code[CONTEXT_END_BYTES])
{
    static const uint8_t mov[] = {0xe0, 0x03, 0x13, 0xaa};
    return memcmp(code, mov, sizeof mov) == 0;
}

/* Returns go through a register, not the stack. */
bool return_is_at(const uint8_t code[RETURN_BYTES])
{
    (void)code;
    return false;
}

/* Arm Architecture Reference Manual for A-profile, C6.2: BL (100101 imm26) and BLR. */
#include "unwind/code/calls.h"

#include <string.h>

enum call_form call_before(const uint8_t before[CALL_BYTES_MAX], uint64_t return_address,
                           uint64_t *ret_target)
{
    uint32_t instruction;
    memcpy(&instruction, before + CALL_BYTES_MAX - sizeof instruction, sizeof instruction);
    if ((instruction & 0xfc000000u) == 0x94000000u) {
        int64_t words = (int64_t)((uint64_t)instruction << 38) >> 38;
        *ret_target = return_address - 4 + (uint64_t)words * 4;
        return CALL_DIRECT;
    }
    return (instruction & 0xfffffc1fu) == 0xd63f0000u ? CALL_INDIRECT : CALL_NONE;
}

/* B (000101 imm26) and B.cond (01010100 imm19 0 cond). */
bool jump_is_at(const uint8_t code[JUMP_BYTES], uint64_t address, uint64_t *ret_target)
{
    uint32_t instruction;
    int64_t words;
    memcpy(&instruction, code, sizeof instruction);
    if ((instruction & 0xfc000000u) == 0x14000000u)
        words = (int64_t)((uint64_t)instruction << 38) >> 38;
    else if ((instruction & 0xff000010u) == 0x54000000u)
        words = (int64_t)((uint64_t)instruction << 40) >> 45;
    else
        return false;
    *ret_target = address + (uint64_t)words * 4;
    return address % 4 == 0;
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

/* It returns through a register. */
bool return_is_at(const uint8_t code[RETURN_BYTES])
{
    (void)code;
    return false;
}

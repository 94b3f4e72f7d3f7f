/* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. CALL: E8 with a 32-bit
 * displacement, and FF /2 with every form of operand. */
#include "unwind/code/calls.h"

#include <string.h>

/* The length of an FF /2 instruction, by its ModRM and SIB bytes; 0 if it is another instruction.
 */
static unsigned indirect_length(uint8_t modrm, uint8_t sib)
{
    unsigned mode = modrm >> 6, operand = modrm & 7;
    if ((modrm >> 3 & 7) != 2)
        return 0;
    if (mode == 3)
        return 2;
    unsigned length = 2 + (operand == 4);
    if (mode == 1)
        return length + 1;
    bool has_disp32 = mode == 2 || operand == 5 || (operand == 4 && (sib & 7) == 5);
    return length + (has_disp32 ? 4 : 0);
}

enum call_form call_before(const uint8_t before[CALL_BYTES_MAX], uint64_t return_address,
                           uint64_t *ret_target)
{
    const uint8_t *end = before + CALL_BYTES_MAX;
    int32_t displacement;
    if (end[-5] == 0xe8) {
        memcpy(&displacement, end - 4, sizeof displacement);
        *ret_target = return_address + (uint64_t)(int64_t)displacement;
        return CALL_DIRECT;
    }
    for (unsigned length = 2; length <= CALL_BYTES_MAX; length++) {
        const uint8_t *start = end - length;
        if (start[0] == 0xff && indirect_length(start[1], length > 2 ? start[2] : 0) == length)
            return CALL_INDIRECT;
    }
    return CALL_NONE;
}

/* JMP rel32 (E9) and Jcc rel32 (0F 80 to 0F 8F). */
bool jump_is_at(const uint8_t code[JUMP_BYTES], uint64_t address, uint64_t *ret_target)
{
    bool is_conditional = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
    size_t opcode_bytes = is_conditional ? 2 : 1;
    int32_t displacement;
    if (!is_conditional && code[0] != 0xe9)
        return false;
    memcpy(&displacement, code + opcode_bytes, sizeof displacement);
    *ret_target = address + opcode_bytes + sizeof displacement + (uint64_t)(int64_t)displacement;
    return true;
}

/* syscall */
unsigned system_call_before(const uint8_t before[SYSTEM_CALL_BYTES_MAX])
{
    const uint8_t *end = before + SYSTEM_CALL_BYTES_MAX;
    return end[-2] == 0x0f && end[-1] == 0x05 ? 2 : 0;
}

/* The number, 56 or 435, is moved to eax; musl only sets al, nine instructions before. */
bool system_call_is_clone(const uint8_t before[CLONE_BYTES])
{
    static const uint8_t clone[] = {0xb8, 56, 0, 0, 0}, clone3[] = {0xb8, 0xb3, 1, 0, 0};
    static const uint8_t clone_to_al[] = {0x31, 0xc0, 0xb0, 56};
    return system_call_before(before + CLONE_BYTES - SYSTEM_CALL_BYTES_MAX) &&
           (memmem(before, CLONE_BYTES, clone, sizeof clone) ||
            memmem(before, CLONE_BYTES, clone3, sizeof clone3) ||
            memmem(before, CLONE_BYTES, clone_to_al, sizeof clone_to_al));
}

/* hlt; or exit, which is system call 60: mov $60 to eax, or to al if the rest of eax is 0;
 * syscall. */
bool call_is_last(const uint8_t after[THREAD_END_BYTES])
{
    static const uint8_t mov_eax[] = {0xb8, 60, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t mov_al[] = {0xb0, 60, 0x0f, 0x05};
    if (after[0] == 0xf4)
        return true;
    return memmem(after, THREAD_END_BYTES, mov_eax, sizeof mov_eax) ||
           memmem(after, THREAD_END_BYTES, mov_al, sizeof mov_al);
}

/* ret, possibly with the prefix that AMD's branch predictors once needed, or with that of MPX. */
bool return_is_at(const uint8_t code[RETURN_BYTES])
{
    return code[0] == 0xc3 || ((code[0] == 0xf3 || code[0] == 0xf2) && code[1] == 0xc3);
}

/* [endbr64] mov %rbx,%rsp (__start_context.S) */
bool call_is_context_end(const uint8_t code[CONTEXT_END_BYTES])
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov[] = {0x48, 0x89, 0xdc};
    if (memcmp(code, endbr64, sizeof endbr64) == 0)
        code += sizeof endbr64;
    return memcmp(code, mov, sizeof mov) == 0;
}

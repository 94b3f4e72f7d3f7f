/* Intel SDM vol. 2, JMP (FF /4); System V psABI for AMD64, 5.2 and 13.2 (the PLT with endbr64). */
#include "elf/stubs.h"

#include <elf.h>
#include <string.h>

/* jmp *displacement(%rip), after an optional endbr64, in mold's stubs a number for the resolver,
 * and an optional prefix. */
bool stub_slot(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_slot)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const size_t jump_bytes = 6;
    size_t at =
        bytes >= sizeof endbr64 && memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    if (at + 1 < bytes && code[at] == 0x41 && code[at + 1] == 0xbb) /* mov $number,%r11d */
        at += 6;
    if (at < bytes && code[at] == 0xf2) /* bnd */
        at++;
    if (at + jump_bytes > bytes || code[at] != 0xff || code[at + 1] != 0x25)
        return false;
    int32_t displacement;
    memcpy(&displacement, code + at + 2, sizeof displacement);
    *ret_slot = address + at + jump_bytes + (uint64_t)(int64_t)displacement;
    return true;
}

bool stub_is_relocated_to_symbol(uint32_t type)
{
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

bool stub_is_relocated_to_resolved(uint32_t type)
{
    return type == R_X86_64_IRELATIVE;
}

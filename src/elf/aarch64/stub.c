/* ELF for the Arm 64-bit Architecture, PLT: [bti c]; adrp x16, page; ldr x17, [x16, #offset]. */
#include "elf/stubs.h"

#include <elf.h>
#include <string.h>

bool stub_slot(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_slot)
{
    uint32_t instructions[3];
    if (bytes < sizeof instructions)
        return false;
    memcpy(instructions, code, sizeof instructions);
    unsigned at = instructions[0] == 0xd503245fu;
    uint32_t adrp = instructions[at], ldr = instructions[at + 1];
    if ((adrp & 0x9f00001fu) != 0x90000010u || (ldr & 0xffc003ffu) != 0xf9400211u)
        return false;
    uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    int64_t distance = (int64_t)(pages << 43) >> 43; /* sign-extends 21 bits */
    uint64_t page = ((address + 4 * at) & ~(uint64_t)4095) + (uint64_t)(distance * 4096);
    *ret_slot = page + (ldr >> 10 & 0xfff) * 8;
    return true;
}

bool stub_is_relocated_to_symbol(uint32_t type)
{
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

bool stub_is_relocated_to_resolved(uint32_t type)
{
    return type == R_AARCH64_IRELATIVE;
}

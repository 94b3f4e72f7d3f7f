/* Arm Architecture Reference Manual for A-profile, C6.2: ADRP (1 immlo 10000 immhi), and then ADD
 * (immediate), or a load or store of a word. */
#include "runtime/go/reference.h"

#include <string.h>

#define PAGE_BYTES 4096u

bool reference_may_be_at(const uint8_t *code, size_t code_bytes, uint64_t address, unsigned way,
                         uint64_t *ret_data)
{
    uint32_t page, next;
    if (way || address % sizeof page || code_bytes < sizeof page + sizeof next)
        return false;
    memcpy(&page, code, sizeof page);
    memcpy(&next, code + sizeof page, sizeof next);
    if ((page & 0x9f000000u) != 0x90000000u)
        return false;
    uint64_t pages = (page >> 5 & 0x7ffffu) << 2 | (page >> 29 & 3), sign = 1u << 20;
    uint64_t base = (address & ~(uint64_t)(PAGE_BYTES - 1)) + ((pages ^ sign) - sign) * PAGE_BYTES;
    bool is_add = (next & 0xffc00000u) == 0x91000000u;
    *ret_data = base + (next >> 10 & 0xfffu) * (is_add ? 1 : sizeof(uint64_t));
    return true;
}

/* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, 2.2.1.6: a 32-bit
 * displacement from the end of the instruction, which may be followed by a constant of 1 or 4
 * bytes. */
#include "runtime/go/reference.h"

#include <string.h>

bool reference_may_be_at(const uint8_t *code, size_t code_bytes, uint64_t address, unsigned way,
                         uint64_t *ret_data)
{
    static const unsigned constant_bytes[REFERENCE_WAYS] = {0, 1, 4};
    int32_t displacement;
    if (code_bytes < sizeof displacement)
        return false;
    memcpy(&displacement, code, sizeof displacement);
    *ret_data =
        address + sizeof displacement + constant_bytes[way] + (uint64_t)(int64_t)displacement;
    return true;
}

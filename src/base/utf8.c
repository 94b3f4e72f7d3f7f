#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>

size_t utf8_bytes(const unsigned char *text, size_t left)
{
    static const uint32_t first[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : 4;
    if (bytes == 1)
        return 1;
    if (bytes > left || (bytes == 4 && *text >> 3 != 30))
        return 0;
    uint32_t character = *text & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    bool is_surrogate = character >= 0xd800 && character < 0xe000;
    return character < first[bytes] || character > 0x10ffff || is_surrogate ? 0 : bytes;
}

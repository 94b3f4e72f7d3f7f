#include "base/utf8.h"

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
        if (!utf8_continues((char)text[i]))
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    bool is_surrogate = character >= 0xd800 && character < 0xe000;
    return character < first[bytes] || character > 0x10ffff || is_surrogate ? 0 : bytes;
}

size_t utf8_printable_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    bool is_control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    return is_control ? 0 : utf8_bytes(s, 4);
}

size_t utf8_cut(const char *text, size_t bytes, size_t bytes_max)
{
    if (bytes <= bytes_max)
        return bytes;
    for (bytes = bytes_max; bytes > bytes_max - 4 && utf8_continues(text[bytes]);)
        bytes--;
    return bytes;
}

size_t utf8_columns(const char *text, size_t bytes)
{
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += !utf8_continues(text[i]);
    return columns;
}

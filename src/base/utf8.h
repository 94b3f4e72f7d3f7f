/* Characters in UTF-8 (RFC 3629). */
#ifndef FGPROF_BASE_UTF8_H
#define FGPROF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the character at `text`, which has `left` bytes left; 0 if it is not
 * valid. For text that ends in NUL, `left` may be 4. */
size_t utf8_bytes(const unsigned char *text, size_t left);

/* The same for text that ends in NUL, and 0 for a control character, NUL included. */
size_t utf8_printable_bytes(const char *text);

/* Whether the byte is not the first of a character. */
static inline bool utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* How many of the text's bytes are left if it is cut between characters to at most `bytes_max`. */
size_t utf8_cut(const char *text, size_t bytes, size_t bytes_max);

/* How many characters there are in the text. */
size_t utf8_columns(const char *text, size_t bytes);

#endif

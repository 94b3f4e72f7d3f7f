/* Characters in UTF-8 (RFC 3629). */
#ifndef FGPROF_BASE_UTF8_H
#define FGPROF_BASE_UTF8_H

#include <stddef.h>

/* How many bytes the character at `text` has, of `left` that there are; 0: it is none. What ends in
 * NUL may be taken to have 4. */
size_t utf8_bytes(const unsigned char *text, size_t left);

#endif

#include "cli/escape.h"

void put_escaped(FILE *to, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        /* 0xc2 begins the control characters U+0080 to U+009f. */
        if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            fprintf(to, "\\x%02x", *c);
        else
            fputc(*c, to);
    }
}

void print_escaped(const char *text)
{
    put_escaped(stderr, text);
}

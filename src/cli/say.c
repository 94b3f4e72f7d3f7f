#include "cli/say.h"

#include <stdarg.h>

#define TEXT_BYTES 8192 /* of a message; what is longer is cut */
#define ESCAPED_BYTES 4 /* "\x1b" */

/* Writes a character, escaped. Returns how many bytes that took. */
static int escape(char to[ESCAPED_BYTES + 1], const unsigned char *c)
{
    /* 0xc2 begins the control characters U+0080 to U+009f. */
    bool is_control = *c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
    return sprintf(to, is_control ? "\\x%02x" : "%c", *c);
}

void put_escaped(FILE *to, const char *text)
{
    char escaped[ESCAPED_BYTES + 1];
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        escape(escaped, c);
        fputs(escaped, to);
    }
}

/* Prints the line at once, as others may print, and without memory, which may be what is lacking.
 */
static void put_line(const char *before, const char *format, va_list arguments, const char *after)
{
    char text[TEXT_BYTES], line[ESCAPED_BYTES * TEXT_BYTES + 1], *end = line;
    vsnprintf(text, sizeof text, format, arguments);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        end += escape(end, c);
    *end = '\0';
    fprintf(stderr, "%s%s%s\n", before, line, after);
}

bool say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line("fgprof-c: ", format, arguments, "");
    va_end(arguments);
    return false;
}

void say_once(bool *was_said, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*was_said)
        put_line("fgprof-c: ", format, arguments, " (reported once)");
    va_end(arguments);
    *was_said = true;
}

void say_more(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line("  ", format, arguments, "");
    va_end(arguments);
}

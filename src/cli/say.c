#include "cli/say.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <string.h>

#define TEXT_BYTES 8192 /* of a message; longer ones are cut */
#define ESCAPED_BYTES 4 /* "\x1b" */

/* Writes the first character of `text`, or a byte that is not part of one, escaped: a terminal may
 * take a lone byte from 0x80 to 0x9f for a control character. Returns what comes after it. */
static const char *escape(const char *text, char to[ESCAPED_BYTES + 1])
{
    size_t bytes = utf8_printable_bytes(text);
    memcpy(to, text, bytes);
    to[bytes] = '\0';
    if (!bytes)
        sprintf(to, "\\x%02x", (unsigned char)*text);
    return text + (bytes ? bytes : 1);
}

void put_escaped(FILE *to, const char *text)
{
    char escaped[ESCAPED_BYTES + 1];
    while (*text) {
        text = escape(text, escaped);
        fputs(escaped, to);
    }
}

/* Prints the line in one write, because others may print too, and without allocating memory, which
 * may be what is short. */
static void put_line(const char *before, const char *format, va_list arguments, const char *after)
{
    char text[TEXT_BYTES], line[ESCAPED_BYTES * TEXT_BYTES + 1], *end = line;
    vsnprintf(text, sizeof text, format, arguments);
    *end = '\0';
    for (const char *at = text; *at; end += strlen(end))
        at = escape(at, end);
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

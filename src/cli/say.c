#include "cli/say.h"

#include <stdarg.h>
#include <stdlib.h>

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

static void put_line(const char *before, const char *format, va_list arguments, const char *after)
{
    char *text = NULL, *line = NULL;
    size_t bytes;
    bool has_text = vasprintf(&text, format, arguments) >= 0;
    FILE *out = has_text ? open_memstream(&line, &bytes) : NULL;
    if (out) {
        fputs(before, out);
        put_escaped(out, text);
        fprintf(out, "%s\n", after);
    }
    fputs(out && !fclose(out) ? line : "fgprof-c: out of memory\n", stderr);
    free(line);
    if (has_text)
        free(text);
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

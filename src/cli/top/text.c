#include "cli/top/text.h"

#include <curses.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

int put_text(const char *text, int columns)
{
    mbstate_t state = {0};
    int used = 0;
    for (size_t left = strlen(text); left;) {
        wchar_t cell[2] = L"";
        size_t bytes = mbrtowc(cell, text, left, &state);
        bool is_good = bytes - 1 < left && iswprint((wint_t)cell[0]) && wcwidth(cell[0]) > 0;
        int width = is_good ? wcwidth(cell[0]) : 4;
        bool is_last = is_good && bytes == left;
        if (used + width > columns - !is_last) {
            if (used < columns)
                addch('~');
            return columns;
        }
        if (is_good)
            addwstr(cell);
        else
            printw("\\x%02x", (unsigned char)*text);
        if (!is_good) {
            bytes = 1;
            state = (mbstate_t){0};
        }
        used += width;
        text += bytes;
        left -= bytes;
    }
    return used;
}

void put_format(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int left = COLS - getcurx(stdscr) - 1;
    if (left > 0)
        addnstr(text, left);
}

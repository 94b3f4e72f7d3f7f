/* Questions about texts. */
#ifndef FGPROF_BASE_TEXT_H
#define FGPROF_BASE_TEXT_H

#include "base/array.h"

static inline bool text_begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static inline bool text_ends(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

/* Whether it is one of the words, and whether it begins with one. */
static inline bool text_is_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

static inline bool text_begins_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text_begins(text, words[i]))
            return true;
    }
    return false;
}

/* Whether it is a letter or a digit of ASCII, or one of the others. */
static inline bool text_is_plain(char c, const char *others)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr(others, c);
}

/* Replaces all that is not by '_'. */
static inline void text_make_plain(char *text, const char *others)
{
    for (; *text; text++)
        *text = text_is_plain(*text, others) ? *text : '_';
}

#endif

#include "symbol/names/shown_names.h"
#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stub's name is the name of the function that it calls, and a mark (see symbols.c). */
static char *demangle_stub(const char *symbol, enum fgprof_names kind)
{
    static const char mark[] = "@plt";
    size_t length = strlen(symbol), mark_length = sizeof mark - 1;
    char *target, *name, *marked = NULL;
    if (length <= mark_length || strcmp(symbol + length - mark_length, mark) != 0)
        return NULL;
    target = strndup(symbol, length - mark_length);
    name = target ? demangle(target, kind) : NULL;
    if (name && asprintf(&marked, "%s%s", name, mark) < 0)
        marked = NULL;
    free(name);
    free(target);
    return marked;
}

const char *shown_name(struct shown_names *names, const char *symbol, enum fgprof_names kind)
{
    uint32_t number;
    if (strings_intern(&names->symbols, symbol, &number))
        return NULL;
    if (number == names->count) {
        if (array_reserve(&names->shown, &names->capacity, names->count + 1))
            return NULL;
        char *shown = demangle(symbol, kind);
        names->shown[names->count++] = shown ? shown : demangle_stub(symbol, kind);
    }
    return names->shown[number] ? names->shown[number] : strings_get(&names->symbols, number);
}

void shown_names_free(struct shown_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->shown[i]);
    free(names->shown);
    strings_free(&names->symbols);
    *names = (struct shown_names){0};
}

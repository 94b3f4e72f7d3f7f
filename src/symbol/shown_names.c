#include "symbol/shown_names.h"
#include "base/array.h"

#include <stdlib.h>

const char *shown_name(struct shown_names *names, const char *symbol, enum fgprof_names kind)
{
    uint32_t number;
    if (strings_intern(&names->symbols, symbol, &number))
        return NULL;
    if (number == names->count) {
        if (array_reserve((void **)&names->shown, &names->capacity, names->count + 1,
                          sizeof *names->shown))
            return NULL;
        names->shown[names->count++] = demangle(symbol, kind);
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

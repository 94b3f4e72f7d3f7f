#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <stddef.h>

char *demangle(const char *symbol)
{
    /* A plain C name would be taken for a mangled type ("i" is int). */
    if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R' && symbol[1] != 'D'))
        return NULL;
    /* DMGL_AUTO leaves D out (cplus_demangle in libiberty's cplus-dem.c). */
    return cplus_demangle(symbol, symbol[1] == 'D' ? DMGL_DLANG : DMGL_AUTO);
}

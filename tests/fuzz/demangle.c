/* Function names, from symbol tables and from debug information. */
#include "symbol/names/demangle.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    char *name = copy_of(input, 1);
    free(demangle(name, FGPROF_NAMES_SHORT));
    free(demangle(name, FGPROF_NAMES_FULL));
    must(fold_name(name) == 0 && strlen(name) <= bytes);
    free(name);
    return 0;
}

#include "profile/name_jit.h"
#include "symbol/names/demangle.h"

#include <errno.h>
#include <stdlib.h>

/* A mapping apart from that of generated code without names, so that it can claim to be symbolized.
 * pprof looks for no file if its name begins with a bracket (Mapping.Unsymbolizable of
 * google/pprof's profile/profile.go). */
#define JIT_MAPPING "[jit]"

static int add_mapping(struct fgprof_profile *profile, const struct mapping *mapping,
                       uint32_t *ret_mapping)
{
    struct profile_mapping row = {
        .start = mapping->start,
        .limit = mapping->end,
        .offset = mapping->offset,
    };
    if (strings_intern(&profile->strings, JIT_MAPPING, &row.path))
        return -ENOMEM;
    return profile_add_mapping(profile, &row, ret_mapping);
}

int name_jit_location(struct fgprof_profile *profile, enum fgprof_names names,
                      const struct space *space, const struct mapping *mapping, uint64_t address,
                      uint32_t *ret_location)
{
    const struct jit_code *code = &space->jit->code;
    const struct jit_symbol *symbol = jit_find(space->jit, space->id, address);
    const struct jit_line *line = jit_code_line(code, symbol, address);
    const char *name = strings_get(&code->strings, symbol->name);
    struct profile_line row = {.line = line ? line->line : 0};
    uint32_t mapping_number;
    bool is_new;
    char *demangled = demangle(name, names);
    int err =
        profile_add_function(profile, demangled ? demangled : name, name,
                             line ? strings_get(&code->strings, line->file) : "", &row.function);
    free(demangled);
    if (!err)
        err = add_mapping(profile, mapping, &mapping_number);
    if (!err)
        err = profile_add_jit_location(profile, address, mapping_number, row.function, ret_location,
                                       &is_new);
    if (err || !is_new)
        return err;
    profile->locations[*ret_location].function_offset = address - symbol->start;
    return profile_set_lines(profile, *ret_location, &row, 1);
}

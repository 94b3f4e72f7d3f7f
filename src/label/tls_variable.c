#include "label/tls_variable.h"
#include "elf/dynamic_symbol.h"
#include "label/tls_offset.h"
#include "proc/memory.h"

#include <errno.h>

/* struct r_debug and the public part of struct link_map (link.h). */
#define R_MAP_AT 8
#define L_ADDR_AT 0
#define L_NEXT_AT 24
/* A longer list counts as circular. */
#define LIBRARIES_MAX 16384
/* How many modules that define the variable are looked at. */
#define DEFINITIONS_MAX 64

/* A module that defines the variable. */
struct definition {
    const struct mapping *mapping;
    uint64_t value; /* of the symbol */
};

/* Finds modules that define the symbol, in the order of their addresses, and returns how many. */
static size_t find_definitions(const struct space *space, const char *name, unsigned char type,
                               struct definition *ret_definitions, size_t max)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    size_t count = 0;
    while (count < max && (mapping = space_next_module(space, &walk))) {
        struct dynamic_symbol symbol;
        if (type == STT_TLS && !mapping->module->tls.bytes)
            continue;
        if (dynamic_symbol_find(mapping->module, name, type, &symbol))
            ret_definitions[count++] = (struct definition){mapping, symbol.value};
    }
    return count;
}

/* Where in struct link_map a private field is. glibc has it for debuggers, as three numbers: the
 * field's bits, how many there are, and its offset (DESCRIBE in its nptl_db/db_info.c). */
static bool find_field(const struct space *space, const char *name, uint64_t *ret_offset)
{
    uint32_t field[3];
    struct definition found;
    if (!find_definitions(space, name, STT_OBJECT, &found, 1) ||
        !module_read(found.mapping->module, found.value, field, sizeof field) ||
        field[0] != 8 * sizeof(uint64_t))
        return false;
    *ret_offset = field[2];
    return true;
}

/* Finds the definition that the dynamic linker binds to: the first in the order in which it loaded
 * the modules. *ret_row is the linker's row about that module. Returns 0; -ENOENT if it has none of
 * them, or -EAGAIN if that can't be read. */
static int find_bound(const struct space *space, pid_t tid, const struct definition *definitions,
                      size_t count, const struct definition **ret_bound, uint64_t *ret_row)
{
    struct definition linker;
    uint64_t row, bias;
    if (!find_definitions(space, "_r_debug", STT_OBJECT, &linker, 1) ||
        !memory_read_word(tid, NULL, linker.mapping->bias + linker.value + R_MAP_AT, &row))
        return -EAGAIN;
    for (size_t i = 0; row && i < LIBRARIES_MAX; i++) {
        if (!memory_read_word(tid, NULL, row + L_ADDR_AT, &bias))
            return -EAGAIN;
        for (size_t j = 0; j < count; j++) {
            if (definitions[j].mapping->bias == bias) {
                *ret_row = row;
                *ret_bound = &definitions[j];
                return 0;
            }
        }
        if (!memory_read_word(tid, NULL, row + L_NEXT_AT, &row))
            return -EAGAIN;
    }
    return row ? -EAGAIN : -ENOENT;
}

/* Whatever the model by which the library's code finds the variable: the linker notes where the
 * library's block is, at a fixed place or by its number in each thread's table. */
static int find_in_library(const struct space *space, pid_t tid,
                           const struct definition *definitions, size_t count,
                           struct context_place *ret_place)
{
    uint64_t offset_at, number_at, row, l_tls_offset, number;
    const struct definition *bound;
    int64_t offset;
    if (!find_field(space, "_thread_db_link_map_l_tls_offset", &offset_at) ||
        !find_field(space, "_thread_db_link_map_l_tls_modid", &number_at))
        return -EAGAIN;
    int err = find_bound(space, tid, definitions, count, &bound, &row);
    if (err)
        return err;
    if (!memory_read_word(tid, NULL, row + offset_at, &l_tls_offset) ||
        !memory_read_word(tid, NULL, row + number_at, &number) || !number)
        return -EAGAIN;
    int64_t value = (int64_t)bound->value;
    if (tls_offset_of_library(l_tls_offset, &offset))
        *ret_place = (struct context_place){CONTEXT_STATIC, offset + value, 0};
    else
        *ret_place = (struct context_place){CONTEXT_DYNAMIC, value, number};
    return 0;
}

int tls_variable_find(struct space *space, pid_t tid, const char *name,
                      struct context_place *ret_place)
{
    struct definition definitions[DEFINITIONS_MAX];
    size_t count = find_definitions(space, name, STT_TLS, definitions, DEFINITIONS_MAX);
    if (!count)
        return -ENOENT;
    /* The program itself comes before its libraries. */
    for (size_t i = 0; i < count; i++) {
        if (!definitions[i].mapping->is_main)
            continue;
        int64_t offset = tls_offset_of_main(&definitions[i].mapping->module->tls);
        *ret_place =
            (struct context_place){CONTEXT_STATIC, offset + (int64_t)definitions[i].value, 0};
        return 0;
    }
    return find_in_library(space, tid, definitions, count, ret_place);
}

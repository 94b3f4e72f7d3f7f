#include "label/tls_variable.h"
#include "label/tls_offset.h"
#include "proc/memory.h"

#include <elf.h>
#include <errno.h>

/* struct r_debug and the public part of struct link_map (link.h). */
#define R_MAP_AT 8
#define L_ADDR_AT 0
#define L_NEXT_AT 24
/* A longer list counts as circular. */
#define LIBRARIES_MAX 16384
/* How many modules that define the variable are considered. */
#define DEFINITIONS_MAX 64

/* Where it is searched. */
struct tls_search {
    struct queries *queries;
    const struct space *space;
    pid_t tid;
};

/* A module that defines the variable. */
struct definition {
    const struct mapping *mapping;
    uint64_t value; /* of the symbol */
};

/* Finds modules that define the symbol, in the order of their addresses, up to `max`. Returns 0;
 * -ENOENT if there is none; -EAGAIN or -ENOMEM. */
static int find_definitions(const struct tls_search *search, const char *name, unsigned char type,
                            struct definition *ret_definitions, size_t max, size_t *ret_count)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    *ret_count = 0;
    while (*ret_count < max && (mapping = space_next_module(search->space, &walk))) {
        struct module_part symbol;
        if (type == STT_TLS && !mapping->module->tls.bytes)
            continue;
        int err = query_symbol(search->queries, mapping->module, name, type, &symbol);
        if (err && err != -ENOENT)
            return err;
        if (!err)
            ret_definitions[(*ret_count)++] = (struct definition){mapping, symbol.address};
    }
    return *ret_count ? 0 : -ENOENT;
}

/* The first of them. Returns false if there is none, or that is not known. */
static bool find_first(const struct tls_search *search, const char *name,
                       struct definition *ret_definition)
{
    size_t count;
    return !find_definitions(search, name, STT_OBJECT, ret_definition, 1, &count);
}

/* Finds the offset of a private field in struct link_map. glibc provides it for debuggers, as three
 * numbers: the field's bits, how many elements there are, and its offset (DESCRIBE in its
 * nptl_db/db_info.c). */
static bool find_field(const struct tls_search *search, const char *name, uint64_t *ret_offset)
{
    uint32_t field[3];
    struct definition found;
    if (!find_first(search, name, &found) ||
        !module_read(found.mapping->module, found.value, field, sizeof field) ||
        field[0] != 8 * sizeof(uint64_t))
        return false;
    *ret_offset = field[2];
    return true;
}

/* Finds the definition that the dynamic linker binds to: the first in the order in which it loaded
 * the modules. *ret_row is the linker's row about that module. Returns 0; -ENOENT if none of them
 * is in its list, or -EAGAIN if the list can't be read. */
static int find_bound(const struct tls_search *search, const struct definition *definitions,
                      size_t count, const struct definition **ret_bound, uint64_t *ret_row)
{
    struct definition linker;
    uint64_t row, bias;
    pid_t tid = search->tid;
    if (!find_first(search, "_r_debug", &linker) ||
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

/* This works whatever TLS model the library's code uses: the linker records where the library's
 * block is, at a fixed offset or by its number in each thread's table. */
static int find_in_library(const struct tls_search *search, const struct definition *definitions,
                           size_t count, struct context_place *ret_place)
{
    uint64_t offset_at, number_at, row, l_tls_offset, number;
    const struct definition *bound;
    int64_t offset;
    if (!find_field(search, "_thread_db_link_map_l_tls_offset", &offset_at) ||
        !find_field(search, "_thread_db_link_map_l_tls_modid", &number_at))
        return -EAGAIN;
    int err = find_bound(search, definitions, count, &bound, &row);
    if (err)
        return err;
    if (!memory_read_word(search->tid, NULL, row + offset_at, &l_tls_offset) ||
        !memory_read_word(search->tid, NULL, row + number_at, &number) || !number)
        return -EAGAIN;
    int64_t value = (int64_t)bound->value;
    if (tls_offset_of_library(l_tls_offset, &offset))
        *ret_place = (struct context_place){CONTEXT_STATIC, offset + value, 0};
    else
        *ret_place = (struct context_place){CONTEXT_DYNAMIC, value, number};
    return 0;
}

int tls_variable_find(struct queries *queries, struct space *space, pid_t tid, const char *name,
                      struct context_place *ret_place)
{
    const struct tls_search search = {queries, space, tid};
    struct definition definitions[DEFINITIONS_MAX];
    size_t count;
    int err = find_definitions(&search, name, STT_TLS, definitions, DEFINITIONS_MAX, &count);
    if (err)
        return err;
    /* The program itself comes before its libraries. */
    for (size_t i = 0; i < count; i++) {
        if (!definitions[i].mapping->is_main)
            continue;
        int64_t offset = tls_offset_of_main(&definitions[i].mapping->module->tls);
        *ret_place =
            (struct context_place){CONTEXT_STATIC, offset + (int64_t)definitions[i].value, 0};
        return 0;
    }
    return find_in_library(&search, definitions, count, ret_place);
}

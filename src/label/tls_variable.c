#include "label/tls_variable.h"
#include "elf/dynamic_symbol.h"
#include "label/tls_offset.h"
#include "proc/memory.h"

#include <errno.h>

/* struct r_debug and the public part of struct link_map (link.h). */
#define R_MAP_AT 8
#define L_ADDR_AT 0
#define L_NEXT_AT 24
/* A list that is longer is taken for a circle. */
#define LIBRARIES_MAX 16384

static bool read_number(pid_t tid, uint64_t address, uint64_t *ret_number)
{
    return memory_read(tid, address, ret_number, sizeof *ret_number) == sizeof *ret_number;
}

/* The first mapping of a module that shows the symbol; NULL: none does. */
static const struct mapping *find_symbol(const struct space *space, const char *name,
                                         unsigned char type, uint64_t *ret_value)
{
    const struct module *last = NULL;
    for (size_t i = 0; i < space->mapping_count; i++) {
        const struct mapping *mapping = &space->mappings[i];
        struct module *module = mapping->module;
        if (!mapping->has_bias || !module || module == last ||
            (type == STT_TLS && !module->tls.bytes))
            continue;
        last = module;
        if (dynamic_symbol_find(module, name, type, ret_value))
            return mapping;
    }
    return NULL;
}

/* Where in struct link_map a private field is. glibc tells debuggers, in three numbers: the field's
 * bits, how many there are, and its offset (DESCRIBE in its nptl_db/db_info.c). */
static bool find_field(const struct space *space, const char *name, uint64_t *ret_offset)
{
    uint32_t field[3];
    uint64_t value;
    const struct mapping *mapping = find_symbol(space, name, STT_OBJECT, &value);
    if (!mapping || !module_read(mapping->module, value, field, sizeof field) ||
        field[0] != 8 * sizeof(uint64_t))
        return false;
    *ret_offset = field[2];
    return true;
}

/* The dynamic linker's row about the library that was loaded with this bias. */
static bool find_link_map(const struct space *space, pid_t tid, uint64_t bias, uint64_t *ret_row)
{
    uint64_t value, row, address;
    const struct mapping *linker = find_symbol(space, "_r_debug", STT_OBJECT, &value);
    if (!linker || !read_number(tid, linker->bias + value + R_MAP_AT, &row))
        return false;
    for (size_t i = 0; row && i < LIBRARIES_MAX; i++) {
        if (!read_number(tid, row + L_ADDR_AT, &address))
            return false;
        if (address == bias) {
            *ret_row = row;
            return true;
        }
        if (!read_number(tid, row + L_NEXT_AT, &row))
            return false;
    }
    return false;
}

/* Whatever the model by which the library's code finds the variable: the linker notes where the
 * library's block is, at a fixed place or by its number in each thread's table. */
static int find_in_library(const struct space *space, pid_t tid, const struct mapping *mapping,
                           uint64_t value, struct context_place *ret_place)
{
    uint64_t offset_at, number_at, row, l_tls_offset, number;
    int64_t offset;
    if (!find_field(space, "_thread_db_link_map_l_tls_offset", &offset_at) ||
        !find_field(space, "_thread_db_link_map_l_tls_modid", &number_at) ||
        !find_link_map(space, tid, mapping->bias, &row) ||
        !read_number(tid, row + offset_at, &l_tls_offset) ||
        !read_number(tid, row + number_at, &number) || !number)
        return -EAGAIN;
    if (tls_offset_of_library(l_tls_offset, &offset))
        *ret_place = (struct context_place){CONTEXT_STATIC, offset + (int64_t)value, 0};
    else
        *ret_place = (struct context_place){CONTEXT_DYNAMIC, (int64_t)value, number};
    return 0;
}

int tls_variable_find(struct space *space, pid_t tid, const char *name,
                      struct context_place *ret_place)
{
    uint64_t value;
    const struct mapping *mapping = find_symbol(space, name, STT_TLS, &value);
    if (!mapping)
        return -ENOENT;
    if (!mapping->is_main)
        return find_in_library(space, tid, mapping, value, ret_place);
    int64_t offset = tls_offset_of_main(&mapping->module->tls) + (int64_t)value;
    *ret_place = (struct context_place){CONTEXT_STATIC, offset, 0};
    return 0;
}

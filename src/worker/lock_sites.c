#include "worker/lock_sites.h"
#include "base/array.h"
#include "symbol/debug_file.h"
#include "symbol/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* Symbols of a C library, or of a static program. */
struct libc_names {
    const struct module *module;
    bool has_table;
    struct symbol_table table;
};

/* Some functions are only named in the symbols that were split from the file. */
static int add_split_names(struct libc_names *names)
{
    struct object object, found;
    char *path;
    struct own_debug_files own;
    if (object_open_module(&object, names->module))
        return 0;
    own_debug_files_init(&own, names->module, NULL);
    int err = debug_file_find(&object, &own.files, names->module->path, &found, &path);
    object_close(&object);
    if (err)
        return err == -ENOMEM ? err : 0;
    free(path);
    return symbol_table_add(&names->table, &found);
}

static int read_names(struct libc_names *names)
{
    struct object object;
    if (object_open_module(&object, names->module))
        return 0;
    int err = symbol_table_add(&names->table, &object);
    if (!err)
        err = add_split_names(names);
    if (!err)
        err = symbol_table_finish(&names->table);
    names->has_table = !err;
    return err;
}

/* Returns NULL if memory is short. */
static struct libc_names *names_of(struct lock_sites *sites, const struct module *module)
{
    for (size_t i = 0; i < sites->libc_count; i++) {
        if (sites->libcs[i].module == module)
            return &sites->libcs[i];
    }
    if (array_reserve(&sites->libcs, &sites->libc_capacity, sites->libc_count + 1))
        return NULL;
    struct libc_names *names = &sites->libcs[sites->libc_count++];
    *names = (struct libc_names){.module = module};
    return read_names(names) ? NULL : names;
}

/* A program's own functions matter only if it is static: the names of a large program would take
 * long to read. */
static bool may_be_libc(const struct space *space, const struct mapping *mapping)
{
    if (lock_is_glibc_file(mapping->path))
        return true;
    for (size_t i = 0; i < space->mapping_count; i++) {
        const struct mapping *other = &space->mappings[i];
        if (!other->is_main && other->module && strstr(other->path, ".so"))
            return false;
    }
    return mapping->is_main;
}

static int name_frame(struct lock_sites *sites, struct space *space, uint64_t address,
                      char name[NAME_BYTES], struct lock_frame *frame)
{
    const struct mapping *mapping = space_find(space, address);
    *frame = (struct lock_frame){name, ""};
    *name = '\0';
    if (!mapping || !mapping->module || !mapping->has_bias || !may_be_libc(space, mapping))
        return 0;
    struct libc_names *names = names_of(sites, mapping->module);
    if (!names)
        return -ENOMEM;
    struct symbol_found found = {0};
    if (names->has_table)
        symbol_table_find(&names->table, address - mapping->bias, &found);
    if (found.name)
        strncat(name, found.name, NAME_BYTES - 1);
    frame->file = mapping->path;
    return 0;
}

static int find_site(struct lock_sites *sites, const struct results *results,
                     const struct counted_stack *stack, struct lock_site *ret_site)
{
    char names[LOCK_FRAMES_MAX][NAME_BYTES];
    struct lock_frame frames[LOCK_FRAMES_MAX];
    size_t depth = stack->depth < LOCK_FRAMES_MAX ? stack->depth : LOCK_FRAMES_MAX;
    int err = 0;
    if (stack->space == NO_SPACE)
        depth = 0;
    for (size_t i = 0; i < depth && !err; i++)
        err = name_frame(sites, results->spaces.items[stack->space],
                         results->stacks.addresses[stack->first_address + i], names[i], &frames[i]);
    if (!err)
        *ret_site = lock_site_of(frames, depth);
    return err;
}

int lock_sites_get(struct lock_sites *sites, const struct results *results, uint32_t stack,
                   struct lock_site *ret_site)
{
    if (array_reserve(&sites->items, &sites->capacity, stack + 1u))
        return -ENOMEM;
    while (sites->count <= stack)
        sites->items[sites->count++] = (struct lock_site){.kind = RESOURCE_NOT_KNOWN};
    if (sites->items[stack].kind == RESOURCE_NOT_KNOWN) {
        int err = find_site(sites, results, &results->stacks.stacks[stack], &sites->items[stack]);
        if (err)
            return err;
    }
    *ret_site = sites->items[stack];
    return 0;
}

void lock_sites_keep(struct lock_sites *sites, const struct renumber *stacks)
{
    size_t kept = 0;
    for (size_t i = 0; i < sites->count; i++) {
        if (renumber_of(stacks, (uint32_t)i) != ROW_GONE)
            sites->items[kept++] = sites->items[i];
    }
    sites->count = kept;
}

void lock_sites_forget_module(struct lock_sites *sites, const struct module *module)
{
    for (size_t i = 0; i < sites->libc_count; i++) {
        if (sites->libcs[i].module != module)
            continue;
        symbol_table_free(&sites->libcs[i].table);
        sites->libcs[i] = sites->libcs[--sites->libc_count];
        return;
    }
}

void lock_sites_free(struct lock_sites *sites)
{
    for (size_t i = 0; i < sites->libc_count; i++)
        symbol_table_free(&sites->libcs[i].table);
    free(sites->libcs);
    free(sites->items);
    *sites = (struct lock_sites){0};
}

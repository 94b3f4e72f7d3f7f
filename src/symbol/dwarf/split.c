#include "symbol/dwarf/split.h"
#include "elf/dwarf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sections of a unit in a package, by their numbers in DWARF 5, 7.3.5.3, and in the draft
 * before it (version 2 of the index) if those differ. */
enum { IN_INFO = 1, IN_ABBREV = 3, IN_STR_OFFSETS = 6, IN_RNGLISTS = 8, IN_COUNT };
#define COLUMNS_MAX 16

void split_free(struct split *split)
{
    section_close(&split->index);
    debug_info_close(split->package);
    debug_info_close(split->file);
    free(split->package_path);
    *split = (struct split){0};
}

static int open_split(struct debug_files *files, const char *path, struct debug_info **ret_info)
{
    struct object object;
    int fd = files->open(files, path);
    if (fd < 0)
        return -ENOEXEC;
    int err = object_open_fd(&object, fd);
    return err ? err : debug_info_open(ret_info, &object, true);
}

static int open_package(struct split *split)
{
    if (!split->package_path)
        return 0;
    int err = open_split(split->files, split->package_path, &split->package);
    free(split->package_path);
    split->package_path = NULL;
    if (!err)
        object_section(&split->package->object, ".debug_cu_index", &split->index);
    return err == -ENOMEM ? err : 0;
}

static uint64_t word(struct split *split, uint64_t at)
{
    uint64_t value;
    return section_number(&split->index, at, 4, &value) ? value : 0;
}

/* The index is a hash table of the units' ids, and a table that gives where each unit's
 * contributions to the sections are (DWARF 5, 7.3.5). `starts` is indexed by the numbers above. */
static bool find_in_index(struct split *split, uint64_t id, uint64_t starts[IN_COUNT])
{
    uint64_t column_count = word(split, 4), unit_count = word(split, 8), slots = word(split, 12);
    uint64_t slot = id & (slots - 1), row = 0, found = 0;
    if (!slots || slots & (slots - 1) || column_count > COLUMNS_MAX)
        return false;
    for (uint64_t i = 0; i < slots; i++) {
        if (!section_number(&split->index, 16 + 8 * slot, 8, &found))
            return false;
        row = word(split, 16 + 8 * slots + 4 * slot);
        if (!row || found == id)
            break;
        slot = (slot + (((id >> 32) & (slots - 1)) | 1)) & (slots - 1);
    }
    if (!row || found != id || row > unit_count)
        return false;
    uint64_t columns = 16 + 12 * slots;
    for (uint64_t i = 0; i < column_count; i++) {
        uint64_t kind = word(split, columns + 4 * i);
        if (kind < IN_COUNT)
            starts[kind] = word(split, columns + 4 * (row * column_count + i));
    }
    return true;
}

/* Copies what a split unit takes from the unit that it was split from. */
static void join(struct unit *unit, const struct unit *skeleton)
{
    unit->addresses = skeleton->info;
    unit->addr_base = skeleton->addr_base;
    unit->ranges_base = skeleton->ranges_base;
    unit->low_pc = skeleton->low_pc;
}

static int read_from_package(struct split *split, const struct unit *skeleton,
                             struct unit *ret_unit)
{
    uint64_t starts[IN_COUNT] = {0};
    struct unit unit;
    struct die root;
    if (!split->package || !find_in_index(split, skeleton->dwo_id, starts))
        return -ENOEXEC;
    int err = unit_read(split->package, starts[IN_INFO], &unit);
    if (err)
        return err;
    unit.abbrev_at += starts[IN_ABBREV];
    err = unit_read_root(&unit, &root);
    if (err)
        return err;
    unit.str_offsets_base += starts[IN_STR_OFFSETS];
    unit.rnglists_base += starts[IN_RNGLISTS];
    join(&unit, skeleton);
    *ret_unit = unit;
    return 0;
}

static char *path_of(const struct unit *skeleton, const struct die *root)
{
    const char *text = value_string(skeleton, &root->dwo_name);
    char *name = text ? strdup(text) : NULL, *path = NULL;
    if (!name || name[0] == '/')
        return name;
    text = value_string(skeleton, &root->comp_dir);
    if (text && asprintf(&path, "%s/%s", text, name) < 0)
        path = NULL;
    free(name);
    return path;
}

static int read_from_file(struct split *split, const struct unit *skeleton, const struct die *root,
                          struct unit *ret_unit)
{
    char *path = path_of(skeleton, root);
    struct die split_root;
    debug_info_close(split->file);
    split->file = NULL;
    int err = path ? open_split(split->files, path, &split->file) : -ENOEXEC;
    free(path);
    for (uint64_t at = 0; !err; at = ret_unit->end) {
        err = unit_read(split->file, at, ret_unit);
        if (!err && (ret_unit->version < 5 || ret_unit->type == DW_UT_split_compile) &&
            unit_read_root(ret_unit, &split_root) == 0 && ret_unit->dwo_id == skeleton->dwo_id)
            break;
    }
    if (!err)
        join(ret_unit, skeleton);
    return err;
}

int split_read(struct split *split, const struct unit *skeleton, const struct die *root,
               struct unit *ret_unit)
{
    int err = open_package(split);
    if (!err)
        err = read_from_package(split, skeleton, ret_unit);
    return err == -ENOEXEC ? read_from_file(split, skeleton, root, ret_unit) : err;
}

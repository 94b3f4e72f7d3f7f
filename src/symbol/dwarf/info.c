#include "symbol/dwarf/info.h"
#include "elf/dwarf.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ABBREVS_BYTES_MAX ((size_t)64 << 20)

static int read_attributes(struct abbrevs *abbrevs, struct bytes *bytes, struct abbrev *abbrev)
{
    abbrev->first_attribute = (uint32_t)abbrevs->attribute_count;
    while (!bytes->failed) {
        uint64_t name = bytes_uleb(bytes), form = bytes_uleb(bytes);
        int64_t implicit = form == DW_FORM_implicit_const ? bytes_sleb(bytes) : 0;
        if (!name && !form)
            break;
        if (name > UINT16_MAX || form > UINT16_MAX)
            return -ENOEXEC;
        if (array_append(&abbrevs->attributes, &abbrevs->attribute_count,
                         &abbrevs->attribute_capacity,
                         (struct abbrev_attribute){(uint16_t)name, (uint16_t)form, implicit}))
            return -ENOMEM;
    }
    abbrev->attribute_count = (uint32_t)abbrevs->attribute_count - abbrev->first_attribute;
    return 0;
}

/* Returns -EAGAIN if the table continues after these bytes. */
static int parse(struct abbrevs *abbrevs, struct bytes bytes)
{
    while (true) {
        struct abbrev abbrev = {.code = bytes_uleb(&bytes)};
        if (!abbrev.code)
            return bytes.failed ? -EAGAIN : 0;
        abbrev.tag = (uint16_t)bytes_uleb(&bytes);
        abbrev.has_children = bytes_unsigned(&bytes, 1);
        int err = read_attributes(abbrevs, &bytes, &abbrev);
        if (err || bytes.failed)
            return err ? err : -EAGAIN;
        if (array_append(&abbrevs->items, &abbrevs->count, &abbrevs->capacity, abbrev))
            return -ENOMEM;
    }
}

static int compare_codes(const void *a, const void *b)
{
    const struct abbrev *left = a, *right = b;
    return ORDER(left->code, right->code);
}

/* Reads the table at `at`. Returns 0, -ENOMEM or -ENOEXEC. */
static int abbrevs_read(struct abbrevs *abbrevs, struct section *section, uint64_t at)
{
    const unsigned char *start;
    int err = -EAGAIN;
    /* Only the table's end shows how long it is. */
    for (size_t wanted = 4096; err == -EAGAIN && wanted <= ABBREVS_BYTES_MAX; wanted *= 4) {
        size_t count = section_peek(section, at, wanted, &start);
        abbrevs->count = abbrevs->attribute_count = 0;
        err = count ? parse(abbrevs, (struct bytes){start, start + count, false}) : -ENOEXEC;
        if (err == -EAGAIN && count < wanted)
            break;
    }
    for (size_t i = 1; i < abbrevs->count; i++) {
        if (abbrevs->items[i - 1].code > abbrevs->items[i].code) {
            qsort(abbrevs->items, abbrevs->count, sizeof *abbrevs->items, compare_codes);
            break;
        }
    }
    return err == -EAGAIN ? -ENOEXEC : err;
}

static void abbrevs_free(struct abbrevs *abbrevs)
{
    free(abbrevs->items);
    free(abbrevs->attributes);
    *abbrevs = (struct abbrevs){0};
}

const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code)
{
    /* Producers number them from 1. */
    if (code - 1 < abbrevs->count && abbrevs->items[code - 1].code == code)
        return &abbrevs->items[code - 1];
    return FIND_SORTED(abbrevs->items, abbrevs->count, code, code);
}

#define HEADER_BYTES_MAX 48u

static const char *const section_names[DEBUG_SECTION_COUNT] = {
    [DEBUG_INFO] = ".debug_info",
    [DEBUG_ABBREV] = ".debug_abbrev",
    [DEBUG_STR] = ".debug_str",
    [DEBUG_LINE_STR] = ".debug_line_str",
    [DEBUG_STR_OFFSETS] = ".debug_str_offsets",
    [DEBUG_ADDR] = ".debug_addr",
    [DEBUG_LINE] = ".debug_line",
    [DEBUG_RANGES] = ".debug_ranges",
    [DEBUG_RNGLISTS] = ".debug_rnglists",
};

int debug_info_open(struct debug_info **ret_info, struct object *object, bool is_split)
{
    struct debug_info *info = calloc(1, sizeof *info);
    if (!info) {
        object_close(object);
        return -ENOMEM;
    }
    info->object = *object;
    *object = (struct object){.fd = -1};
    for (int i = 0; i < DEBUG_SECTION_COUNT; i++) {
        char name[32];
        strcpy(name, section_names[i]);
        if (is_split)
            strcat(name, ".dwo");
        object_section(&info->object, name, &info->sections[i]);
    }
    if (!info->sections[DEBUG_INFO].bytes || !info->sections[DEBUG_ABBREV].bytes) {
        debug_info_close(info);
        return -ENOEXEC;
    }
    *ret_info = info;
    return 0;
}

void debug_info_close(struct debug_info *info)
{
    if (!info)
        return;
    debug_info_close(info->supplement);
    for (int i = 0; i < DEBUG_SECTION_COUNT; i++)
        section_close(&info->sections[i]);
    for (int i = 0; i < ABBREVS_KEPT; i++)
        abbrevs_free(&info->kept[i].abbrevs);
    free(info->units);
    object_close(&info->object);
    free(info);
}

/* Reads the header, of any version (DWARF 5, 7.5.1). The additional fields of a type unit's header
 * are not needed. */
static int read_header(struct debug_info *info, uint64_t at, struct unit *unit)
{
    struct section *section = &info->sections[DEBUG_INFO];
    const unsigned char *start;
    size_t count = section_peek(section, at, HEADER_BYTES_MAX, &start);
    struct bytes bytes = {start, start + count, false};
    if (!count)
        return -ENOEXEC;
    *unit = (struct unit){.info = info, .at = at, .offset_bytes = 4, .addresses = info};
    uint64_t length = bytes_unsigned(&bytes, 4);
    if (length == 0xffffffff) {
        unit->offset_bytes = 8;
        length = bytes_unsigned(&bytes, 8);
    }
    uint64_t body = at + (uint64_t)(bytes.at - start);
    if (bytes.failed || body > section->bytes || length > section->bytes - body)
        return -ENOEXEC;
    unit->end = body + length;
    unit->version = (unsigned)bytes_unsigned(&bytes, 2);
    unit->type = DW_UT_compile;
    if (unit->version >= 5) {
        unit->type = (unsigned)bytes_unsigned(&bytes, 1);
        unit->address_bytes = (unsigned)bytes_unsigned(&bytes, 1);
        unit->abbrev_at = bytes_unsigned(&bytes, unit->offset_bytes);
        if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
            unit->dwo_id = bytes_unsigned(&bytes, 8);
    } else {
        unit->abbrev_at = bytes_unsigned(&bytes, unit->offset_bytes);
        unit->address_bytes = (unsigned)bytes_unsigned(&bytes, 1);
    }
    unit->first_die = at + (uint64_t)(bytes.at - start);
    return bytes.failed || unit->address_bytes > sizeof(uint64_t) ? -ENOEXEC : 0;
}

int debug_info_list_units(struct debug_info *info)
{
    struct unit unit;
    for (uint64_t at = 0; read_header(info, at, &unit) == 0; at = unit.end) {
        if (array_append(&info->units, &info->unit_count, &info->unit_capacity, at))
            return -ENOMEM;
    }
    return 0;
}

int unit_read(struct debug_info *info, uint64_t at, struct unit *ret_unit)
{
    return read_header(info, at, ret_unit);
}

int unit_read_around(struct debug_info *info, uint64_t at, struct unit *ret_unit)
{
    size_t after =
        upper_bound(info->units, info->unit_count, sizeof *info->units, 0, sizeof *info->units, at);
    if (!after)
        return -ENOEXEC;
    int err = unit_read(info, info->units[after - 1], ret_unit);
    if (err || at < ret_unit->first_die || at >= ret_unit->end)
        return err ? err : -ENOEXEC;
    struct die root;
    return unit_read_root(ret_unit, &root);
}

int unit_need_abbrevs(struct unit *unit)
{
    struct debug_info *info = unit->info;
    size_t number = (unit->abbrev_at * 0x9e3779b97f4a7c15ull) >> 32;
    struct kept_abbrevs *kept = &info->kept[number % ABBREVS_KEPT];
    unit->abbrevs = &kept->abbrevs;
    if (kept->is_read && kept->at == unit->abbrev_at &&
        kept->address_bytes == unit->address_bytes && kept->offset_bytes == unit->offset_bytes &&
        kept->version == unit->version)
        return 0;
    kept->is_read = false;
    int err = abbrevs_read(&kept->abbrevs, &info->sections[DEBUG_ABBREV], unit->abbrev_at);
    if (err)
        return err;
    kept->is_read = true;
    kept->at = unit->abbrev_at;
    kept->address_bytes = unit->address_bytes;
    kept->offset_bytes = unit->offset_bytes;
    kept->version = unit->version;
    for (size_t i = 0; i < kept->abbrevs.count; i++)
        abbrev_measure(unit, &kept->abbrevs, &kept->abbrevs.items[i]);
    return 0;
}

int unit_read_root(struct unit *unit, struct die *ret_root)
{
    if (!die_read_at(unit, unit->first_die, ret_root))
        return -ENOEXEC;
    const struct die *root = ret_root;
    /* Without the attribute, a split unit's contribution begins after the table's header (DWARF 5,
     * 7.26 to 7.28); in the drafts before DWARF 5, at 0. */
    uint64_t header_bytes = unit->offset_bytes == 8 ? 16 : 8;
    unit->str_offsets_base = root->str_offsets_base.form ? root->str_offsets_base.number
                             : unit->version >= 5        ? header_bytes
                                                         : 0;
    unit->addr_base = root->addr_base.form ? root->addr_base.number
                      : unit->version >= 5 ? header_bytes
                                           : 0;
    unit->rnglists_base = root->rnglists_base.form ? root->rnglists_base.number : header_bytes + 4;
    unit->ranges_base = root->ranges_base.number;
    if (root->dwo_id.form)
        unit->dwo_id = root->dwo_id.number;
    value_address(unit, &root->low_pc, &unit->low_pc);
    return 0;
}

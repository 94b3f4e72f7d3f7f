#include "symbol/dwarf/info.h"
#include "elf/dwarf.h"

#define ENTRY_BYTES_FIRST 512u
#define ENTRY_BYTES_MAX (1u << 20)

void abbrev_measure(const struct unit *unit, const struct abbrevs *abbrevs, struct abbrev *abbrev)
{
    abbrev->fixed_bytes = 0;
    abbrev->has_fixed_bytes = true;
    for (uint32_t i = 0; i < abbrev->attribute_count && abbrev->has_fixed_bytes; i++) {
        int bytes = form_bytes(unit, abbrevs->attributes[abbrev->first_attribute + i].form);
        abbrev->has_fixed_bytes = bytes >= 0;
        abbrev->fixed_bytes += (uint32_t)bytes;
    }
}

/* Where the value of an attribute goes; NULL: it is not used here. */
static struct value *place_of(struct die *die, unsigned attribute)
{
    switch (attribute) {
    case DW_AT_name:
        return &die->name;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name: /* the name of DW_AT_linkage_name before DWARF 4 */
        return &die->linkage_name;
    case DW_AT_abstract_origin:
        return &die->origin;
    case DW_AT_specification:
        return &die->specification;
    case DW_AT_low_pc:
        return &die->low_pc;
    case DW_AT_high_pc:
        return &die->high_pc;
    case DW_AT_ranges:
        return &die->ranges;
    case DW_AT_call_file:
        return &die->call_file;
    case DW_AT_call_line:
        return &die->call_line;
    case DW_AT_stmt_list:
        return &die->stmt_list;
    case DW_AT_comp_dir:
        return &die->comp_dir;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
        return &die->dwo_name;
    case DW_AT_GNU_dwo_id:
        return &die->dwo_id;
    case DW_AT_str_offsets_base:
        return &die->str_offsets_base;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
        return &die->addr_base;
    case DW_AT_rnglists_base:
        return &die->rnglists_base;
    case DW_AT_GNU_ranges_base:
        return &die->ranges_base;
    default:
        return NULL;
    }
}

bool die_read_attributes(const struct unit *unit, struct bytes *bytes, const struct abbrev *abbrev,
                         struct die *ret_die)
{
    *ret_die = (struct die){0};
    const struct abbrev_attribute *attributes = unit->abbrevs->attributes;
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        const struct abbrev_attribute *attribute = &attributes[abbrev->first_attribute + i];
        struct value value, *place = place_of(ret_die, attribute->name);
        if (!value_read(unit, bytes, attribute->form, attribute->implicit, place ? place : &value))
            return false;
    }
    return true;
}

bool die_skip(const struct unit *unit, struct bytes *bytes, const struct abbrev *abbrev)
{
    if (abbrev->has_fixed_bytes) {
        bytes_skip(bytes, abbrev->fixed_bytes);
        return !bytes->failed;
    }
    /* By index: without attributes there is no array to point into. */
    const struct abbrev_attribute *attributes = unit->abbrevs->attributes;
    for (uint32_t i = 0; i < abbrev->attribute_count; i++) {
        const struct abbrev_attribute *attribute = &attributes[abbrev->first_attribute + i];
        struct value value;
        if (!value_read(unit, bytes, attribute->form, attribute->implicit, &value))
            return false;
    }
    return true;
}

bool die_read_at(struct unit *unit, uint64_t at, struct die *ret_die)
{
    if (at < unit->first_die || at >= unit->end || unit_need_abbrevs(unit))
        return false;
    for (size_t wanted = ENTRY_BYTES_FIRST; wanted <= ENTRY_BYTES_MAX; wanted *= 16) {
        const unsigned char *start;
        if (wanted > unit->end - at)
            wanted = (size_t)(unit->end - at);
        size_t count = section_peek(&unit->info->sections[DEBUG_INFO], at, wanted, &start);
        struct bytes bytes = {start, start + count, false};
        if (!count)
            return false;
        const struct abbrev *abbrev = abbrevs_find(unit->abbrevs, bytes_uleb(&bytes));
        if (!bytes.failed && !abbrev)
            return false;
        if (!bytes.failed && die_read_attributes(unit, &bytes, abbrev, ret_die))
            return true;
        if (!bytes.failed || count < ENTRY_BYTES_FIRST || wanted == unit->end - at)
            return false;
    }
    return false;
}

/* The forms of attributes' values (DWARF 5, 7.5.6), and what the values stand for. */
#include "symbol/dwarf/info.h"
#include "elf/dwarf.h"

int form_bytes(const struct unit *unit, unsigned form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return unit->address_bytes <= 8 ? (int)unit->address_bytes : -1;
    case DW_FORM_ref_addr:
        /* In DWARF 2 it was as large as an address (DWARF 3, 7.5.4). */
        return unit->version <= 2 ? (int)(unit->address_bytes & 15) : (int)unit->offset_bytes;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return (int)unit->offset_bytes;
    default:
        return -1;
    }
}

static bool read_varying(const struct unit *unit, struct bytes *bytes, struct value *value)
{
    switch (value->form) {
    case DW_FORM_sdata:
        value->number = (uint64_t)bytes_sleb(bytes);
        break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        value->number = bytes_uleb(bytes);
        break;
    case DW_FORM_string: {
        const uint8_t *end = memchr(bytes->at, 0, bytes_left(bytes));
        value->text = bytes->at;
        bytes_skip(bytes, end ? (uint64_t)(end + 1 - bytes->at) : UINT64_MAX);
        break;
    }
    case DW_FORM_block1:
        bytes_skip(bytes, bytes_unsigned(bytes, 1));
        break;
    case DW_FORM_block2:
        bytes_skip(bytes, bytes_unsigned(bytes, 2));
        break;
    case DW_FORM_block4:
        bytes_skip(bytes, bytes_unsigned(bytes, 4));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        bytes_skip(bytes, bytes_uleb(bytes));
        break;
    case DW_FORM_indirect: {
        uint64_t form = bytes_uleb(bytes);
        return form != DW_FORM_indirect && form != DW_FORM_implicit_const && form <= UINT16_MAX &&
               value_read(unit, bytes, (unsigned)form, 0, value);
    }
    default:
        return false;
    }
    return !bytes->failed;
}

bool value_read(const struct unit *unit, struct bytes *bytes, unsigned form, int64_t implicit,
                struct value *ret_value)
{
    int size = form_bytes(unit, form);
    *ret_value = (struct value){.form = (uint16_t)form};
    if (size < 0)
        return read_varying(unit, bytes, ret_value);
    if (form == DW_FORM_implicit_const)
        ret_value->number = (uint64_t)implicit;
    else if (form == DW_FORM_flag_present)
        ret_value->number = 1;
    else if (size > 8)
        bytes_skip(bytes, (uint64_t)size);
    else
        ret_value->number = bytes_unsigned(bytes, (unsigned)size);
    return !bytes->failed;
}

bool value_address(const struct unit *unit, const struct value *value, uint64_t *ret_address)
{
    switch (value->form) {
    case DW_FORM_addr:
        *ret_address = value->number;
        return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        return unit_address(unit, value->number, ret_address);
    default:
        return false;
    }
}

bool unit_address(const struct unit *unit, uint64_t number, uint64_t *ret_address)
{
    return number < UINT32_MAX && unit->address_bytes <= 8 &&
           section_number(&unit->addresses->sections[DEBUG_ADDR],
                          unit->addr_base + number * unit->address_bytes, unit->address_bytes,
                          ret_address);
}

bool value_reference(const struct unit *unit, const struct value *value,
                     struct debug_info **ret_info, uint64_t *ret_at)
{
    *ret_info = unit->info;
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        *ret_at = unit->at + value->number;
        return true;
    case DW_FORM_ref_addr:
        *ret_at = value->number;
        return true;
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
        *ret_info = unit->info->supplement;
        *ret_at = value->number;
        return *ret_info;
    default:
        return false;
    }
}

static const char *indexed_string(const struct unit *unit, uint64_t number)
{
    uint64_t offset;
    if (number >= UINT32_MAX ||
        !section_number(&unit->info->sections[DEBUG_STR_OFFSETS],
                        unit->str_offsets_base + number * unit->offset_bytes, unit->offset_bytes,
                        &offset))
        return NULL;
    return section_string(&unit->info->sections[DEBUG_STR], offset);
}

const char *value_string(const struct unit *unit, const struct value *value)
{
    switch (value->form) {
    case DW_FORM_string:
        return (const char *)value->text;
    case DW_FORM_strp:
        return section_string(&unit->info->sections[DEBUG_STR], value->number);
    case DW_FORM_line_strp:
        return section_string(&unit->info->sections[DEBUG_LINE_STR], value->number);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
        return unit->info->supplement
                   ? section_string(&unit->info->supplement->sections[DEBUG_STR], value->number)
                   : NULL;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return indexed_string(unit, value->number);
    default:
        return NULL;
    }
}

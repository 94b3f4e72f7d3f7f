#include "symbol/dwarf/ranges.h"
#include "elf/dwarf.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRY_BYTES_MAX 32u /* of .debug_rnglists: a kind and two numbers */
#define RANGES_MAX ((size_t)1 << 20)
#define ENTRY_RANGES_MAX ((size_t)4 << 20)

void ranges_free(struct code_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct code_ranges){0};
}

static int add(struct code_ranges *ranges, uint64_t start, uint64_t end)
{
    if (is_discarded(start) || start >= end)
        return 0;
    return array_append(&ranges->items, &ranges->count, &ranges->capacity,
                        (struct code_range){start, end});
}

/* .debug_ranges, before DWARF 5: pairs relative to a base (DWARF 4, 2.17.3). */
static int read_pairs(struct code_ranges *ranges, const struct unit *unit, uint64_t at)
{
    struct section *section = &unit->addresses->sections[DEBUG_RANGES];
    uint64_t base = unit->low_pc;
    unsigned size = unit->address_bytes;
    uint64_t new_base = size < 8 ? ((uint64_t)1 << 8 * size) - 1 : UINT64_MAX;
    for (size_t i = 0; i < RANGES_MAX && size; i++, at += 2 * size) {
        uint64_t start, end;
        if (!section_number(section, at, size, &start) ||
            !section_number(section, at + size, size, &end) || (!start && !end))
            break;
        if (start == new_base) {
            base = end;
            continue;
        }
        int err = is_discarded(base) && base ? 0 : add(ranges, base + start, base + end);
        if (err)
            return err;
    }
    return 0;
}

/* Reads one entry of .debug_rnglists (DWARF 5, 7.25). Returns false at the end of the list. */
static bool read_entry(const struct unit *unit, struct bytes *bytes, uint64_t *base,
                       struct code_range *ret_range)
{
    unsigned kind = (unsigned)bytes_unsigned(bytes, 1);
    uint64_t first = 0, second = 0;
    *ret_range = (struct code_range){0};
    switch (kind) {
    case DW_RLE_base_addressx:
        return unit_address(unit, bytes_uleb(bytes), base);
    case DW_RLE_startx_endx:
    case DW_RLE_startx_length:
        first = bytes_uleb(bytes);
        second = bytes_uleb(bytes);
        if (!unit_address(unit, first, &first) ||
            (kind == DW_RLE_startx_endx && !unit_address(unit, second, &second)))
            return false;
        break;
    case DW_RLE_offset_pair:
        first = bytes_uleb(bytes);
        second = bytes_uleb(bytes);
        if (is_discarded(*base) && *base)
            return !bytes->failed;
        first += *base;
        second += *base;
        break;
    case DW_RLE_base_address:
        *base = bytes_unsigned(bytes, unit->address_bytes);
        return !bytes->failed;
    case DW_RLE_start_end:
    case DW_RLE_start_length:
        first = bytes_unsigned(bytes, unit->address_bytes);
        second = kind == DW_RLE_start_end ? bytes_unsigned(bytes, unit->address_bytes)
                                          : bytes_uleb(bytes);
        break;
    default:
        return false;
    }
    if (kind == DW_RLE_startx_length || kind == DW_RLE_start_length)
        second += first;
    *ret_range = (struct code_range){first, second};
    return !bytes->failed;
}

static int read_list(struct code_ranges *ranges, const struct unit *unit, uint64_t at)
{
    struct section *section = &unit->info->sections[DEBUG_RNGLISTS];
    uint64_t base = unit->low_pc;
    for (size_t i = 0; i < RANGES_MAX; i++) {
        const unsigned char *start;
        struct code_range range;
        size_t count = section_peek(section, at, ENTRY_BYTES_MAX, &start);
        struct bytes bytes = {start, start + count, false};
        if (!count || !read_entry(unit, &bytes, &base, &range))
            break;
        at += (uint64_t)(bytes.at - start);
        if (add(ranges, range.start, range.end))
            return -ENOMEM;
    }
    return 0;
}

static int read_listed(struct code_ranges *ranges, const struct unit *unit,
                       const struct value *value)
{
    uint64_t at = value->number;
    if (unit->version < 5)
        return read_pairs(ranges, unit,
                          at + (unit->addresses == unit->info ? 0 : unit->ranges_base));
    if (value->form == DW_FORM_rnglistx) {
        if (at >= UINT32_MAX ||
            !section_number(&unit->info->sections[DEBUG_RNGLISTS],
                            unit->rnglists_base + at * unit->offset_bytes, unit->offset_bytes, &at))
            return 0;
        at += unit->rnglists_base;
    }
    return read_list(ranges, unit, at);
}

int ranges_read(struct code_ranges *ranges, const struct unit *unit, const struct die *die)
{
    uint64_t start, end;
    ranges->count = 0;
    if (die->ranges.form)
        return read_listed(ranges, unit, &die->ranges);
    if (!die->high_pc.form || !value_address(unit, &die->low_pc, &start))
        return 0;
    /* From DWARF 4 on, a plain number is the length. */
    if (!value_address(unit, &die->high_pc, &end))
        end = start + die->high_pc.number;
    return add(ranges, start, end);
}

/* ---- Ranges of many entries ---- */

int entry_ranges_add(struct entry_ranges *entries, const struct code_ranges *ranges, uint64_t at)
{
    if (entries->count + ranges->count > ENTRY_RANGES_MAX)
        return -ENOEXEC;
    if (array_reserve(&entries->items, &entries->capacity, entries->count + ranges->count))
        return -ENOMEM;
    for (size_t i = 0; i < ranges->count; i++)
        entries->items[entries->count++] = (struct entry_range){
            .start = ranges->items[i].start, .end = ranges->items[i].end, .at = at};
    return 0;
}

void entry_ranges_sort(struct entry_ranges *entries, int (*compare)(const void *, const void *))
{
    uint64_t reach = 0;
    array_sort(entries->items, entries->count, compare);
    for (size_t i = 0; i < entries->count; i++) {
        struct entry_range *range = &entries->items[i];
        reach = range->reach = range->end > reach ? range->end : reach;
    }
}

const struct entry_range *entry_ranges_find(const struct entry_ranges *entries, uint64_t address)
{
    size_t after = UPPER_BOUND(entries->items, entries->count, start, address);
    for (; after && entries->items[after - 1].reach > address; after--) {
        if (entries->items[after - 1].end > address)
            return &entries->items[after - 1];
    }
    return NULL;
}

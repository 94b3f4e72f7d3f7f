#include "symbol/units.h"
#include "base/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

static int add_ranges(struct units *units, Dwarf_Die *unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
        if (start >= end)
            continue;
        if (array_reserve((void **)&units->ranges, &units->capacity, units->count + 1,
                          sizeof *units->ranges))
            return -ENOMEM;
        units->ranges[units->count++] = (struct unit_range){start, end, dwarf_dieoffset(unit)};
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct unit_range *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

int units_read(struct units *units, Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    *units = (struct units){.dwarf = dwarf};
    while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        if (type == DW_UT_compile && add_ranges(units, &die))
            return -ENOMEM;
    }
    if (units->count)
        qsort(units->ranges, units->count, sizeof *units->ranges, compare);
    return 0;
}

bool units_find(const struct units *units, Dwarf_Addr address, Dwarf_Die *ret_unit)
{
    size_t low = 0, high = units->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (units->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < units->ranges[low - 1].end &&
           dwarf_offdie(units->dwarf, units->ranges[low - 1].die, ret_unit);
}

void units_free(struct units *units)
{
    free(units->ranges);
    *units = (struct units){0};
}

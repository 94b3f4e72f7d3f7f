#include "symbol/dwarf/units.h"
#include "symbol/dwarf/ranges.h"
#include "elf/dwarf.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>

static int add_ranges(struct units *units, uint64_t unit, const struct code_ranges *ranges)
{
    if (array_reserve(&units->ranges, &units->capacity, units->count + ranges->count))
        return -ENOMEM;
    for (size_t i = 0; i < ranges->count; i++) {
        units->ranges[units->count++] = (struct unit_range){
            .start = ranges->items[i].start, .end = ranges->items[i].end, .unit = unit};
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct unit_range *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->unit < right->unit) - (left->unit > right->unit);
}

int units_read(struct units *units, struct debug_info *info)
{
    struct code_ranges ranges = {0};
    *units = (struct units){0};
    int err = debug_info_list_units(info);
    for (size_t i = 0; i < info->unit_count && !err; i++) {
        struct unit unit;
        struct die root;
        if (unit_read(info, info->units[i], &unit) ||
            (unit.type != DW_UT_compile && unit.type != DW_UT_skeleton) ||
            unit_read_root(&unit, &root))
            continue;
        err = ranges_read(&ranges, &unit, &root);
        if (!err)
            err = add_ranges(units, unit.at, &ranges);
    }
    ranges_free(&ranges);
    if (units->count)
        qsort(units->ranges, units->count, sizeof *units->ranges, compare);
    uint64_t reach = 0;
    for (size_t i = 0; i < units->count; i++) {
        if (units->ranges[i].end > reach)
            reach = units->ranges[i].end;
        units->ranges[i].reach = reach;
    }
    return err;
}

bool units_find(const struct units *units, uint64_t address, uint64_t *ret_unit)
{
    size_t after = UPPER_BOUND(units->ranges, units->count, start, address);
    for (; after && units->ranges[after - 1].reach > address; after--) {
        if (units->ranges[after - 1].end > address) {
            *ret_unit = units->ranges[after - 1].unit;
            return true;
        }
    }
    return false;
}

void units_free(struct units *units)
{
    free(units->ranges);
    *units = (struct units){0};
}

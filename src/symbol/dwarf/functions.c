#include "symbol/dwarf/functions.h"
#include "elf/dwarf.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* How many ranges the calls in one function may have, as many entries may refer to one long list;
 * others are left out. */
#define INLINED_MAX ((size_t)1 << 20)

void debug_functions_free(struct debug_functions *functions)
{
    slice_free(&functions->entries);
    free(functions->ranges.items);
    free(functions->inlined);
    ranges_free(&functions->scratch);
    *functions = (struct debug_functions){0};
}

/* The search goes backwards, so this puts the smaller one first, then the one that comes first in
 * the file. */
static int compare(const void *a, const void *b)
{
    const struct entry_range *left = a, *right = b;
    if (left->start != right->start)
        return ORDER(left->start, right->start);
    return left->end != right->end ? ORDER(right->end, left->end) : ORDER(right->at, left->at);
}

static int add_function(struct debug_functions *functions, const struct die *die, uint64_t at)
{
    int err = ranges_read(&functions->scratch, &functions->unit, die);
    return err ? err : entry_ranges_add(&functions->ranges, &functions->scratch, at);
}

/* Reads every entry in turn: functions may be in namespaces, in types and in other functions. */
static int read_entries(struct debug_functions *functions)
{
    const struct unit *unit = &functions->unit;
    const unsigned char *start = functions->entries.bytes;
    struct bytes bytes = {start + (unit->first_die - unit->at), start + functions->entries.count,
                          false};
    while (bytes_left(&bytes)) {
        uint64_t at = unit->at + (uint64_t)(bytes.at - start);
        uint64_t code = bytes_uleb(&bytes);
        if (!code)
            continue;
        const struct abbrev *abbrev = abbrevs_find(unit->abbrevs, code);
        struct die die;
        if (!abbrev)
            break;
        if (abbrev->tag != DW_TAG_subprogram) {
            if (!die_skip(unit, &bytes, abbrev))
                break;
            continue;
        }
        if (!die_read_attributes(unit, &bytes, abbrev, &die))
            break;
        int err = add_function(functions, &die, at);
        if (err)
            return err;
    }
    return 0;
}

int debug_functions_read(struct debug_functions *functions, const struct unit *unit)
{
    functions->unit = *unit;
    functions->ranges.count = functions->inlined_count = 0;
    functions->inlined_of = 0;
    int err = unit_need_abbrevs(&functions->unit);
    if (!err)
        err = slice_read(&functions->entries, &unit->info->sections[DEBUG_INFO], unit->at,
                         unit->end - unit->at);
    if (!err)
        err = read_entries(functions);
    if (err)
        functions->ranges.count = 0;
    entry_ranges_sort(&functions->ranges, compare);
    return err;
}

static bool add_inlined(struct debug_functions *functions, const struct die *die, uint64_t at)
{
    struct code_ranges *ranges = &functions->scratch;
    if (ranges_read(ranges, &functions->unit, die) ||
        functions->inlined_count + ranges->count > INLINED_MAX ||
        array_reserve(&functions->inlined, &functions->inlined_capacity,
                      functions->inlined_count + ranges->count))
        return false;
    for (size_t i = 0; i < ranges->count; i++) {
        functions->inlined[functions->inlined_count++] = (struct inlined_range){
            .start = ranges->items[i].start,
            .end = ranges->items[i].end,
            .call_file = die->call_file,
            .call_line = die->call_line,
            .die = at,
        };
    }
    return true;
}

/* Reads the calls below the function's entry, but not those in functions nested in it. */
static void read_inlined(struct debug_functions *functions, uint64_t function)
{
    const struct unit *unit = &functions->unit;
    const unsigned char *start = functions->entries.bytes;
    struct bytes bytes = {start + (function - unit->at), start + functions->entries.count, false};
    size_t depth = 0, nested_at = SIZE_MAX; /* the depth of a nested function */
    functions->inlined_of = function;
    functions->inlined_count = 0;
    if (unit_need_abbrevs(&functions->unit))
        return;
    do {
        uint64_t at = unit->at + (uint64_t)(bytes.at - start);
        uint64_t code = bytes_uleb(&bytes);
        if (!code) {
            if (!depth || bytes.failed)
                break;
            depth--;
            if (depth <= nested_at)
                nested_at = SIZE_MAX;
            continue;
        }
        const struct abbrev *abbrev = abbrevs_find(unit->abbrevs, code);
        struct die die;
        if (!abbrev)
            break;
        bool is_call = abbrev->tag == DW_TAG_inlined_subroutine && nested_at == SIZE_MAX;
        if (is_call ? !die_read_attributes(unit, &bytes, abbrev, &die) ||
                          !add_inlined(functions, &die, at)
                    : !die_skip(unit, &bytes, abbrev))
            break;
        if (abbrev->tag == DW_TAG_subprogram && depth && abbrev->has_children &&
            nested_at == SIZE_MAX)
            nested_at = depth;
        depth += abbrev->has_children;
    } while (depth);
}

const struct entry_range *debug_functions_find(struct debug_functions *functions, uint64_t address)
{
    const struct entry_range *found = entry_ranges_find(&functions->ranges, address);
    if (found && functions->inlined_of != found->at)
        read_inlined(functions, found->at);
    return found;
}

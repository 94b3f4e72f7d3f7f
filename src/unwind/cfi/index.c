/* Finds the FDE of an address. */
#include "unwind/cfi/cfi.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>

/* An entry of the table in .eh_frame_hdr: offsets from that section's start. */
struct table_entry {
    int32_t start, fde;
};

/* The position of the last FDE in the linker's table that begins at or before `address`. Offsets
 * are compared with their signs, as libunwind does it. */
static bool position_in_table(struct module *module, uint64_t address, uint64_t *ret_position)
{
    const struct unwind_table *table = &module->unwind_table;
    struct table_entry entry;
    uint64_t low = 0, high = table->entry_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!module_read(module, table->entries_address + middle * sizeof entry, &entry,
                         sizeof entry))
            return false;
        if (entry.start <= (int64_t)(address - table->header_address))
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || !module_read(module, table->entries_address + (low - 1) * sizeof entry, &entry,
                             sizeof entry))
        return false;
    *ret_position = table->header_address + (uint64_t)(int64_t)entry.fde;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct cfi_range *left = a, *right = b;
    return ORDER(left->start, right->start);
}

/* Reads all FDEs from `position` to before `end`. */
static int make_ranges(const struct cfi_source *source, uint64_t position, uint64_t end,
                       struct cfi_entry *scratch, struct cfi_range **ret_ranges, size_t *ret_count)
{
    struct cfi_range *ranges = NULL;
    size_t count = 0, capacity = 0;
    struct cfi_head head;
    for (; position < end && cfi_read_head(source, position, &head); position = head.next) {
        if (head.is_cie || !cfi_read_entry(source, position, scratch))
            continue;
        if (array_append(&ranges, &count, &capacity,
                         (struct cfi_range){scratch->start, scratch->end, position})) {
            free(ranges);
            return -ENOMEM;
        }
    }
    array_sort(ranges, count, compare);
    *ret_ranges = ranges;
    *ret_count = count;
    return 0;
}

static bool find_in_ranges(const struct cfi_range *ranges, size_t count, uint64_t address,
                           uint64_t *ret_position)
{
    size_t after = UPPER_BOUND(ranges, count, start, address);
    if (!after || address >= ranges[after - 1].end)
        return false;
    *ret_position = ranges[after - 1].position;
    return true;
}

static bool read_if_holds(const struct cfi_source *source, uint64_t position, uint64_t address,
                          struct cfi_entry *ret_entry)
{
    return cfi_read_entry(source, position, ret_entry) && address >= ret_entry->start &&
           address < ret_entry->end;
}

static int find_in_eh_frame(struct cfi_index *index, struct module *module, uint64_t address,
                            struct cfi_entry *ret_entry)
{
    const struct cfi_source source = {.module = module};
    const struct cfi_section *section = &module->eh_frame;
    uint64_t position;
    if (module->unwind_table.header_address)
        return position_in_table(module, address, &position) &&
                       read_if_holds(&source, position, address, ret_entry)
                   ? 0
                   : -ENOENT;
    if (!index->has_eh_ranges) {
        int err = make_ranges(&source, section->address, section->address + section->bytes,
                              ret_entry, &index->eh_ranges, &index->eh_count);
        if (err)
            return err;
        index->has_eh_ranges = true;
    }
    return find_in_ranges(index->eh_ranges, index->eh_count, address, &position) &&
                   read_if_holds(&source, position, address, ret_entry)
               ? 0
               : -ENOENT;
}

static int find_in_debug_frame(struct cfi_index *index, struct module *module, uint64_t address,
                               struct cfi_entry *ret_entry)
{
    const struct cfi_source source = {.module = module, .is_debug_frame = true};
    uint64_t position;
    if (!index->has_debug_ranges) {
        elf_file_decompress(module);
        int err = make_ranges(&source, 0, module->debug_frame.bytes, ret_entry,
                              &index->debug_ranges, &index->debug_count);
        if (err)
            return err;
        index->has_debug_ranges = true;
    }
    return find_in_ranges(index->debug_ranges, index->debug_count, address, &position) &&
                   cfi_read_entry(&source, position, ret_entry)
               ? 0
               : -ENOENT;
}

int cfi_index_find(struct cfi_index *index, struct module *module, uint64_t address,
                   struct cfi_entry *ret_entry)
{
    int err = find_in_eh_frame(index, module, address, ret_entry);
    return err == -ENOENT ? find_in_debug_frame(index, module, address, ret_entry) : err;
}

void cfi_index_free(struct cfi_index *index)
{
    free(index->eh_ranges);
    free(index->debug_ranges);
    *index = (struct cfi_index){0};
}

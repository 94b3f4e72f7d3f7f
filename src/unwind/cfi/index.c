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
    const struct cfi_function *left = a, *right = b;
    return ORDER(left->start, right->start);
}

/* Reads all FDEs of the section. Returns 0 or -ENOMEM. */
static int make_table(const struct cfi_source *source, struct cfi_section *section,
                      struct cfi_entry *scratch)
{
    struct cfi_function *functions = NULL;
    size_t count = 0, capacity = 0;
    struct cfi_head head;
    if (source->is_debug_frame)
        elf_file_decompress(source->module);
    uint64_t position = source->is_debug_frame ? 0 : section->address;
    uint64_t end = position + section->bytes;
    for (; position < end && cfi_read_head(source, position, &head); position = head.next) {
        if (head.is_cie || !cfi_read_entry(source, position, scratch))
            continue;
        if (array_append(&functions, &count, &capacity,
                         (struct cfi_function){scratch->start, position})) {
            free(functions);
            return -ENOMEM;
        }
    }
    array_sort(functions, count, compare);
    section->functions = functions;
    section->function_count = count;
    section->has_functions = true;
    return 0;
}

static bool position_in_own_table(const struct cfi_section *section, uint64_t address,
                                  uint64_t *ret_position)
{
    size_t after = UPPER_BOUND(section->functions, section->function_count, start, address);
    if (!after)
        return false;
    *ret_position = section->functions[after - 1].position;
    return true;
}

static int find_in(const struct cfi_source *source, struct cfi_section *section, uint64_t address,
                   struct cfi_entry *ret_entry)
{
    bool has_table = !source->is_debug_frame && source->module->unwind_table.header_address;
    uint64_t position;
    if (!has_table && !section->has_functions && make_table(source, section, ret_entry))
        return -ENOMEM;
    bool is_found = has_table ? position_in_table(source->module, address, &position)
                              : position_in_own_table(section, address, &position);
    return is_found && cfi_read_entry(source, position, ret_entry) && address >= ret_entry->start &&
                   address < ret_entry->end
               ? 0
               : -ENOENT;
}

int cfi_find(struct module *module, uint64_t address, struct cfi_entry *ret_entry)
{
    const struct cfi_source eh_frame = {module, false}, debug_frame = {module, true};
    int err = find_in(&eh_frame, &module->eh_frame, address, ret_entry);
    return err == -ENOENT ? find_in(&debug_frame, &module->debug_frame, address, ret_entry) : err;
}

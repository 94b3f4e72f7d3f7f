/* Sections of call frame information: looks up addresses' entries, rows and rules. The input gives
 * the layout of the sections, and the memory of a module from address 4096 on. */
#include "open_module.h"
#include "mapping/modules.h"
#include "unwind/rule.h"

#define ADDRESS 4096u
#define ADDRESSES 32 /* looked up */

static void find(struct module *module, struct cfi_entry *entry)
{
    struct cfi_row row;
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        uint64_t address = i * i * 8;
        if (cfi_find(module, address, entry))
            continue;
        must(entry->start <= address && address < entry->end);
        cfi_find_row(entry, address, &row);
        must(rule_make(entry, address).kind < RULE_KINDS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    struct modules modules = {0};
    uint64_t has_table = take_number(&input, 1) & 1, split = take_number(&input, 2);
    struct module *module = put_module(&modules, input);
    if (split > input.bytes)
        split = input.bytes;
    module->segments = calloc(1, sizeof *module->segments);
    struct cfi_entry *entry = malloc(sizeof *entry);
    must(module->segments && entry);
    module->segment_count = 1;
    *module->segments = (struct segment){
        .file_bytes = input.bytes, .address = ADDRESS, .memory_bytes = input.bytes};
    if (has_table)
        module->unwind_table = (struct unwind_table){ADDRESS, ADDRESS + 12, split / 8};
    else
        module->eh_frame = (struct cfi_section){.address = ADDRESS, .bytes = split};
    module->debug_frame = (struct cfi_section){.offset = split, .bytes = input.bytes - split};
    find(module, entry);
    free(entry);
    modules_free(&modules);
    return 0;
}

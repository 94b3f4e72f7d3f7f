#include "module/space_check.h"
#include "target/memory.h"

#include <string.h>

/* The first page of an ELF file has its header, and mostly its build id. */
#define COMPARED_BYTES 4096u
/* A file whose first page is never what is in memory, as that was written to, or is not mapped,
 * proves nothing, and is seldom looked at: not never, as libraries may have taken turns each time
 * between the look and the reading of maps that it asked for. */
#define UNLIKE_MAX 8
#define UNLIKE_PAUSE_NS 200000000

static bool begins_with_its_file(const struct mapping *mapping, pid_t tid)
{
    unsigned char in_file[COMPARED_BYTES], in_memory[COMPARED_BYTES];
    struct module *module = mapping->module;
    size_t bytes = module->image.bytes < COMPARED_BYTES ? module->image.bytes : COMPARED_BYTES;
    uint64_t address;
    return !module_address_of_offset(module, 0, &address) ||
           !image_read(&module->image, 0, in_file, bytes) ||
           (memory_read(tid, address + mapping->bias, in_memory, bytes) == bytes &&
            memcmp(in_file, in_memory, bytes) == 0);
}

bool space_is_replaced(struct space *space, pid_t tid, const uint64_t *addresses, size_t count,
                       uint64_t round_ns)
{
    bool is_replaced = false;
    for (size_t i = 0; i < count; i++) {
        const struct mapping *found = space_find(space, addresses[i]);
        if (!found || !found->has_bias || found->checked_ns == round_ns ||
            (found->unlike >= UNLIKE_MAX && round_ns - found->checked_ns < UNLIKE_PAUSE_NS))
            continue;
        struct mapping *mapping = &space->mappings[found - space->mappings];
        mapping->checked_ns = round_ns;
        mapping->unlike = begins_with_its_file(mapping, tid) ? 0 : mapping->unlike + 1;
        is_replaced = is_replaced || mapping->unlike;
    }
    return is_replaced;
}

#include "elf/module.h"

#include <unistd.h>

/* The loader maps whole pages, but a segment begins wherever the linker put it. lld packs segments,
 * so a mapping of code can begin with the end of the previous segment. */
static uint64_t page_of(uint64_t offset)
{
    return offset & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

bool module_address_of_offset(const struct module *module, uint64_t offset, uint64_t *ret_address)
{
    /* If two segments share a page, the one with code is meant. */
    const struct segment *found = NULL;
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        bool holds =
            offset >= page_of(segment->offset) && offset < segment->offset + segment->file_bytes;
        if (holds && (!found || (segment->executable && !found->executable)))
            found = segment;
    }
    if (!found)
        return false;
    *ret_address = offset - found->offset + found->address;
    return true;
}

Elf *module_open_elf(struct module *module)
{
    return bounded_elf_open(module->image.fd, module->image.memory, module->image.bytes);
}

bool module_read(struct module *module, uint64_t address, void *buffer, size_t bytes)
{
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        uint64_t at = address - segment->address;
        if (at < segment->file_bytes && bytes <= segment->file_bytes - at)
            return image_read(&module->image, segment->offset + at, buffer, bytes);
    }
    return false;
}

bool module_has_memory(const struct module *module, uint64_t address)
{
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        if (address - segment->address < segment->memory_bytes)
            return true;
    }
    return false;
}

uint64_t module_code_end(const struct module *module, uint64_t address)
{
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        if (segment->executable && address - segment->address < segment->file_bytes)
            return segment->address + segment->file_bytes;
    }
    return 0;
}

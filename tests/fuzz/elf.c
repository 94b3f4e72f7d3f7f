/* ELF files: headers, segments, sections, and the functions in their symbol tables. */
#include "open_module.h"
#include "elf/functions.h"
#include "elf/stubs.h"
#include "mapping/modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct modules modules = {0};
    struct module *module = open_module(&modules, (struct input){data, bytes});
    struct function_range range;
    uint64_t address;
    unsigned char byte;
    for (size_t i = 0; i < module->segment_count; i++) {
        const struct segment *segment = &module->segments[i];
        if (module_address_of_offset(module, segment->offset, &address))
            module_read(module, address, &byte, sizeof byte);
        module_read(module, segment->address + segment->file_bytes - 1, &byte, sizeof byte);
    }
    if (functions_find(module, module->entry_address, &range))
        must(range.start <= module->entry_address && module->entry_address < range.end);
    const struct stub *stub = stubs_find(module, module->entry_address);
    must(!stub || stub->name || stub->resolver);
    must(module->build_id_bytes <= sizeof module->build_id);
    modules_free(&modules);
    return 0;
}

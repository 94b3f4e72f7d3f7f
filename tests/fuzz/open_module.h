/* A module whose file is the fuzzer's input. */
#ifndef FGPROF_TESTS_OPEN_MODULE_H
#define FGPROF_TESTS_OPEN_MODULE_H

#include "input.h"
#include "elf/elf_file.h"
#include "mapping/modules.h"

/* The only module in *modules, to be freed with modules_free. It has a file with these bytes, and
 * nothing has been read of it. */
static inline struct module *put_module(struct modules *modules, struct input file)
{
    struct module *module = calloc(1, sizeof *module);
    modules->items = calloc(1, sizeof *modules->items);
    must(module && modules->items);
    modules->items[0] = module;
    modules->count = modules->capacity = 1;
    module->path = strdup("/input");
    image_open_memory(&module->image, copy_of(file, 0), file.bytes);
    return module;
}

/* The same, read as ELF. */
static inline struct module *open_module(struct modules *modules, struct input file)
{
    struct module *module = put_module(modules, file);
    module->is_readable = elf_file_read(module) == 0;
    return module;
}

#endif

#include "symbol/open_modules.h"
#include "elf/elf_file.h"
#include "mapping/modules.h"

#include <errno.h>

static void close_module(struct open_module *opened)
{
    symbols_close(opened->symbols);
    module_free(opened->twin);
    *opened = (struct open_module){0};
}

static int open_module(struct open_module *opened, struct module *module, bool is_in_use,
                       struct debug_fetch *fetch)
{
    *opened = (struct open_module){.module = module, .read = module, .why = "too many open files"};
    int err = is_in_use ? module_twin(module, &opened->twin) : 0;
    if (opened->twin)
        opened->read = opened->twin;
    if (!err)
        err = symbols_open(opened->read, fetch, &opened->symbols, &opened->why);
    if (err != -ENOMEM)
        return 0;
    close_module(opened);
    return err;
}

int open_modules_get(struct open_modules *modules, struct module *module, bool is_in_use,
                     struct debug_fetch *fetch, const struct open_module **ret_opened)
{
    struct open_module *opened = &modules->items[0]; /* the module's, or the least recently used */
    for (size_t i = 0; i < modules->most; i++) {
        struct open_module *item = &modules->items[i];
        if (item->module == module) {
            opened = item;
            break;
        }
        if (item->used < opened->used)
            opened = item;
    }
    if (opened->module != module) {
        close_module(opened);
        int err = open_module(opened, module, is_in_use, fetch);
        if (err)
            return err;
    }
    opened->used = ++modules->used;
    *ret_opened = opened;
    return 0;
}

void open_modules_close(struct open_modules *modules)
{
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++)
        close_module(&modules->items[i]);
}

#include "worker/unused_modules.h"
#include "elf/elf_file.h"

static void forget_module(void *context, const struct module *module)
{
    struct unwinder *unwinder = context;
    if (unwinder)
        unwinder_forget_module(unwinder, module);
}

/* Marks the modules that a program has mapped. */
static void find_mapped(const struct spaces *spaces, struct renumber *mapped)
{
    for (size_t i = 0; i < spaces->count; i++) {
        const struct space *space = spaces->items[i];
        if (space->is_retired || space->is_left || space->is_free || space == spaces->shared)
            continue;
        for (size_t j = 0; j < space->mapping_count; j++) {
            if (space->mappings[j].module)
                renumber_keep(mapped, space->mappings[j].module->number);
        }
    }
}

int unused_modules_free(struct results *results, struct unwinder *unwinder)
{
    const struct modules *modules = &results->modules;
    struct renumber mapped;
    modules_close_unused(&results->modules, forget_module, unwinder);
    int err = renumber_init(&mapped, modules->count);
    if (err)
        return err;
    find_mapped(&results->spaces, &mapped);
    for (size_t i = 0; i < modules->count; i++) {
        struct module *module = modules->items[i];
        if (!module || renumber_of(&mapped, (uint32_t)i) != ROW_GONE)
            continue;
        forget_module(unwinder, module);
        module_reset(module);
    }
    renumber_free(&mapped);
    return 0;
}

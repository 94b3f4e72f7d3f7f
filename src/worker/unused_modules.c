#include "worker/unused_modules.h"
#include "elf/elf_file.h"

static void forget_module(void *context, const struct module *module)
{
    struct rule_tables *rules = context;
    if (rules)
        rule_tables_forget_module(rules, module);
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

static bool is_open_for_names(const struct module *module, const struct renumber *mapped)
{
    return module && module->image.fd >= 0 && renumber_of(mapped, module->number) == ROW_GONE;
}

static struct module *find_oldest(const struct modules *modules, const struct renumber *mapped,
                                  size_t *ret_count)
{
    struct module *oldest = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < modules->count; i++) {
        struct module *module = modules->items[i];
        if (!is_open_for_names(module, mapped))
            continue;
        ++*ret_count;
        oldest = !oldest || module->serial < oldest->serial ? module : oldest;
    }
    return oldest;
}

static void limit_files(struct modules *modules, const struct renumber *mapped)
{
    size_t most = modules->open_for_names_max, count;
    struct module *oldest = find_oldest(modules, mapped, &count);
    /* What is being named needs its files: next time. */
    if (count <= most || (modules->naming && pthread_mutex_trylock(modules->naming)))
        return;
    for (; count > most; oldest = find_oldest(modules, mapped, &count)) {
        module_close_file(oldest);
        modules->open_files--;
    }
    if (modules->naming)
        pthread_mutex_unlock(modules->naming);
}

int unused_modules_free(struct results *results, struct rule_tables *rules)
{
    const struct modules *modules = &results->modules;
    struct renumber mapped;
    modules_close_unused(&results->modules, forget_module, rules);
    int err = renumber_init(&mapped, modules->count);
    if (err)
        return err;
    find_mapped(&results->spaces, &mapped);
    for (size_t i = 0; i < modules->count; i++) {
        struct module *module = modules->items[i];
        if (!module || renumber_of(&mapped, (uint32_t)i) != ROW_GONE)
            continue;
        forget_module(rules, module);
        module_reset(module);
    }
    limit_files(&results->modules, &mapped);
    renumber_free(&mapped);
    return 0;
}

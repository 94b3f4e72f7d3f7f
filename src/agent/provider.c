#include "agent/provider.h"
#include "agent/symbols.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct search {
    uint64_t address; /* 0: the first that defines malloc */
    struct provider *provider;
};

static void copy(char *to, size_t bytes, const char *from)
{
    size_t length = strnlen(from, bytes - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The program has no name in the dynamic linker's list. */
static void name_program(struct provider *provider)
{
    ssize_t length = readlink("/proc/self/exe", provider->path, sizeof provider->path - 1);
    provider->path[length > 0 ? length : 0] = '\0';
    copy(provider->name, sizeof provider->name, file_name(provider->path));
}

static bool is_wanted(const struct module *module, uint64_t address)
{
    struct symbols symbols;
    if (address)
        return module_has(module, address);
    /* Old dynamic linkers have a malloc for themselves. */
    return !module_has(module, (uintptr_t)is_wanted) && module->base != getauxval(AT_BASE) &&
           symbols_of(module, &symbols) && symbols_address(&symbols, "malloc");
}

static bool look_at(const struct module *module, void *context)
{
    struct search *search = context;
    struct provider *provider = search->provider;
    if (!is_wanted(module, search->address))
        return false;
    provider->start = module->start;
    provider->limit = module->limit;
    provider->is_program = !module->path[0];
    if (provider->is_program) {
        name_program(provider);
        return true;
    }
    copy(provider->path, sizeof provider->path, module->path);
    copy(provider->name, sizeof provider->name, file_name(module->path));
    return true;
}

bool provider_at(uint64_t address, struct provider *ret_provider)
{
    struct search search = {.address = address, .provider = ret_provider};
    return address && modules_visit(look_at, &search);
}

bool provider_before_agent(struct provider *ret_provider)
{
    struct search search = {.provider = ret_provider};
    return modules_visit(look_at, &search);
}

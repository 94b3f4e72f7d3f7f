#include "agent/modules.h"

#include <stddef.h>

struct visit {
    bool (*visit)(const struct module *module, void *context);
    void *context;
};

static void widen(uint64_t *start, uint64_t *limit, uint64_t segment_start, uint64_t segment_limit)
{
    if (segment_start < *start)
        *start = segment_start;
    if (segment_limit > *limit)
        *limit = segment_limit;
}

static int visit_one(struct dl_phdr_info *info, size_t bytes, void *context)
{
    const struct visit *visit = context;
    struct module module = {.path = info->dlpi_name ? info->dlpi_name : "",
                            .base = info->dlpi_addr,
                            .segments = info->dlpi_phdr,
                            .segment_count = info->dlpi_phnum,
                            .start = UINT64_MAX,
                            .code_start = UINT64_MAX};
    if (bytes >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
        module.loads = info->dlpi_adds;
    for (unsigned i = 0; i < module.segment_count; i++) {
        const ElfW(Phdr) *segment = &module.segments[i];
        uint64_t start = module.base + segment->p_vaddr, limit = start + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        widen(&module.start, &module.limit, start, limit);
        if (segment->p_flags & PF_X)
            widen(&module.code_start, &module.code_limit, start, limit);
    }
    return visit->visit(&module, visit->context);
}

bool modules_visit(bool (*visit)(const struct module *module, void *context), void *context)
{
    struct visit all = {.visit = visit, .context = context};
    return dl_iterate_phdr(visit_one, &all);
}

#include "mapping/space_check.h"

/* If memory never matches a file's first page, because the page was written to or is not mapped,
 * that proves nothing, and the file is seldom looked at. It is not ignored, because libraries may
 * have taken turns each time between this look and the reading of maps that it asked for. */
#define UNLIKE_MAX 8
#define UNLIKE_PAUSE_NS 200000000

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
        bool is_unlike = module_compare(mapping->module, tid, mapping->bias) != 0;
        mapping->unlike = is_unlike ? mapping->unlike + 1 : 0;
        is_replaced = is_replaced || mapping->unlike;
    }
    return is_replaced;
}

#include "agent/mappings.h"
#include "agent/pages.h"

#include <stdatomic.h>

#define BEING_ADDED 1u

struct row {
    _Atomic uint64_t start; /* 0: free */
    _Atomic uint64_t bytes;
};

static struct row *rows;
static _Atomic uint32_t used; /* all rows behind these have always been free */

bool mappings_init(void)
{
    rows = pages_new(MAPPINGS_MAX * sizeof *rows);
    return rows;
}

static void note_used(uint32_t count)
{
    uint32_t known = atomic_load(&used);
    while (known < count && !atomic_compare_exchange_weak(&used, &known, count)) {
    }
}

bool mappings_add(uint64_t start, uint64_t bytes)
{
    for (uint32_t i = 0; i < MAPPINGS_MAX; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&rows[i].start, &none, BEING_ADDED))
            continue;
        note_used(i + 1);
        atomic_store(&rows[i].bytes, bytes);
        atomic_store(&rows[i].start, start);
        return true;
    }
    return false;
}

uint64_t mappings_take(uint64_t start, uint64_t bytes)
{
    uint32_t count = atomic_load(&used);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row_start = atomic_load(&rows[i].start);
        if (row_start <= BEING_ADDED)
            continue;
        /* The last byte of the first half: the half that is kept includes it even if all of the
         * other half is unmapped. */
        uint64_t middle = row_start + (atomic_load(&rows[i].bytes) - 1) / 2;
        if (middle - start < bytes && atomic_compare_exchange_strong(&rows[i].start, &row_start, 0))
            return row_start;
    }
    return 0;
}

#include "worker/gil.h"
#include "base/array.h"
#include "proc/memory.h"
#include "runtime/python/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* struct _gil_runtime_state (Include/internal/pycore_gil.h), of 3.9 to 3.15: interval,
 * last_holder, locked, switch_number, and the condition variable that threads wait for the lock by.
 */
#define LAST_HOLDER_AT 8u
#define LOCKED_AT 16u
#define CONDITION_AT 32u
#define CONDITION_BYTES sizeof(pthread_cond_t)

int gils_add(struct gils *gils, const struct gil *gil)
{
    return array_append(&gils->items, &gils->count, &gils->capacity, *gil);
}

void gils_forget(struct gils *gils, uint32_t program)
{
    for (size_t i = 0; i < gils->count; i++) {
        if (gils->items[i].program == program)
            gils->items[i--] = gils->items[--gils->count];
    }
}

void gils_free(struct gils *gils)
{
    free(gils->items);
    *gils = (struct gils){0};
}

/* Copies words before the futex, which were read with it. Returns false if they were not. */
static bool copy_before(const struct call_target *call, const struct call_memory *memory,
                        uint64_t address, void *value, size_t bytes)
{
    uint64_t distance = call->address - address;
    if (distance > call_futex_words_before(call, memory) * sizeof *memory->words)
        return false;
    memcpy(value, (const char *)&memory->words[FUTEX_WORDS_BEFORE] - distance, bytes);
    return true;
}

static uint32_t holder_of(const struct gil *gil, const struct observation *observation,
                          const struct call_memory *memory)
{
    const struct call_target *call = &observation->wait.call;
    uint64_t state, id;
    uint32_t is_locked;
    if (!copy_before(call, memory, gil->address + LAST_HOLDER_AT, &state, sizeof state) ||
        !copy_before(call, memory, gil->address + LOCKED_AT, &is_locked, sizeof is_locked) ||
        is_locked != 1 ||
        !memory_read_word(observation->tid, NULL, state + gil->layout.thread_native_id, &id))
        return 0;
    return (uint32_t)python_thread_native_id(&gil->layout, id, observation->tid, NULL);
}

void gils_note(const struct gils *gils, const struct observation *observation,
               const struct call_memory *memory, struct lock *lock)
{
    for (size_t i = 0; i < gils->count; i++) {
        const struct gil *gil = &gils->items[i];
        uint64_t offset = observation->wait.call.address - gil->address - CONDITION_AT;
        if (!observation->program || gil->program != observation->program->number ||
            offset >= CONDITION_BYTES)
            continue;
        *lock = (struct lock){.kind = RESOURCE_GIL,
                              .address = gil->address,
                              .owner = holder_of(gil, observation, memory)};
        return;
    }
}

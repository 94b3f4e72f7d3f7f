#include "runtime/python/merge.h"

static size_t count_calls(const struct native_stack *native)
{
    size_t calls = 0;
    for (size_t i = 0; i < native->depth; i++)
        calls += native->kinds[i] == NATIVE_EVALUATION;
    return calls;
}

static size_t count_entries(const struct python_frames *frames)
{
    size_t entries = 0;
    for (size_t i = 0; i < frames->count; i++)
        entries += frames->items[i].is_entry;
    return entries;
}

struct merging {
    const struct python_frames *frames;
    const uint64_t *python_addresses;
    uint64_t *addresses;
    size_t depth, next; /* the next Python frame */
};

/* The frames of one call of the loop. */
static void take_call(struct merging *merging)
{
    bool is_entry = false;
    while (!is_entry && merging->next < merging->frames->count) {
        is_entry = merging->frames->items[merging->next].is_entry;
        merging->addresses[merging->depth++] = merging->python_addresses[merging->next++];
    }
}

size_t python_merge(const struct native_stack *native, const struct python_frames *frames,
                    const uint64_t *python_addresses, uint64_t *ret_addresses)
{
    struct merging merging = {frames, python_addresses, ret_addresses, 0, 0};
    size_t calls = count_calls(native), entries = count_entries(frames);
    /* The last call has just begun or is about to end: it has no frame yet, or no longer. */
    size_t without_frame = calls == entries + 1 && !native->is_cut && !frames->is_cut;
    bool fits = frames->is_cut   ? calls >= entries
                : native->is_cut ? calls <= entries
                                 : calls == entries + without_frame;
    if (!fits)
        return 0;
    for (size_t i = 0; i < native->depth; i++) {
        bool is_call = native->kinds[i] == NATIVE_EVALUATION;
        if (is_call && !without_frame)
            take_call(&merging);
        else if (is_call)
            without_frame--;
        if (native->kinds[i] == NATIVE_OTHER || native->keeps_interpreter)
            ret_addresses[merging.depth++] = native->addresses[i];
    }
    /* Known, though the native stack does not lead there. */
    while (merging.next < frames->count)
        take_call(&merging);
    return merging.depth;
}

#include "count/runtime_frames.h"

#include <errno.h>
#include <stdlib.h>

/* Processes have addresses below this one, and the kernel far above it. */
#define FIRST_ADDRESS (1ull << 63)

int runtime_frames_text(struct runtime_frames *frames, const char *text, uint32_t *ret_text)
{
    struct strings *strings = &frames->strings;
    if (!strings->count && strings_init(strings))
        return -ENOMEM;
    bool is_full = strings->count >= RUNTIME_FRAMES_MAX && !strings_find(strings, text, ret_text);
    return strings_intern(strings, is_full ? STRING_OTHER : text, ret_text);
}

int runtime_frames_add(struct runtime_frames *frames, const struct runtime_frame *frame,
                       uint64_t *ret_address)
{
    struct runtime_frame row = *frame;
    uint32_t number = INDEX_FIND(&frames->index, sizeof row, &row, frames->items);
    if (number == INDEX_NONE && frames->count >= RUNTIME_FRAMES_MAX) {
        row = (struct runtime_frame){0};
        if (strings_intern(&frames->strings, STRING_OTHER, &row.name))
            return -ENOMEM;
    }
    if (number == INDEX_NONE && INDEX_INTERN(&frames->index, sizeof row, &row, &frames->items,
                                             &frames->count, &frames->capacity, &number))
        return -ENOMEM;
    *ret_address = FIRST_ADDRESS | number;
    return 0;
}

const struct runtime_frame *runtime_frames_find(const struct runtime_frames *frames,
                                                uint64_t address)
{
    uint64_t number = address - FIRST_ADDRESS;
    return frames && address >= FIRST_ADDRESS && number < frames->count ? &frames->items[number]
                                                                        : NULL;
}

size_t runtime_frames_bytes(const struct runtime_frames *frames)
{
    return frames->capacity * sizeof *frames->items + strings_bytes(&frames->strings);
}

void runtime_frames_free(struct runtime_frames *frames)
{
    free(frames->items);
    index_free(&frames->index);
    strings_free(&frames->strings);
    *frames = (struct runtime_frames){0};
}

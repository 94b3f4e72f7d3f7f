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
    *ret_address = runtime_frames_address(number);
    return 0;
}

const struct runtime_frame *runtime_frames_find(const struct runtime_frames *frames,
                                                uint64_t address)
{
    uint32_t number = frames ? runtime_frames_number(frames, address) : INDEX_NONE;
    return number == INDEX_NONE ? NULL : &frames->items[number];
}

uint32_t runtime_frames_number(const struct runtime_frames *frames, uint64_t address)
{
    uint64_t number = address - FIRST_ADDRESS;
    bool is_frame = address >= FIRST_ADDRESS && number < frames->count;
    return is_frame ? (uint32_t)number : INDEX_NONE;
}

uint64_t runtime_frames_address(uint32_t number)
{
    return FIRST_ADDRESS | number;
}

static bool are_crowded(size_t count, size_t kept)
{
    return 2 * count >= RUNTIME_FRAMES_MAX + kept;
}

bool runtime_frames_are_crowded(const struct runtime_frames *frames)
{
    return are_crowded(frames->count, frames->kept_count) ||
           are_crowded(frames->strings.count, frames->kept_texts);
}

void runtime_frames_keep_texts(const struct runtime_frames *frames, const struct renumber *rows,
                               struct renumber *texts)
{
    renumber_keep(texts, 0);
    for (size_t i = 0; i < frames->count; i++) {
        if (renumber_of(rows, (uint32_t)i) == ROW_GONE)
            continue;
        renumber_keep(texts, frames->items[i].name);
        renumber_keep(texts, frames->items[i].file);
    }
}

void runtime_frames_keep(struct runtime_frames *frames, const struct renumber *rows,
                         const struct renumber *texts)
{
    for (size_t i = 0; i < frames->count; i++) {
        frames->items[i].name = renumber_of(texts, frames->items[i].name);
        frames->items[i].file = renumber_of(texts, frames->items[i].file);
    }
    renumber_move(rows, frames->items, sizeof *frames->items);
    frames->count = renumber_kept(rows);
    array_trim(&frames->items, &frames->capacity, frames->count);
    INDEX_AGAIN(&frames->index, sizeof *frames->items, frames->items, frames->count);
    strings_keep(&frames->strings, texts);
    frames->kept_count = frames->count;
    frames->kept_texts = frames->strings.count;
    frames->times_renumbered++;
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

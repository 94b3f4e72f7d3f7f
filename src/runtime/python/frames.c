#include "runtime/python/frames.h"
#include "proc/memory.h"

#include <string.h>

/* Frames lie one behind the other in the thread's data stack, a caller below what it called
 * (Python/pystate.c, _PyThreadState_PushFrame); only those of generators do not. So each read takes
 * as much from below as there probably is of use. */
#define WINDOW_BYTES 2048u
#define FIELD_BYTES 8u

struct window {
    pid_t tid;
    const struct stack_areas *areas;
    uint64_t address;
    size_t bytes;
    unsigned char memory[WINDOW_BYTES];
};

static bool fill(struct window *window, uint64_t address, size_t bytes)
{
    window->address = address;
    window->bytes = memory_read(window->tid, window->areas, address, window->memory, bytes);
    return window->bytes == bytes;
}

/* Makes the window contain the bytes, of which there are no more than a few hundred. */
static bool provide(struct window *window, uint64_t address, size_t bytes)
{
    uint64_t end = address + bytes;
    if (address >= window->address && end <= window->address + window->bytes)
        return true;
    if (!address || end < address || end < WINDOW_BYTES)
        return false;
    /* What is below may not be mapped. */
    return fill(window, end - WINDOW_BYTES, WINDOW_BYTES) || fill(window, address, bytes);
}

static bool read_word(struct window *window, uint64_t address, uint64_t *ret_word)
{
    if (!provide(window, address, sizeof *ret_word))
        return false;
    memcpy(ret_word, window->memory + (address - window->address), sizeof *ret_word);
    return true;
}

static bool read_byte(struct window *window, uint64_t address, uint8_t *ret_byte)
{
    if (!provide(window, address, 1))
        return false;
    *ret_byte = window->memory[address - window->address];
    return true;
}

/* Finds the thread's first frame; 0: it runs no Python. Returns the state of the frames. */
static enum python_frames_state find_first(struct window *window,
                                           const struct python_thread *thread, uint64_t *ret_frame)
{
    const struct python_layout *layout = thread->layout;
    uint64_t native_id;
    if (!read_word(window, thread->state + layout->thread_native_id, &native_id) ||
        !read_word(window, thread->state + layout->thread_frame, ret_frame))
        return PYTHON_FRAMES_UNREADABLE;
    if (native_id != (uint64_t)thread->native_id)
        return PYTHON_FRAMES_OF_ANOTHER;
    if (layout->noted_frame != PYTHON_NOWHERE &&
        !read_word(window, *ret_frame + layout->noted_frame, ret_frame))
        return PYTHON_FRAMES_UNREADABLE;
    return PYTHON_FRAMES_READ;
}

struct frame_words {
    uint64_t code, previous, instruction;
    uint8_t owner, is_entry;
};

static bool read_frame(struct window *window, const struct python_layout *layout, uint64_t address,
                       struct frame_words *ret_words)
{
    ret_words->is_entry = 0;
    /* From its end on, so that one read has it whole. */
    return read_byte(window, address + layout->frame_owner, &ret_words->owner) &&
           (layout->frame_is_entry == PYTHON_NOWHERE ||
            read_byte(window, address + layout->frame_is_entry, &ret_words->is_entry)) &&
           read_word(window, address + layout->frame_instruction, &ret_words->instruction) &&
           read_word(window, address + layout->frame_previous, &ret_words->previous) &&
           read_word(window, address + layout->frame_code, &ret_words->code);
}

void python_frames_read(const struct python_thread *thread, pid_t tid,
                        const struct stack_areas *areas, struct python_frames *frames)
{
    const struct python_layout *layout = thread->layout;
    struct window window = {.tid = tid, .areas = areas};
    uint64_t address = 0;
    frames->count = 0;
    frames->is_cut = false;
    frames->state = find_first(&window, thread, &address);
    /* Memory that was damaged may lead in a circle. */
    for (size_t left = 2 * PYTHON_FRAMES_MAX; address && frames->state == PYTHON_FRAMES_READ;
         left--) {
        struct frame_words words;
        if (!left || !read_frame(&window, layout, address, &words)) {
            frames->state = PYTHON_FRAMES_UNREADABLE;
            return;
        }
        bool is_of_c = layout->frame_is_entry == PYTHON_NOWHERE && words.owner == PYTHON_OWNED_BY_C;
        if (is_of_c && frames->count)
            frames->items[frames->count - 1].is_entry = true;
        if (!is_of_c && frames->count == PYTHON_FRAMES_MAX) {
            frames->is_cut = true;
            return;
        }
        if (!is_of_c)
            frames->items[frames->count++] =
                (struct python_frame){words.code, words.instruction, words.is_entry};
        address = words.previous;
    }
}

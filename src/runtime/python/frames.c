#include "runtime/python/frames.h"
#include "proc/memory.h"

#include <string.h>

/* Frames are adjacent in the thread's data stack, a caller below its callee (Python/pystate.c,
 * _PyThreadState_PushFrame), except those of generators. So each read includes as much of the
 * memory below as is probably useful. */
#define WINDOW_BYTES 2048u

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
    uint64_t end = address + bytes, at = address - window->address;
    if (at <= window->bytes && bytes <= window->bytes - at)
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
    uint64_t id;
    if (!read_word(window, thread->state + layout->thread_native_id, &id) ||
        !read_word(window, thread->state + layout->thread_frame, ret_frame))
        return PYTHON_FRAMES_UNREADABLE;
    if (id != thread->id)
        return PYTHON_FRAMES_OF_ANOTHER;
    if (layout->noted_frame != PYTHON_NOWHERE &&
        !read_word(window, *ret_frame + layout->noted_frame, ret_frame))
        return PYTHON_FRAMES_UNREADABLE;
    return PYTHON_FRAMES_READ;
}

static bool read_frame(struct window *window, const struct python_layout *layout, uint64_t address,
                       struct python_frame_seen *ret_seen)
{
    ret_seen->is_entry = 0;
    /* From its end on, so that one read has all of it. */
    return read_byte(window, address + layout->frame_owner, &ret_seen->owner) &&
           (layout->frame_is_entry == PYTHON_NOWHERE ||
            read_byte(window, address + layout->frame_is_entry, &ret_seen->is_entry)) &&
           read_word(window, address + layout->frame_instruction, &ret_seen->instruction) &&
           read_word(window, address + layout->frame_previous, &ret_seen->previous) &&
           read_word(window, address + layout->frame_code, &ret_seen->code);
}

void python_frames_begin(struct python_frames *frames)
{
    frames->state = PYTHON_FRAMES_READ;
    frames->is_cut = false;
    frames->count = 0;
}

void python_frames_add(struct python_frames *frames, const struct python_layout *layout,
                       const struct python_frame_seen *seen)
{
    bool is_of_loop = !layout->has_frame_objects && layout->frame_is_entry == PYTHON_NOWHERE &&
                      seen->owner == PYTHON_OWNED_BY_C;
    if (is_of_loop && frames->count)
        frames->items[frames->count - 1].is_entry = true;
    else if (!is_of_loop && frames->count == PYTHON_FRAMES_MAX)
        frames->is_cut = true;
    else if (!is_of_loop)
        frames->items[frames->count++] =
            (struct python_frame){seen->code & ~PYTHON_TAG_BITS, seen->instruction,
                                  seen->is_entry || layout->has_frame_objects};
}

void python_frames_read(const struct python_thread *thread, pid_t tid,
                        const struct stack_areas *areas, struct python_frames *frames)
{
    struct window window = {.tid = tid, .areas = areas};
    uint64_t address = 0;
    python_frames_begin(frames);
    frames->state = find_first(&window, thread, &address);
    /* Memory that was damaged may lead in a circle. */
    for (size_t left = 2 * PYTHON_FRAMES_MAX;
         address && frames->state == PYTHON_FRAMES_READ && !frames->is_cut; left--) {
        struct python_frame_seen seen;
        if (!left || !read_frame(&window, thread->layout, address, &seen)) {
            frames->state = PYTHON_FRAMES_UNREADABLE;
            return;
        }
        python_frames_add(frames, thread->layout, &seen);
        address = seen.previous;
    }
}

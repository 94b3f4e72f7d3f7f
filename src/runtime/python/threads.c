#include "runtime/python/threads.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "proc/thread_pointer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

pid_t python_thread_native_id(const struct python_layout *layout, uint64_t id, pid_t tid,
                              const struct stack_areas *areas)
{
    if (layout->has_frame_objects)
        return pthread_tid(id, tid, areas);
    return id <= INT_MAX ? (pid_t)id : 0;
}

static int add(struct python_threads *threads, pid_t native_id, uint64_t id, uint64_t state)
{
    /* 0: the thread was made, and has not begun yet. */
    return native_id ? array_append(&threads->items, &threads->count, &threads->capacity,
                                    (struct python_thread_state){(uint32_t)native_id, state, id})
                     : 0;
}

static int compare(const void *a, const void *b)
{
    const struct python_thread_state *left = a, *right = b;
    return ORDER(left->native_id, right->native_id);
}

static bool read_word(const struct python_memory *memory, uint64_t address, uint64_t *ret_word)
{
    return python_read(memory, address, ret_word, sizeof *ret_word);
}

int python_threads_read(struct python_threads *threads, uint64_t runtime,
                        const struct python_memory *memory, size_t most)
{
    const struct python_layout *layout = memory->layout;
    uint64_t interpreter, state, id;
    size_t left = most; /* also of those that are not added */
    int err = 0;
    threads->count = 0;
    if (!read_word(memory, runtime + layout->runtime_interpreters, &interpreter))
        return 0;
    for (size_t i = 0; interpreter && i < PYTHON_INTERPRETERS_MAX; i++) {
        if (!read_word(memory, interpreter + layout->interpreter_threads, &state))
            break;
        while (state && left && !err && read_word(memory, state + layout->thread_native_id, &id)) {
            left--;
            err = add(threads, python_thread_native_id(layout, id, memory->tid, memory->areas), id,
                      state);
            if (!read_word(memory, state + layout->thread_next, &state))
                break;
        }
        if (err || !read_word(memory, interpreter + layout->interpreter_next, &interpreter))
            break;
    }
    array_sort(threads->items, threads->count, compare);
    return err;
}

struct python_thread_state python_threads_find(const struct python_threads *threads,
                                               pid_t native_id)
{
    const struct python_thread_state *found =
        FIND_SORTED(threads->items, threads->count, native_id, (uint32_t)native_id);
    return found ? *found : (struct python_thread_state){0};
}

void python_threads_free(struct python_threads *threads)
{
    free(threads->items);
    *threads = (struct python_threads){0};
}

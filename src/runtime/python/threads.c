#include "runtime/python/threads.h"
#include "base/array.h"
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
    if (!native_id)
        return 0;
    if (array_reserve(&threads->items, &threads->capacity, threads->count + 1))
        return -ENOMEM;
    threads->items[threads->count++] = (struct python_thread_state){native_id, state, id};
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct python_thread_state *left = a, *right = b;
    return (left->native_id > right->native_id) - (left->native_id < right->native_id);
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
    if (threads->count)
        qsort(threads->items, threads->count, sizeof *threads->items, compare);
    return err;
}

struct python_thread_state python_threads_find(const struct python_threads *threads,
                                               pid_t native_id)
{
    const struct python_thread_state key = {.native_id = native_id};
    const struct python_thread_state *found =
        threads->count
            ? bsearch(&key, threads->items, threads->count, sizeof *threads->items, compare)
            : NULL;
    return found ? *found : (struct python_thread_state){0};
}

void python_threads_free(struct python_threads *threads)
{
    free(threads->items);
    *threads = (struct python_threads){0};
}

#include "runtime/python/threads.h"
#include "base/array.h"
#include "proc/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* A longer list is taken for a circle. */
#define THREADS_MAX 65536
#define INTERPRETERS_MAX 256

static int add(struct python_threads *threads, uint64_t native_id, uint64_t state)
{
    /* 0: the thread was made, and has not begun yet. */
    if (!native_id || native_id > INT_MAX)
        return 0;
    if (array_reserve(&threads->items, &threads->capacity, threads->count + 1))
        return -ENOMEM;
    threads->items[threads->count++] = (struct python_thread_state){(pid_t)native_id, state};
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct python_thread_state *left = a, *right = b;
    return (left->native_id > right->native_id) - (left->native_id < right->native_id);
}

int python_threads_read(struct python_threads *threads, const struct python_place *place, pid_t tid,
                        const struct stack_areas *areas)
{
    const struct python_layout *layout = &place->layout;
    uint64_t interpreter, state, native_id;
    int err = 0;
    threads->count = 0;
    if (!memory_read_word(tid, areas, place->runtime + layout->runtime_interpreters, &interpreter))
        return 0;
    for (size_t i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
        if (!memory_read_word(tid, areas, interpreter + layout->interpreter_threads, &state))
            break;
        while (state && threads->count < THREADS_MAX && !err &&
               memory_read_word(tid, areas, state + layout->thread_native_id, &native_id)) {
            err = add(threads, native_id, state);
            if (!memory_read_word(tid, areas, state + layout->thread_next, &state))
                break;
        }
        if (err ||
            !memory_read_word(tid, areas, interpreter + layout->interpreter_next, &interpreter))
            break;
    }
    if (threads->count)
        qsort(threads->items, threads->count, sizeof *threads->items, compare);
    return err;
}

uint64_t python_threads_find(const struct python_threads *threads, pid_t native_id)
{
    const struct python_thread_state key = {.native_id = native_id};
    const struct python_thread_state *found =
        threads->count
            ? bsearch(&key, threads->items, threads->count, sizeof *threads->items, compare)
            : NULL;
    return found ? found->state : 0;
}

void python_threads_free(struct python_threads *threads)
{
    free(threads->items);
    *threads = (struct python_threads){0};
}

#include "sampler/threads.h"
#include "base/array.h"
#include "sampler/channel.h"

#include <errno.h>
#include <stdlib.h>

static bool are_just(const struct threads *threads, const pid_t *tids, size_t tid_count)
{
    size_t same = 0;
    while (same < tid_count && same < threads->count && threads->items[same].tid == tids[same])
        same++;
    return same == tid_count && same == threads->count;
}

int threads_update(struct threads *threads, const pid_t *tids, size_t tid_count,
                   thread_visit_fn *appeared, thread_visit_fn *vanished, void *context)
{
    if (are_just(threads, tids, tid_count))
        return 0;
    if (array_reserve(&threads->merged, &threads->merged_capacity, tid_count) ||
        array_reserve(&threads->due_ticks, &threads->due_capacity, tid_count))
        return -ENOMEM;
    size_t old = 0;
    for (size_t i = 0; i < tid_count; i++) {
        pid_t tid = tids[i];
        for (; old < threads->count && threads->items[old].tid < tid; old++)
            vanished(context, &threads->items[old]);
        if (old < threads->count && threads->items[old].tid == tid) {
            threads->merged[i] = threads->items[old++];
        } else {
            threads->merged[i] =
                (struct thread){.tid = tid, .wants.stack_limit = STACK_LIMIT_FIRST};
            appeared(context, &threads->merged[i]);
        }
    }
    for (; old < threads->count; old++)
        vanished(context, &threads->items[old]);

    struct thread *items = threads->items;
    size_t capacity = threads->capacity;
    threads->items = threads->merged;
    threads->capacity = threads->merged_capacity;
    threads->count = tid_count;
    threads->merged = items;
    threads->merged_capacity = capacity;
    for (size_t i = 0; i < threads->count; i++)
        threads->due_ticks[i] = threads->items[i].schedule.next_look_tick;
    return 0;
}

size_t threads_place_from(const struct threads *threads, pid_t tid)
{
    size_t low = 0, high = threads->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (threads->items[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < threads->count ? low : 0;
}

struct thread *threads_find(struct threads *threads, pid_t tid)
{
    if (!threads->count)
        return NULL;
    struct thread *thread = &threads->items[threads_place_from(threads, tid)];
    return thread->tid == tid ? thread : NULL;
}

void threads_free(struct threads *threads)
{
    free(threads->due_ticks);
    free(threads->items);
    free(threads->merged);
    *threads = (struct threads){0};
}

/* ---- One thread ---- */

/* An event that is not listed for a phase does not change it: for example, a thread that was asked
 * to stop has moved because of us. */
static const struct {
    enum thread_phase phase;
    enum phase_event event;
    enum thread_phase next;
} changes[] = {
    {PHASE_LISTED, EVENT_BEGIN_READ, PHASE_AWAKE},
    {PHASE_LISTED, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_AWAKE, EVENT_SLEPT_ON, PHASE_ASLEEP},
    {PHASE_AWAKE, EVENT_STOP_WANTED, PHASE_TO_STOP},
    {PHASE_AWAKE, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_ASLEEP, EVENT_MOVED, PHASE_AWAKE},
    {PHASE_ASLEEP, EVENT_STOP_WANTED, PHASE_TO_STOP},
    {PHASE_ASLEEP, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_TO_STOP, EVENT_STOP_BEGUN, PHASE_STOPPING},
    {PHASE_TO_STOP, EVENT_STOP_OVER, PHASE_AWAKE},
    {PHASE_TO_STOP, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_STOPPING, EVENT_STOP_OVER, PHASE_AWAKE},

    {PHASE_UNWANTED, EVENT_NAME_WANTED, PHASE_AWAKE},
};

void thread_note(struct thread *thread, enum phase_event event)
{
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].phase == thread->phase && changes[i].event == event) {
            thread->phase = changes[i].next;
            return;
        }
    }
}

void threads_forget_sleep(struct threads *threads, struct thread *thread)
{
    thread->wants.copy = true;
    thread_note(thread, EVENT_MOVED);
    thread->schedule.next_look_tick = 0;
    threads->due_ticks[thread - threads->items] = 0;
}

#include "worker/wakers.h"

static const struct waker *find_ended(const struct thread_wakers *wakers, uint64_t departed_ns)
{
    for (unsigned i = 0; i < ENDED_WAITS_MAX && departed_ns; i++) {
        if (wakers->ended[i].departed_ns == departed_ns)
            return &wakers->ended[i].waker;
    }
    return NULL;
}

int waker_place(struct results *results, const struct waker *waker, uint32_t *sample)
{
    const struct sample_labels *labels = &results->stacks.samples[*sample].labels;
    struct counted_wait wait = labels->wait_plus_1 ? results->waits.rows[labels->wait_plus_1 - 1]
                                                   : wait_of_nothing(labels->process);
    uint32_t wait_plus_1;
    if (waker->kind == WAKER_UNKNOWN || results->waits.count >= WAITS_MAX)
        return 0;
    wait.waker_kind = waker->kind;
    wait.waker_process_plus_1 = waker->process_plus_1;
    wait.waker_name = waker->name;
    wait.waker_tid = waker->tid;
    wait.waker_stack_plus_1 = waker->stack_plus_1;
    wait.waker_kernel_stack = waker->kernel_stack;
    int err = waits_add(&results->waits, &wait, &wait_plus_1);
    return err ? err : stack_table_in_wait(&results->stacks, *sample, wait_plus_1, sample);
}

int wakers_place(const struct thread_wakers *wakers, struct results *results, uint64_t departed_ns,
                 uint32_t *sample)
{
    const struct waker *waker = find_ended(wakers, departed_ns);
    return waker ? waker_place(results, waker, sample) : 0;
}

void wakers_note(struct thread_wakers *wakers, uint64_t departed_ns, uint32_t sample,
                 uint64_t ticks, uint64_t sleeps)
{
    struct open_wait *open = NULL;
    if (!departed_ns || find_ended(wakers, departed_ns))
        return;
    for (unsigned i = 0; i < OPEN_WAITS_MAX && !open; i++) {
        if (wakers->open[i].departed_ns == departed_ns && wakers->open[i].sample == sample)
            open = &wakers->open[i];
    }
    if (!open) {
        open = &wakers->open[wakers->next_open++ % OPEN_WAITS_MAX];
        *open = (struct open_wait){.departed_ns = departed_ns, .sample = sample};
    }
    open->window_ticks += ticks ? ticks : 1;
    open->sleeps += sleeps;
}

static uint64_t part_of(uint64_t value, double part)
{
    return part >= 1 ? value : (uint64_t)((double)value * part);
}

void wakers_settle(struct thread_wakers *wakers, const struct settlement *settlements,
                   unsigned count)
{
    for (unsigned i = 0; i < OPEN_WAITS_MAX && count; i++) {
        struct open_wait *open = &wakers->open[i];
        for (unsigned j = 0; j < count; j++) {
            const struct settlement *settlement = &settlements[j];
            if (settlement->sample != open->sample)
                continue;
            double part = (double)open->window_ticks / settlement->window_ticks;
            open->given.ticks += part_of(settlement->share.ticks, part);
            open->given.time_ns += part_of(settlement->share.time_ns, part);
            open->given.part_ns += part_of(settlement->share.part_ns, part);
        }
        open->window_ticks = 0;
    }
}

void wakers_forget_before_record(struct thread_wakers *wakers)
{
    for (unsigned i = 0; i < OPEN_WAITS_MAX; i++) {
        if (wakers->open[i].departed_ns == WAIT_BEFORE_RECORD)
            wakers->open[i] = (struct open_wait){0};
    }
}

void wakers_forget(struct thread_wakers *wakers)
{
    for (unsigned i = 0; i < OPEN_WAITS_MAX; i++)
        wakers->open[i] = (struct open_wait){0};
    for (unsigned i = 0; i < ENDED_WAITS_MAX; i++)
        wakers->ended[i] = (struct ended_wait){0};
}

void wakers_note_ended(struct thread_wakers *wakers, uint64_t departed_ns,
                       const struct waker *waker)
{
    wakers->ended[wakers->next_ended++ % ENDED_WAITS_MAX] =
        (struct ended_wait){departed_ns, *waker};
}

#include "sampler/python.h"
#include "base/clock.h"

/* How often the interpreter's threads are listed, at most. */
#define LISTED_EACH_NS 100000000u
#define LISTING_PART_OF_TIME 200

static pid_t native_id_of(const struct sampled_process *process, const struct thread *thread)
{
    return process->has_inner_ids ? thread->inner_tid : thread->tid;
}

/* Looks again at those that have not moved and are known to run Python only now. */
static void forget_sleeps(struct sampled_process *process, const struct python_threads *before)
{
    for (size_t i = 0; i < process->threads.count; i++) {
        struct thread *thread = &process->threads.items[i];
        pid_t id = native_id_of(process, thread);
        if (python_threads_find(&process->python.threads, id) != python_threads_find(before, id))
            threads_forget_sleep(&process->threads, thread);
    }
}

int python_update(struct sampled_process *process)
{
    struct sampled_python *python = &process->python;
    uint64_t now_ns = monotonic_ns();
    if (!python->place.runtime || !process->program || !process->threads.count ||
        !throttle_allows(&python->listing, now_ns, LISTED_EACH_NS, LISTING_PART_OF_TIME))
        return 0;
    struct python_threads before = python->threads;
    python->threads = (struct python_threads){0};
    int err = python_threads_read(&python->threads, &python->place, process->threads.items[0].tid,
                                  &process->areas);
    if (!err)
        forget_sleeps(process, &before);
    python_threads_free(&before);
    python->listing = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err;
}

void python_begin(struct sampled_process *process, const struct python_place *place)
{
    process->python.place = *place;
    process->python.listing = (struct throttle){0};
    /* Memory that is short now may be there at the next tick. */
    python_update(process);
}

struct python_thread python_of(const struct sampled_process *process, const struct thread *thread)
{
    pid_t native_id = native_id_of(process, thread);
    uint64_t state = python_threads_find(&process->python.threads, native_id);
    return state ? (struct python_thread){&process->python.place.layout, state, native_id}
                 : (struct python_thread){0};
}

void python_forget(struct sampled_python *python)
{
    python_threads_free(&python->threads);
    *python = (struct sampled_python){0};
}

#include "worker/deadlock_detect.h"

struct cycle {
    struct counted_thread *threads[DEADLOCK_THREADS_MAX];
    size_t count;
    uint64_t asleep_ns; /* when the last of them was first seen asleep */
    uint64_t read_ns;   /* when the first of their owners was read */
    bool is_deadlock;   /* and not of two processes that wait for each other's data */
    bool is_known;
};

/* Follows the owners until they come back to the first. Returns whether they do. */
static bool follow(struct owners *owners, struct counted_thread *first, struct cycle *cycle)
{
    struct counted_thread *thread = first;
    *cycle = (struct cycle){.read_ns = UINT64_MAX, .is_deadlock = true};
    do {
        const struct thread_account *account = &thread->account;
        if (cycle->count == DEADLOCK_THREADS_MAX || thread->is_gone || !account->sleeps_on ||
            account->sleep_is_over)
            return false;
        cycle->threads[cycle->count++] = thread;
        cycle->is_known = cycle->is_known || account->is_in_deadlock;
        cycle->is_deadlock = cycle->is_deadlock && account->owner_must_act;
        if (account->slept_ns > cycle->asleep_ns)
            cycle->asleep_ns = account->slept_ns;
        if (account->owner_read_ns < cycle->read_ns)
            cycle->read_ns = account->owner_read_ns;
        thread = owners_last_owner(owners, thread);
    } while (thread && thread != first);
    return thread != NULL;
}

static int add(struct results *results, const struct cycle *cycle)
{
    struct deadlock_thread rows[DEADLOCK_THREADS_MAX];
    for (size_t i = 0; i < cycle->count; i++) {
        struct counted_thread *thread = cycle->threads[i];
        const struct counted_sample *sample = &results->stacks.samples[thread->account.last_sample];
        rows[i] = (struct deadlock_thread){
            .tid = (uint32_t)thread->tid,
            .process = thread->process,
            .name = thread->name,
            .stack = sample->stack,
            .wait_plus_1 = sample->labels.wait_plus_1,
            .since_ns = cycle->asleep_ns,
        };
        thread->account.is_in_deadlock = true;
    }
    return deadlocks_add(&results->deadlocks, rows, cycle->count);
}

int deadlock_detect(struct owners *owners, struct results *results, const struct held_wait *held)
{
    struct counted_thread *thread = &owners->threads->items[held->thread];
    struct cycle cycle;
    thread->account.owner_plus_1 = held->owner + 1;
    thread->account.owner_read_ns = held->owner_read_ns;
    thread->account.owner_must_act =
        resource_is_lock((enum resource_kind)held->wait.kind) || held->wait.kind == RESOURCE_THREAD;
    if (!follow(owners, thread, &cycle) || !cycle.is_deadlock || cycle.is_known ||
        cycle.read_ns < cycle.asleep_ns)
        return 0;
    return add(results, &cycle);
}

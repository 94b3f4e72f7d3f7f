#include "profile/dump.h"
#include "base/upper_bound.h"
#include "profile/name_waits.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* During the search, a value above `count` is the number of the walk that passed the thread. */
size_t deadlocks_find(const size_t *waits_for, size_t count, size_t *cycles)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        cycles[i] = 0;
    for (size_t start = 0; start < count; start++) {
        size_t walk = count + 1 + start, at = start;
        while (at < count && !cycles[at]) {
            cycles[at] = walk;
            at = waits_for[at];
        }
        /* The walk has returned to a thread that it had passed: from there on, it is a cycle. */
        if (at < count && cycles[at] == walk) {
            found++;
            for (; cycles[at] == walk; at = waits_for[at])
                cycles[at] = found;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (cycles[i] > count)
            cycles[i] = 0;
    }
    return found;
}

struct keyed_sample {
    uint64_t key; /* a thread's id, or task_key() */
    const struct profile_sample *sample;
};

static int compare_samples(const void *a, const void *b)
{
    const struct keyed_sample *left = a, *right = b;
    return ORDER(left->key, right->key);
}

#define IS_ASYNCIO (1u << 31)

static uint64_t task_key(uint32_t pid, uint64_t id, bool is_task)
{
    return (uint64_t)pid << 32 | (is_task ? IS_ASYNCIO : 0) | ((uint32_t)id & ~IS_ASYNCIO);
}

/* Lists the samples of threads, or those of goroutines and tasks, by key. The caller frees them.
 * NULL: no memory. */
static struct keyed_sample *list_samples(const struct fgprof_profile *profile, bool are_threads,
                                         size_t *ret_count)
{
    struct keyed_sample *samples = calloc(profile->sample_count + 1, sizeof *samples);
    size_t count = 0;
    for (size_t i = 0; i < profile->sample_count && samples; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (sample_is_of_thread(sample) != are_threads)
            continue;
        uint64_t key = are_threads ? sample->tid
                                   : task_key(profile->processes[sample->process].pid, sample->tid,
                                              sample->is_task);
        samples[count++] = (struct keyed_sample){key, sample};
    }
    array_sort(samples, count, compare_samples);
    *ret_count = count;
    return samples;
}

static int add_threads(struct fgprof_dump *dump)
{
    size_t count;
    struct keyed_sample *samples = list_samples(dump->profile, true, &count);
    dump->threads = calloc(dump->waits.count + 1, sizeof *dump->threads);
    for (size_t i = 0; i < dump->waits.count && samples && dump->threads; i++) {
        const struct wait_facts *facts = &dump->waits.items[i];
        const struct keyed_sample *found = FIND_SORTED(samples, count, key, (uint32_t)facts->tid);
        if (found)
            dump->threads[dump->thread_count++] =
                (struct dump_thread){.sample = found->sample, .facts = facts, .owner = DUMP_NOBODY};
    }
    dump->leaves_out_threads = dump->thread_count < dump->waits.count;
    bool is_made = samples && dump->threads;
    free(samples);
    return is_made ? 0 : -ENOMEM;
}

static int add_tasks(struct fgprof_dump *dump)
{
    struct runtime_tasks *all = &dump->listed;
    size_t count;
    struct keyed_sample *samples = list_samples(dump->profile, false, &count);
    dump->tasks = calloc(all->count + 1, sizeof *dump->tasks);
    runtime_tasks_sort(all);
    for (size_t i = 0; i < all->count && samples && dump->tasks; i++) {
        const struct runtime_task *listed = &all->items[i];
        uint64_t key = task_key((uint32_t)listed->process_id, listed->id, listed->name);
        const struct keyed_sample *found =
            listed->is_parked ? FIND_SORTED(samples, count, key, key) : NULL;
        if (found || !listed->is_parked)
            dump->tasks[dump->task_count++] =
                (struct dump_task){listed, found ? found->sample : NULL};
    }
    bool is_made = samples && dump->tasks;
    free(samples);
    return is_made ? 0 : -ENOMEM;
}

/* How many addresses the wait has. */
static size_t count_addresses(const struct go_wait *wait)
{
    if (wait->kind == GO_WAIT_OTHER || wait->kind == GO_WAIT_FILE)
        return 0;
    if (wait->kind != GO_WAIT_CHANNEL)
        return 1;
    return wait->count < GO_WAIT_ADDRESSES_MAX ? wait->count : GO_WAIT_ADDRESSES_MAX;
}

static int count_waiters(struct fgprof_dump *dump)
{
    for (size_t i = 0; i < dump->task_count; i++) {
        const struct runtime_task *listed = dump->tasks[i].listed;
        for (size_t j = 0; j < count_addresses(&listed->wait); j++) {
            const struct dump_waiters row = {listed->wait.addresses[j],
                                             (uint64_t)listed->process_id, 0};
            uint32_t number;
            if (INDEX_INTERN(&dump->waiter_index, offsetof(struct dump_waiters, count), &row,
                             &dump->waiters, &dump->waiter_count, &dump->waiter_capacity, &number))
                return -ENOMEM;
            dump->waiters[number].count++;
        }
    }
    return 0;
}

size_t dump_count_waiters(const struct fgprof_dump *dump, pid_t process_id, uint64_t address)
{
    const struct dump_waiters sought = {address, (uint64_t)process_id, 0};
    uint32_t number = INDEX_FIND(&dump->waiter_index, offsetof(struct dump_waiters, count), &sought,
                                 dump->waiters);
    return number == INDEX_NONE ? 0 : dump->waiters[number].count;
}

/* In our own PID namespace, an id identifies a thread of any process. */
static bool is_owner(const struct dump_thread *waiter, const struct wait_facts *other)
{
    const struct wait_facts *facts = waiter->facts;
    if (other->inner_tid <= 0 || (uint32_t)other->inner_tid != waiter->lock.owner)
        return false;
    return other->process_id == facts->process_id ||
           (waiter->lock.is_shared && facts->inner_tid == facts->tid &&
            other->inner_tid == other->tid);
}

/* An owner must be a thread of the process, unless the lock is shared between processes. glibc
 * marks all robust locks as shared (nptl/pthread_mutex_init.c). */
static void find_owner(const struct fgprof_dump *dump, struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    if (!thread->lock.owner)
        return;
    for (size_t i = 0; i < dump->thread_count; i++) {
        if (is_owner(thread, dump->threads[i].facts)) {
            thread->owner = i;
            thread->owner_process = dump->threads[i].facts->process_id;
            return;
        }
    }
    thread->is_owner_gone =
        thread->lock.kind == RESOURCE_MUTEX && !thread->lock.is_shared &&
        facts->inner_tid == facts->tid &&
        !wait_list_has_thread(&dump->waits, facts->process_id, (pid_t)thread->lock.owner);
}

static void find_lock(const struct fgprof_dump *dump, struct dump_thread *thread)
{
    const struct wait_facts *facts = thread->facts;
    struct lock_frame frames[LOCK_FRAMES_MAX];
    size_t frame_count = innermost_frames(dump->profile, thread->sample->stack, frames);
    struct lock_site site = lock_site_of(frames, frame_count);
    thread->lock = facts->gil.kind == RESOURCE_GIL ? facts->gil
                                                   : lock_of(&site, &facts->target, &facts->memory);
    find_owner(dump, thread);
    thread->resource =
        (struct resource){thread->lock.kind, facts->process_id, thread->lock.address};
    if (thread->lock.kind == RESOURCE_THREAD && thread->owner != DUMP_NOBODY)
        thread->resource.key = (uint64_t)dump->threads[thread->owner].facts->tid;
}

static void find_resources(struct fgprof_dump *dump)
{
    for (size_t i = 0; i < dump->thread_count; i++) {
        struct dump_thread *thread = &dump->threads[i];
        thread->resource = thread->facts->resource;
        thread->owner_process = thread->facts->owner_process;
        if (thread->facts->target.kind == CALL_FUTEX)
            find_lock(dump, thread);
    }
}

/* Waits with a timeout end by themselves and are ignored. All others were in progress at one
 * moment, between the last capture of a stack and the first check that no thread had moved, so a
 * cycle of them is a deadlock. */
static int find_deadlocks(struct fgprof_dump *dump)
{
    size_t count = dump->thread_count;
    size_t *waits_for = calloc(count + 1, sizeof *waits_for);
    size_t *cycles = calloc(count + 1, sizeof *cycles);
    int err = waits_for && cycles ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        const struct dump_thread *thread = &dump->threads[i];
        bool may_end = thread->facts->target.has_timeout || thread->facts->has_gone_on;
        waits_for[i] = may_end ? DUMP_NOBODY : thread->owner;
    }
    if (!err)
        dump->deadlock_count = deadlocks_find(waits_for, count, cycles);
    for (size_t i = 0; i < count && !err; i++)
        dump->threads[i].deadlock = cycles[i];
    free(waits_for);
    free(cycles);
    return err;
}

int dump_complete(struct fgprof_dump *dump)
{
    if (add_threads(dump) || add_tasks(dump) || count_waiters(dump))
        return -ENOMEM;
    find_resources(dump);
    return find_deadlocks(dump);
}

const struct dump_thread *dump_first_of_deadlock(const struct fgprof_dump *dump, size_t number)
{
    const struct dump_thread *first = dump->threads;
    while (first->deadlock != number)
        first++;
    return first;
}

void fgprof_dump_free(fgprof_dump *dump)
{
    if (!dump)
        return;
    free(dump->threads);
    free(dump->tasks);
    free(dump->waiters);
    index_free(&dump->waiter_index);
    runtime_tasks_free(&dump->listed);
    wait_list_free(&dump->waits);
    profile_free(dump->profile);
    free(dump);
}

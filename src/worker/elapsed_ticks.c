#include "worker/elapsed_ticks.h"
#include "base/array.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

/* How many CPUs the process's first thread may use. */
static unsigned cpus_of(pid_t pid)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(pid, sizeof cpus, &cpus) ? 0 : CPU_COUNT(&cpus);
    return (unsigned)(count > 0 ? count : sysconf(_SC_NPROCESSORS_ONLN));
}

int elapsed_ticks_begin(struct results *results, uint32_t process, pid_t pid, uint64_t begin_ns,
                        uint64_t period_ns)
{
    if (array_reserve(&results->elapsed, &results->elapsed_capacity, process + 1u))
        return -ENOMEM;
    elapsed_begin(&results->elapsed[process], begin_ns ? begin_ns : results->timeline.start_ns,
                  period_ns, cpus_of(pid));
    if (results->elapsed_count <= process)
        results->elapsed_count = process + 1u;
    return 0;
}

/* Ends the waits of threads that the tick found awake. */
static int end_waits(struct results *results, struct counted_threads *threads,
                     const struct message *message)
{
    int err = 0;
    for (size_t i = 0; i < message->tick.thread_count && !err; i++) {
        const struct awake_thread *awake = &message->tick.threads[i];
        struct counted_thread *thread = counted_threads_get(threads, awake->number, awake->tid);
        if (!thread)
            return -ENOMEM;
        err = elapsed_ticks_end_wait(results, thread, message->tick.number - message->tick.ticks);
    }
    return err;
}

int elapsed_ticks_take(struct results *results, struct counted_threads *threads,
                       const struct message *message)
{
    struct elapsed *process = &results->elapsed[message->tick.process];
    struct elapsed_instant instant = {0};
    int err = end_waits(results, threads, message);
    if (err)
        return err;
    for (size_t i = 0; i < message->tick.thread_count; i++)
        elapsed_add_awake(&instant,
                          &threads->items[message->tick.threads[i].number].account.elapsed);
    for (size_t i = 0; i < message->tick.thread_count; i++)
        elapsed_share(process, &instant, message->tick.ticks,
                      &threads->items[message->tick.threads[i].number].account.elapsed);
    if (instant.threads)
        parallelism_add(&results->parallelism, process, &instant, message->tick.ticks);
    err = elapsed_pass(process, &results->stacks, message->tick.number, message->tick.idle_ticks,
                       message->tick.ticks, &instant);
    if (!err && message->tick.end_ns)
        elapsed_end(process, &results->stacks, message->tick.end_ns);
    return err;
}

bool elapsed_ticks_is_same_wait(const struct thread_account *account,
                                const struct observation *observation)
{
    const struct thread_wait *wait = &account->wait;
    return wait->is_open && observation->now.has_activity &&
           wait->switches == observation->now.activity.switches;
}

static int add_row(struct results *results, struct thread_wait *wait, uint64_t last_tick)
{
    const struct elapsed_wait row = {
        .sample = wait->sample,
        .first_tick = wait->first_tick,
        .last_tick = last_tick,
        .is_blocked = wait->is_uninterruptible,
    };
    return elapsed_add_wait(&results->elapsed[wait->process], &row, &wait->number);
}

void elapsed_ticks_place_wait(struct results *results, struct counted_thread *thread,
                              uint32_t sample)
{
    struct thread_wait *wait = &thread->account.wait;
    wait->sample = sample;
    if (wait->number)
        elapsed_place_wait(&results->elapsed[wait->process], wait->number, sample);
}

int elapsed_ticks_note_wait(struct results *results, const struct observation *observation,
                            struct counted_thread *thread, uint32_t sample)
{
    struct thread_wait *wait = &thread->account.wait;
    if (elapsed_ticks_is_same_wait(&thread->account, observation)) {
        elapsed_ticks_place_wait(results, thread, sample);
        return 0;
    }
    uint64_t known_tick = observation->tick - observation->ticks; /* it stands for those since */
    int err = elapsed_ticks_end_wait(results, thread, known_tick);
    if (err)
        return err;
    *wait = (struct thread_wait){
        .is_open = true,
        .is_uninterruptible = observation->state == THREAD_UNINTERRUPTIBLE,
        .process = observation->process,
        .sample = sample,
        .first_tick = known_tick + 1,
        .switches = observation->now.activity.switches,
    };
    /* In uninterruptible sleep every tick belongs to the thread, however long it lasts. */
    if (!wait->is_uninterruptible)
        return 0;
    return add_row(results, wait, ELAPSED_OPEN);
}

void elapsed_ticks_end_chain(struct results *results, struct counted_thread *thread,
                             uint64_t known_tick)
{
    struct thread_wait *wait = &thread->account.wait;
    if (wait->chain)
        elapsed_end_wait(&results->elapsed[wait->process], wait->chain, known_tick);
    wait->chain = 0;
}

int elapsed_ticks_note_chain(struct results *results, struct counted_thread *thread,
                             uint32_t end_sample, uint64_t known_tick)
{
    struct thread_wait *wait = &thread->account.wait;
    struct elapsed *process = &results->elapsed[wait->process];
    /* In uninterruptible sleep it is blocked where it is. */
    if (!wait->is_open || wait->is_uninterruptible ||
        (wait->chain && wait->chain_sample == end_sample))
        return 0;
    elapsed_ticks_end_chain(results, thread, known_tick);
    const struct elapsed_wait row = {
        .sample = end_sample,
        .first_tick = known_tick + 1,
        .last_tick = ELAPSED_OPEN,
        .is_blocked = true,
    };
    wait->chain_sample = end_sample;
    return elapsed_add_wait(process, &row, &wait->chain);
}

int elapsed_ticks_end_wait(struct results *results, struct counted_thread *thread,
                           uint64_t last_tick)
{
    struct thread_wait *wait = &thread->account.wait;
    if (!wait->is_open)
        return 0;
    struct elapsed *process = &results->elapsed[wait->process];
    wait->is_open = false;
    if (last_tick < wait->first_tick)
        last_tick = wait->first_tick;
    elapsed_ticks_end_chain(results, thread, last_tick);
    if (wait->is_uninterruptible) {
        elapsed_end_wait(process, wait->number, last_tick);
        return 0;
    }
    return elapsed_is_short(process, wait->first_tick, last_tick)
               ? add_row(results, wait, last_tick)
               : 0;
}

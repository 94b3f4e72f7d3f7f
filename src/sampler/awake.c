#include "sampler/awake.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ticks that found no thread awake are reported after this time at the latest. */
#define IDLE_TOLD_NS 500000000u

void awake_begin(struct sampled_process *process)
{
    process->awake.count = 0;
}

int awake_note(struct sampled_process *process, const struct thread *thread)
{
    struct awake *awake = &process->awake;
    if (!thread->is_awake || !thread_is_counted(thread))
        return 0;
    return array_append(&awake->items, &awake->count, &awake->capacity,
                        (struct awake_thread){thread->number, thread->tid});
}

/* Tells all ticks that were not told yet; the last `ticks` of them found the threads of the list.
 */
static int send(struct sampler *sampler, struct sampled_process *process, uint64_t ticks,
                uint64_t end_ns)
{
    struct awake *awake = &process->awake;
    struct message message = {.kind = MESSAGE_TICK};
    message.tick.process = process->number;
    message.tick.number = awake->tick;
    message.tick.ticks = ticks;
    message.tick.idle_ticks = awake->idle_ticks;
    message.tick.end_ns = end_ns;
    message.tick.threads = NULL;
    message.tick.thread_count = 0;
    if (ticks) {
        message.tick.threads = malloc(awake->count * sizeof *awake->items);
        if (!message.tick.threads)
            return -ENOMEM;
        memcpy(message.tick.threads, awake->items, awake->count * sizeof *awake->items);
        message.tick.thread_count = awake->count;
    }
    int err = channel_send(sampler->channel, &message);
    if (err)
        free(message.tick.threads);
    else
        awake->idle_ticks = 0;
    return err;
}

int awake_tell(struct sampler *sampler, struct sampled_process *process, uint64_t tick)
{
    struct awake *awake = &process->awake;
    uint64_t ticks = awake->tick ? tick - awake->tick : 1;
    if (sampler->options->is_dump || tick <= awake->tick || channel_is_behind(sampler->channel))
        return 0;
    awake->tick = tick;
    if (awake->count)
        return send(sampler, process, ticks, 0);
    awake->idle_ticks += ticks;
    bool is_due = awake->idle_ticks * sampler->clock.period_ns >= IDLE_TOLD_NS;
    return is_due ? send(sampler, process, 0, 0) : 0;
}

int awake_tell_end(struct sampler *sampler, struct sampled_process *process, uint64_t end_ns)
{
    return sampler->options->is_dump ? 0 : send(sampler, process, 0, end_ns);
}

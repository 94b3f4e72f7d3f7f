#include "sampler/otel_context.h"
#include "base/index.h"
#include "sampler/report.h"

static uint64_t hash_of(const struct thread_context *context)
{
    return hash_bytes(context->record, context->state == CONTEXT_READ ? context->bytes : 0,
                      context->state);
}

void otel_context_note_running(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread)
{
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    if (process->context.kind == CONTEXT_NOWHERE || !watch || !thread->running.now.has_activity)
        return;
    const struct context_thread place = {thread->tid, &process->areas, &watch->thread_pointer};
    thread_context_read(&place, &process->context, &sampler->context);
    thread->running.context_hash = hash_of(&sampler->context);
    thread->running.has_context = true;
}

struct thread_context *otel_context_read_late(struct sampler *sampler,
                                              const struct sampled_process *process,
                                              const struct thread *thread,
                                              struct snapshot *snapshot)
{
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    struct thread_context *context =
        process->context.kind == CONTEXT_NOWHERE || !watch ? NULL : snapshot_context(snapshot);
    if (!context)
        return NULL;
    const struct context_thread place = {thread->tid, &process->areas, &watch->thread_pointer};
    thread_context_read_running(&place, &process->context, context);
    context->may_be_later = true;
    return context;
}

void otel_context_read_sampled(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread, struct observation *observation)
{
    const struct thread_running_look *before = &thread->running;
    struct thread_context *context =
        otel_context_read_late(sampler, process, thread, observation->snapshot);
    if (!context)
        return;
    const struct reading now = thread_read_account(sampler, process, thread);
    context->may_be_later = !before->has_context ||
                            before->now.at_ns > observation->sampled.at_ns || !now.has_activity ||
                            now.activity.switches != before->now.activity.switches ||
                            hash_of(context) != before->context_hash;
}

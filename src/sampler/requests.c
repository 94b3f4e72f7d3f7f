#include "sampler/requests.h"
#include "sampler/goroutines.h"
#include "sampler/kernel_samples.h"
#include "sampler/look.h"
#include "sampler/python.h"
#include "sampler/report.h"
#include "sampler/switch_events.h"

#include <errno.h>

/* The process that runs the program of the request; NULL if that has ended. */
static struct sampled_process *find_process(const struct sampler *sampler,
                                            const struct request *request)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        struct sampled_process *process = sampler->processes[i];
        if (process->program && process->program->number == request->program)
            return process;
    }
    return NULL;
}

static void take_areas(struct sampled_process *process, struct request *request)
{
    if (!process) {
        stack_areas_free(&request->areas);
        return;
    }
    stack_areas_free(&process->areas);
    process->areas = request->areas;
    process->areas.mem_fd_plus_1 = process->program->mem_fd + 1;
}

/* Threads that still sleep are copied again, now with their contexts. */
static void take_context(struct sampled_process *process, const struct request *request)
{
    if (!process)
        return;
    process->context = request->context;
    for (size_t i = 0; i < process->threads.count; i++)
        threads_forget_sleep(&process->threads, &process->threads.items[i]);
}

/* Serves a request that is not about a thread; returns false if it is about one. */
static bool serve_other(struct sampler *sampler, struct request *request)
{
    struct sampled_process *process = find_process(sampler, request);
    switch (request->kind) {
    case REQUEST_AREAS:
        take_areas(process, request);
        return true;
    case REQUEST_CONTEXT:
        take_context(process, request);
        return true;
    case REQUEST_PYTHON:
        if (process)
            python_begin(process, &request->python);
        return true;
    case REQUEST_GOROUTINES:
        if (process) /* an error is ignored: the next tick tries again */
            goroutines_begin(sampler, process, &request->go);
        return true;
    case REQUEST_HURRY:
        if (process)
            process->is_in_a_hurry = true;
        return true;
    case REQUEST_FEWER_PAGES:
        report_to_collector(sampler, (struct notice){.kind = NOTICE_FEWER_PAGES});
        return true;
    default:
        return false;
    }
}

/* Observes the thread again immediately, while it has probably not moved, or not far. Returns 0 or
 * -ENOMEM. */
static int observe_anew(struct sampler *sampler, struct sampled_process *process,
                        struct thread *thread)
{
    bool was_running =
        thread->running.now.at_ns && thread->schedule.looked_tick == thread->running.tick;
    threads_forget_sleep(&process->threads, thread);
    thread->wants.is_dumped = false;
    if (thread_is_in_a_stop(thread) || thread->life.has_exited)
        return 0;
    if (was_running) {
        /* Its next sample is enough. */
        if (kernel_samples_cover(sampler, process, thread, thread->kernel.running_ns))
            return 0;
        /* Its time is known up to the last look; ptrace_source.c checks whether it still runs. */
        look_ask_for_stop(process, thread);
        return 0;
    }
    int err = look_at(sampler, process, thread, thread->schedule.looked_tick);
    return err == -EAGAIN ? 0 : err;
}

static void ask_for_registers(struct sampled_process *process, struct thread *thread,
                              const struct sleep_place *asleep)
{
    if (thread_is_in_a_stop(thread))
        return;
    threads_forget_sleep(&process->threads, thread);
    thread->wants.asleep = *asleep;
    look_ask_for_stop(process, thread);
}

static int serve(struct sampler *sampler, struct request *request)
{
    if (serve_other(sampler, request))
        return 0;
    struct sampled_process *process =
        numbers_find(&sampler->numbers, request->thread, request->tid);
    struct thread *thread = sampled_process_thread(process, request->tid);
    if (!thread)
        return 0; /* the thread has gone meanwhile */
    if (request->kind == REQUEST_STACK || request->kind == REQUEST_STACK_ANEW) {
        thread->wants.stack_limit = request->stack_limit;
        thread->wants.other_stack = request->other_stack;
        process->leaves_stack |= request->other_stack.address != 0;
    }
    if (request->serial)
        thread->wants.served = request->serial;
    thread->wants.unasked = 0;
    switch (request->kind) {
    case REQUEST_STACK_ANEW:
    case REQUEST_ANEW:
        return observe_anew(sampler, process, thread);
    case REQUEST_LATER:
        threads_forget_sleep(&process->threads, thread);
        return 0;
    case REQUEST_OWNER:
        thread->call.is_wanted = thread->call.target.kind != CALL_OTHER;
        return 0;
    case REQUEST_NO_OWNER:
        thread->call.is_wanted = false;
        return 0;
    case REQUEST_REGISTERS:
        switch_events_need_registers(sampler, thread);
        return 0;
    case REQUEST_FRAME_POINTER:
        ask_for_registers(process, thread, &request->asleep);
        return 0;
    default:
        return 0;
    }
}

int requests_serve(struct sampler *sampler)
{
    struct request request;
    int err = 0;
    sampler->heard = channel_heard(sampler->channel);
    while (!err && channel_next_request(sampler->channel, &request))
        err = serve(sampler, &request);
    return err;
}

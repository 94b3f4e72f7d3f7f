#include "sampler/subject.h"
#include "sampler/python.h"

struct subject subject_of(const struct sampler *sampler, const struct sampled_process *process,
                          const struct thread *thread)
{
    return (struct subject){
        .thread = thread->number,
        .process_id = process->process.pid,
        .tid = thread->tid,
        .proc_fd = process->process.proc_fd,
        .stack_areas = &process->areas,
        .stack_limit = thread->wants.stack_limit,
        .other_stack = thread->wants.other_stack,
        .leaves_stack = process->leaves_stack,
        .wants_kernel_stack = sampler->options->has_kernel_stacks,
        .wants_copy = thread->wants.copy,
        .waits_for_cpu = thread->switch_events.waits,
        .python = python_of(process, thread),
        .context = process->context.kind == CONTEXT_NOWHERE ? NULL : &process->context,
        .call = thread->call.is_wanted ? thread->call.target : (struct call_target){0},
        .awake_ns = sampler->clock.awake_ns,
    };
}

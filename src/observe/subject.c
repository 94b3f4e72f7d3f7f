#include "observe/subject.h"

void subject_copy(const struct subject *subject, struct snapshot *snapshot)
{
    snapshot_copy_stacks(snapshot, subject->tid, subject->stack_areas, subject->stack_limit,
                         &subject->other_stack);
    snapshot_copy_python(snapshot, &subject->python, subject->tid, subject->stack_areas);
}

void subject_read_context(const struct subject *subject, uint64_t *thread_pointer,
                          struct snapshot *snapshot)
{
    struct thread_context *context = subject->context ? snapshot_context(snapshot) : NULL;
    const struct context_thread thread = {subject->tid, subject->stack_areas, thread_pointer};
    if (context)
        thread_context_read(&thread, subject->context, context);
}

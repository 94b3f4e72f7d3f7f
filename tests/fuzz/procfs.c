/* The other files in /proc: threads may have any name. */
#include "proc/kernel_stack.h"
#include "proc/thread_state.h"
#include "observe/watch.h"
#include "input.h"
#include "proc/activity.h"
#include "proc/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    char *text = copy_of(input, 1);
    struct proc_stat stat;
    struct activity activity;
    struct registers registers = {0};
    long number;
    procfs_parse_stat(text, &stat);
    procfs_status_number(text, "TracerPid:");
    thread_state_of_stat(text);
    if (activity_parse(text, &activity))
        must(activity.switches != 0);
    activity_parse_status(text, &activity);
    if (watch_parse_syscall(text, &registers, &number))
        must(number >= -1 && registers_has(&registers, architecture.pc));
    kernel_stack_parse(text); /* in place */
    must(strlen(text) <= bytes);
    free(text);
    return 0;
}

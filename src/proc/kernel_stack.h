/* The kernel functions that a sleeping thread is in, from /proc/PID/task/TID/stack. */
#ifndef FGPROF_PROC_KERNEL_STACK_H
#define FGPROF_PROC_KERNEL_STACK_H

/* The kernel shows at most 64 of them (MAX_STACK_TRACE_DEPTH in its fs/proc/base.c). */
#define KERNEL_STACK_BYTES 8192

/* Whether the kernel stacks of threads can be read: 0 if so, -EACCES if that needs CAP_SYS_ADMIN,
 * or another negative errno, such as -ENOENT if the kernel was built without them. */
int kernel_stack_check(void);

/* Turns the lines of a stack file, leaf first, such as
 *   [<0>] futex_wait_queue+0x60/0x90
 *   [<ffffffff8112a2b3>] ext4_file_read_iter+0x4d/0x120 [ext4]
 * into a list of names, in place, each followed by a line feed:
 * "futex_wait_queue\next4_file_read_iter\n". A frame without a name becomes "[unknown]"; any other
 * line is skipped. */
void kernel_stack_parse(char *text);

#endif

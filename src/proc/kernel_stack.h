/* The kernel's functions that a sleeping thread is in, by /proc/PID/task/TID/stack. */
#ifndef FGPROF_PROC_KERNEL_STACK_H
#define FGPROF_PROC_KERNEL_STACK_H

/* The kernel shows no more than 64 of them (MAX_STACK_TRACE_DEPTH in its fs/proc/base.c). */
#define KERNEL_STACK_BYTES 8192

/* Whether the stacks of threads can be read: 0; -EACCES, where that needs CAP_SYS_ADMIN; or another
 * negative errno, -ENOENT where the kernel was built without them. */
int kernel_stack_check(void);

/* Makes a list of names, in place, of the lines of a stack file, leaf first, as
 *   [<0>] futex_wait_queue+0x60/0x90
 *   [<ffffffff8112a2b3>] ext4_file_read_iter+0x4d/0x120 [ext4]
 * one a line, and each with a line feed behind it: "futex_wait_queue\next4_file_read_iter\n". A
 * place without a name is "[unknown]", and what is no such line is left out. */
void kernel_stack_parse(char *text);

#endif

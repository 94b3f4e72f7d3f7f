/* The parts of the kernel's types that the programs need. The loader finds the offset of each field
 * in the running kernel's BTF (CO-RE), so the order does not matter. */
#ifndef FGPROF_OBSERVE_BPF_KERNEL_TYPES_H
#define FGPROF_OBSERVE_BPF_KERNEL_TYPES_H

#include <linux/types.h>

#define RELOCATED __attribute__((preserve_access_index))

struct mm_struct;
struct pid_namespace;

struct upid {
    int nr;
    struct pid_namespace *ns;
} RELOCATED;

struct pid {
    unsigned int level; /* of the innermost namespace in which it is visible */
    struct upid numbers[1];
} RELOCATED;

struct thread_info {
    __u32 cpu; /* since 5.16 */
} RELOCATED;

struct sched_entity {
    __u64 sum_exec_runtime; /* how long it has run, in ns */
} RELOCATED;

struct sched_info {
    unsigned long pcount; /* how often it got a CPU; only with CONFIG_SCHED_INFO */
} RELOCATED;

struct task_struct {
    struct thread_info thread_info;
    unsigned int cpu; /* before 5.16 */
    unsigned int __state;
    unsigned int flags;
    int pid, tgid; /* in the first PID namespace */
    __u64 start_boottime;
    struct sched_entity se;
    struct sched_info sched_info;
    char comm[16];
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct pid *thread_pid;
} RELOCATED;

/* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD 0x00200000

#endif

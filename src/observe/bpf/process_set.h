/* A set of process ids, one bit each, which BPF programs read while their loader changes it. */
#ifndef FGPROF_OBSERVE_BPF_PROCESS_SET_H
#define FGPROF_OBSERVE_BPF_PROCESS_SET_H

#include <linux/types.h>
#include <stdbool.h>

#define PROCESS_IDS (1u << 22) /* PID_MAX_LIMIT in the kernel's linux/threads.h: ids are below */

struct process_set {
    __u64 words[PROCESS_IDS / 64];
};

static inline bool process_set_has(const struct process_set *set, __u32 process_id)
{
    return set->words[process_id % PROCESS_IDS / 64] >> process_id % 64 & 1;
}

/* For the loader. Returns false if there can be no such process. */
static inline bool process_set_add(struct process_set *set, int process_id)
{
    if (process_id < 0 || (__u32)process_id >= PROCESS_IDS)
        return false;
    __atomic_fetch_or(&set->words[process_id / 64], 1ull << process_id % 64, __ATOMIC_SEQ_CST);
    return true;
}

static inline void process_set_remove(struct process_set *set, int process_id)
{
    if (process_id < 0 || (__u32)process_id >= PROCESS_IDS)
        return;
    __atomic_fetch_and(&set->words[process_id / 64], ~(1ull << process_id % 64), __ATOMIC_SEQ_CST);
}

#endif

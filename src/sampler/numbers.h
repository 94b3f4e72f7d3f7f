/* Numbers for the threads of a recording, so that other parts can index tables by them: small
 * numbers, reused once their thread is gone. */
#ifndef FGPROF_SAMPLER_NUMBERS_H
#define FGPROF_SAMPLER_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sampled_process;

struct numbered_thread {
    struct sampled_process *process; /* NULL: the number is free */
    pid_t tid;
};

/* All zeros at first. */
struct numbers {
    struct numbered_thread *items;
    size_t count, capacity;
    uint32_t *free;
    size_t free_count, free_capacity;
};

/* Returns 0 or -ENOMEM. */
int numbers_give(struct numbers *numbers, struct sampled_process *process, pid_t tid,
                 uint32_t *ret_number);
/* The thread is gone, but its number is still in use: it is not reused for now. */
void numbers_withhold(struct numbers *numbers, uint32_t number);
void numbers_take_back(struct numbers *numbers, uint32_t number);

/* The process of the thread with this number if the thread still has this id, else NULL. */
struct sampled_process *numbers_find(const struct numbers *numbers, uint32_t number, pid_t tid);
void numbers_free(struct numbers *numbers);

#endif

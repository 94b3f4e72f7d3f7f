/* Which threads are sampled: those whose name matches a regular expression, or whose id was given;
 * all if neither was asked for. */
#ifndef FGPROF_SAMPLER_THREAD_CHOICE_H
#define FGPROF_SAMPLER_THREAD_CHOICE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zeros at first, which selects all threads. */
struct thread_choice {
    char *name_regex; /* extended (regex(7)); NULL: none */
    regex_t compiled; /* name_regex compiled */
    pid_t *tids;
    size_t tid_count;
};

/* Returns 0, -ENOMEM, or -EINVAL if it is not a regular expression. On error nothing has
 * changed. */
int thread_choice_set_name(struct thread_choice *choice, const char *name_regex);

/* Returns 0 or -ENOMEM. */
int thread_choice_add_tid(struct thread_choice *choice, pid_t tid);

/* Returns 0 or -ENOMEM. */
int thread_choice_copy(const struct thread_choice *choice, struct thread_choice *ret_copy);

void thread_choice_free(struct thread_choice *choice);

static inline bool thread_choice_is_all(const struct thread_choice *choice)
{
    return !choice->name_regex && !choice->tid_count;
}

bool thread_choice_has(const struct thread_choice *choice, pid_t tid, const char *name);

#endif

/* Which threads are sampled: those whose name a regular expression is found in, or whose id was
 * given; all, where neither was asked for. */
#ifndef FGPROF_SAMPLER_CHOICE_H
#define FGPROF_SAMPLER_CHOICE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Zeroed at first: all are wanted. */
struct thread_choice {
    char *name_regex; /* extended (regex(7)); NULL: none */
    regex_t compiled; /* the same */
    pid_t *tids;
    size_t tid_count;
};

/* Returns 0, -ENOMEM, or -EINVAL where it is no regular expression; nothing has changed then. */
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

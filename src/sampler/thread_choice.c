#include "sampler/thread_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int thread_choice_set_name(struct thread_choice *choice, const char *name_regex)
{
    regex_t compiled;
    char *copy = strdup(name_regex);
    if (!copy)
        return -ENOMEM;
    int failure = regcomp(&compiled, name_regex, REG_EXTENDED | REG_NOSUB);
    if (failure) {
        free(copy);
        return failure == REG_ESPACE ? -ENOMEM : -EINVAL;
    }
    if (choice->name_regex)
        regfree(&choice->compiled);
    free(choice->name_regex);
    choice->name_regex = copy;
    choice->compiled = compiled;
    return 0;
}

int thread_choice_add_tid(struct thread_choice *choice, pid_t tid)
{
    pid_t *grown = reallocarray(choice->tids, choice->tid_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    choice->tids = grown;
    choice->tids[choice->tid_count++] = tid;
    return 0;
}

int thread_choice_copy(const struct thread_choice *choice, struct thread_choice *ret_copy)
{
    struct thread_choice copy = {0};
    int err = choice->name_regex ? thread_choice_set_name(&copy, choice->name_regex) : 0;
    for (size_t i = 0; i < choice->tid_count && !err; i++)
        err = thread_choice_add_tid(&copy, choice->tids[i]);
    if (err)
        thread_choice_free(&copy);
    else
        *ret_copy = copy;
    return err;
}

void thread_choice_free(struct thread_choice *choice)
{
    if (choice->name_regex)
        regfree(&choice->compiled);
    free(choice->name_regex);
    free(choice->tids);
    *choice = (struct thread_choice){0};
}

bool thread_choice_has(const struct thread_choice *choice, pid_t tid, const char *name)
{
    if (thread_choice_is_all(choice))
        return true;
    for (size_t i = 0; i < choice->tid_count; i++) {
        if (choice->tids[i] == tid)
            return true;
    }
    return choice->name_regex && regexec(&choice->compiled, name, 0, NULL, 0) == 0;
}

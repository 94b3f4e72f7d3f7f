/* A function of the agent's that stands in place of another of the same name, in all files that
 * call that. */
#ifndef FGPROF_AGENT_HOOK_H
#define FGPROF_AGENT_HOOK_H

#include <stddef.h>

struct hook {
    const char *name;
    void *function;
    const void *next; /* where the function that it stands before is kept: a pointer to one */
};

struct hooks {
    const struct hook *rows;
    size_t count;
};

#define HOOKS(rows)                                                                                \
    {                                                                                              \
        rows, sizeof(rows) / sizeof *(rows)                                                        \
    }

#endif

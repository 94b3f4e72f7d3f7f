/* An agent's function that replaces another of the same name, in all files that call that. */
#ifndef FGPROF_AGENT_HOOK_H
#define FGPROF_AGENT_HOOK_H

#include "agent/provider.h"

#include <stddef.h>
#include <stdint.h>

/* For the few functions that the program may call. All others are hidden. */
#define EXPORT __attribute__((visibility("default")))

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

/* Those of malloc.c, mmap.c and threads.c, which start.c puts in place. */
extern const struct hooks malloc_hooks, mmap_hooks, thread_hooks;

/* Mappings that code of this range makes are not counted. */
void mmap_leave_out(uint64_t start, uint64_t limit);

/* Hooks the other functions of the library that provides malloc: C++'s operator new and delete if
 * they do not go through its malloc, and functions of its own. `handle` comes from dlopen. */
void operators_patch(const struct provider *provider, void *handle);

/* The program may end by executing another one, as scripts that start a server do: the agent then
 * moves to the new program. From now on, whatever this process executes has this file in
 * LD_PRELOAD, before other entries. Programs that its children execute do not. */
void exec_go_along(const char *path);

#endif

/* Names the kernel's functions in the call chains of running threads, as /proc/PID/task/TID/stack
 * names those of sleeping ones, so that both look alike. The kernel's symbols are read at the first
 * chain, and again, but not often, when an address is in none of them: a module may have been
 * loaded. */
#ifndef FGPROF_WORKER_KERNEL_NAMES_H
#define FGPROF_WORKER_KERNEL_NAMES_H

#include "base/strings.h"
#include "base/throttle.h"
#include "observe/snapshot.h"
#include "proc/kallsyms.h"
#include "proc/kernel_stack.h"

/* Starts zeroed: */
struct kernel_names {
    struct kallsyms kallsyms;
    struct throttle reading;
    size_t text_bytes; /* of distinct stacks */
};

/* The memory for distinct stacks of running threads. Further ones are "[unknown]". */
#define KERNEL_NAMES_BYTES_MAX (16u << 20)

/* Writes the functions of the chain, each followed by a line feed. Returns 0 or -ENOMEM. */
int kernel_names_write(struct kernel_names *names, const struct kernel_chain *chain,
                       char ret_text[KERNEL_STACK_BYTES]);

/* Interns the functions of the chain, in the form of kernel_stack_parse: "" for an empty one. A
 * chain that is cut, or whose text is too long, ends with "[unknown]". Returns 0 or -ENOMEM. */
int kernel_names_intern(struct kernel_names *names, const struct kernel_chain *chain,
                        struct strings *strings, uint32_t *ret_stack);

/* The same for a chain that begins in the scheduler, where a thread went to sleep: as the kernel
 * itself shows it, without the scheduler's functions and those that they call. */
int kernel_names_intern_sleep(struct kernel_names *names, const struct kernel_chain *chain,
                              struct strings *strings, uint32_t *ret_stack);

/* Interns such a text. Returns 0 or -ENOMEM. */
int kernel_names_intern_text(struct kernel_names *names, struct strings *strings,
                             const char *functions, uint32_t *ret_stack);

/* The strings now have only this many bytes of text. */
void kernel_names_limit(struct kernel_names *names, size_t text_bytes);

void kernel_names_free(struct kernel_names *names);

#endif

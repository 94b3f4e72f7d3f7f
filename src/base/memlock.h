/* The limit of locked memory (RLIMIT_MEMLOCK), 64 KiB by default. Kernels before Linux 5.11 charge
 * the memory of BPF programs to it; later ones charge the memory cgroup. */
#ifndef FGPROF_BASE_MEMLOCK_H
#define FGPROF_BASE_MEMLOCK_H

#include <stdbool.h>

/* Raises the limit as far as is permitted, if this kernel needs it and it is not raised yet. Going
 * above the hard limit takes CAP_SYS_RESOURCE. Thread-safe. Returns false if this kernel does not
 * need it. */
bool memlock_raise(void);

/* Restores the original limit, for a process that is about to be started. Returns false if it was
 * not raised. */
bool memlock_restore(void);

#endif

/* The limit of locked memory (RLIMIT_MEMLOCK), to which kernels before Linux 5.11 charge what BPF
 * programs use; it is 64 KiB by default. Later ones charge that to the memory cgroup. */
#ifndef FGPROF_BASE_MEMLOCK_H
#define FGPROF_BASE_MEMLOCK_H

#include <stdbool.h>

/* Raises the limit as far as is permitted, if this kernel needs it and it is not raised yet. Above
 * the hard limit, that takes CAP_SYS_RESOURCE. Other threads may call this at the same time.
 * Returns false if this kernel does not need it. */
bool memlock_raise(void);

/* Sets the limit to what it was, for a process that is about to be started. Returns false if it was
 * not raised. */
bool memlock_restore(void);

#endif

/* Threads that wait for each other in a cycle. */
#ifndef FGPROF_WAIT_DEADLOCK_H
#define FGPROF_WAIT_DEADLOCK_H

#include <stddef.h>
#include <stdint.h>

#define WAITS_FOR_NOBODY SIZE_MAX

/* waits_for[i] is the number of the thread that number i waits for, or WAITS_FOR_NOBODY: each waits
 * for at most one. Sets cycles[i] to the number of the cycle that i is in, from 1, or to 0 if it
 * is in none, even if it waits for one that is. Returns how many cycles there are. */
size_t deadlocks_find(const size_t *waits_for, size_t count, size_t *cycles);

#endif

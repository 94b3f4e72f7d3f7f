/* The thread pointer: where a thread's C library keeps the thread's own data, and from which its
 * TLS variables are found. It stays the same for the thread's life. The build compiles one of
 * x86_64/thread_pointer.c and aarch64/thread_pointer.c. */
#ifndef FGPROF_PROC_THREAD_POINTER_H
#define FGPROF_PROC_THREAD_POINTER_H

#include "proc/stack_areas.h"

#include <stdint.h>
#include <sys/types.h>

/* Finds the pointer without stopping the thread; `areas` is as for memory_read. Returns 0; -ENOTSUP
 * if the thread's C library does not show it, as musl's does not; or another negative errno. */
int thread_pointer_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_pointer);

/* The id, in the process's PID namespace, of the thread whose pthread_self(3) is `pthread`, read
 * from glibc's struct pthread; 0 if there is no such struct, or the thread has ended. `tid` is a
 * live thread of the process. */
pid_t pthread_tid(uint64_t pthread, pid_t tid, const struct stack_areas *areas);

/* Where the thread keeps the address of its table of TLS blocks (dtv), and the size of that table's
 * rows: row N, from 1 on, begins with the address of the thread's block of module N. */
uint64_t thread_pointer_dtv(uint64_t pointer);
#define THREAD_DTV_ROW_BYTES 16 /* dtv_t, in glibc's sysdeps/generic/dl-dtv.h */

#endif

#include "proc/thread_pointer.h"

#include <errno.h>

/* struct pthread lies before the thread pointer there, and has no address of itself by which it
 * could be told. */
int thread_pointer_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_pointer)
{
    (void)tid;
    (void)areas;
    (void)ret_pointer;
    return -ENOTSUP;
}

/* tcbhead_t begins with the dtv (glibc's sysdeps/aarch64/nptl/tls.h). */
uint64_t thread_pointer_dtv(uint64_t pointer)
{
    return pointer;
}

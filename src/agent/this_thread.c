#include "agent/this_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

_Thread_local __attribute__((tls_model("initial-exec"))) struct this_thread this_thread;

uint32_t this_thread_tid(void)
{
    if (!this_thread.tid)
        this_thread.tid = (uint32_t)syscall(SYS_gettid);
    return this_thread.tid;
}

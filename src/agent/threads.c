/* The functions that make threads, in place of libc's: for AGENT_WANTS_THREADS. */
#include "agent/hook.h"
#include "agent/capture.h"
#include "agent/next.h"
#include "agent/process.h"
#include "agent/ring.h"
#include "agent/this_thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How far behind a thread's pthread_t its list of robust mutexes is: the same for all. */
static uint64_t distance_to_list(void)
{
    static _Atomic uint64_t known;
    uint64_t distance = atomic_load_explicit(&known, memory_order_relaxed);
    struct robust_list_head *list = NULL;
    size_t bytes;
    if (!distance && syscall(SYS_get_robust_list, 0, &list, &bytes) == 0 && list) {
        distance = (uint64_t)(uintptr_t)list - (uint64_t)(uintptr_t)pthread_self();
        atomic_store_explicit(&known, distance, memory_order_relaxed);
    }
    return distance;
}

static bool are_wanted(const struct agent_header *header)
{
    return header &&
           atomic_load_explicit(&header->wanted, memory_order_relaxed) & AGENT_WANTS_THREADS;
}

/* The reported stack begins here: the reader leaves out the agent's frames. */
static __attribute__((noinline)) void tell_made(struct agent_header *header, pthread_t thread)
{
    struct capture capture;
    struct ring_place place;
    bool is_cut;
    capture_begin(&capture);
    if (!ring_reserve(header, AGENT_THREAD, capture_bytes_max(&capture), &place))
        return;
    place.record->tid = this_thread_tid();
    place.record->object = (uint64_t)thread + distance_to_list();
    place.record->at_ns = ring_now_ns();
    place.record->stack_bytes = capture_copy(&capture, place.record->registers, &is_cut);
    place.record->is_cut = is_cut;
    ring_commit(&place);
}

/* The thread runs already, and may have freed the memory that `from` points to. Does not change
 * errno. */
static void made(const void *from)
{
    struct agent_header *header = atomic_load(&process->header);
    int error = errno;
    uint64_t thread;
    if (!are_wanted(header))
        return;
    if (capture_read_word((uintptr_t)from, &thread))
        tell_made(header, (pthread_t)thread);
    else
        ring_count_lost(header, AGENT_THREAD);
    errno = error;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    int err = next.pthread_create(thread, attributes, start, argument);
    if (!err)
        made(thread);
    return err;
}

/* libc's own function calls the other one directly. */
EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    int result = next.thrd_create(thread, start, argument);
    if (result == thrd_success)
        made(thread);
    return result;
}

static const struct hook rows[] = {
    {"pthread_create", (void *)pthread_create, &next.pthread_create},
    {"thrd_create", (void *)thrd_create, &next.thrd_create},
};
const struct hooks thread_hooks = HOOKS(rows);

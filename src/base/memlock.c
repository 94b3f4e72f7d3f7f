#include "base/memlock.h"
#include "base/kernel_version.h"

#include <pthread.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rlimit before;
static bool is_raised;

static bool raise_to(rlim_t bytes, rlim_t most_bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = most_bytes};
    return !setrlimit(RLIMIT_MEMLOCK, &limit);
}

bool memlock_raise(void)
{
    if (!kernel_version_is_before(kernel_version_read(), 5, 11))
        return false;
    pthread_mutex_lock(&mutex);
    if (!is_raised && !getrlimit(RLIMIT_MEMLOCK, &before))
        is_raised =
            raise_to(RLIM_INFINITY, RLIM_INFINITY) || raise_to(before.rlim_max, before.rlim_max);
    pthread_mutex_unlock(&mutex);
    return true;
}

bool memlock_restore(void)
{
    pthread_mutex_lock(&mutex);
    bool was_raised = is_raised && raise_to(before.rlim_cur, before.rlim_max);
    is_raised = is_raised && !was_raised;
    pthread_mutex_unlock(&mutex);
    return was_raised;
}

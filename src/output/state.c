#include "output/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[THREAD_STATE_COUNT] = {
    [THREAD_UNKNOWN] = "unknown",
    [THREAD_RUNNING] = "running",
    [THREAD_RUNNABLE] = "runnable",
    [THREAD_SLEEPING] = "sleeping",
    [THREAD_UNINTERRUPTIBLE] = "uninterruptible",
    [THREAD_STOPPED] = "stopped",
};

const char *state_name(uint32_t state)
{
    return names[state];
}

/* Only locks and threads are named: connections differ in each run, so that the call says more. */
static bool is_named(const struct profile_wait *wait, const char *call)
{
    return wait && strcmp(call, "futex") == 0;
}

/* "mutex g_lock", "mutex in net::Connection". Addresses, which differ in each run, are left out. */
static void append_resource(struct buffer *buffer, const char *resource)
{
    const char *address = NULL;
    for (const char *at = resource; (at = strstr(at, " 0x")); at++)
        address = at;
    char *name = address ? strndup(resource, (size_t)(address - resource)) : strdup(resource);
    if (name)
        name_append(buffer, name);
    else
        buffer->error = -ENOMEM;
    free(name);
}

void state_append_frame(struct buffer *buffer, const struct fgprof_profile *profile,
                        const struct profile_sample *sample)
{
    const char *call = strings_get(&profile->strings, sample->syscall_name);
    const char *channel = strings_get(&profile->strings, sample->wait_channel);
    const struct profile_wait *wait = sample_wait(profile, sample);
    buffer_puts(buffer, "[");
    if (sample->state == THREAD_SLEEPING && is_named(wait, call)) {
        append_resource(buffer, strings_get(&profile->strings, wait->resource));
    } else if (sample->state == THREAD_SLEEPING && *call) {
        name_append(buffer, call);
    } else {
        buffer_puts(buffer, state_name(sample->state));
        if (sample->state == THREAD_UNINTERRUPTIBLE && (*channel || *call)) {
            buffer_puts(buffer, ": ");
            name_append(buffer, *channel ? channel : call);
        }
    }
    buffer_puts(buffer, "]");
}

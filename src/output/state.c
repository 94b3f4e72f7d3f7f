#include "output/state.h"

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

void state_append_frame(struct text_buffer *buffer, const struct fgprof_profile *profile,
                        const struct profile_sample *sample)
{
    const char *call = strings_get(&profile->strings, sample->syscall_name);
    const char *channel = strings_get(&profile->strings, sample->wait_channel);
    text_append(buffer, "[");
    if (sample->state == THREAD_SLEEPING && *call) {
        text_append_name(buffer, call);
    } else {
        text_append(buffer, state_name(sample->state));
        if (sample->state == THREAD_UNINTERRUPTIBLE && (*channel || *call)) {
            text_append(buffer, ": ");
            text_append_name(buffer, *channel ? channel : call);
        }
    }
    text_append(buffer, "]");
}

#include "wait/call.h"

#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* Calls that may sleep and whose first argument is a descriptor. */
static const char *const file_calls[] = {
    "accept",       "accept4",    "close",      "connect",         "copy_file_range", "epoll_pwait",
    "epoll_pwait2", "epoll_wait", "fallocate",  "fcntl",           "fdatasync",       "flock",
    "fsync",        "ftruncate",  "getdents64", "ioctl",           "io_uring_enter",  "pread64",
    "preadv",       "preadv2",    "pwrite64",   "pwritev",         "pwritev2",        "read",
    "readv",        "recvfrom",   "recvmmsg",   "recvmsg",         "sendfile",        "sendmmsg",
    "sendmsg",      "sendto",     "splice",     "sync_file_range", "syncfs",          "tee",
    "vmsplice",     "write",      "writev",
};

static bool takes_file(const char *name)
{
    for (size_t i = 0; i < sizeof file_calls / sizeof *file_calls; i++) {
        if (strcmp(name, file_calls[i]) == 0)
            return true;
    }
    return false;
}

/* futex(2): address, operation, value, timeout. FUTEX_CMD_MASK removes flags such as "private". */
static struct call_target futex_target(const uint64_t arguments[6])
{
    struct call_target target = {
        .kind = CALL_FUTEX, .address = arguments[0], .has_timeout = arguments[3] != 0};
    switch (arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        target.is_pi = true;
        return target;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        return target;
    default: /* does not wait for that word */
        return (struct call_target){0};
    }
}

/* An absolute time does not tell how long the sleep is. */
static struct call_target sleep_target(const uint64_t arguments[6])
{
    if (arguments[1] & TIMER_ABSTIME)
        return (struct call_target){0};
    return (struct call_target){.kind = CALL_SLEEP, .address = arguments[2]};
}

struct call_target call_target_of(const char *name, const uint64_t arguments[6])
{
    if (strcmp(name, "futex") == 0)
        return futex_target(arguments);
    if (takes_file(name))
        return (struct call_target){.kind = CALL_FILE, .fd = (int)arguments[0]};
    if (strcmp(name, "poll") == 0 || strcmp(name, "ppoll") == 0)
        return (struct call_target){
            .kind = CALL_POLL, .address = arguments[0], .count = arguments[1]};
    if (strcmp(name, "nanosleep") == 0)
        return (struct call_target){.kind = CALL_SLEEP, .address = arguments[0]};
    if (strcmp(name, "clock_nanosleep") == 0)
        return sleep_target(arguments);
    if (strcmp(name, "wait4") == 0)
        return (struct call_target){.kind = CALL_PROCESS, .process = (int32_t)arguments[0]};
    if (strcmp(name, "waitid") == 0)
        return (struct call_target){
            .kind = CALL_PROCESS,
            .process = arguments[0] == P_PID ? (int32_t)arguments[1] : -1,
        };
    return (struct call_target){0};
}

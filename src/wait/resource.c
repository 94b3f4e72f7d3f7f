#include "wait/resource.h"
#include "base/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[RESOURCE_KIND_COUNT] = {
    [RESOURCE_NOT_KNOWN] = "",
    [RESOURCE_FUTEX] = "futex",
    [RESOURCE_MUTEX] = "mutex",
    [RESOURCE_RWLOCK] = "read-write lock",
    [RESOURCE_CONDITION] = "condition variable",
    [RESOURCE_SEMAPHORE] = "semaphore",
    [RESOURCE_BARRIER] = "barrier",
    [RESOURCE_ONCE] = "one-time initialization",
    [RESOURCE_PARKING] = "parking place",
    [RESOURCE_CHANNEL] = "channel",
    [RESOURCE_WAIT_GROUP] = "wait group",
    [RESOURCE_GIL] = "GIL",
    [RESOURCE_THREAD] = "end of a thread",
    [RESOURCE_PROCESS] = "process",
    [RESOURCE_FILE_LOCK] = "file lock",
    [RESOURCE_PIPE] = "pipe",
    [RESOURCE_FIFO] = "FIFO",
    [RESOURCE_UNIX_SOCKET] = "unix socket",
    [RESOURCE_TCP_SOCKET] = "tcp socket",
    [RESOURCE_SOCKET] = "socket",
    [RESOURCE_FILE] = "file",
    [RESOURCE_POLL] = "several descriptors",
    [RESOURCE_SLEEP] = "sleep",
    [RESOURCE_SIGNAL] = "signal",
    [RESOURCE_SEMAPHORES] = "System V semaphores",
    [RESOURCE_MESSAGES] = "System V message queue",
    [RESOURCE_CPU] = "CPU",
};

const char *resource_kind_name(enum resource_kind kind)
{
    return kind_names[kind];
}

bool resource_is_lock(enum resource_kind kind)
{
    return kind >= RESOURCE_FUTEX && kind <= RESOURCE_GIL;
}

struct resource resource_of_link(const char *link, pid_t process_id, int fd)
{
    struct resource resource = {.kind = RESOURCE_FILE};
    if (sscanf(link, "pipe:[%" SCNu64 "]", &resource.key) == 1) {
        resource.kind = RESOURCE_PIPE;
    } else if (sscanf(link, "socket:[%" SCNu64 "]", &resource.key) == 1) {
        resource.kind = RESOURCE_SOCKET;
    } else if (*link == '/') {
        resource.key = hash_bytes(link, strlen(link), 0);
    } else {
        resource.process_id = process_id;
        resource.key = (uint64_t)(uint32_t)fd;
    }
    return resource;
}

void resource_name(const struct resource *resource, const char *link,
                   char ret_name[RESOURCE_NAME_BYTES])
{
    const char *kind = resource_kind_name(resource->kind);
    switch (resource->kind) {
    case RESOURCE_FUTEX:
    case RESOURCE_MUTEX:
    case RESOURCE_RWLOCK:
    case RESOURCE_CONDITION:
    case RESOURCE_SEMAPHORE:
    case RESOURCE_BARRIER:
    case RESOURCE_ONCE:
    case RESOURCE_PARKING:
    case RESOURCE_CHANNEL:
    case RESOURCE_WAIT_GROUP:
        snprintf(ret_name, RESOURCE_NAME_BYTES, "%s 0x%" PRIx64, kind, resource->key);
        return;
    case RESOURCE_THREAD:
        snprintf(ret_name, RESOURCE_NAME_BYTES, "thread %" PRIu64, resource->key);
        return;
    case RESOURCE_PROCESS:
        snprintf(ret_name, RESOURCE_NAME_BYTES, resource->process_id ? "any child" : "%s %" PRIu64,
                 kind, resource->key);
        return;
    case RESOURCE_SEMAPHORES:
    case RESOURCE_MESSAGES:
        snprintf(ret_name, RESOURCE_NAME_BYTES, "%s %" PRIu64, kind, resource->key);
        return;
    case RESOURCE_FILE_LOCK:
    case RESOURCE_FIFO:
        snprintf(ret_name, RESOURCE_NAME_BYTES, link ? "%s %s" : "%s", kind, link);
        return;
    default:
        snprintf(ret_name, RESOURCE_NAME_BYTES, "%s", link ? link : kind);
        return;
    }
}

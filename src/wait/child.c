#include "wait/child.h"
#include "wait/open_files.h"
#include "base/array.h"
#include "proc/process.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* The most threads whose children are read. */
#define THREADS_MAX 256
#define CHILDREN_MAX 1024

struct children {
    pid_t *pids;
    size_t count, capacity;
};

/* Adds the ids of a line like "15865 15870 " of /proc/PID/task/TID/children. Returns 0 or
 * -ENOMEM. */
static int add_children(struct children *children, FILE *file)
{
    int pid;
    while (children->count < CHILDREN_MAX && fscanf(file, "%d", &pid) == 1) {
        if (array_append(&children->pids, &children->count, &children->capacity, pid))
            return -ENOMEM;
    }
    return 0;
}

static int add_children_of(struct children *children, int proc_fd, pid_t tid)
{
    char path[48];
    snprintf(path, sizeof path, "task/%d/children", tid);
    FILE *file = procfs_open(proc_fd, path);
    if (!file)
        return -ENOENT;
    int err = add_children(children, file);
    fclose(file);
    return err;
}

/* The children of all threads: waits are for those of the process (wait4(2)). Returns 0 or a
 * negative errno if not all are known. */
static int list_children(int proc_fd, struct children *children)
{
    struct thread_list threads = {0};
    int err = process_list_threads_of(proc_fd, &threads, THREADS_MAX);
    if (!err && threads.is_partial)
        err = -E2BIG;
    for (size_t i = 0; i < threads.count && !err; i++)
        err = add_children_of(children, proc_fd, threads.tids[i]);
    if (!err && children->count == CHILDREN_MAX)
        err = -E2BIG;
    thread_list_free(&threads);
    return err;
}

/* The child that the waiting thread knows by this id, which belongs to the innermost of `level`
 * namespaces. */
static pid_t child_with_id(const struct children *children, int level, pid_t id)
{
    for (size_t i = 0; i < children->count; i++) {
        char path[32];
        pid_t ids[PID_NAMESPACES_MAX];
        snprintf(path, sizeof path, "/proc/%d/status", children->pids[i]);
        if (procfs_namespace_ids(AT_FDCWD, path, ids) >= level && ids[level - 1] == id)
            return children->pids[i];
    }
    return 0;
}

pid_t child_waited_for(int proc_fd, pid_t tid, const struct call_target *target)
{
    struct descriptor_info info;
    struct children children = {0};
    char path[32];
    pid_t ids[PID_NAMESPACES_MAX], found = 0;
    if (target->fd >= 0)
        return descriptor_info_read(proc_fd, target->fd, &info) ? 0 : info.process_id;
    snprintf(path, sizeof path, "task/%d/status", tid);
    int level = procfs_namespace_ids(proc_fd, path, ids);
    if (target->process > 0 && level <= 1)
        return target->process;
    int err = list_children(proc_fd, &children);
    if (!err && target->process > 0)
        found = child_with_id(&children, level, target->process);
    else if (!err && children.count == 1)
        found = children.pids[0];
    free(children.pids);
    return found;
}

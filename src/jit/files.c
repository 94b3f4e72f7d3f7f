#include "jit/files.h"
#include "base/clock.h"
#include "base/regular_file.h"
#include "proc/mounts.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Allows for the kernel's file clock, and for a start that is known only in ticks. */
#define CLOCK_SLACK_S 1

/* "Uid:\treal\teffective\tsaved\tfile" (proc(5)). */
bool jit_owner_parse(const char *status, uid_t *ret_user, pid_t *ret_pid)
{
    const char *user = strstr(status, "\nUid:");
    pid_t ids[PID_NAMESPACES_MAX];
    unsigned effective, count = procfs_parse_namespace_ids(status, ids);
    if (!count || !user || sscanf(user, "\nUid: %*u %u", &effective) != 1)
        return false;
    *ret_user = effective;
    *ret_pid = ids[count - 1];
    return true;
}

static int began_s(int proc_fd, int64_t *ret_began_s)
{
    struct proc_stat stat;
    int err = procfs_stat(proc_fd, "stat", &stat);
    if (err)
        return err;
    uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t began_ns = wall_ns() - boot_ns() + stat.start_tick * tick_ns;
    *ret_began_s = (int64_t)(began_ns / NS_PER_S);
    return 0;
}

int jit_owner_open(int proc_fd, pid_t tid, struct jit_owner *ret_owner)
{
    char status[16384], path[48];
    struct jit_owner owner;
    ssize_t length = procfs_read(proc_fd, "status", status, sizeof status);
    if (length < 0)
        return (int)length;
    if (!jit_owner_parse(status, &owner.user, &owner.pid))
        return -EINVAL;
    int err = began_s(proc_fd, &owner.began_s);
    if (err)
        return err;
    snprintf(path, sizeof path, "task/%d/root", tid);
    owner.root_fd = openat(proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (owner.root_fd < 0)
        return -errno;
    owner.has_slow_maps = mounts_may_hang_at(proc_fd, "/tmp");
    *ret_owner = owner;
    return 0;
}

void jit_owner_close(struct jit_owner *owner)
{
    if (owner->root_fd >= 0)
        close(owner->root_fd);
    owner->root_fd = -1;
}

bool jit_owner_believes(const struct jit_owner *owner, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_uid == owner->user || status.st_uid == 0) &&
           status.st_mtim.tv_sec + CLOCK_SLACK_S >= owner->began_s;
}

/* A link in the path, for example /tmp itself, is followed below the process's own root. A link in
 * place of the map is not followed: O_PATH opens the link itself then, which is not a regular file.
 */
int jit_owner_open_map(const struct jit_owner *owner)
{
    char path[48];
    if (owner->has_slow_maps)
        return -EACCES;
    snprintf(path, sizeof path, "tmp/perf-%d.map", owner->pid);
    int fd = open_regular_file_in_root(owner->root_fd, path, false);
    if (fd >= 0 && !jit_owner_believes(owner, fd)) {
        close(fd);
        fd = -EACCES;
    }
    return fd == -ENOEXEC ? -EACCES : fd;
}

bool jit_owner_names_dump(const struct jit_owner *owner, const char *path)
{
    char name[32];
    snprintf(name, sizeof name, "jit-%d.dump", owner->pid);
    return strcmp(basename(path), name) == 0;
}

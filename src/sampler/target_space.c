#include "sampler/target_space.h"
#include "sampler/target_jit.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A program that has just begun is still mapping its libraries: what it is found in may have come
 * since its maps were read in this round, and it may be looked at several times. */
#define SPARE_READINGS 8

void target_space_close(struct target *target)
{
    if (target->mem_fd >= 0)
        close(target->mem_fd);
    if (target->maps_fd >= 0)
        close(target->maps_fd);
    target->mem_fd = target->maps_fd = -1;
    /* It may have written names in the end. */
    if (target_jit_finish(target))
        target->recording->error = -ENOMEM;
    if (target->space) {
        unwinder_drop(target->recording->unwinder, target->space);
        space_retire(target->space);
    }
    target->space = NULL;
}

/* An open /proc/PID/mem holds on to the memory that the process had then. Once that is gone, by
 * exec or exit, a read says end of file; before, address 0 gives EIO (mem_rw in the kernel's
 * fs/proc/base.c). That of a parent is not gone when the child executes a program. */
bool target_space_is_current(const struct target *target)
{
    char byte;
    return target->mem_fd >= 0 && pread(target->mem_fd, &byte, 1, 0) != 0 &&
           (!target->is_in_parents_memory || process_shares_memory(&target->process));
}

static int open_task_file(const struct target *target, pid_t tid, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "task/%d/%s", tid, name);
    int fd = openat(target->process.proc_fd, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_space(struct target *target)
{
    /* By a live thread: an exited leader shows neither memory nor maps. */
    pid_t tid = process_live_thread(&target->process);
    if (!tid)
        return -ESRCH;
    /* Before it is opened: one that has its own memory keeps it. */
    target->is_in_parents_memory = process_shares_memory(&target->process) != 0;
    target->mem_fd = open_task_file(target, tid, "mem");
    if (target->mem_fd < 0)
        return target->mem_fd;
    target->maps_fd = open_task_file(target, tid, "maps");
    if (target->maps_fd < 0)
        return target->maps_fd;
    struct recording *recording = target->recording;
    target->maps_read_ns = target->areas_read_ns = monotonic_ns();
    target->spare_readings = SPARE_READINGS;
    int err = stack_areas_read(&target->stack_areas, target->maps_fd);
    if (err)
        return err;
    err = spaces_add(&recording->spaces, &recording->modules, target->process.pid,
                     target->process.proc_fd, tid, target->maps_fd, &target->space);
    /* Both files are of the same program only where the first is current after the second was
     * read. */
    if (!err && !target_space_is_current(target))
        err = -ESRCH;
    return err;
}

int target_space_update(struct target *target)
{
    if (target->space && target_space_is_current(target))
        return 0;
    target_space_close(target);
    /* Where the other program's threads slept says nothing of this one's. */
    sites_free(&target->sites);
    int err = open_space(target);
    if (err)
        target_space_close(target);
    /* Another program, another name. */
    for (size_t i = 0; i < target->threads.count; i++) {
        target->threads.items[i].samples_taken = 0;
        thread_forget_sleep(&target->threads.items[i]);
    }
    return err;
}

bool target_space_refresh_areas(struct target *target)
{
    if (target->areas_read_ns >= target->round_ns)
        return false;
    target->areas_read_ns = monotonic_ns();
    stack_areas_read(&target->stack_areas, target->maps_fd);
    return true;
}

int target_space_refresh(struct target *target, bool *ret_changed)
{
    *ret_changed = false;
    if (target->maps_read_ns >= target->round_ns) {
        if (!target->spare_readings)
            return 0;
        target->spare_readings--;
    }
    target->maps_read_ns = monotonic_ns();
    struct recording *recording = target->recording;
    int err = spaces_refresh(&recording->spaces, &recording->modules, target->process.proc_fd,
                             process_live_thread(&target->process), target->maps_fd, &target->space,
                             ret_changed);
    target->maps_reading_ns = monotonic_ns() - target->maps_read_ns;
    return err == -ENOMEM ? err : 0;
}

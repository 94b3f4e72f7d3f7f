#include "observe/watch.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_BYTES 8192 /* the wanted lines are at its end */

ssize_t watch_read(const struct watch_place *place, struct thread_file *file, const char *name,
                   char *buffer, size_t buffer_bytes)
{
    return thread_file_read(file, place->proc_fd, place->tid, name, place->keep_fds_below, buffer,
                            buffer_bytes);
}

/* A thread that is gone has no files, and reading a file that is still open shows that too. */
static int error_of(ssize_t length)
{
    return length == 0 || length == -ENOENT ? -ESRCH : (int)length;
}

int watch_read_activity(const struct watch_place *place, struct watch *watch,
                        struct activity *ret_activity)
{
    char line[128], status[STATUS_BYTES];
    if (watch_read(place, &watch->schedstat, "schedstat", line, sizeof line) > 0 &&
        activity_parse(line, ret_activity))
        return 0;
    ssize_t length = watch_read(place, &watch->status, "status", status, sizeof status);
    if (length <= 0)
        return error_of(length);
    return activity_parse_status(status, ret_activity) ? 0 : -EIO;
}

bool watch_read_last_run(const struct watch_place *place, struct watch *watch,
                         struct last_run *ret_last_run)
{
    char text[LAST_RUN_BYTES];
    return watch_read(place, &watch->sched, "sched", text, sizeof text) > 0 &&
           activity_parse_last_run(text, ret_last_run);
}

bool watch_read_preemptions(const struct watch_place *place, struct watch *watch,
                            uint64_t *ret_preemptions)
{
    struct watch_place once = *place;
    char status[STATUS_BYTES];
    once.keep_fds_below = 0;
    return watch_read(&once, &watch->status, "status", status, sizeof status) > 0 &&
           activity_parse_preemptions(status, ret_preemptions);
}

int watch_read_blocked(const struct watch_place *place, struct watch *watch,
                       struct registers *ret_registers, long *ret_syscall_number)
{
    static const char running[] = "running";
    struct watch_place once = *place;
    char line[256];
    if (!watch->was_read)
        once.keep_fds_below = 0;
    ssize_t length = watch_read(&once, &watch->syscall, "syscall", line, sizeof line);
    if (length <= 0)
        return error_of(length);
    if (strncmp(line, running, sizeof running - 1) == 0)
        return -EAGAIN;
    return watch_parse_syscall(line, ret_registers, ret_syscall_number) ? 0 : -EIO;
}

bool watch_parse_syscall(const char *line, struct registers *ret_registers,
                         long *ret_syscall_number)
{
    uint64_t arguments[6] = {0}, sp, pc;
    if (sscanf(line, "-1 %" SCNx64 " %" SCNx64, &sp, &pc) == 2) {
        registers_set_blocked(ret_registers, arguments, sp, pc);
        /* Outside a call, the other registers may hold anything. */
        ret_registers->known = 1ull << architecture.sp | 1ull << architecture.pc;
        *ret_syscall_number = -1;
        return true;
    }
    long number;
    int fields = sscanf(line,
                        "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                        " %" SCNx64 " %" SCNx64,
                        &number, &arguments[0], &arguments[1], &arguments[2], &arguments[3],
                        &arguments[4], &arguments[5], &sp, &pc);
    if (fields != 9 || number < 0)
        return false;
    registers_set_blocked(ret_registers, arguments, sp, pc);
    *ret_syscall_number = number;
    return true;
}

void watch_close(struct watch *watch)
{
    thread_file_close(&watch->schedstat);
    thread_file_close(&watch->syscall);
    thread_file_close(&watch->stat);
    thread_file_close(&watch->sched);
    thread_file_close(&watch->status);
    *watch = (struct watch){0};
}

struct watch *watches_get(struct watches *watches, uint32_t thread)
{
    return array_extend(&watches->items, &watches->count, &watches->capacity, thread + 1u)
               ? NULL
               : &watches->items[thread];
}

void watches_forget(struct watches *watches, uint32_t thread)
{
    if (thread < watches->count)
        watch_close(&watches->items[thread]);
}

void watches_free(struct watches *watches)
{
    for (size_t i = 0; i < watches->count; i++)
        watch_close(&watches->items[i]);
    free(watches->items);
    *watches = (struct watches){0};
}

#include "proc/program.h"
#include "base/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_task_file(const struct program *program, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "task/%d/%s", program->tid, name);
    int fd = openat(program->proc_fd, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* So much of maps is kept: that of a program with some thousand threads. */
#define MAPS_KEPT_BYTES (256u << 10)
#define KEPT_MAPS_MAX 2

/* Copies the maps as they are now, in case the program ends before they are read. -1 if that fails.
 */
static int keep_maps(int maps_fd)
{
    char *text = malloc(MAPS_KEPT_BYTES);
    size_t length = 0;
    ssize_t got = 0;
    while (text && length < MAPS_KEPT_BYTES &&
           (got = pread(maps_fd, text + length, MAPS_KEPT_BYTES - length, (off_t)length)) > 0)
        length += (size_t)got;
    int fd = -1;
    if (text && got == 0 && length && length <= file_limit_bytes())
        fd = memfd_create("fgprof-maps", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, text, length) != (ssize_t)length) {
        close(fd);
        fd = -1;
    }
    free(text);
    return fd;
}

static int open_files(struct program *program, const struct process *process)
{
    program->proc_fd = fcntl(process->proc_fd, F_DUPFD_CLOEXEC, 0);
    if (program->proc_fd < 0)
        return -errno;
    /* Checked before its memory is opened: a process that has its own memory keeps it. */
    program->is_in_parents_memory = process_shares_memory(process) != 0;
    program->mem_fd = open_task_file(program, "mem");
    if (program->mem_fd < 0)
        return program->mem_fd;
    program->maps_fd = open_task_file(program, "maps");
    if (program->maps_fd < 0)
        return program->maps_fd;
    program->first_maps_fd = keep_maps(program->maps_fd);
    return 0;
}

int program_open(struct process *process, uint32_t number, uint32_t process_number,
                 struct program **ret_program)
{
    /* Through a live thread: a leader that has exited shows neither memory nor maps. */
    pid_t tid = process_live_thread(process);
    if (!tid)
        return -ESRCH;
    struct program *program = malloc(sizeof *program);
    if (!program)
        return -ENOMEM;
    *program = (struct program){
        .number = number,
        .process = process_number,
        .process_id = process->pid,
        .tid = tid,
        .proc_fd = -1,
        .mem_fd = -1,
        .maps_fd = -1,
        .first_maps_fd = -1,
    };
    atomic_init(&program->references, 1);
    program->kept_maps_fds = malloc(KEPT_MAPS_MAX * sizeof *program->kept_maps_fds);
    for (size_t i = 0; program->kept_maps_fds && i < KEPT_MAPS_MAX; i++)
        atomic_init(&program->kept_maps_fds[i], -1);
    int err = open_files(program, process);
    /* Both files belong to one program only if the first is still current after the second was
     * opened. */
    if (!err && !program_is_current(program))
        err = -ESRCH;
    if (err) {
        program_release(program);
        return err;
    }
    *ret_program = program;
    return 0;
}

/* An open /proc/PID/mem keeps the memory that the process had then. Once that is gone, by exec or
 * exit, a read returns 0 bytes; until then, reading address 0 gives EIO (mem_rw in the kernel's
 * fs/proc/base.c). A parent's memory is not gone when the child executes a program. */
bool program_is_current(const struct program *program)
{
    const struct process process = {.pid = program->process_id, .proc_fd = program->proc_fd};
    char byte;
    return pread(program->mem_fd, &byte, 1, 0) != 0 &&
           (!program->is_in_parents_memory || process_shares_memory(&process));
}

void program_keep_maps(const struct program *program)
{
    for (size_t i = 0; program->kept_maps_fds && i < KEPT_MAPS_MAX; i++) {
        atomic_int *kept_fd = &program->kept_maps_fds[i];
        if (atomic_load_explicit(kept_fd, memory_order_relaxed) < 0) {
            atomic_store_explicit(kept_fd, keep_maps(program->maps_fd), memory_order_release);
            return;
        }
    }
}

int program_kept_maps_fd(const struct program *program)
{
    int latest_fd = program->first_maps_fd;
    for (size_t i = 0; program->kept_maps_fds && i < KEPT_MAPS_MAX; i++) {
        int kept_fd = atomic_load_explicit(&program->kept_maps_fds[i], memory_order_acquire);
        latest_fd = kept_fd >= 0 ? kept_fd : latest_fd;
    }
    return latest_fd;
}

struct program *program_hold(struct program *program)
{
    atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
    return program;
}

static void close_file(int fd)
{
    if (fd >= 0)
        close(fd);
}

void program_release(struct program *program)
{
    if (!program || atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; program->kept_maps_fds && i < KEPT_MAPS_MAX; i++)
        close_file(program->kept_maps_fds[i]);
    free(program->kept_maps_fds);
    close_file(program->first_maps_fd);
    close_file(program->maps_fd);
    close_file(program->mem_fd);
    close_file(program->proc_fd);
    free(program);
}

enum program_match program_span_match(const struct program_span *span, uint64_t exec_ns,
                                      uint64_t at_ns)
{
    if (exec_ns > span->current_ns)
        return at_ns < exec_ns ? PROGRAM_CURRENT : PROGRAM_LATER;
    uint64_t since_ns = span->has_before ? span->opened_ns : 0;
    return at_ns >= (exec_ns ? exec_ns : since_ns) ? PROGRAM_CURRENT : PROGRAM_NONE;
}

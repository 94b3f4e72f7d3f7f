/* Which processes have a pipe, a socket or a file open: those of a few given processes.
 *
 * It is as old as its making, so it is made anew from time to time. Making it takes a system call
 * for each descriptor of the processes, and touches none of the files. */
#ifndef FGPROF_WAIT_OPEN_FILES_H
#define FGPROF_WAIT_OPEN_FILES_H

#include "wait/descriptor.h"
#include "wait/resource.h"

struct open_file {
    uint64_t key; /* as in struct resource */
    enum resource_kind kind;
    pid_t process_id;
    int fd;
};

/* Starts zeroed. */
struct open_files {
    struct open_file *items; /* by key, once sorted */
    size_t count, capacity;
    bool is_partial; /* a process had too many, or could not be looked at: no answer is certain */
};

/* Adds the descriptors of a process with the open directory /proc/PID. Returns 0 or -ENOMEM. */
int open_files_add(struct open_files *files, pid_t process_id, int proc_fd);

/* To be called once all are added. */
void open_files_sort(struct open_files *files);
void open_files_free(struct open_files *files);

/* Whether any of the processes had it open. */
bool open_files_have(const struct open_files *files, const struct resource *resource);

/* Whether a descriptor counts. */
typedef bool open_files_test(const struct descriptor_info *info);

/* The process that has the resource open: the only one, or 0. A test that is not NULL is asked for
 * each of its descriptors, which takes some system calls for each. */
pid_t open_files_process(const struct open_files *files, const struct resource *resource,
                         open_files_test *test);

#endif

/* Which of the given processes have a pipe, a socket or a file open. The list is remade from time
 * to time, which takes a system call for each descriptor and touches none of the files. */
#ifndef FGPROF_WAIT_OPEN_FILES_H
#define FGPROF_WAIT_OPEN_FILES_H

#include "wait/resource.h"
#include "observe/call.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc/PID/fdinfo says of a descriptor. */
struct descriptor_info {
    bool is_readable, is_writable; /* as it was opened */
    uint64_t inode;                /* 0: a kernel before 5.14, which does not show it */
    pid_t process_id;              /* that a pidfd stands for; 0: it is none, or has exited */
    uint64_t polled_count;         /* of an epoll descriptor */
    struct polled polled;          /* the first of them */
    unsigned locks;                /* it owns locks of these kinds: 1 << enum file_use */
};

/* Adds the contents of a line. Unknown lines are ignored. The lines are, for example,
 *   flags:	0100002
 *   ino:	10953261
 *   lock:	1: FLOCK  ADVISORY  WRITE 15864 fe:00:10953261 0 EOF
 *   tfd:        7 events:       19 data:                7  pos:0 ino:64 sdev:e
 *   Pid:	1234
 * (Documentation/filesystems/proc.rst of the kernel, 3.8). */
void descriptor_info_add_line(struct descriptor_info *info, const char *line);

/* Reads that file of a descriptor, below the open directory /proc/PID. Do not read it often: the
 * kernel locks an epoll descriptor while it lists its entries, as epoll_ctl(2) does. Returns 0 or a
 * negative errno. */
int descriptor_info_read(int proc_fd, int fd, struct descriptor_info *ret_info);

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
    bool is_partial; /* a process had too many, or could not be read: no answer is certain */
};

/* Adds the descriptors of a process, whose directory in /proc is `proc_fd`. Returns 0 or
 * -ENOMEM. */
int open_files_add(struct open_files *files, pid_t process_id, int proc_fd);

/* To be called once all are added. */
void open_files_sort(struct open_files *files);
void open_files_free(struct open_files *files);

/* Whether any of the processes had it open. */
bool open_files_have(const struct open_files *files, const struct resource *resource);

/* Whether to count a descriptor. */
typedef bool open_files_test(const struct descriptor_info *info);

/* The only process that has the resource open, or 0. `test`, which may be NULL, costs some system
 * calls for each of the resource's descriptors. */
pid_t open_files_process(const struct open_files *files, const struct resource *resource,
                         open_files_test *test);

#endif

/* What /proc/PID/fdinfo says of a descriptor. */
#ifndef FGPROF_WAIT_DESCRIPTOR_H
#define FGPROF_WAIT_DESCRIPTOR_H

#include "observe/call.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct descriptor_info {
    bool is_readable, is_writable; /* as it was opened */
    uint64_t inode;                /* 0: a kernel before 5.14, which does not tell */
    pid_t process_id;              /* that a pidfd stands for; 0: it is none, or has exited */
    uint64_t polled_count;         /* of an epoll descriptor */
    struct polled polled;          /* the first of them */
    unsigned locks;                /* it owns locks of these kinds: 1 << enum file_use */
};

/* Adds what a line says. Lines that are not known are ignored. Such lines are
 *   flags:	0100002
 *   ino:	10953261
 *   lock:	1: FLOCK  ADVISORY  WRITE 15864 fe:00:10953261 0 EOF
 *   tfd:        7 events:       19 data:                7  pos:0 ino:64 sdev:e
 *   Pid:	1234
 * (Documentation/filesystems/proc.rst of the kernel, 3.8). */
void descriptor_info_add_line(struct descriptor_info *info, const char *line);

/* Reads that file of a descriptor, below the open directory /proc/PID. For an epoll descriptor the
 * kernel locks it while it lists what is polled, as epoll_ctl(2) does: not to be read often.
 * Returns 0 or a negative errno. */
int descriptor_info_read(int proc_fd, int fd, struct descriptor_info *ret_info);

#endif

/* What a process gives up before it reads untrusted data. */
#ifndef FGPROF_BASE_SANDBOX_H
#define FGPROF_BASE_SANDBOX_H

#include <stdint.h>

enum sandbox_use {
    /* May only compute, read files that it was given, and use the sockets and pipes that it has.
     * The kernel kills it for any other system call. */
    SANDBOX_READS,
    /* May also accept connections on sockets that it was given, create socket pairs, and have
     * threads, as libmicrohttpd does. Other system calls fail with ENOSYS, because libraries try
     * newer ones and fall back. */
    SANDBOX_SERVES,
    /* May also connect, and read files that all users may read, as an HTTPS client does. Is no
     * longer root if it may become another user. */
    SANDBOX_CONNECTS,
};

/* Becomes another user, if this use wants that. Call this before sandbox_enter, and before
 * prctl(PR_SET_PDEATHSIG), which a change of user undoes. */
void sandbox_leave_root(enum sandbox_use use);

/* From here on this process has no capabilities and can gain none, computes for at most
 * `cpu_seconds_max`, and uses up to `memory_bytes_max` of address space. It can write to no file
 * that is not already open, start no process and signal none; and unless the use permits it, it can
 * open no file and connect to nothing. The caller first closes every open file that it must not
 * write to. Returns 0 or a negative errno. */
int sandbox_enter(enum sandbox_use use, uint64_t memory_bytes_max, uint64_t cpu_seconds_max);

/* The kernel's number of this architecture (linux/audit.h). */
extern const unsigned sandbox_audit_arch;

#endif

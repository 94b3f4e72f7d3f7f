/* What a process gives up before it reads untrusted data. */
#ifndef FGPROF_BASE_SANDBOX_H
#define FGPROF_BASE_SANDBOX_H

#include <stdint.h>

enum sandbox_use {
    /* It can do nothing but compute, read files that it was given, and talk through sockets and
     * pipes that it has. The kernel ends it if it tries anything else. */
    SANDBOX_READS,
    /* It can also accept connections at sockets that it was given, make pairs of sockets, and have
     * threads, as libmicrohttpd does. The kernel refuses everything else (ENOSYS): libraries ask
     * for what newer kernels have, and do without. */
    SANDBOX_SERVES,
    /* It can also make connections, and read what files all users may, as a client of HTTPS does.
     * It is not root any more if it was and may become another user. */
    SANDBOX_CONNECTS,
};

/* Becomes another user, if this use wants that. To be called before sandbox_enter, and before
 * prctl(PR_SET_PDEATHSIG), which a change of the user undoes. */
void sandbox_leave_root(enum sandbox_use use);

/* From here on this process has no capabilities, can gain none, computes for at most
 * `cpu_seconds_max`, and uses up to `memory_bytes_max` of address space. It can write to no file
 * that is not open, start no process and signal none; and unless it is to, open no file and connect
 * to nothing. What it has open and should not write to is
 * to be closed before. Returns 0 or a negative errno. */
int sandbox_enter(enum sandbox_use use, uint64_t memory_bytes_max, uint64_t cpu_seconds_max);

/* The kernel's number of this architecture (linux/audit.h). */
extern const unsigned sandbox_audit_arch;

#endif

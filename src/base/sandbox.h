/* What a process gives up before it reads untrusted data. */
#ifndef FGPROF_BASE_SANDBOX_H
#define FGPROF_BASE_SANDBOX_H

#include <stdint.h>

/* From here on this process has no capabilities, can gain none, and can do nothing but compute, for
 * `cpu_seconds_max`, use up to `memory_bytes_max` of address space, read files that it was given,
 * and talk through sockets and pipes that it has: it can open no file, make no socket, start no
 * process and signal none; the kernel ends it if it tries. What it has open and should not write to
 * is to be closed before. Returns 0 or a negative errno. */
int sandbox_enter(uint64_t memory_bytes_max, uint64_t cpu_seconds_max);

/* The kernel's number of this architecture (linux/audit.h). */
extern const unsigned sandbox_audit_arch;

#endif

/* What a system call waits for, as far as its arguments tell. */
#ifndef FGPROF_WAIT_CALL_H
#define FGPROF_WAIT_CALL_H

#include <stdbool.h>
#include <stdint.h>

enum call_kind {
    CALL_OTHER,
    CALL_FUTEX,
    CALL_FILE,    /* on the descriptor `fd` */
    CALL_POLL,    /* on `count` entries: struct pollfd at `address` */
    CALL_SLEEP,   /* for the struct timespec at `address` */
    CALL_PROCESS, /* for the child `process`; -1: any */
};

struct call_target {
    enum call_kind kind;
    uint64_t address;
    int fd;
    uint64_t count;
    int32_t process;
    bool has_timeout; /* a futex: the wait ends by itself */
    bool is_pi;       /* a futex: its word holds the owner's thread id */
};

/* Goes by the call's name ("" is CALL_OTHER): numbers differ between architectures, arguments do
 * not. */
struct call_target call_target_of(const char *name, const uint64_t arguments[6]);

#endif

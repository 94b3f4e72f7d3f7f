/* What a parked goroutine waits for. */
#ifndef FGPROF_RUNTIME_GO_WAIT_H
#define FGPROF_RUNTIME_GO_WAIT_H

#include "runtime/go/goroutine.h"

#define GO_WAIT_ADDRESSES_MAX 8

struct go_wait {
    enum go_wait_kind kind; /* GO_WAIT_OTHER: nothing else is known */
    bool is_shared;         /* a channel: another one waits for it, too */
    bool is_write;          /* a descriptor: to write to it */
    uint32_t fd;
    uint32_t count; /* of channels, those that are not in `addresses` among them */
    /* For channels, in the order in which Go locks them; for a mutex, wait group or condition, its
     * own; otherwise that of the semaphore's word. */
    uint64_t addresses[GO_WAIT_ADDRESSES_MAX];
};

/* A parked goroutine, and the first bytes of its stack, from its stack pointer on. */
struct parked_goroutine {
    const struct go_layout *layout;
    uint64_t address; /* of struct g */
    const struct goroutine *goroutine;
    const unsigned char *stack;
    size_t stack_bytes;
    pid_t tid; /* a live thread */
    const struct stack_areas *areas;
};

/* What was read holds if the goroutine is still parked there afterwards. */
void go_wait_read(const struct parked_goroutine *parked, struct go_wait *ret_wait);

/* The wait for a semaphore turns out to be one for a lock or a wait group. */
void go_wait_set_lock(struct go_wait *wait, enum go_wait_kind kind, unsigned minor);

#endif

/* Where Go's runtime keeps the state of its goroutines: the layout of its structures, which differs
 * by version. */
#ifndef FGPROF_RUNTIME_GO_LAYOUT_H
#define FGPROF_RUNTIME_GO_LAYOUT_H

#include <stdint.h>

#define GO_NOWHERE UINT16_MAX /* the version has no such member */

/* Offsets in bytes. struct g begins with the bounds of its stack. */
struct go_layout {
    uint16_t minor; /* of Go 1.minor */
    uint16_t g_m, g_sched, g_status, g_id, g_wait_since, g_wait_reason;
    uint16_t g_sequence; /* trackingSeq: counts how often the goroutine has ceased to run */
    uint16_t g_locked, g_parent;
    uint16_t g_creator; /* gopc: where the go statement is */
    uint16_t g_start;   /* startpc: its function */
    uint16_t g_labels;
    uint16_t g_waiting; /* the first of its sudogs */
    /* struct gobuf, of g.sched, begins with the stack pointer and the program counter. */
    uint16_t gobuf_frame_pointer;
    uint16_t m_thread; /* procid */
    /* struct sudog, a goroutine in a queue, begins with that, the next one, and the one before. */
    uint16_t sudog_element; /* elem: of a semaphore, the address of its word */
    uint16_t sudog_link;    /* waitlink: of a channel, the goroutine's next sudog */
    uint16_t sudog_channel;
    /* struct pollDesc, of a descriptor. */
    uint16_t poll_fd;
    uint16_t poll_reader, poll_writer; /* rg and wg: the goroutines */
    uint16_t poll_self;
};

/* The layout of Go 1.minor; NULL if the table does not have it. */
const struct go_layout *go_layout_of(unsigned minor);

enum go_wait_kind {
    GO_WAIT_OTHER,
    GO_WAIT_CHANNEL,   /* or several */
    GO_WAIT_SEMAPHORE, /* of a lock that is not known */
    GO_WAIT_MUTEX,
    GO_WAIT_READ_LOCK, /* of a sync.RWMutex */
    GO_WAIT_WRITE_LOCK,
    GO_WAIT_GROUP,
    GO_WAIT_CONDITION,
    GO_WAIT_FILE,
};
enum go_wait_kind go_wait_kind(unsigned minor, unsigned reason);

/* What a waiting goroutine waits for, in Go's words, such as "chan receive". Static. */
const char *go_wait_reason(unsigned minor, unsigned reason);

#endif

/* Where Go's runtime keeps what its goroutines do: the layout of its structures, which differs by
 * version. */
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
    /* struct gobuf, of g.sched, begins with the stack pointer and the program counter. */
    uint16_t gobuf_frame_pointer;
    uint16_t m_thread; /* procid */
};

/* Of Go 1.minor; NULL if the table does not have it. */
const struct go_layout *go_layout_of(unsigned minor);

/* What a waiting goroutine waits for, in Go's words, such as "chan receive". Static. */
const char *go_wait_reason(unsigned minor, unsigned reason);

#endif

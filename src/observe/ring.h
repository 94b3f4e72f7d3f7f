/* A perf event and the ring that the kernel writes its records to (perf_event_open(2)).
 *
 * In a ring that is read, the kernel appends at data_head, and the reader sets data_tail behind
 * what it has read. The kernel overwrites nothing that was not read: when the ring is full it drops
 * records, counts them, and says so in a PERF_RECORD_LOST. */
#ifndef FGPROF_OBSERVE_RING_H
#define FGPROF_OBSERVE_RING_H

#include "observe/snapshot.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ring_kind {
    RING_READ,        /* the reader takes records out; when it is full, new ones are dropped */
    RING_OVERWRITTEN, /* new records overwrite old ones; for attributes with write_backward */
};

struct ring {
    int fd;
    struct perf_event_mmap_page *page; /* the first page of the mapping; NULL: not open */
    size_t data_bytes;                 /* a power of two */
    uint64_t clock_offset_ns;          /* what is added to the kernel's times: see ring_time */
};

/* A record in a ring, which may wrap around the ring's end. Valid until the next ring_next. */
struct record {
    const struct ring *ring;
    struct perf_event_header header;
    uint64_t at; /* where it begins, counted like data_head */
};

/* What all our samples begin with: sample_type has RING_SAMPLE_TYPE, and may have more that comes
 * behind it (perf_event_open(2)). */
#define RING_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER)
struct sample_head {
    uint32_t process_id, tid;
    uint64_t at_ns; /* see ring_time */
    uint64_t abi;   /* PERF_SAMPLE_REGS_ABI_* */
};

/* Opens an event for `tid` on `cpu` as perf_event_open(2) takes them, with a ring of `data_bytes`,
 * a power of two and at least a page. The event is disabled if `attributes` says so. What all
 * our events have in common is set here: the clock, and that nobody waits for records. Returns 0 or
 * a negative errno: -EACCES or -EPERM if it is not permitted, -ENOBUFS if no more memory may be
 * locked, -EMFILE if too many files are open: of the limit, threads' events
 * take a quarter. */
int ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu, size_t data_bytes,
              enum ring_kind kind, struct ring *ret_ring);

/* Opens an event without a ring. Returns its descriptor or a negative errno. */
int ring_open_event(const struct perf_event_attr *attributes, pid_t tid, int cpu);

/* For RING_OVERWRITTEN, into which the kernel writes backward: where the newest record begins. It
 * changes with each record. */
uint64_t ring_head(const struct ring *ring);

/* Finds the record that begins there. Returns false if there is none. What it says is only valid
 * if ring_head has not changed since. */
bool ring_at(const struct ring *ring, uint64_t at, struct record *ret_record);

/* For RING_READ: finds the oldest record that is not yet skipped. Returns false if there is none.
 */
bool ring_next(const struct ring *ring, struct record *ret_record);

/* Gives the record's place back to the kernel. */
void ring_skip(struct ring *ring, const struct record *record);

/* Gives back all that is before `at`. */
void ring_skip_to(struct ring *ring, uint64_t at);

/* A record's time in our CLOCK_MONOTONIC. The kernel writes the time of the first time namespace,
 * and we may be in another one, as in a container that has moved from one machine to another
 * (time_namespaces(7)). */
static inline uint64_t ring_time(const struct ring *ring, uint64_t record_ns)
{
    return record_ns + ring->clock_offset_ns;
}

/* Reads the registers of a sample, and sets *ret_end to where what comes behind them begins, as
 * record_read takes it. Returns false for a sample that shows no 64-bit code: the thread was
 * exiting, or runs 32-bit code, which is not unwound. */
bool record_read_registers(const struct record *record, struct registers *ret_registers,
                           size_t *ret_end);

/* Reads the call chain of a sample with PERF_SAMPLE_CALLCHAIN, which begins `at` bytes behind the
 * record's header. Keeps the addresses of the kernel's own code, up to `limit`, for which there
 * must be room; a chain with that many is taken to be cut. Sets *ret_end to the chain's end.
 * Returns false if the record is shorter than the chain claims. */
bool record_read_kernel_chain(const struct record *record, size_t at, unsigned limit,
                              struct kernel_chain *chain, size_t *ret_end);

/* Reads the user's registers and stack of a sample that has PERF_SAMPLE_STACK_USER, and nothing
 * before the stack but RING_SAMPLE_TYPE: as much as was copied and fits. Returns false if there are
 * none, as record_read_registers does. */
bool record_read_snapshot(const struct record *record, struct snapshot *snapshot);

/* The same for a sample whose registers are `at` bytes behind the record's header. */
bool record_read_snapshot_at(const struct record *record, size_t at, struct snapshot *snapshot);

/* Sets *ret_end to where what comes behind the stack of such a sample begins. Returns false if the
 * record is shorter. */
bool record_stack_end(const struct record *record, size_t at, size_t *ret_end);

/* Copies `bytes` of the record, from `offset` after its header. Returns false if it is shorter. */
bool record_read(const struct record *record, size_t offset, void *buffer, size_t bytes);

void ring_close(struct ring *ring);

#endif

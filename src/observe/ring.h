/* A perf event and the ring to which the kernel writes its records (perf_event_open(2)).
 *
 * In a ring of kind RING_READ, the kernel appends at data_head, and the reader advances data_tail
 * past what it has read. The kernel does not overwrite unread records: when the ring is full it
 * drops records, counts them, and reports them in a PERF_RECORD_LOST. */
#ifndef FGPROF_OBSERVE_RING_H
#define FGPROF_OBSERVE_RING_H

#include "observe/snapshot.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ring_kind {
    RING_READ, /* the reader takes records out; when the ring is full, new ones are dropped */
    RING_OVERWRITTEN, /* new records overwrite old ones; for attributes with write_backward */
};

struct ring {
    int fd;
    pid_t tid;                         /* that it was opened for: see ring_close_event */
    struct perf_event_mmap_page *page; /* the first page of the mapping; NULL: not open */
    size_t data_bytes;                 /* a power of two */
    uint64_t clock_offset_ns;          /* added to the kernel's times: see ring_time */
};

/* A record in a ring, which may wrap around the ring's end. Valid until the next ring_next. */
struct record {
    const struct ring *ring;
    struct perf_event_header header;
    uint64_t at; /* where it begins, counted like data_head */
};

/* The beginning of all our samples: sample_type includes RING_SAMPLE_TYPE, and may include fields
 * that come after these (perf_event_open(2)). */
#define RING_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER)
struct sample_head {
    uint32_t process_id, tid;
    uint64_t at_ns; /* see ring_time */
    uint64_t abi;   /* PERF_SAMPLE_REGS_ABI_* */
};

/* Opens an event for `tid` on `cpu`, as in perf_event_open(2), with a ring of `data_bytes`, a power
 * of two and at least a page. The event is disabled if `attributes` says so. Settings that all our
 * events share are made here: the clock, and that records wake no thread. Returns 0 or a negative
 * errno: -EACCES or -EPERM if it is not permitted, -ENOBUFS if no more memory may be locked,
 * -EMFILE if too many files are open: threads' events may use a quarter of the limit, but none of
 * the last descriptors. */
int ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu, size_t data_bytes,
              enum ring_kind kind, struct ring *ret_ring);

/* Opens an event without a ring. Returns its descriptor or a negative errno. Close it with
 * ring_close_event, for the same `tid`: threads' events are counted. */
int ring_open_event(const struct perf_event_attr *attributes, pid_t tid, int cpu);
void ring_close_event(int fd, pid_t tid);

/* For RING_OVERWRITTEN, into which the kernel writes backward: where the newest record begins. It
 * changes with each record. */
uint64_t ring_head(const struct ring *ring);

/* Finds the record that begins at `at`. Returns false if there is none. The record is only valid if
 * ring_head has not changed since. */
bool ring_at(const struct ring *ring, uint64_t at, struct record *ret_record);

/* For RING_READ: finds the oldest record that is not yet skipped. Returns false if there is none.
 */
bool ring_next(const struct ring *ring, struct record *ret_record);

/* Returns the record's space to the kernel. */
void ring_skip(struct ring *ring, const struct record *record);

/* Returns all space before `at`. */
void ring_skip_to(struct ring *ring, uint64_t at);

/* A record's time in our CLOCK_MONOTONIC. The kernel writes the time of the initial time namespace,
 * but we may be in another one, as in a container that was migrated from one machine to another
 * (time_namespaces(7)). */
static inline uint64_t ring_time(const struct ring *ring, uint64_t record_ns)
{
    return record_ns + ring->clock_offset_ns;
}

/* Reads the registers of a sample, and sets *ret_end to the offset after them, as for record_read.
 * Returns false for a sample of no 64-bit code: the thread was exiting, or runs 32-bit code, which
 * is not unwound. */
bool record_read_registers(const struct record *record, struct registers *ret_registers,
                           size_t *ret_end);

/* Reads the call chain of a sample with PERF_SAMPLE_CALLCHAIN, which begins `at` bytes after the
 * record's header. Keeps the addresses of kernel code, up to `limit`, for which there must be room;
 * a chain with that many is assumed to be cut. Sets *ret_end to the chain's end. Returns false if
 * the record is shorter than the chain claims. */
bool record_read_kernel_chain(const struct record *record, size_t at, unsigned limit,
                              struct kernel_chain *chain, size_t *ret_end);

/* Reads the user registers and stack of a sample that has PERF_SAMPLE_STACK_USER, and only
 * RING_SAMPLE_TYPE before the stack: as much as was copied and fits. Returns false if there are
 * none, as record_read_registers does. */
bool record_read_snapshot(const struct record *record, struct snapshot *snapshot);

/* The same for a sample whose registers are `at` bytes after the record's header. */
bool record_read_snapshot_at(const struct record *record, size_t at, struct snapshot *snapshot);

/* Sets *ret_end to the offset after the stack of such a sample. Returns false if the record is
 * shorter. */
bool record_stack_end(const struct record *record, size_t at, size_t *ret_end);

/* Copies `bytes` of the record, from `offset` after its header. Returns false if it is shorter. */
bool record_read(const struct record *record, size_t offset, void *buffer, size_t bytes);

void ring_close(struct ring *ring);

#endif

#include "observe/ring.h"
#include "base/file_limit.h"
#include "proc/procfs.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* There may be many threads, so their events leave most descriptors to other files, and the last
 * ones free. */
#define PART_FOR_THREADS 4
#define FDS_FOR_OTHERS 128

/* How many threads' events are open. Several threads of ours open some. */
static atomic_uint thread_events;

/* Counts the events: descriptor `fd` may have a high number although there are none, because other
 * files have the low ones. */
static bool has_room(int fd)
{
    struct rlimit limit;
    bool may_more = getrlimit(RLIMIT_NOFILE, &limit) ||
                    atomic_load(&thread_events) < limit.rlim_cur / PART_FOR_THREADS;
    return may_more && file_limit_leaves(fd, FDS_FOR_OTHERS);
}

int ring_open_event(const struct perf_event_attr *attributes, pid_t tid, int cpu)
{
    struct perf_event_attr attr = *attributes;
    attr.size = sizeof attr;
    attr.exclude_hv = 1;
    attr.sample_id_all = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    /* So that records wake no thread. */
    attr.watermark = 1;
    attr.wakeup_watermark = UINT32_MAX;
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (tid >= 0 && !has_room(fd)) {
        close(fd);
        return -EMFILE;
    }
    atomic_fetch_add(&thread_events, tid >= 0);
    return fd;
}

void ring_close_event(int fd, pid_t tid)
{
    close(fd);
    atomic_fetch_sub(&thread_events, tid >= 0);
}

int ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu, size_t data_bytes,
              enum ring_kind kind, struct ring *ret_ring)
{
    int fd = ring_open_event(attributes, tid, cpu);
    if (fd < 0)
        return fd;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (data_bytes < page_bytes)
        data_bytes = page_bytes; /* which is 64 KiB on some machines */
    /* With a read-only mapping, data_tail can't be set, and the kernel overwrites old records. */
    int protection = kind == RING_READ ? PROT_READ | PROT_WRITE : PROT_READ;
    void *page = mmap(NULL, page_bytes + data_bytes, protection, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        /* EPERM: the limit of locked memory (perf_event_mlock_kb, RLIMIT_MEMLOCK) is reached. */
        int err = errno == EPERM ? -ENOBUFS : -errno;
        ring_close_event(fd, tid);
        return err;
    }
    *ret_ring = (struct ring){fd, tid, page, data_bytes, procfs_clock_offsets().monotonic_ns};
    return 0;
}

static const unsigned char *data_of(const struct ring *ring)
{
    return (const unsigned char *)ring->page + ring->page->data_offset;
}

static void copy_out(const struct ring *ring, uint64_t at, void *buffer, size_t bytes)
{
    size_t begin = at & (ring->data_bytes - 1), first = ring->data_bytes - begin;
    if (first > bytes)
        first = bytes;
    memcpy(buffer, data_of(ring) + begin, first);
    memcpy((unsigned char *)buffer + first, data_of(ring), bytes - first);
}

uint64_t ring_head(const struct ring *ring)
{
    return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

bool ring_at(const struct ring *ring, uint64_t at, struct record *ret_record)
{
    struct perf_event_header header;
    /* Space that was never written is zero, which is not a record. */
    copy_out(ring, at, &header, sizeof header);
    if (header.size < sizeof header || header.size > ring->data_bytes)
        return false;
    *ret_record = (struct record){ring, header, at};
    return true;
}

bool ring_next(const struct ring *ring, struct record *ret_record)
{
    /* Read before the data that it announces (linux/perf_event.h, data_head). */
    uint64_t head = ring_head(ring), tail = ring->page->data_tail;
    struct record record;
    if (head - tail < sizeof record.header || !ring_at(ring, tail, &record) ||
        record.header.size > head - tail)
        return false;
    *ret_record = record;
    return true;
}

void ring_skip(struct ring *ring, const struct record *record)
{
    ring_skip_to(ring, record->at + record->header.size);
}

void ring_skip_to(struct ring *ring, uint64_t at)
{
    /* The kernel may write there as soon as it sees this. */
    __atomic_store_n(&ring->page->data_tail, at, __ATOMIC_RELEASE);
}

bool record_read(const struct record *record, size_t offset, void *buffer, size_t bytes)
{
    size_t body_bytes = record->header.size - sizeof record->header;
    if (offset > body_bytes || bytes > body_bytes - offset)
        return false;
    copy_out(record->ring, record->at + sizeof record->header + offset, buffer, bytes);
    return true;
}

static bool read_registers(const struct record *record, size_t at, struct registers *ret_registers,
                           size_t *ret_end)
{
    uint64_t abi, values[REGISTERS_MAX];
    size_t bytes = registers_sample_count * sizeof *values;
    if (!record_read(record, at, &abi, sizeof abi) || abi != PERF_SAMPLE_REGS_ABI_64 ||
        !record_read(record, at + sizeof abi, values, bytes))
        return false;
    registers_from_sample(values, ret_registers);
    *ret_end = at + sizeof abi + bytes;
    return true;
}

bool record_read_registers(const struct record *record, struct registers *ret_registers,
                           size_t *ret_end)
{
    return read_registers(record, offsetof(struct sample_head, abi), ret_registers, ret_end);
}

/* The chain: uint64_t count, and that many addresses. Values from PERF_CONTEXT_MAX on are markers
 * of whether kernel or user code follows. */
bool record_read_kernel_chain(const struct record *record, size_t at, unsigned limit,
                              struct kernel_chain *chain, size_t *ret_end)
{
    uint64_t count, address;
    size_t body_bytes = record->header.size - sizeof record->header;
    bool is_kernel = false;
    chain->count = 0;
    if (!record_read(record, at, &count, sizeof count))
        return false;
    at += sizeof count;
    if (count > (body_bytes - at) / sizeof address)
        return false;
    for (uint64_t i = 0; i < count; i++, at += sizeof address) {
        record_read(record, at, &address, sizeof address);
        if (address >= PERF_CONTEXT_MAX)
            is_kernel = address == PERF_CONTEXT_KERNEL;
        else if (is_kernel && chain->count < limit)
            chain->addresses[chain->count++] = address;
    }
    chain->is_cut = chain->count == limit;
    *ret_end = at;
    return true;
}

/* The stack: uint64_t size, the memory, and uint64_t dyn_size, how much of it was copied. */
static void read_stack(const struct record *record, size_t offset, struct snapshot *snapshot)
{
    struct stack_copy *stack = &snapshot->stack;
    uint64_t size = 0, copied = 0;
    record_read(record, offset, &size, sizeof size);
    offset += sizeof size;
    if (size && (!record_read(record, offset + size, &copied, sizeof copied) || copied > size))
        copied = 0;
    stack->address = registers_sp(&snapshot->registers);
    stack->bytes = copied < stack->capacity ? copied : stack->capacity;
    stack->is_unreadable = copied < size;
    if (!record_read(record, offset, stack->memory, stack->bytes))
        stack->bytes = 0;
    snapshot->other_stack.bytes = 0;
}

bool record_stack_end(const struct record *record, size_t at, size_t *ret_end)
{
    uint64_t abi, size;
    if (!record_read(record, at, &abi, sizeof abi))
        return false;
    at += sizeof abi + (abi ? registers_sample_count * sizeof(uint64_t) : 0);
    if (!record_read(record, at, &size, sizeof size) || size > record->header.size)
        return false;
    at += sizeof size + (size ? size + sizeof(uint64_t) : 0);
    *ret_end = at;
    return at <= record->header.size - sizeof record->header;
}

bool record_read_snapshot_at(const struct record *record, size_t at, struct snapshot *snapshot)
{
    size_t stack_at;
    if (!read_registers(record, at, &snapshot->registers, &stack_at))
        return false;
    read_stack(record, stack_at, snapshot);
    return true;
}

bool record_read_snapshot(const struct record *record, struct snapshot *snapshot)
{
    return record_read_snapshot_at(record, offsetof(struct sample_head, abi), snapshot);
}

void ring_close(struct ring *ring)
{
    if (!ring->page)
        return;
    munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + ring->data_bytes);
    ring_close_event(ring->fd, ring->tid);
    *ring = (struct ring){.fd = -1};
}

#include "observe/events.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE_BYTES_MIN 4096
#define CPU_RING_BYTES_MIN (128u << 10)
#define CPU_RINGS_BYTES_MAX (64u << 20) /* for all CPUs together, unless there are very many */
#define CPUS_READ_EACH_NS 1000000000u
/* How many CPUs' events are checked each time: reading an event interrupts its CPU. */
#define CHECKS_EACH 8
/* An event that has missed more than this part of the time has ended. */
#define MISSED_PART 10

size_t events_ring_bytes(size_t bytes)
{
    size_t power = PAGE_BYTES_MIN;
    while (power < bytes)
        power *= 2;
    return power;
}

/* Called for each record of each process on the machine if there is no filter. */
static struct followed_process *find_followed(const struct events *events, pid_t process_id)
{
    return FIND_SORTED(events->followed, events->followed_count, process_id, (uint32_t)process_id);
}

size_t events_cpu_ring_bytes(const struct events *events, size_t bytes)
{
    size_t ring_bytes = events_ring_bytes(bytes);
    while (ring_bytes * events->cpus.count > CPU_RINGS_BYTES_MAX)
        ring_bytes /= 2;
    return ring_bytes < CPU_RING_BYTES_MIN ? CPU_RING_BYTES_MIN : ring_bytes;
}

/* Without CAP_IPC_LOCK the rings share perf_event_mlock_kb of memory for each CPU; if that is
 * exceeded, tries smaller rings. */
static int open_ring(const struct events *events, pid_t tid, int cpu, struct ring *ret_ring)
{
    struct perf_event_attr attr = events->attr;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
    size_t bytes = cpu < 0 ? events->ring_bytes : events_cpu_ring_bytes(events, events->ring_bytes);
    int err = ring_open(&attr, tid, cpu, bytes, RING_READ, ret_ring);
    while (err == -ENOBUFS && bytes > events->ring_bytes_min) {
        bytes /= 2;
        err = ring_open(&attr, tid, cpu, bytes, RING_READ, ret_ring);
    }
    return err;
}

static int enable(struct event *event)
{
    if (ioctl(event->ring.fd, PERF_EVENT_IOC_ENABLE, 0))
        return -errno;
    event->checked_ns = monotonic_ns();
    return 0;
}

int events_add(struct events *events, pid_t tid, int cpu)
{
    struct event event = {.cpu = cpu, .tid = tid};
    if (array_reserve(&events->items, &events->capacity, events->count + 1))
        return -ENOMEM;
    int err = open_ring(events, tid, cpu, &event.ring);
    if (!err && events->filter) {
        event.passed = filter_passed_count(events->filter, cpu);
        err = filter_apply(events->filter, event.ring.fd);
    }
    if (!err && events->followed_count)
        err = enable(&event);
    if (err) {
        ring_close(&event.ring);
        return err;
    }
    events->items[events->count++] = event;
    return 0;
}

void events_drop(struct events *events, size_t number)
{
    ring_close(&events->items[number].ring);
    events->items[number] = events->items[--events->count];
}

void events_drop_all(struct events *events)
{
    while (events->count)
        events_drop(events, 0);
}

/* The event no longer samples, but the contents of its ring are still read. */
static void retire(struct event *event)
{
    ioctl(event->ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    event->is_replaced = true;
}

void events_replace(struct events *events)
{
    size_t count = events->count;
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events->items[i];
        if (!event->is_replaced && events_add(events, event->tid, event->cpu) == 0)
            retire(&events->items[i]);
    }
}

void events_reopen(struct events *events)
{
    size_t count = events->count;
    events_replace(events);
    for (size_t i = count; i-- > 0;) {
        const struct event old = events->items[i];
        if (old.is_replaced)
            continue;
        events_drop(events, i);
        events_add(events, old.tid, old.cpu);
    }
    events->cpus_read_ns = 0;
}

bool events_drop_replaced(struct events *events)
{
    struct record record;
    size_t count = events->count;
    for (size_t i = events->count; i-- > 0;) {
        if (events->items[i].is_replaced && !ring_next(&events->items[i].ring, &record))
            events_drop(events, i);
    }
    return events->count < count;
}

static bool has_cpu(const struct events *events, int cpu)
{
    for (size_t i = 0; i < events->count; i++) {
        if (events->items[i].cpu == cpu && !events->items[i].is_replaced)
            return true;
    }
    return false;
}

static bool is_online(const struct events *events, int cpu)
{
    for (size_t i = 0; i < events->cpus.count; i++) {
        if (events->cpus.items[i] == cpu)
            return true;
    }
    return false;
}

/* Whether a CPU's event no longer samples: it was not enabled all the time. */
static bool has_ended(struct event *event)
{
    uint64_t now_ns = monotonic_ns(), passed_ns = now_ns - event->checked_ns;
    struct {
        uint64_t count, enabled_ns;
    } values;
    if (!event->checked_ns || event->is_replaced)
        return false;
    if (read(event->ring.fd, &values, sizeof values) != sizeof values)
        return true;
    uint64_t enabled_ns = values.enabled_ns - event->enabled_ns;
    event->checked_ns = now_ns;
    event->enabled_ns = values.enabled_ns;
    return enabled_ns + passed_ns / MISSED_PART < passed_ns;
}

/* The event of a CPU that goes offline ends for good, even if the CPU comes back. That may happen
 * before we see that it was gone: a suspend takes all CPUs but one offline. */
static void retire_ended(struct events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        if (!events->items[i].is_replaced && !is_online(events, events->items[i].cpu))
            retire(&events->items[i]);
    }
    for (size_t checks = 0; checks < CHECKS_EACH && checks < events->count; checks++) {
        if (events->next_check >= events->count)
            events->next_check = 0;
        struct event *event = &events->items[events->next_check++];
        if (has_ended(event))
            retire(event);
    }
}

/* Gives each CPU without an event one. A failure on one CPU does not prevent the others. */
static int add_cpus(struct events *events)
{
    int err = 0;
    for (size_t i = 0; i < events->cpus.count; i++) {
        int cpu = events->cpus.items[i];
        int cpu_err = has_cpu(events, cpu) ? 0 : events_add(events, -1, cpu);
        if (cpu_err && cpu_err != -ENODEV) /* -ENODEV: it has just gone offline */
            err = cpu_err;
    }
    return err;
}

int events_update_cpus(struct events *events)
{
    int err = cpus_read_online(&events->cpus);
    events->cpus_read_ns = monotonic_ns();
    if (err)
        return err;
    retire_ended(events);
    return add_cpus(events);
}

int events_update_cpus_sometimes(struct events *events)
{
    bool is_due = monotonic_ns() - events->cpus_read_ns >= CPUS_READ_EACH_NS;
    return is_due ? events_update_cpus(events) : 0;
}

int events_follow(struct events *events, pid_t process_id)
{
    if (array_reserve(&events->followed, &events->followed_capacity, events->followed_count + 1))
        return -ENOMEM;
    int err = events->filter ? filter_add(events->filter, process_id) : 0;
    for (size_t i = 0; i < events->count && !events->followed_count && !err; i++)
        err = enable(&events->items[i]);
    if (err || find_followed(events, process_id))
        return err;
    size_t at =
        UPPER_BOUND(events->followed, events->followed_count, process_id, (uint32_t)process_id);
    return array_insert(&events->followed, &events->followed_count, &events->followed_capacity, at,
                        (struct followed_process){.process_id = (uint32_t)process_id});
}

void events_unfollow(struct events *events, pid_t process_id)
{
    struct followed_process *followed = find_followed(events, process_id);
    if (!followed)
        return;
    array_remove(events->followed, &events->followed_count, followed);
    if (events->filter)
        filter_remove(events->filter, process_id);
}

bool events_are_of(const struct events *events, pid_t process_id)
{
    return find_followed(events, process_id) != NULL;
}

/* A PERF_RECORD_COMM: uint32_t pid, tid; a name; and last, by sample_id_all, pid, tid and time. */
static void note_exec(struct events *events, const struct record *record)
{
    uint32_t process_id;
    uint64_t at_ns;
    size_t body_bytes = record->header.size - sizeof record->header;
    struct followed_process *followed = record_read(record, 0, &process_id, sizeof process_id)
                                            ? find_followed(events, (pid_t)process_id)
                                            : NULL;
    if (!followed || body_bytes < sizeof at_ns ||
        !record_read(record, body_bytes - sizeof at_ns, &at_ns, sizeof at_ns))
        return;
    at_ns = ring_time(record->ring, at_ns);
    if (at_ns > followed->exec_ns) /* another CPU's ring may already have reported a later one */
        followed->exec_ns = at_ns;
}

/* A PERF_RECORD_LOST: uint64_t id, lost. */
static void note_lost(struct events *events, const struct record *record)
{
    uint64_t lost;
    if (record_read(record, sizeof lost, &lost, sizeof lost))
        events->lost += lost;
}

void events_note(struct events *events, const struct record *record)
{
    if (record->header.type == PERF_RECORD_COMM && record->header.misc & PERF_RECORD_MISC_COMM_EXEC)
        note_exec(events, record);
    if (record->header.type == PERF_RECORD_LOST)
        note_lost(events, record);
}

uint64_t events_exec_ns(const struct events *events, pid_t process_id)
{
    const struct followed_process *followed = find_followed(events, process_id);
    return followed ? followed->exec_ns : 0;
}

void events_free(struct events *events)
{
    events_drop_all(events);
    cpus_free(&events->cpus);
    free(events->items);
    free(events->followed);
    *events = (struct events){0};
}

#include "objects/births.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/upper_bound.h"
#include "observe/events.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TASK_RING_BYTES (256u << 10)
#define STACK_RING_BYTES (8u << 20)
/* The CPUs' rings are read one after the other, so records of a thread from one CPU may be read
 * before its birth on another. A record is in its ring at most this long after its time. */
#define KEPT_BACK_NS 1000000u
#define NO_SAMPLE UINT32_MAX

/* A record of a birth, a name or an end. */
struct told {
    uint64_t at_ns;
    uint64_t order;  /* among equal times */
    uint32_t sample; /* NO_SAMPLE: none yet */
    bool is_old;     /* it was read before the last read: its sample will not come */
    struct birth birth;
};

/* The location of a sample. */
struct taken_sample {
    uint64_t at_ns;
    pid_t tid;
    uint32_t event; /* in births.stacks */
    uint64_t at;    /* in its ring */
};

struct births {
    bool has_children;
    struct events tasks;
    struct events stacks; /* no items: stacks are not seen */
    uint64_t *heads;      /* of these events' rings: everything before is in `samples` */
    size_t head_capacity;
    struct told *told;
    size_t told_count, told_capacity;
    size_t next;       /* the first one that was not taken */
    uint64_t until_ns; /* newer ones are held back */
    struct taken_sample *samples;
    size_t sample_count, sample_capacity;
    uint64_t order;
    bool has_read; /* heads are noted */
};

/* ---- The number of a tracepoint: in tracefs, which may not be mounted ---- */

static int read_event(int directory_fd, const char *path, uint64_t *ret_number)
{
    char text[32];
    ssize_t length = procfs_read(directory_fd, path, text, sizeof text);
    if (length <= 0)
        return length ? (int)length : -ENOENT;
    *ret_number = strtoull(text, NULL, 10);
    return *ret_number ? 0 : -EINVAL;
}

/* Opens tracefs without mounting it anywhere: it goes away with its descriptor (fsmount(2)). Needs
 * CAP_SYS_ADMIN. Returns a descriptor or a negative errno. */
static int open_tracefs(void)
{
    int context_fd = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (context_fd < 0)
        return -errno;
    int fd = -1;
    if (syscall(SYS_fsconfig, context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = (int)syscall(SYS_fsmount, context_fd, FSMOUNT_CLOEXEC, 0);
    int err = fd < 0 ? -errno : 0;
    close(context_fd);
    return err ? err : fd;
}

static int find_event(uint64_t *ret_number)
{
    static const char *const places[] = {
        "/sys/kernel/tracing/events/task/task_newtask/id",
        "/sys/kernel/debug/tracing/events/task/task_newtask/id",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (read_event(AT_FDCWD, places[i], ret_number) == 0)
            return 0;
    }
    int fd = open_tracefs();
    if (fd < 0)
        return fd;
    int err = read_event(fd, "events/task/task_newtask/id", ret_number);
    close(fd);
    return err;
}

/* ---- Events ---- */

static struct events tasks(void)
{
    return (struct events){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_DUMMY,
                 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                 .exclude_kernel = 1,
                 .task = 1,
                 .comm = 1,
                 .comm_exec = 1},
        .ring_bytes = TASK_RING_BYTES,
        .ring_bytes_min = events_ring_bytes(1),
    };
}

static struct events stacks(uint64_t event)
{
    return (struct events){
        .attr = {.type = PERF_TYPE_TRACEPOINT,
                 .config = event,
                 .sample_period = 1,
                 .sample_type = RING_SAMPLE_TYPE | PERF_SAMPLE_STACK_USER,
                 .sample_regs_user = registers_sample_mask,
                 .sample_stack_user = BIRTHS_STACK_BYTES},
        .ring_bytes = STACK_RING_BYTES,
        .ring_bytes_min = events_ring_bytes(2 * BIRTHS_STACK_BYTES),
    };
}

/* Returns 0, or why there will be no stacks. */
static int open_stacks(struct births *births)
{
    uint64_t event;
    int err = find_event(&event);
    if (err)
        return err;
    births->stacks = stacks(event);
    err = events_update_cpus(&births->stacks);
    if (err)
        events_free(&births->stacks);
    return err;
}

int births_new(bool has_children, struct births **ret_births, int *ret_stack_refusal)
{
    struct births *births = calloc(1, sizeof *births);
    if (!births)
        return -ENOMEM;
    births->has_children = has_children;
    births->tasks = tasks();
    /* Opened before births are reported, so that none lacks its sample. */
    *ret_stack_refusal = open_stacks(births);
    int err = events_update_cpus(&births->tasks);
    if (err) {
        births_free(births);
        return err;
    }
    *ret_births = births;
    return 0;
}

void births_free(struct births *births)
{
    if (!births)
        return;
    events_free(&births->tasks);
    events_free(&births->stacks);
    free(births->heads);
    free(births->told);
    free(births->samples);
    free(births);
}

int births_follow(struct births *births, pid_t process_id)
{
    if (events_are_of(&births->tasks, process_id))
        return 0;
    int err = events_follow(&births->tasks, process_id);
    return err ? err : events_follow(&births->stacks, process_id);
}

void births_unfollow(struct births *births, pid_t process_id)
{
    events_unfollow(&births->tasks, process_id);
    events_unfollow(&births->stacks, process_id);
}

uint64_t births_exec_ns(const struct births *births, pid_t process_id)
{
    return events_exec_ns(&births->tasks, process_id);
}

/* ---- Records ---- */

/* Adds a record. */
static int tell(struct births *births, const struct birth *birth)
{
    const struct told told = {
        .at_ns = birth->at_ns, .order = births->order++, .sample = NO_SAMPLE, .birth = *birth};
    return array_append(&births->told, &births->told_count, &births->told_capacity, told);
}

/* A PERF_RECORD_FORK or PERF_RECORD_EXIT: uint32_t pid, ppid, tid, ptid; uint64_t time. For a
 * new thread, ppid and ptid are its creator's. */
static int take_task(struct births *births, const struct record *record)
{
    uint32_t ids[4];
    uint64_t at_ns;
    if (!record_read(record, 0, ids, sizeof ids) ||
        !record_read(record, sizeof ids, &at_ns, sizeof at_ns))
        return 0;
    const struct birth birth = {
        .change = record->header.type == PERF_RECORD_FORK ? BIRTH_MADE : BIRTH_ENDED,
        .process_id = (pid_t)ids[0],
        .maker_process_id = (pid_t)ids[1],
        .tid = (pid_t)ids[2],
        .maker_tid = (pid_t)ids[3],
        .at_ns = ring_time(record->ring, at_ns),
    };
    return tell(births, &birth);
}

/* A PERF_RECORD_COMM: uint32_t pid, tid; a name; and last, by sample_id_all, pid, tid and time. */
static int take_name(struct births *births, const struct record *record)
{
    uint32_t ids[2];
    uint64_t at_ns;
    size_t body_bytes = record->header.size - sizeof record->header;
    struct birth birth = {.change = BIRTH_NAMED};
    if (body_bytes < sizeof ids + sizeof ids + sizeof at_ns ||
        !record_read(record, 0, ids, sizeof ids) ||
        !record_read(record, body_bytes - sizeof at_ns, &at_ns, sizeof at_ns))
        return 0;
    size_t name_bytes = body_bytes - sizeof ids - sizeof ids - sizeof at_ns;
    if (name_bytes > sizeof birth.name - 1)
        name_bytes = sizeof birth.name - 1;
    record_read(record, sizeof ids, birth.name, name_bytes);
    birth.process_id = (pid_t)ids[0];
    birth.tid = (pid_t)ids[1];
    birth.at_ns = ring_time(record->ring, at_ns);
    return tell(births, &birth);
}

static int read_tasks(struct births *births, struct ring *ring)
{
    struct record record;
    int err = 0;
    while (!err && ring_next(ring, &record)) {
        uint32_t type = record.header.type;
        events_note(&births->tasks, &record);
        if (type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT)
            err = take_task(births, &record);
        else if (type == PERF_RECORD_COMM)
            err = take_name(births, &record);
        ring_skip(ring, &record);
    }
    return err;
}

/* Notes where the samples of a ring are, up to where it was filled before births were read. They
 * stay in the ring until their births are taken. */
static int find_samples(struct births *births, uint32_t event)
{
    const struct ring *ring = &births->stacks.items[event].ring;
    struct record record;
    for (uint64_t at = ring->page->data_tail;
         at < births->heads[event] && ring_at(ring, at, &record); at += record.header.size) {
        struct sample_head head;
        if (record.header.type != PERF_RECORD_SAMPLE ||
            !record_read(&record, 0, &head, sizeof head))
            continue;
        const struct taken_sample sample = {ring_time(ring, head.at_ns), (pid_t)head.tid, event,
                                            record.at};
        if (array_append(&births->samples, &births->sample_count, &births->sample_capacity, sample))
            return -ENOMEM;
    }
    return 0;
}

static int compare_told(const void *a, const void *b)
{
    const struct told *left = a, *right = b;
    int order = ORDER(left->at_ns, right->at_ns);
    return order ? order : ORDER(left->order, right->order);
}

static int compare_samples(const void *a, const void *b)
{
    const struct taken_sample *left = a, *right = b;
    return ORDER(left->at_ns, right->at_ns);
}

/* Assigns a sample to the last birth before it by its thread. It comes right after that birth,
 * because the thread was in the kernel meanwhile. */
static void give(struct births *births, uint32_t number)
{
    const struct taken_sample *sample = &births->samples[number];
    size_t after = UPPER_BOUND(births->told, births->told_count, at_ns, sample->at_ns);
    for (size_t i = after; i-- > births->next;) {
        struct told *told = &births->told[i];
        if (told->birth.change != BIRTH_MADE || told->birth.maker_tid != sample->tid)
            continue;
        told->sample = number;
        told->birth.has_stack = true;
        return;
    }
}

/* Returns the ring's space before the first sample whose birth was not taken yet. */
static void drop_samples(struct births *births, uint32_t event)
{
    uint64_t tail = births->heads[event];
    for (size_t i = births->next; i < births->told_count; i++) {
        const struct told *told = &births->told[i];
        const struct taken_sample *sample =
            told->sample == NO_SAMPLE ? NULL : &births->samples[told->sample];
        if (sample && sample->event == event && sample->at < tail)
            tail = sample->at;
    }
    ring_skip_to(&births->stacks.items[event].ring, tail);
}

static void drop_taken(struct births *births)
{
    size_t left = births->told_count - births->next;
    for (uint32_t i = 0; i < births->stacks.count && births->has_read; i++)
        drop_samples(births, i);
    if (left)
        memmove(births->told, births->told + births->next, left * sizeof *births->told);
    for (size_t i = 0; i < left; i++) {
        births->told[i].sample = NO_SAMPLE;
        births->told[i].birth.has_stack = false;
        births->told[i].is_old = true;
    }
    births->told_count = left;
    births->next = 0;
    births->sample_count = 0;
}

/* Notes how far the sample rings are filled. */
static int note_heads(struct births *births)
{
    size_t count = births->stacks.count;
    if (array_reserve(&births->heads, &births->head_capacity, count))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        births->heads[i] = ring_head(&births->stacks.items[i].ring);
    births->has_read = true;
    return 0;
}

/* If opening fails for a CPU that has come online, it is tried again. */
static int update_cpus(struct births *births)
{
    bool has_stacks = births->stacks.count;
    int err = has_stacks ? events_update_cpus_sometimes(&births->stacks) : 0;
    int tasks_err = events_update_cpus_sometimes(&births->tasks);
    return err == -ENOMEM || tasks_err == -ENOMEM ? -ENOMEM : 0;
}

int births_read(struct births *births)
{
    births->until_ns = monotonic_ns() - KEPT_BACK_NS;
    drop_taken(births);
    events_drop_replaced(&births->tasks);
    events_drop_replaced(&births->stacks);
    int err = update_cpus(births);
    if (!err)
        err = note_heads(births);
    for (size_t i = 0; i < births->tasks.count && !err; i++)
        err = read_tasks(births, &births->tasks.items[i].ring);
    for (uint32_t i = 0; i < births->stacks.count && !err; i++)
        err = find_samples(births, i);
    array_sort(births->told, births->told_count, compare_told);
    array_sort(births->samples, births->sample_count, compare_samples);
    for (size_t i = 0; i < births->sample_count; i++)
        give(births, (uint32_t)i);
    return err;
}

/* ---- Taking records ---- */

static bool is_followed(struct births *births, const struct birth *birth)
{
    if (events_are_of(&births->tasks, birth->process_id))
        return true;
    return birth->change == BIRTH_MADE && births->has_children &&
           birth->process_id != birth->maker_process_id &&
           events_are_of(&births->tasks, birth->maker_process_id) &&
           births_follow(births, birth->process_id) == 0;
}

const struct birth *births_next(struct births *births)
{
    for (; births->next < births->told_count; births->next++) {
        const struct told *told = &births->told[births->next];
        if (told->at_ns > births->until_ns)
            return NULL;
        if (!is_followed(births, &told->birth))
            continue;
        bool may_come = births->stacks.count && told->birth.change == BIRTH_MADE &&
                        told->sample == NO_SAMPLE && !told->is_old;
        return may_come ? NULL : &told->birth;
    }
    return NULL;
}

void births_skip(struct births *births)
{
    births->next++;
}

bool births_copy_stack(const struct births *births, struct snapshot *snapshot)
{
    const struct told *told = &births->told[births->next];
    const struct taken_sample *sample = &births->samples[told->sample];
    struct record record;
    return ring_at(&births->stacks.items[sample->event].ring, sample->at, &record) &&
           record_read_snapshot(&record, snapshot);
}

uint64_t births_taken_ns(const struct births *births)
{
    bool is_left = births->next < births->told_count;
    uint64_t next_ns = is_left ? births->told[births->next].at_ns : UINT64_MAX;
    return next_ns < births->until_ns ? next_ns : births->until_ns;
}

bool births_has_end(const struct births *births, pid_t tid)
{
    for (size_t i = births->next; i < births->told_count; i++) {
        const struct birth *birth = &births->told[i].birth;
        if (birth->change == BIRTH_ENDED && birth->tid == tid)
            return true;
    }
    return false;
}

uint64_t births_lost(const struct births *births)
{
    return births->tasks.lost;
}

#include "objects/faults.h"
#include "base/array.h"
#include "base/clock.h"
#include "observe/events.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RING_BYTES_MAX (16u << 20)
#define STACK_BYTES_FIRST (16u << 10)
#define STACK_BYTES_MAX (63u << 10) /* a record has at most 64 KiB */
#define RECORD_BYTES 512            /* of a fault, without its stack, rounded up */
/* perf_event_mlock_kb, which every user may lock for each CPU. */
#define THREAD_RING_BYTES (512u << 10)
#define THREADS_MAX 100000
/* Faults reported a second, of all processes together. */
#define FAULTS_PER_S 1000
#define LEVEL_MAX 40
/* More pages are chosen if, in this time, less than this part of the allowed faults came. */
#define QUIET_NS 1000000000u
#define QUIET_PART 4

/* A burst may report up to this many more faults; fewer pages are chosen after it. Rings have room
 * for that. */
#define TOKENS_MAX 128
#define RING_PARTS 8
/* FAULTS_PER_S for each group of pages. */
static const uint64_t faults_per_s[PAGE_GROUPS] = {
    [PAGES_INSIDE] = FAULTS_PER_S,
    [PAGES_OF_BEGINS] = FAULTS_PER_S / 4,
};
/* Faults a second that the BPF program may check on a CPU. A check takes 0.15 us and a report 2 us:
 * together less than 1 % of the time. */
#define LOOKS_PER_S 40000
/* How often to check for too many faults: each second, or as soon as a second's limit is reached.
 * The rate is computed over the time that those faults took. */
#define JUDGE_BUSY_NS 1000000000u
#define JUDGE_BURST_NS 250000000u
/* How often to check for too few. */
#define JUDGE_QUIET_NS 2000000000u
#define NO_FAULT UINT64_MAX
/* A fault's record is in the ring at most this long after the fault. */
#define KEPT_BACK_NS 1000000u

/* One in this many faults is seen. Programs fault in patterns; primes do not stay in step with
 * them. */
static const uint32_t periods[] = {1, 5, 23, 101, 503, 2503};
#define PERIOD_COUNT (sizeof periods / sizeof *periods)
#define PERIOD_FIRST_BY_NUMBER 2

/* With PERF_SAMPLE_ADDR. It is followed by registers and stack, and then by PERF_SAMPLE_PHYS_ADDR
 * and PERF_SAMPLE_DATA_PAGE_SIZE, if these are wanted, both from before the fault.
 * PERF_SAMPLE_PERIOD would make the kernel report every fault (perf_swevent_event in its
 * kernel/events/core.c). */
struct fault_head {
    uint32_t process_id, tid;
    uint64_t at_ns;
    uint64_t address;
};

/* The state of a ring. */
struct ring_state {
    struct fault_head next; /* its next fault, corrected */
    uint64_t next_ns;       /* when that was; NO_FAULT: there is none */
    uint64_t count;         /* how many faults there were since the rate was last judged */
    uint64_t parts;         /* by page: the next fault was chosen of this many */
    uint64_t lost;          /* by number: lost faults that the next one also represents */
};

/* The state of a group of pages. */
struct group_state {
    uint64_t quiet_since_ns; /* begin of the current check for quiet */
    uint64_t passed;         /* faults since then */
    unsigned level_before;   /* the level before more pages were last chosen, */
    uint64_t raised_ns;      /* and when that was */
};

/* An event of a thread on a CPU, with the CPU's ring. */
struct thread_event {
    int fd;
    pid_t process_id, tid;
};

/* By number: a followed process. */
struct thread_owner {
    pid_t process_id;
    int proc_fd;
};

struct faults {
    uint64_t seed;
    enum faults_choice choice;
    int filter_refusal;   /* why `choice` is not FAULTS_BY_PAGE (a negative errno) */
    struct events events; /* by number: they count nothing, and only provide the rings */
    struct filter filter;
    bool moves_pages;         /* NUMA balancing: the kernel makes threads fault on present pages */
    struct ring_state *rings; /* by event number */
    size_t ring_count, ring_capacity;
    size_t current; /* the ring that contains `fault` */
    struct fault fault;
    struct group_state groups[PAGE_GROUPS];
    uint64_t refilled_ns;
    unsigned level_min;
    /* By number: */
    struct perf_event_attr thread_attr;
    struct thread_event *thread_events;
    size_t thread_event_count, thread_event_capacity;
    struct thread_owner *owners;
    size_t owner_count, owner_capacity;
    /* One in periods[period] faults is seen: */
    size_t period, period_before; /* indexes in `periods` */
    uint64_t period_changed_ns;
    uint64_t judged_ns, read_ns; /* when the rate was last judged, and records were last read */
    bool was_rough;
    uint64_t unknown;     /* faults of a followed process, not known which */
    size_t stack_bytes;   /* reported of a stack */
    unsigned whole, deep; /* stacks since depth was last judged; deep ones were cut */
};

/* ---- Samples ---- */

static const struct perf_event_attr *attr_of(const struct faults *faults)
{
    return faults->choice == FAULTS_BY_PAGE ? &faults->events.attr : &faults->thread_attr;
}

/* One in how many pages a limit chooses. */
static uint64_t parts_by(uint64_t limit)
{
    return limit ? UINT64_MAX / limit : 1;
}

/* The kernel fills in a sample once for all page fault events on that CPU, and so may do it with
 * the settings of another profiler's event: the one opened last, except that threads' events come
 * first (do_perf_sw_event in its kernel/events/core.c; in newer kernels, perf_prepare_sample there
 * keeps fields that are already filled in). Then the ids are those of another PID namespace, the
 * time is that of another clock, which may be close to ours, the stack is longer or shorter, and
 * there may be more data behind it. Sets the process id to 0 if it can't be known. */
static void correct(struct faults *faults, size_t number)
{
    struct event *event = &faults->events.items[number];
    struct ring_state *ring = &faults->rings[number];
    struct fault_head *next = &ring->next;
    bool is_known = events_are_of(&faults->events, (pid_t)next->process_id);
    struct passed_fault passed;
    if (filter_find_fault(&faults->filter, event->cpu, next->address, &event->passed, &passed)) {
        if (!is_known) {
            next->process_id = passed.process_id;
            next->tid = passed.tid;
        }
        next->at_ns = passed.at_ns;
        ring->parts = parts_by(passed.limit);
    } else if (!is_known && faults->filter.passed) {
        next->process_id = 0;
    }
}

/* Reads a record of this ring. */
static bool read_next(struct faults *faults, size_t number, const struct record *record)
{
    struct ring_state *ring = &faults->rings[number];
    if (record->header.type != PERF_RECORD_SAMPLE ||
        !record_read(record, 0, &ring->next, sizeof ring->next))
        return false;
    correct(faults, number);
    return true;
}

/* The 64-bit value with this index behind the stack; 0: none. */
static uint64_t number_behind_stack(const struct record *record, size_t number)
{
    uint64_t value = 0;
    size_t at;
    if (record_stack_end(record, sizeof(struct fault_head), &at))
        record_read(record, at + number * sizeof value, &value, sizeof value);
    return value;
}

/* Whether a page was present before the fault, as in copy on write after fork(2). If the memory was
 * only read before, the page is the zero page, which is not memory of the process: it has a size,
 * but no address. The same holds for pages that NUMA balancing hides for a moment to see which
 * threads use them. */
static bool was_there(const struct faults *faults, const struct record *record)
{
    uint64_t type = attr_of(faults)->sample_type;
    bool has_size = type & PERF_SAMPLE_DATA_PAGE_SIZE, has_address = type & PERF_SAMPLE_PHYS_ADDR;
    uint64_t address = has_address ? number_behind_stack(record, 0) : 0;
    uint64_t size = has_size ? number_behind_stack(record, has_address) : 0;
    return address || (size && (!has_address || faults->moves_pages));
}

static unsigned level_of(const struct faults *faults, enum page_group group)
{
    if (!faults->filter.choices)
        return faults->level_min;
    uint64_t limit = faults->filter.choices[group].limit;
    return limit ? (unsigned)__builtin_clzll(limit) : LEVEL_MAX;
}

static bool is_chosen(const struct faults *faults, uint64_t address)
{
    unsigned level = level_of(faults, filter_page_group(address));
    return filter_page_rank(faults->seed, address) <= UINT64_MAX >> level;
}

/* The level at which the fault was chosen. For pages that are still chosen, that is the current
 * level, unless more pages have been chosen since. */
static unsigned level_at(const struct faults *faults, uint64_t address, uint64_t at_ns)
{
    enum page_group group = filter_page_group(address);
    const struct group_state *state = &faults->groups[group];
    unsigned level = level_of(faults, group);
    return at_ns < state->raised_ns && state->level_before > level ? state->level_before : level;
}

static uint32_t weight_at(const struct faults *faults, uint64_t at_ns, unsigned level)
{
    size_t period = at_ns < faults->period_changed_ns ? faults->period_before : faults->period;
    uint64_t weight = (uint64_t)periods[period] << level;
    weight *= 1 + faults->rings[faults->current].lost;
    return weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
}

static bool is_of_interest(const struct faults *faults, const struct fault_head *head,
                           const struct record *record)
{
    return events_are_of(&faults->events, (pid_t)head->process_id) &&
           is_chosen(faults, head->address) && !was_there(faults, record);
}

static void note_lost(struct faults *faults, size_t number, const struct record *record)
{
    uint64_t lost = faults->events.lost;
    events_note(&faults->events, record);
    if (faults->choice != FAULTS_BY_PAGE)
        faults->rings[number].lost += faults->events.lost - lost;
}

/* Counts the ring's next fault, which is skipped. */
static void note_passed(struct faults *faults, size_t number)
{
    struct ring_state *ring = &faults->rings[number];
    bool is_followed = !faults->filter.choices || faults->filter.is_exact;
    enum page_group group = filter_page_group(ring->next.address);
    faults->unknown += is_followed && !ring->next.process_id;
    if (group == PAGES_INSIDE)
        ring->count += ring->parts;
    faults->events.items[number].passed++;
    faults->groups[group].passed++;
}

/* Skips records of a ring up to its next fault. */
static void find_next(struct faults *faults, size_t number)
{
    struct ring *ring = &faults->events.items[number].ring;
    struct ring_state *state = &faults->rings[number];
    struct record record;
    state->next_ns = NO_FAULT;
    for (; ring_next(ring, &record); ring_skip(ring, &record)) {
        bool is_fault = read_next(faults, number, &record);
        if (is_fault && is_of_interest(faults, &state->next, &record)) {
            state->next_ns = ring_time(ring, state->next.at_ns);
            return;
        }
        if (is_fault)
            note_passed(faults, number);
        if (record.header.type == PERF_RECORD_LOST)
            note_lost(faults, number, &record);
    }
}

/* Faults are reported in time order, and an exec changes the program to which they belong, so execs
 * are noted first. */
static void note_execs(struct faults *faults, const struct ring *ring)
{
    struct record record;
    uint64_t head = ring_head(ring);
    for (uint64_t at = ring->page->data_tail; at < head && ring_at(ring, at, &record);
         at += record.header.size) {
        if (record.header.type == PERF_RECORD_COMM)
            events_note(&faults->events, &record);
    }
}

/* ---- The choice of pages ---- */

struct page_levels faults_levels(const struct faults *faults)
{
    struct page_levels levels;
    for (unsigned group = 0; group < PAGE_GROUPS; group++)
        levels.of[group] = level_of(faults, group);
    return levels;
}

/* The BPF program takes tokens meanwhile; if both change them at once, little is lost. */
static void refill(struct faults *faults, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - faults->refilled_ns;
    if (passed_ns < NS_PER_S / FAULTS_PER_S * 4)
        return; /* less than a token for each group */
    faults->refilled_ns = now_ns;
    if (passed_ns > NS_PER_S)
        passed_ns = NS_PER_S;
    for (unsigned group = 0; group < PAGE_GROUPS; group++) {
        volatile struct page_choice *choice = &faults->filter.choices[group];
        int64_t tokens = choice->tokens + (int64_t)(passed_ns * faults_per_s[group] / NS_PER_S);
        choice->tokens = tokens < TOKENS_MAX ? tokens : TOKENS_MAX;
    }
}

/* Chooses more pages of a group if few faults come. */
static void raise_if_quiet(struct faults *faults, enum page_group group, uint64_t now_ns)
{
    struct group_state *state = &faults->groups[group];
    unsigned level = level_of(faults, group);
    uint64_t passed_ns = now_ns - state->quiet_since_ns;
    if (passed_ns < QUIET_NS)
        return;
    bool is_quiet = state->passed * QUIET_PART * NS_PER_S < faults_per_s[group] * passed_ns;
    state->passed = 0;
    state->quiet_since_ns = now_ns;
    if (!is_quiet || level <= faults->level_min)
        return;
    state->level_before = level;
    faults->filter.choices[group].limit = UINT64_MAX >> (level - 1);
    state->raised_ns = monotonic_ns();
}

void faults_choose_fewer(struct faults *faults)
{
    if (faults->level_min >= LEVEL_MAX)
        return;
    faults->level_min = level_of(faults, PAGES_INSIDE) + 1;
    for (unsigned group = 0; group < PAGE_GROUPS && faults->filter.choices; group++) {
        volatile struct page_choice *choice = &faults->filter.choices[group];
        uint64_t limit = UINT64_MAX >> faults->level_min;
        choice->limit = choice->limit < limit ? choice->limit : limit;
    }
}

/* ---- The period: of how many faults one is seen ---- */

/* By page: changes the events of all CPUs. If one can't be changed, it only costs more. */
static void set_period_of_cpus(struct faults *faults)
{
    uint64_t period = periods[faults->period];
    faults->events.attr.sample_period = period; /* for events that are opened later */
    for (size_t i = 0; i < faults->events.count; i++)
        ioctl(faults->events.items[i].ring.fd, PERF_EVENT_IOC_PERIOD, &period);
}

static void drop_thread_events(struct faults *faults, pid_t process_id)
{
    for (size_t i = faults->thread_event_count; i-- > 0;) {
        if (faults->thread_events[i].process_id != process_id)
            continue;
        ring_close_event(faults->thread_events[i].fd, faults->thread_events[i].tid);
        faults->thread_events[i] = faults->thread_events[--faults->thread_event_count];
    }
}

/* Opens the thread's event on one CPU, which writes to the CPU's ring. Threads that it creates
 * inherit the event. */
static int add_thread_event(struct faults *faults, pid_t process_id, pid_t tid,
                            const struct event *ring_event)
{
    if (array_reserve(&faults->thread_events, &faults->thread_event_capacity,
                      faults->thread_event_count + 1))
        return -ENOMEM;
    int fd = ring_open_event(&faults->thread_attr, tid, ring_event->cpu);
    if (fd < 0)
        return fd;
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_event->ring.fd)) {
        int err = -errno;
        ring_close_event(fd, tid);
        return err;
    }
    faults->thread_events[faults->thread_event_count++] =
        (struct thread_event){fd, process_id, tid};
    return 0;
}

static int add_thread(struct faults *faults, pid_t process_id, pid_t tid)
{
    int err = 0;
    for (size_t i = 0; i < faults->events.count && !err; i++)
        err = add_thread_event(faults, process_id, tid, &faults->events.items[i]);
    return err == -ESRCH ? 0 : err;
}

/* Threads that are created meanwhile inherit the events of their creators. */
static int add_threads(struct faults *faults, const struct thread_owner *owner)
{
    struct thread_list list = {0};
    int err = process_list_threads_of(owner->proc_fd, &list, THREADS_MAX);
    for (size_t i = 0; i < list.count && !err; i++)
        err = add_thread(faults, owner->process_id, list.tids[i]);
    thread_list_free(&list);
    return err == -ESRCH ? 0 : err;
}

/* By number: changing a thread's event does not change those that other threads have inherited, so
 * all are opened again. */
static int set_period_of_threads(struct faults *faults)
{
    int err = 0;
    faults->thread_attr.sample_period = periods[faults->period];
    for (size_t i = 0; i < faults->owner_count && err != -ENOMEM; i++) {
        drop_thread_events(faults, faults->owners[i].process_id);
        err = add_threads(faults, &faults->owners[i]);
    }
    return err == -ENOMEM ? err : 0;
}

static int set_period(struct faults *faults, size_t period)
{
    faults->period_before = faults->period;
    faults->period = period;
    faults->was_rough = true;
    int err = 0;
    if (faults->choice == FAULTS_BY_PAGE)
        set_period_of_cpus(faults);
    else
        err = set_period_of_threads(faults);
    faults->period_changed_ns = monotonic_ns();
    return err;
}

/* How many faults came since the rate was last judged; by page, on the CPU with the most. */
static uint64_t count_faults(const struct faults *faults)
{
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < faults->ring_count; i++) {
        uint64_t count = faults->rings[i].count;
        sum += count;
        most = count > most ? count : most;
    }
    return faults->choice == FAULTS_BY_PAGE ? most : sum;
}

/* The period with which at most `most` faults a second would be seen. */
static size_t period_for(const struct faults *faults, uint64_t rate, uint64_t most)
{
    size_t period = faults->period;
    while (rate > most * periods[period] / periods[faults->period] && period + 1 < PERIOD_COUNT)
        period++;
    return period;
}

static int judge_period(struct faults *faults, uint64_t now_ns)
{
    uint64_t most = faults->choice == FAULTS_BY_PAGE ? LOOKS_PER_S : FAULTS_PER_S;
    uint64_t passed_ns = now_ns - faults->judged_ns, count = count_faults(faults);
    bool was_long = now_ns - faults->period_changed_ns >= JUDGE_QUIET_NS;
    if (passed_ns < JUDGE_BUSY_NS && count <= most)
        return 0;
    faults->judged_ns = now_ns;
    for (size_t i = 0; i < faults->ring_count; i++)
        faults->rings[i].count = 0;
    if (passed_ns < JUDGE_BURST_NS)
        passed_ns = JUDGE_BURST_NS;
    uint64_t rate = count * NS_PER_S / passed_ns;
    if (rate > most)
        return set_period(faults, period_for(faults, rate, most));
    if (!faults->period || !was_long)
        return 0;
    uint64_t ratio = periods[faults->period] / periods[faults->period - 1];
    return rate * ratio * 2 < most ? set_period(faults, faults->period - 1) : 0;
}

/* ---- How much stack is reported ---- */

/* One in this many stacks may be deeper than the reported part. */
#define DEEP_PART 32
#define STACKS_TO_JUDGE 64

static void set_tokens(struct faults *faults)
{
    struct events *events = &faults->events;
    size_t room =
        events_cpu_ring_bytes(events, RING_BYTES_MAX) / (faults->stack_bytes + RECORD_BYTES);
    int64_t more = (int64_t)(room / RING_PARTS);
    for (unsigned group = 0; group < PAGE_GROUPS; group++)
        faults->filter.choices[group].more = more < TOKENS_MAX ? more : TOKENS_MAX;
}

/* Events can't be changed, so they are replaced. */
static void deepen(struct faults *faults)
{
    struct events *events = &faults->events;
    bool is_due =
        faults->whole + faults->deep >= STACKS_TO_JUDGE && faults->stack_bytes < STACK_BYTES_MAX;
    if (!is_due)
        return;
    bool are_deep = faults->deep * DEEP_PART > faults->whole;
    faults->whole = faults->deep = 0;
    if (!are_deep)
        return;
    faults->stack_bytes *= 2;
    if (faults->stack_bytes > STACK_BYTES_MAX)
        faults->stack_bytes = STACK_BYTES_MAX;
    if (faults->choice != FAULTS_BY_PAGE) {
        faults->thread_attr.sample_stack_user = (uint32_t)faults->stack_bytes;
        set_period_of_threads(faults);
        return;
    }
    set_tokens(faults);
    events->attr.sample_stack_user = (uint32_t)faults->stack_bytes;
    events_replace(events);
}

/* Called when all rings have been read. */
static void rest(struct faults *faults)
{
    if (events_drop_replaced(&faults->events))
        faults->ring_count = 0;
    deepen(faults);
}

/* ---- Reading ---- */

static int make_room_for_rings(struct faults *faults)
{
    size_t count = faults->events.count;
    if (array_reserve(&faults->rings, &faults->ring_capacity, count))
        return -ENOMEM;
    for (size_t i = faults->ring_count; i < count; i++)
        faults->rings[i] = (struct ring_state){.parts = 1};
    faults->ring_count = count;
    return 0;
}

int faults_read(struct faults *faults)
{
    struct events *events = &faults->events;
    uint64_t now_ns = monotonic_ns();
    int err = 0;
    faults->read_ns = now_ns;
    if (faults->choice == FAULTS_BY_PAGE) {
        err = events_update_cpus_sometimes(events);
        refill(faults, now_ns);
        for (unsigned group = 0; group < PAGE_GROUPS; group++)
            raise_if_quiet(faults, group, now_ns);
    }
    if (err == -ENOMEM || make_room_for_rings(faults))
        return -ENOMEM;
    for (size_t i = 0; i < events->count; i++)
        note_execs(faults, &events->items[i].ring);
    for (size_t i = 0; i < events->count; i++)
        find_next(faults, i);
    return judge_period(faults, now_ns);
}

/* Finds the ring with the earliest fault. Returns false if there are no faults. */
static bool find_first(const struct faults *faults, size_t *ret_first)
{
    size_t first = 0, count = faults->ring_count;
    for (size_t i = 1; i < count; i++)
        first = faults->rings[i].next_ns < faults->rings[first].next_ns ? i : first;
    *ret_first = first;
    return first < count && faults->rings[first].next_ns != NO_FAULT;
}

const struct fault *faults_next(struct faults *faults)
{
    struct record record;
    size_t first;
    if (!find_first(faults, &first)) {
        rest(faults);
        return NULL;
    }
    if (!ring_next(&faults->events.items[first].ring, &record))
        return NULL;
    const struct ring_state *ring = &faults->rings[first];
    const struct fault_head *head = &ring->next;
    uint64_t abi = PERF_SAMPLE_REGS_ABI_NONE;
    unsigned level = level_at(faults, head->address, ring->next_ns);
    record_read(&record, sizeof *head, &abi, sizeof abi);
    faults->current = first;
    faults->fault = (struct fault){
        .process_id = (pid_t)head->process_id,
        .tid = (pid_t)head->tid,
        .at_ns = ring->next_ns,
        .address = head->address,
        .weight = weight_at(faults, ring->next_ns, level),
        .level = level,
        .has_stack = abi == PERF_SAMPLE_REGS_ABI_64,
    };
    return &faults->fault;
}

bool faults_copy_stack(struct faults *faults, struct snapshot *snapshot)
{
    struct record record;
    if (!ring_next(&faults->events.items[faults->current].ring, &record) ||
        !record_read_snapshot_at(&record, sizeof(struct fault_head), snapshot))
        return false;
    if (snapshot->stack.bytes == faults->stack_bytes)
        faults->deep++;
    else
        faults->whole++;
    return true;
}

size_t faults_stack_bytes(const struct faults *faults)
{
    return faults->stack_bytes;
}

void faults_skip(struct faults *faults)
{
    struct ring *ring = &faults->events.items[faults->current].ring;
    struct ring_state *state = &faults->rings[faults->current];
    struct record record;
    if (!ring_next(ring, &record))
        return;
    note_passed(faults, faults->current);
    state->lost = 0;
    ring_skip(ring, &record);
    find_next(faults, faults->current);
}

uint64_t faults_taken_ns(const struct faults *faults)
{
    size_t first;
    uint64_t until_ns = faults->read_ns - KEPT_BACK_NS;
    bool is_left = find_first(faults, &first) && faults->rings[first].next_ns < until_ns;
    return is_left ? faults->rings[first].next_ns : until_ns;
}

uint64_t faults_exec_ns(const struct faults *faults, pid_t process_id)
{
    return events_exec_ns(&faults->events, process_id);
}

/* ---- Events ---- */

/* Kernels before 5.13 do not report the size of the page that was present, or can't let new threads
 * inherit events without new processes inheriting them too. */
static struct perf_event_attr attributes_for(enum faults_choice choice, bool is_new_kernel)
{
    bool by_page = choice == FAULTS_BY_PAGE;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = STACK_BYTES_FIRST,
        .comm = 1,
        .comm_exec = 1,
    };
    if (choice != FAULTS_OF_USER)
        attr.sample_type |= PERF_SAMPLE_PHYS_ADDR;
    else
        attr.exclude_kernel = 1;
    if (is_new_kernel)
        attr.sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
    if (by_page) {
        attr.sample_period = 1;
        attr.disabled = 1;
        return attr;
    }
    attr.sample_period = periods[PERIOD_FIRST_BY_NUMBER];
    attr.inherit = attr.inherit_thread = is_new_kernel;
    return attr;
}

static int try_by_page(struct faults *faults, bool is_new_kernel)
{
    struct events *events = &faults->events;
    events->attr = attributes_for(FAULTS_BY_PAGE, is_new_kernel);
    events->ring_bytes = RING_BYTES_MAX;
    events->ring_bytes_min = events_ring_bytes(4 * STACK_BYTES_MAX);
    events->filter = &faults->filter;
    int err = events_update_cpus(events);
    if (err || !events->count) {
        events_drop_all(events);
        return err ? err : -ENODEV;
    }
    faults->choice = FAULTS_BY_PAGE;
    return 0;
}

/* Each CPU's ring belongs to a dummy event of our own. */
static int open_rings(struct faults *faults)
{
    struct events *events = &faults->events;
    int err = cpus_read_online(&events->cpus);
    events->attr = (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .exclude_kernel = 1,
    };
    events->ring_bytes = THREAD_RING_BYTES;
    events->ring_bytes_min = events_ring_bytes(2 * STACK_BYTES_MAX);
    events->filter = NULL;
    for (size_t i = 0; i < events->cpus.count && !err; i++)
        err = events_add(events, 0, events->cpus.items[i]);
    if (err)
        events_drop_all(events);
    return err;
}

/* Tries to sample a thread of our own, which needs the same permission as any other thread of the
 * same user. */
static int try_by_number(struct faults *faults, enum faults_choice choice, bool is_new_kernel)
{
    faults->thread_attr = attributes_for(choice, is_new_kernel);
    int fd = ring_open_event(&faults->thread_attr, 0, -1);
    if (fd < 0)
        return fd;
    ring_close_event(fd, 0);
    faults->choice = choice;
    faults->period = faults->period_before = PERIOD_FIRST_BY_NUMBER;
    return open_rings(faults);
}

static bool is_refused(int err)
{
    return err == -EACCES || err == -EPERM;
}

static int open_filter(struct faults *faults)
{
    struct events *events = &faults->events;
    int err = cpus_read_online(&events->cpus);
    if (!err)
        err = filter_open_for_pages(faults->seed, &faults->filter);
    if (err)
        return err;
    set_tokens(faults);
    for (unsigned group = 0; group < PAGE_GROUPS; group++)
        faults->filter.choices[group].tokens = TOKENS_MAX;
    return 0;
}

/* Returns -EINVAL if the kernel does not support all wanted settings. */
static int begin(struct faults *faults, bool is_new_kernel)
{
    int err = open_filter(faults);
    if (!err) {
        err = try_by_page(faults, is_new_kernel);
        if (err)
            filter_close(&faults->filter);
        if (!err || err == -EINVAL)
            return err;
    }
    faults->filter_refusal = err;
    err = try_by_number(faults, FAULTS_BY_NUMBER, is_new_kernel);
    return is_refused(err) ? try_by_number(faults, FAULTS_OF_USER, is_new_kernel) : err;
}

int faults_new(uint64_t seed, struct faults **ret_faults)
{
    struct faults *faults = calloc(1, sizeof *faults);
    if (!faults)
        return -ENOMEM;
    *faults =
        (struct faults){.seed = seed,
                        .stack_bytes = STACK_BYTES_FIRST,
                        .moves_pages = procfs_number("/proc/sys/kernel/numa_balancing", 0) != 0,
                        .judged_ns = monotonic_ns()};
    int err = begin(faults, true);
    if (err == -EINVAL)
        err = begin(faults, false);
    if (err) {
        faults_free(faults);
        return err;
    }
    *ret_faults = faults;
    return 0;
}

enum faults_choice faults_choice(const struct faults *faults)
{
    return faults->choice;
}

int faults_filter_refusal(const struct faults *faults)
{
    return faults->filter_refusal;
}

/* ---- Processes ---- */

static int add_owner(struct faults *faults, const struct process *process)
{
    if (array_reserve(&faults->owners, &faults->owner_capacity, faults->owner_count + 1))
        return -ENOMEM;
    int fd = fcntl(process->proc_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    struct thread_owner *owner = &faults->owners[faults->owner_count++];
    *owner = (struct thread_owner){process->pid, fd};
    return add_threads(faults, owner);
}

int faults_follow(struct faults *faults, const struct process *process)
{
    int err = events_follow(&faults->events, process->pid);
    if (err || faults->choice == FAULTS_BY_PAGE)
        return err;
    err = add_owner(faults, process);
    if (err)
        faults_unfollow(faults, process->pid);
    return err;
}

void faults_unfollow(struct faults *faults, pid_t process_id)
{
    events_unfollow(&faults->events, process_id);
    drop_thread_events(faults, process_id);
    for (size_t i = faults->owner_count; i-- > 0;) {
        if (faults->owners[i].process_id != process_id)
            continue;
        close(faults->owners[i].proc_fd);
        faults->owners[i] = faults->owners[--faults->owner_count];
    }
}

bool faults_are_rough(const struct faults *faults)
{
    return faults->choice != FAULTS_BY_PAGE || faults->was_rough || faults_lost(faults);
}

uint64_t faults_lost(const struct faults *faults)
{
    return faults->events.lost + faults->unknown;
}

void faults_free(struct faults *faults)
{
    if (!faults)
        return;
    for (size_t i = 0; i < faults->thread_event_count; i++)
        ring_close_event(faults->thread_events[i].fd, faults->thread_events[i].tid);
    events_free(&faults->events);
    filter_close(&faults->filter);
    for (size_t i = 0; i < faults->owner_count; i++)
        close(faults->owners[i].proc_fd);
    free(faults->owners);
    free(faults->thread_events);
    free(faults->rings);
    free(faults);
}

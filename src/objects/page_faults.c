/* Which pages of the processes became resident, by the threads that touched them first (OBJECT_PAGE
 * of objects/source.h). Now and then the worker has to check which of them still are. */
#include "base/clock.h"
#include "objects/state.h"

/* How long a fault waits until its program is opened, and how long it waits for room. */
#define HELD_NS 500000000u
#define ROOM_PATIENCE_NS 1000000000u
/* The kernel reports a fault before it maps the page. Clearing a huge page takes a while, and the
 * thread may also have to wait for a CPU. */
#define MAPPED_NS 50000000u
#define CHECK_EACH_NS 100000000u

static bool are_wanted(const struct collector *collector)
{
    return collector->options.objects.kinds[OBJECT_PAGE] && !collector->options.is_dump;
}

static int begin(struct collector *collector)
{
    if (!are_wanted(collector))
        return 0;
    int err = faults_new(collector->options.seed, &collector->faults);
    collector->faults_refusal = -err;
    return err == -ENOMEM ? err : 0;
}

static int follow(struct collector *collector, struct object_process *process)
{
    const struct process own = {.pid = process->pid, .proc_fd = process->proc_fd};
    if (!collector->faults)
        return 0;
    int err = faults_follow(collector->faults, &own);
    process->pages.is_followed = !err;
    collector->followed += !err;
    if (err && err != -ESRCH)
        collector->follow_refusal = -err;
    return err == -ENOMEM ? err : 0;
}

/* ---- The pages that a fault has mapped ---- */

/* Pages that were resident when the process was first observed do not belong to the recording.
 * After an exec there are no such pages. */
static void note_resident(struct object_process *process)
{
    struct process_pages *own = &process->pages;
    uint64_t bytes;
    if (pages_resident(object_program(process), &bytes))
        return;
    own->resident = bytes;
    if (bytes > own->resident_most)
        own->resident_most = bytes;
    if (!own->has_resident)
        own->resident_before = bytes;
    own->has_resident = true;
}

/* Opens the files that are needed of the current program. */
static int prepare(struct object_process *process)
{
    struct process_pages *own = &process->pages;
    if (own->is_open)
        return 0;
    int err = pages_open(object_program(process), &own->pages);
    if (err)
        return err;
    own->is_open = true;
    own->has_resident = process->span.has_before;
    own->resident = own->resident_before = own->resident_most = 0;
    note_resident(process);
    return 0;
}

/* A read fault on a file also maps pages around it. */
static void widen(struct object_process *process, struct object_news *news)
{
    uint64_t window_bytes = PAGES_PER_WINDOW * page_bytes();
    uint64_t start = news->key & ~(window_bytes - 1);
    size_t count;
    if (pages_count(&process->pages.pages, start, PAGES_PER_WINDOW, &count) || !count)
        return;
    news->key = start | PAGE_WINDOW;
    news->bytes = count * page_bytes();
}

/* Finds the pages that the fault has mapped. If they are absent, they are gone again, or not mapped
 * yet. */
static enum page_kind look_at(struct object_process *process, const struct fault *fault,
                              struct object_news *ret_news)
{
    struct page page;
    uint64_t start = fault->address & ~(uint64_t)(page_bytes() - 1);
    /* If the process has just exited, it was probably the most common kind of page. */
    if (pages_look(&process->pages.pages, fault->address, &page))
        page = (struct page){PAGE_ANONYMOUS, start, page_bytes()};
    *ret_news = (struct object_news){
        .change = OBJECT_MADE,
        .tid = fault->tid,
        .at_ns = fault->at_ns,
        .key = page.start | (page.bytes > page_bytes() ? PAGE_HUGE : PAGE_SINGLE),
        .bytes = page.bytes,
        .weight = fault->weight,
        .level = fault->level,
    };
    if (page.kind == PAGE_FILE && page.bytes == page_bytes()) {
        const struct stack_area *area = object_area(process, fault->address);
        if (area && area->is_only_read)
            widen(process, ret_news);
    }
    return page.kind;
}

/* ---- Sending ---- */

static int send(struct collector *collector, struct object_process *process,
                struct object_news *news)
{
    news->kind = OBJECT_PAGE;
    news->process_id = process->pid;
    news->program = program_hold(object_program(process));
    return collector_report(collector, process, news);
}

static int send_gone(struct collector *collector, struct object_process *process, uint64_t key)
{
    struct object_news news = {.change = OBJECT_GONE, .key = key};
    return send(collector, process, &news);
}

/* Why this fault and later ones have to wait. */
enum { WAITS = 1 };

/* A page that is absent may still be mapped, for example after it is read from a disk: it is sent,
 * and checked later. Returns WAITS, 0, or -ENOMEM. */
static int tell_fault(struct collector *collector, struct object_process *process,
                      const struct fault *fault, uint64_t age_ns)
{
    struct faults *faults = collector->faults;
    size_t stack_bytes = fault->has_stack ? faults_stack_bytes(faults) : 0;
    struct object_news news;
    enum page_kind kind = look_at(process, fault, &news);
    if (kind == PAGE_ABSENT && age_ns < MAPPED_NS)
        return WAITS;
    bool needs_stack = fault->has_stack && kind != PAGE_ZEROS;
    if (needs_stack)
        news.snapshot = collector_take_snapshot(collector, process, stack_bytes);
    if (needs_stack ? !news.snapshot : !collector_has_room(collector, process, 0)) {
        bool is_given_up = age_ns >= ROOM_PATIENCE_NS;
        collector->faults_lost += is_given_up ? fault->weight : 0;
        return is_given_up ? 0 : WAITS;
    }
    if (kind == PAGE_ZEROS)
        return send_gone(collector, process, news.key);
    if (news.snapshot && !faults_copy_stack(faults, news.snapshot)) {
        collector_give_snapshot(collector, news.snapshot);
        return send_gone(collector, process, news.key);
    }
    if (news.snapshot) {
        object_area(process, news.snapshot->stack.address);
        snapshot_end_stack(news.snapshot, &process->areas);
    }
    return send(collector, process, &news);
}

/* Pages that a program has touched are gone when the process executes another one. */
static enum program_match find_program(const struct collector *collector,
                                       struct object_process *process, const struct fault *fault)
{
    uint64_t exec_ns = process ? faults_exec_ns(collector->faults, fault->process_id) : 0;
    if (!process || fault->at_ns < exec_ns)
        return PROGRAM_NONE;
    return object_program_match(process, exec_ns, fault->at_ns);
}

/* Sends faults in order, up to the first one that has to wait. */
static int tell_faults(struct collector *collector)
{
    struct faults *faults = collector->faults;
    const struct fault *fault;
    int err = faults_read(faults);
    while (!err && (fault = faults_next(faults))) {
        struct object_process *process = collector_process(collector, fault->process_id);
        enum program_match match = find_program(collector, process, fault);
        uint64_t now_ns = monotonic_ns(),
                 age_ns = now_ns > fault->at_ns ? now_ns - fault->at_ns : 0;
        if (match == PROGRAM_LATER && age_ns < HELD_NS)
            return 0;
        if (match == PROGRAM_CURRENT && prepare(process) == 0)
            err = tell_fault(collector, process, fault, age_ns);
        if (!err)
            faults_skip(faults);
    }
    return err < 0 ? err : 0;
}

/* Whether a check is due at any cost: once for each copy, and at the program's end. */
static bool is_due(const struct collector *collector, const struct object_process *process)
{
    uint64_t checked_ns = process->pages.checked_ns, over_ns = object_program_over_ns(process);
    return (collector->is_copying && checked_ns < collector->copy_ns) || checked_ns < over_ns;
}

static int tell_check(struct collector *collector, struct object_process *process)
{
    const struct faults *faults = collector->faults;
    uint64_t now_ns = monotonic_ns();
    bool is_at_any_cost = is_due(collector, process);
    if (!object_program(process) || !process->pages.is_followed ||
        (!is_at_any_cost && now_ns - process->pages.checked_ns < CHECK_EACH_NS) ||
        prepare(process) || !collector_has_room(collector, process, 0))
        return 0;
    note_resident(process);
    process->pages.checked_ns = now_ns;
    struct object_news news = {.change = OBJECT_CHECKED,
                               .check = {.seed = collector->options.seed,
                                         .levels = faults_levels(faults),
                                         .is_rough = faults_are_rough(faults),
                                         .is_due = is_at_any_cost}};
    return send(collector, process, &news);
}

static int tell(struct collector *collector)
{
    if (collector->faults && collector->wants_fewer_pages)
        faults_choose_fewer(collector->faults);
    collector->wants_fewer_pages = false;
    int err = collector->faults ? tell_faults(collector) : 0;
    for (size_t i = 0; i < collector->process_count && collector->faults && !err; i++)
        err = tell_check(collector, collector->processes[i].process);
    return err;
}

/* Faults of a program that another one has replaced are not sent. */
static uint64_t told_ns(const struct collector *collector, const struct object_process *process)
{
    bool was_followed = object_program_over_ns(process) && process->program_count > 1;
    return !collector->faults || was_followed ? UINT64_MAX : faults_taken_ns(collector->faults);
}

static void end_program(struct collector *collector, struct object_process *process)
{
    (void)collector;
    pages_close(&process->pages.pages);
    process->pages.is_open = false;
}

/* ---- Counts ---- */

/* A process that has exited counts with the most that it ever had: see worker/pages.h. */
static void add_resident(const struct object_process *process, uint64_t *before, uint64_t *bytes)
{
    const struct process_pages *own = &process->pages;
    *before += own->resident_before;
    *bytes += process->is_gone ? own->resident_most : own->resident;
}

/* Some processes may be refused while others are followed. */
static void count(const struct collector *collector, struct object_counts counts[])
{
    struct object_counts *own = &counts[OBJECT_PAGE];
    if (!are_wanted(collector))
        return;
    own->has_source = collector->faults && (collector->followed || !collector->follow_refusal);
    own->refusal = own->has_source             ? 0
                   : collector->faults_refusal ? collector->faults_refusal
                                               : collector->follow_refusal;
    own->made_lost = collector->faults_lost;
    own->resident_before = collector->resident_before;
    own->resident = collector->resident;
    if (collector->faults) {
        own->made_lost += faults_lost(collector->faults);
        own->sees_user_only = faults_choice(collector->faults) == FAULTS_OF_USER;
        own->filter_refusal = -faults_filter_refusal(collector->faults);
    }
    for (size_t i = 0; i < collector->process_count; i++)
        add_resident(collector->processes[i].process, &own->resident_before, &own->resident);
}

static void forget(struct collector *collector, struct object_process *process)
{
    if (!process->pages.is_followed)
        return;
    if (collector->faults && !collector_process(collector, process->pid))
        faults_unfollow(collector->faults, process->pid);
    add_resident(process, &collector->resident_before, &collector->resident);
    process->pages = (struct process_pages){0};
}

static void end(struct collector *collector)
{
    faults_free(collector->faults);
    collector->faults = NULL;
}

const struct object_way way_page_faults = {.begin = begin,
                                           .follow = follow,
                                           .tell = tell,
                                           .told_ns = told_ns,
                                           .end_program = end_program,
                                           .forget = forget,
                                           .count = count,
                                           .end = end};

#include "sampler/page_faults.h"
#include "base/clock.h"
#include "sampler/news.h"
#include "sampler/place.h"

#include <errno.h>
#include <time.h>

/* How long a fault waits for the program that caused it to be opened. */
#define HELD_NS 500000000u
/* The kernel tells of a fault before it maps the page. To clear a huge page takes it a while, in
 * which the thread may have to wait for a CPU, too. */
#define MAPPED_NS 50000000u
#define CHECK_EACH_NS 100000000u
/* So long the worker is waited for, when nothing may be left for later. */
#define PATIENCE_NS 500000000u
#define AWAIT_NS 1000000
/* How often it is looked which files are mapped where. */
#define AREAS_EACH_NS 10000000u
#define AREAS_PART_OF_TIME 100

static bool are_wanted(const struct sampler *sampler)
{
    return sampler->options->objects.kinds[OBJECT_PAGE] && !sampler->options->is_dump;
}

int page_faults_begin(struct sampler *sampler)
{
    struct page_faults *own = &sampler->page_faults;
    if (!are_wanted(sampler) || own->source || own->refusal)
        return 0;
    int err = faults_new(sampler->clock.seed, &own->source);
    own->refusal = -err;
    return err == -ENOMEM ? err : 0;
}

int page_faults_follow(struct sampler *sampler, struct sampled_process *process)
{
    struct page_faults *own = &sampler->page_faults;
    process->pages.pages.pagemap_fd = process->pages.pages.flags_fd = -1;
    if (!own->source)
        return 0;
    int err = faults_follow(own->source, &process->process);
    process->pages.is_followed = !err;
    if (err && err != -ESRCH)
        own->refusal = -err;
    return err == -ENOMEM ? err : 0;
}

/* ---- What a fault has mapped ---- */

/* What was resident when the process was first looked at is not of the recording. A program that is
 * executed begins with nothing. */
static void note_resident(struct sampled_process *process)
{
    struct process_pages *own = &process->pages;
    uint64_t bytes;
    if (pages_resident(process->program, &bytes))
        return;
    own->resident = bytes;
    if (bytes > own->resident_most)
        own->resident_most = bytes;
    if (!own->has_resident)
        own->resident_before = bytes;
    own->has_resident = true;
}

/* Opens what is needed of the program that runs now. */
static int prepare(struct sampled_process *process)
{
    struct process_pages *own = &process->pages;
    if (own->program_plus_1 == process->program->number + 1)
        return 0;
    bool is_first = !own->program_plus_1 && !process->programs_before;
    pages_close(&own->pages);
    own->areas_reading = (struct throttle){0};
    own->areas.count = 0;
    int err = pages_open(process->program, &own->pages);
    if (err)
        return err;
    own->program_plus_1 = process->program->number + 1;
    own->has_resident = !is_first;
    own->resident = own->resident_before = own->resident_most = 0;
    note_resident(process);
    return 0;
}

/* Whether the address is in a file that the process can only read there. */
static bool is_only_read(struct sampled_process *process, uint64_t address)
{
    struct process_pages *own = &process->pages;
    const struct stack_area *area = stack_areas_find(&own->areas, address);
    uint64_t now_ns = monotonic_ns();
    if (!area && throttle_allows(&own->areas_reading, now_ns, AREAS_EACH_NS, AREAS_PART_OF_TIME)) {
        stack_areas_read(&own->areas, process->program->maps_fd);
        own->areas_reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
        area = stack_areas_find(&own->areas, address);
    }
    return area && area->is_only_read;
}

/* A read of a file maps other pages around it. */
static void widen(struct sampled_process *process, struct object_news *news)
{
    uint64_t window_bytes = PAGES_PER_WINDOW * page_bytes();
    uint64_t start = news->key & ~(window_bytes - 1);
    size_t count;
    if (pages_count(&process->pages.pages, start, PAGES_PER_WINDOW, &count) || !count)
        return;
    news->key = start | PAGE_WINDOW;
    news->bytes = count * page_bytes();
}

/* Finds out what the fault has mapped. If that is absent, it has gone again, or is not there yet.
 */
static enum page_kind look_at(struct sampled_process *process, const struct fault *fault,
                              struct object_news *ret_news)
{
    struct page page;
    uint64_t start = fault->address & ~(uint64_t)(page_bytes() - 1);
    /* If the process has just ended, it was probably a page like most. */
    if (pages_look(&process->pages.pages, fault->address, &page))
        page = (struct page){PAGE_ANONYMOUS, start, page_bytes()};
    *ret_news = (struct object_news){
        .kind = OBJECT_PAGE,
        .change = OBJECT_MADE,
        .key = page.start | (page.bytes > page_bytes() ? PAGE_HUGE : PAGE_SINGLE),
        .bytes = page.bytes,
        .weight = fault->weight,
        .level = fault->level,
    };
    if (page.kind == PAGE_FILE && page.bytes == page_bytes() &&
        is_only_read(process, fault->address))
        widen(process, ret_news);
    return page.kind;
}

/* ---- Telling ---- */

static int send(struct sampler *sampler, struct sampled_process *process, struct message *message)
{
    message->object.news.kind = OBJECT_PAGE;
    message->object.observation.process_id = process->process.pid;
    message->object.observation.program = program_hold(process->program);
    return news_send(sampler, process, message);
}

static int send_gone(struct sampler *sampler, struct sampled_process *process, uint64_t key)
{
    struct message message = {.object.news = {.change = OBJECT_GONE, .key = key}};
    return send(sampler, process, &message);
}

/* What is absent may still come, as from a disk: it is told, and checked later. Returns 1 if the
 * fault has to wait, or there is no snapshot for it now, 0, or -ENOMEM. */
static int tell_fault(struct sampler *sampler, struct sampled_process *process,
                      const struct fault *fault)
{
    static const struct stack_place no_place = {0};
    struct faults *faults = sampler->page_faults.source;
    struct snapshots *snapshots = channel_snapshots(sampler->channel);
    struct message message = {
        .object.observation = {.tid = fault->tid, .sampled_ns = fault->at_ns}};
    enum page_kind kind = look_at(process, fault, &message.object.news);
    if (kind == PAGE_ABSENT && monotonic_ns() - fault->at_ns < MAPPED_NS)
        return 1;
    if (kind == PAGE_ZEROS)
        return send_gone(sampler, process, message.object.news.key);
    if (!fault->has_stack)
        return send(sampler, process, &message);
    struct snapshot *snapshot = snapshots_take(snapshots, faults_stack_bytes(faults), &no_place);
    if (!snapshot)
        return 1;
    if (!faults_copy_stack(faults, snapshot)) {
        snapshots_give(snapshots, snapshot, false);
        return send_gone(sampler, process, message.object.news.key);
    }
    snapshot_end_stack(snapshot, &process->areas);
    message.object.observation.snapshot = snapshot;
    return send(sampler, process, &message);
}

/* What a program has touched is gone when the process executes another one. */
static enum place find_place(const struct sampler *sampler, const struct sampled_process *process,
                             const struct fault *fault)
{
    if (!process || process->has_exited)
        return PLACE_NOWHERE;
    uint64_t exec_ns = faults_exec_ns(sampler->page_faults.source, fault->process_id);
    if (fault->at_ns < exec_ns)
        return PLACE_NOWHERE;
    return process->program && process->program_current_ns > exec_ns ? PLACE_HERE : PLACE_NOT_YET;
}

/* Tells faults in their order, up to one that has to wait. Returns 1 if there is one, 0, or
 * -ENOMEM. */
static int tell_faults(struct sampler *sampler, bool may_wait)
{
    struct faults *faults = sampler->page_faults.source;
    const struct fault *fault;
    int err = faults_read(faults);
    while (!err && (fault = faults_next(faults))) {
        struct sampled_process *process = sampler_process(sampler, fault->process_id);
        enum place place = find_place(sampler, process, fault);
        if (place == PLACE_NOT_YET && may_wait && monotonic_ns() - fault->at_ns < HELD_NS)
            return 1;
        if (place == PLACE_HERE && prepare(process) == 0)
            err = tell_fault(sampler, process, fault);
        if (!err)
            faults_skip(faults);
    }
    return err;
}

static int tell_check(struct sampler *sampler, struct sampled_process *process, bool is_due)
{
    const struct faults *faults = sampler->page_faults.source;
    uint64_t now_ns = monotonic_ns();
    if (!process->program || !process->pages.is_followed ||
        (!is_due && now_ns - process->pages.checked_ns < CHECK_EACH_NS) || prepare(process))
        return 0;
    note_resident(process);
    process->pages.checked_ns = now_ns;
    struct message message = {
        .object.news = {.change = OBJECT_CHECKED,
                        .check = {.seed = sampler->clock.seed,
                                  .levels = faults_levels(faults),
                                  .is_rough = faults_are_rough(faults),
                                  .is_due = is_due}},
    };
    return send(sampler, process, &message);
}

/* The worker has given no snapshots back. */
static void give_up_the_rest(struct sampler *sampler)
{
    const struct fault *fault;
    while ((fault = faults_next(sampler->page_faults.source))) {
        sampler->page_faults.lost += fault->weight;
        faults_skip(sampler->page_faults.source);
    }
}

/* When nothing may be left for later: waits for snapshots. */
static int tell_all_faults(struct sampler *sampler)
{
    const struct timespec soon = {0, AWAIT_NS};
    uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
    int err;
    while ((err = tell_faults(sampler, false)) == 1 && monotonic_ns() < until_ns) {
        channel_ring(sampler->channel);
        nanosleep(&soon, NULL);
    }
    if (err == 1)
        give_up_the_rest(sampler);
    return err < 0 ? err : 0;
}

int page_faults_tell(struct sampler *sampler, bool is_last)
{
    if (!sampler->page_faults.source)
        return 0;
    int err = is_last ? tell_all_faults(sampler) : tell_faults(sampler, true);
    err = err < 0 ? err : 0;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = tell_check(sampler, sampler->processes[i], is_last);
    return err;
}

int page_faults_end_program(struct sampler *sampler, struct sampled_process *process)
{
    if (!sampler->page_faults.source)
        return 0;
    int err = tell_all_faults(sampler);
    return err ? err : tell_check(sampler, process, true);
}

/* ---- Counts ---- */

/* A process that has ended counts with the most that it ever had: see worker/pages.h. */
static void add_resident(const struct sampled_process *process, uint64_t *before, uint64_t *bytes)
{
    const struct process_pages *own = &process->pages;
    *before += own->resident_before;
    *bytes += process->has_exited ? own->resident_most : own->resident;
}

void page_faults_count(const struct sampler *sampler, struct object_counts *counts)
{
    const struct page_faults *own = &sampler->page_faults;
    if (!are_wanted(sampler))
        return;
    counts->has_source = own->source != NULL;
    counts->refusal = own->refusal;
    counts->made_lost = own->lost;
    counts->resident_before = own->resident_before;
    counts->resident = own->resident;
    counts->sees_user_only = own->sees_user_only;
    if (own->source) {
        counts->made_lost += faults_lost(own->source);
        counts->sees_user_only = faults_choice(own->source) == FAULTS_OF_USER;
    }
    for (size_t i = 0; i < sampler->process_count; i++)
        add_resident(sampler->processes[i], &counts->resident_before, &counts->resident);
}

void page_faults_forget_process(struct sampler *sampler, struct sampled_process *process)
{
    struct page_faults *own = &sampler->page_faults;
    if (!process->pages.is_followed)
        return;
    if (own->source)
        faults_unfollow(own->source, process->process.pid);
    add_resident(process, &own->resident_before, &own->resident);
    pages_close(&process->pages.pages);
    stack_areas_free(&process->pages.areas);
    process->pages = (struct process_pages){0};
}

void page_faults_end(struct sampler *sampler)
{
    struct page_faults *own = &sampler->page_faults;
    if (own->source) {
        own->lost += faults_lost(own->source);
        own->sees_user_only = faults_choice(own->source) == FAULTS_OF_USER;
    }
    faults_free(own->source);
    own->source = NULL;
}

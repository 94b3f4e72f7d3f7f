#include "objects/collector.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/upper_bound.h"
#include "objects/state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STEP_NS 10000000u
#define STEP_SOON_NS 1000000u
/* News that were being written when the program ended arrive within this time. */
#define SETTLE_NS 1000000u

static const struct object_way *const ways[] = {&way_in_program, &way_makers, &way_page_faults};
#define WAYS (sizeof ways / sizeof *ways)

/* ---- Processes ---- */

/* The process is freed once it is gone and the worker has taken all its messages, because these
 * point to its share of the queue. */
static void leave(struct collector *collector, struct object_process *process)
{
    process->next_left = collector->left;
    collector->left = process;
}

/* An id may be reused before everything about its previous process has been reported. */
static int follow(struct collector *collector, struct object_process *process)
{
    int err = 0;
    uint32_t pid = (uint32_t)process->pid;
    size_t at = UPPER_BOUND(collector->processes, collector->process_count, pid, pid);
    if (array_insert(&collector->processes, &collector->process_count, &collector->process_capacity,
                     at, (struct collected_process){pid, process})) {
        leave(collector, process); /* not freed: notices about it still come */
        return -ENOMEM;
    }
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->follow ? ways[i]->follow(collector, process) : 0;
    return err;
}

static void free_process(struct object_process *process)
{
    for (size_t i = 0; i < process->program_count; i++)
        program_release(process->programs[i].program);
    free(process->programs);
    stack_areas_free(&process->areas);
    if (process->proc_fd >= 0)
        close(process->proc_fd);
    free(process);
}

static void free_left(struct collector *collector)
{
    struct object_process **link = &collector->left;
    while (*link) {
        struct object_process *process = *link;
        if (process->is_gone && !atomic_load(&process->queued)) {
            *link = process->next_left;
            free_process(process);
        } else {
            link = &process->next_left;
        }
    }
}

/* Another process may have its id by now. */
static void drop_process(struct collector *collector, size_t number)
{
    struct collected_process *at = &collector->processes[number];
    struct object_process *process = at->process;
    array_remove(collector->processes, &collector->process_count, at);
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i]->forget)
            ways[i]->forget(collector, process);
    }
    leave(collector, process);
}

/* ---- Programs ---- */

static int begin_program(struct collector *collector, struct object_process *process)
{
    const struct watched_program *own = &process->programs[0];
    int kept_fd = own->program->first_maps_fd;
    process->span.opened_ns = process->span.current_ns = own->opened_ns;
    process->hurried = 0;
    process->sources.opening = (struct throttle){0};
    object_read_areas(process, kept_fd >= 0 ? kept_fd : own->program->maps_fd);
    if (kept_fd >= 0)
        process->areas_reading = (struct throttle){0}; /* it may have mapped more by now */
    /* All objects of the previous program are gone. */
    return process->span.has_before
               ? collector_report_all(collector, process, OBJECT_FORGOTTEN, false)
               : 0;
}

static int add_program(struct collector *collector, struct object_process *process,
                       const struct notice *notice)
{
    const struct watched_program watched = {.program = notice->program, .opened_ns = notice->at_ns};
    if (array_append(&process->programs, &process->program_count, &process->program_capacity,
                     watched)) {
        program_release(notice->program);
        return -ENOMEM;
    }
    return process->program_count == 1 ? begin_program(collector, process) : 0;
}

/* ---- Counts ---- */

static void count(const struct collector *collector, struct object_counts counts[OBJECT_KIND_COUNT])
{
    memset(counts, 0, OBJECT_KIND_COUNT * sizeof *counts);
    for (size_t i = 0; i < WAYS; i++)
        ways[i]->count(collector, counts);
}

/* `error`, unless it is 0, is sent as the reason why there are no objects. */
static int send_counts(struct collector *collector, int error)
{
    struct news_message message = {.kind = NEWS_COUNTS, .after = collector->after};
    message.counts = malloc(OBJECT_KIND_COUNT * sizeof *message.counts);
    if (!message.counts)
        return -ENOMEM;
    count(collector, message.counts);
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT && error; kind++) {
        message.counts[kind].has_source = false;
        message.counts[kind].refusal = -error;
    }
    return news_queue_put(collector->queue, &message);
}

/* ---- Notices ---- */

int collector_add(struct collector *collector, const struct process *process, uint32_t number,
                  uint64_t after, struct object_process **ret_process)
{
    struct object_process *own = calloc(1, sizeof *own);
    if (!own)
        return -ENOMEM;
    own->pid = process->pid;
    own->number = number;
    own->proc_fd = fcntl(process->proc_fd, F_DUPFD_CLOEXEC, 0);
    own->pages.pages.pagemap_fd = own->pages.pages.flags_fd = -1;
    int err = collector_note(
        collector, (struct notice){.kind = NOTICE_PROCESS, .process = own, .after = after});
    if (!err)
        *ret_process = own;
    return err;
}

static void refresh(struct object_process *process)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i]->refresh)
            ways[i]->refresh(process);
    }
}

static void order_copy(struct collector *collector, uint64_t at_ns)
{
    collector->is_copying = true;
    collector->copy_ns = at_ns;
    for (size_t i = 0; i < collector->process_count; i++)
        refresh(collector->processes[i].process);
}

/* The last program has ended. Its messages are sent before those of the next program. */
static void end_last_program(struct object_process *process, uint64_t at_ns)
{
    struct watched_program *last =
        process->program_count ? &process->programs[process->program_count - 1] : NULL;
    if (!last || last->over_ns)
        return;
    last->over_ns = at_ns;
    refresh(process);
}

static int note_thread(struct collector *collector, const struct notice *notice)
{
    int err = 0;
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->note_thread ? ways[i]->note_thread(collector, notice) : 0;
    return err;
}

static int heed(struct collector *collector, const struct notice *notice)
{
    collector->after = notice->after;
    switch (notice->kind) {
    case NOTICE_PROCESS:
        return follow(collector, notice->process);
    case NOTICE_GONE:
        notice->process->is_gone = true;
        return 0;
    case NOTICE_PROGRAM:
        return add_program(collector, notice->process, notice);
    case NOTICE_PROGRAM_OVER:
        end_last_program(notice->process, notice->at_ns);
        return 0;
    case NOTICE_THREAD:
    case NOTICE_THREAD_GONE:
        return note_thread(collector, notice);
    case NOTICE_COPY:
        order_copy(collector, notice->at_ns);
        return 0;
    case NOTICE_FEWER_PAGES:
        collector->wants_fewer_pages = true;
        return 0;
    case NOTICE_END:
        collector->is_ending = true;
        for (size_t i = 0; i < collector->process_count; i++)
            end_last_program(collector->processes[i].process, notice->at_ns);
        return 0;
    }
    return 0;
}

int collector_note(struct collector *collector, struct notice notice)
{
    notice.at_ns = monotonic_ns();
    if (notice.kind == NOTICE_COPY)
        atomic_store(&collector->told, UINT64_MAX);
    if (!collector->is_running)
        return heed(collector, &notice);
    if (notice.kind == NOTICE_END) {
        collector->end = notice; /* not queued, because it must not fail */
        atomic_store(&collector->has_end, true);
        bell_ring(&collector->bell);
        return 0;
    }
    int err = queue_put(collector->notices, &notice);
    if (err) {
        program_release(notice.program);
        if (notice.kind == NOTICE_PROCESS)
            free_process(notice.process);
    } else if (notice.kind != NOTICE_THREAD && notice.kind != NOTICE_THREAD_GONE) {
        bell_ring(&collector->bell);
    }
    return err;
}

bool collector_has_told(const struct collector *collector, uint64_t *ret_sent)
{
    *ret_sent = atomic_load(&collector->told);
    return *ret_sent != UINT64_MAX;
}

/* ---- Steps ---- */

/* Whether everything about the process from before this time has been sent. This always becomes
 * true: each source drops what it can't send within a second, and the worker takes messages. */
static bool has_told(const struct collector *collector, const struct object_process *process,
                     uint64_t before_ns)
{
    bool has_told = true;
    for (size_t i = 0; i < WAYS && has_told; i++)
        has_told = ways[i]->told_ns(collector, process) >= before_ns;
    return has_told || collector->error;
}

static void end_sources(struct collector *collector, struct object_process *process)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i]->end_program)
            ways[i]->end_program(collector, process);
    }
}

static int end_program(struct collector *collector, struct object_process *process)
{
    const struct news_message message = {.kind = NEWS_PROGRAM_ENDED,
                                         .after = collector->after,
                                         .program = process->programs[0].program};
    end_sources(collector, process);
    stack_areas_free(&process->areas);
    array_remove(process->programs, &process->program_count, process->programs);
    process->span.has_before = true;
    int err = news_queue_put(collector->queue, &message);
    return err || !process->program_count ? err : begin_program(collector, process);
}

static int end_programs(struct collector *collector, struct object_process *process)
{
    int err = 0;
    while (!err && object_program_over_ns(process) &&
           has_told(collector, process, object_program_over_ns(process) + SETTLE_NS))
        err = end_program(collector, process);
    return err;
}

static int end_processes(struct collector *collector)
{
    int err = 0;
    for (size_t i = 0; i < collector->process_count && !err;) {
        struct object_process *process = collector->processes[i].process;
        err = end_programs(collector, process);
        if (err || !process->is_gone || process->program_count) {
            i++;
            continue;
        }
        /* Unless the recording only shows current objects, those that the process never freed are
         * shown as in use. */
        err = collector_report_all(collector, process,
                                   collector->options.is_endless ? OBJECT_FORGOTTEN : OBJECT_LEFT,
                                   true);
        drop_process(collector, i);
    }
    return err;
}

/* A copy can't show that some objects are missing, so after an error it has no objects, but the
 * reason. If there is no memory to send that, the next step tries again. */
static void finish_copy(struct collector *collector)
{
    for (size_t i = 0; i < collector->process_count; i++) {
        if (!has_told(collector, collector->processes[i].process, collector->copy_ns))
            return;
    }
    if (send_counts(collector, collector->error))
        return;
    collector->is_copying = false;
    lazy_bell_ring(&collector->queue->bell);
    atomic_store(&collector->told, collector->queue->sent);
}

static void end_ways(struct collector *collector)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i]->end)
            ways[i]->end(collector);
    }
}

static int finish(struct collector *collector)
{
    const struct news_message message = {.kind = NEWS_END, .after = collector->after};
    for (size_t i = 0; i < collector->process_count; i++) {
        if (collector->processes[i].process->program_count)
            return 0;
    }
    int err = send_counts(collector, 0);
    end_ways(collector);
    int end_err = news_queue_put(collector->queue, &message);
    collector->has_ended = true;
    lazy_bell_ring(&collector->queue->bell);
    if (end_err)
        news_queue_close(collector->queue);
    return err ? err : end_err;
}

static int tell(struct collector *collector)
{
    int err = 0;
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->tell(collector);
    return err;
}

static void note_error(struct collector *collector, int err)
{
    if (!collector->error)
        collector->error = err;
}

static uint64_t next_step_ns(const struct collector *collector)
{
    bool is_soon =
        collector->is_short || collector->is_fast || collector->is_copying || collector->is_ending;
    for (size_t i = 0; i < collector->process_count; i++)
        is_soon |= object_program_over_ns(collector->processes[i].process) != 0;
    return monotonic_ns() + (is_soon ? STEP_SOON_NS : STEP_NS);
}

uint64_t collector_step(struct collector *collector)
{
    struct notice notice;
    bool has_end = atomic_load(&collector->has_end); /* earlier notices are already in the queue */
    collector->now_ns = monotonic_ns();
    while (queue_take(collector->notices, &notice))
        note_error(collector, heed(collector, &notice));
    if (has_end && !collector->is_ending)
        note_error(collector, heed(collector, &collector->end));
    collector->is_fast = false;
    collector_share_out(collector);
    if (!collector->error)
        note_error(collector, tell(collector));
    note_error(collector, end_processes(collector));
    if (collector->is_copying)
        finish_copy(collector);
    free_left(collector);
    if (collector->is_ending)
        note_error(collector, finish(collector));
    /* If room or snapshots are lacking, the worker must give them back. */
    if (collector->is_short)
        lazy_bell_ring(&collector->queue->bell);
    lazy_bell_ring_if_due(&collector->queue->bell, collector->now_ns);
    return collector->has_ended ? 0 : next_step_ns(collector);
}

int collector_run(struct collector *collector)
{
    uint64_t next_ns;
    prctl(PR_SET_NAME, "fgprof-objects");
    do {
        uint32_t heard = bell_heard(&collector->bell);
        next_ns = collector_step(collector);
        if (next_ns)
            bell_wait(&collector->bell, heard, next_ns);
    } while (next_ns);
    return collector->error;
}

/* ---- The collector ---- */

int collector_new(const struct collector_options *options, struct news_queue *queue,
                  struct collector **ret_collector)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return -ENOMEM;
    collector->options = *options;
    collector->queue = queue;
    int err = queue_new(sizeof(struct notice), &collector->notices);
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->begin ? ways[i]->begin(collector) : 0;
    if (err) {
        collector_free(collector);
        return err;
    }
    *ret_collector = collector;
    return 0;
}

int collector_prepare(struct collector *collector)
{
    int err = 0;
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->prepare ? ways[i]->prepare(collector) : 0;
    return err;
}

struct object_options collector_agent_options(const struct collector *collector)
{
    struct object_options options = collector->options.objects;
    options.kinds[OBJECT_THREAD] &= !collector->has_stacks;
    return options;
}

int collector_try(struct collector *collector, enum object_kind kind)
{
    struct object_counts counts[OBJECT_KIND_COUNT];
    int err = 0;
    for (size_t i = 0; i < WAYS && !err; i++)
        err = ways[i]->open ? ways[i]->open(collector) : 0;
    count(collector, counts);
    return err ? err : object_counts_refusal(&counts[kind]);
}

void collector_start(struct collector *collector, bool has_command)
{
    collector->has_command = has_command;
    collector->is_running = true;
    atomic_store(&collector->queue->is_open, true);
}

void collector_free(struct collector *collector)
{
    struct notice notice;
    if (!collector)
        return;
    /* A pending notice may add a process, which is then freed below. */
    while (collector->notices && queue_take(collector->notices, &notice))
        heed(collector, &notice);
    while (collector->process_count) {
        end_sources(collector, collector->processes[0].process);
        drop_process(collector, 0);
    }
    while (collector->left) {
        struct object_process *process = collector->left;
        collector->left = process->next_left;
        free_process(process);
    }
    end_ways(collector);
    free(collector->processes);
    queue_free(collector->notices);
    watches_free(&collector->watches);
    free(collector);
}

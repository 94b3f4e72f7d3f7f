/* Which thread created which (OBJECT_THREAD of objects/source.h): births that the kernel reports,
 * and listed threads whose birth was not seen. */
#include "base/array.h"
#include "base/clock.h"
#include "base/upper_bound.h"
#include "objects/state.h"
#include "observe/proc_source.h"
#include "proc/procfs.h"

#include <stdlib.h>
#include <string.h>

/* How long a birth waits until its process is found, or that process's program. */
#define HELD_NS 100000000u
/* How long a listed thread waits for a report of its birth. */
#define PATIENCE_NS 100000000u
/* How long a new thread's name is read repeatedly: it gets a name soon, or never. */
#define YOUNG_NS 1000000000u
/* The most threads without a seen birth that a step looks at: this takes a millisecond. */
#define LOOKS_EACH 64
/* How long a birth waits for room: about as long as the kernel's rings have room for more. */
#define ROOM_PATIENCE_NS 1000000000u

static bool are_wanted(const struct collector *collector)
{
    return collector->options.objects.kinds[OBJECT_THREAD];
}

static int follow(struct collector *collector, struct object_process *process)
{
    return collector->births ? births_follow(collector->births, process->pid) : 0;
}

static int prepare(struct collector *collector)
{
    int stack_refusal;
    /* A dump only looks at existing threads. */
    if (!are_wanted(collector) || collector->births_begun || collector->options.is_dump)
        return 0;
    collector->births_begun = true;
    int err = births_new(collector->options.has_children, &collector->births, &stack_refusal);
    collector->births_refusal = err ? -err : -stack_refusal;
    collector->has_stacks = !collector->births_refusal;
    if (err)
        return err == -ENOMEM ? err : 0;
    for (size_t i = 0; i < collector->process_count && !err; i++)
        err = follow(collector, collector->processes[i].process);
    return err;
}

/* Reports a thread of `process`. */
static int send(struct collector *collector, struct object_process *process,
                struct object_news *news)
{
    news->kind = OBJECT_THREAD;
    news->weight = 1;
    return collector_report(collector, process, news);
}

static int send_change(struct collector *collector, struct object_process *process, pid_t tid,
                       enum object_change change)
{
    struct object_news news = {.change = change, .key = (uint64_t)tid};
    return send(collector, process, &news);
}

static int send_name(struct collector *collector, struct object_process *process, pid_t tid,
                     const char *name)
{
    struct object_news news = {.change = OBJECT_NAMED, .key = (uint64_t)tid, .name = strdup(name)};
    return news.name ? send(collector, process, &news) : -ENOMEM;
}

/* ---- Known threads ---- */

static struct made_thread *find_thread(const struct process_makers *own, pid_t tid)
{
    return FIND_SORTED(own->threads, own->count, tid, (uint32_t)tid);
}

/* Finds the thread, or adds it. NULL: out of memory. */
static struct made_thread *add_thread(struct process_makers *own, pid_t tid)
{
    struct made_thread *found = find_thread(own, tid);
    size_t at = UPPER_BOUND(own->threads, own->count, tid, (uint32_t)tid);
    const struct made_thread made = {.tid = (uint32_t)tid, .listed_ns = monotonic_ns()};
    if (found || array_insert(&own->threads, &own->count, &own->capacity, at, made))
        return found;
    own->untold++;
    return &own->threads[at];
}

static void note_told(struct process_makers *own, struct made_thread *thread)
{
    own->untold -= !thread->is_told;
    thread->is_told = true;
}

static void drop_thread(struct process_makers *own, pid_t tid)
{
    struct made_thread *thread = find_thread(own, tid);
    if (!thread)
        return;
    note_told(own, thread);
    array_remove(own->threads, &own->count, thread);
}

static int note_thread(struct collector *collector, const struct notice *notice)
{
    struct object_process *process = notice->process;
    if (notice->kind == NOTICE_THREAD) {
        struct made_thread *thread = add_thread(&process->makers, notice->tid);
        if (thread)
            thread->is_old = notice->is_old;
        return thread ? 0 : -ENOMEM;
    }
    drop_thread(&process->makers, notice->tid);
    /* If the kernel reports births, it also reports the end, which is sent after the name. */
    return collector->births ? 0 : send_change(collector, process, notice->tid, OBJECT_GONE);
}

/* ---- Where threads begin ---- */

/* The address of the thread's first function; 0: not known. */
static uint64_t find_start(struct object_process *process, pid_t tid)
{
    uint64_t start = 0;
    if (!object_program(process) || tid == process->pid)
        return 0;
    if (!process->areas_reading.done_ns)
        object_read_areas_again(process); /* these are from the program's beginning */
    int err = thread_start_find(tid, &process->areas, &start);
    if (err == -ENOTSUP && object_read_areas_again(process))
        thread_start_find(tid, &process->areas, &start);
    return start;
}

/* Fills the snapshot with the stack of a thread, if it sleeps now. */
static bool look_at(struct collector *collector, const struct object_process *process, pid_t tid,
                    struct snapshot *snapshot)
{
    struct observation observation = {.snapshot = snapshot};
    const struct subject subject = {
        .process_id = process->pid,
        .tid = tid,
        .proc_fd = process->proc_fd,
        .stack_areas = &process->areas,
        .stack_limit = BIRTHS_STACK_BYTES,
        .wants_copy = true,
    };
    watches_forget(&collector->watches, subject.thread); /* it was another thread's */
    return proc_source_observe(&collector->watches, &subject, &observation) == OUTCOME_OBSERVED;
}

/* ---- Births ---- */

/* Whether the program was started with the agent, which will report which thread created which. */
static bool may_tell_soon(const struct collector *collector, const struct object_process *process)
{
    return !collector->has_stacks && collector->has_command && !process->sources.tell_threads &&
           collector->now_ns - process->span.opened_ns < HELD_NS;
}

/* Fills the snapshot with the stack of the thread that created another one. */
static bool copy_stack(struct collector *collector, const struct birth *birth,
                       struct object_process *maker, struct snapshot *snapshot)
{
    if (!birth->has_stack)
        return look_at(collector, maker, birth->maker_tid, snapshot);
    if (!births_copy_stack(collector->births, snapshot))
        return false;
    object_area(maker, snapshot->stack.address);
    snapshot_end_stack(snapshot, &maker->areas);
    return true;
}

/* Why this birth and later ones have to wait; 0: it was sent. */
enum { WAITS = 1 };

static int tell_made(struct collector *collector, const struct birth *birth,
                     struct object_process *process, bool may_wait, bool may_wait_for_room)
{
    struct object_process *maker = collector_process(collector, birth->maker_process_id);
    uint64_t exec_ns = births_exec_ns(collector->births, birth->maker_process_id);
    enum program_match match =
        maker ? object_program_match(maker, exec_ns, birth->at_ns) : PROGRAM_NONE;
    struct object_news news = {.change = OBJECT_MADE,
                               .process_id = birth->maker_process_id,
                               .tid = birth->maker_tid,
                               .at_ns = birth->at_ns,
                               .key = (uint64_t)birth->tid};
    if (process->sources.tell_threads && birth->tid != birth->process_id)
        return 0; /* the program itself reports more */
    if (may_wait && (match == PROGRAM_LATER || may_tell_soon(collector, process)))
        return WAITS;
    bool has_stack = match == PROGRAM_CURRENT && (birth->has_stack || !collector->has_stacks);
    if (has_stack)
        news.snapshot = collector_take_snapshot(collector, maker, BIRTHS_STACK_BYTES);
    if (has_stack && !news.snapshot && may_wait_for_room)
        return WAITS;
    if (news.snapshot && !copy_stack(collector, birth, maker, news.snapshot)) {
        collector_give_snapshot(collector, news.snapshot);
        news.snapshot = NULL;
    }
    struct program *program = object_program(news.snapshot ? maker : process);
    news.program = program ? program_hold(program) : NULL;
    news.origin = !news.snapshot ? (birth->tid == birth->process_id ? ORIGIN_MAIN : ORIGIN_UNSEEN)
                  : birth->has_stack ? ORIGIN_SEEN
                                     : ORIGIN_LATER;
    news.start = news.snapshot ? 0 : find_start(process, birth->tid);
    struct made_thread *thread = add_thread(&process->makers, birth->tid);
    if (thread)
        note_told(&process->makers, thread);
    return send(collector, process, &news);
}

static int tell_ended(struct collector *collector, const struct birth *birth,
                      struct object_process *process)
{
    drop_thread(&process->makers, birth->tid);
    return send_change(collector, process, birth->tid, OBJECT_GONE);
}

/* The new process's maker is in a followed process, so it will be found soon unless it is gone. */
static int await_process(struct collector *collector, const struct birth *birth, bool may_wait)
{
    struct births *births = collector->births;
    if (may_wait && !births_has_end(births, birth->process_id))
        return WAITS;
    collector->births_lost += birth->change == BIRTH_MADE;
    if (birth->change == BIRTH_ENDED && birth->tid == birth->process_id)
        births_unfollow(births, birth->process_id);
    return 0;
}

/* Returns WAITS, 0, or -ENOMEM. */
static int tell_birth(struct collector *collector, const struct birth *birth)
{
    struct object_process *process = collector_process(collector, birth->process_id);
    uint64_t now_ns = monotonic_ns(), age_ns = now_ns > birth->at_ns ? now_ns - birth->at_ns : 0;
    bool may_wait = !collector->is_ending && age_ns < HELD_NS;
    bool may_wait_for_room = age_ns < ROOM_PATIENCE_NS;
    if (!process)
        return await_process(collector, birth, may_wait);
    if (!collector_has_room(collector, process, 0)) {
        collector->births_lost += !may_wait_for_room && birth->change == BIRTH_MADE;
        return may_wait_for_room ? WAITS : 0;
    }
    switch (birth->change) {
    case BIRTH_MADE:
        return tell_made(collector, birth, process, may_wait, may_wait_for_room);
    case BIRTH_NAMED:
        return send_name(collector, process, birth->tid, birth->name);
    case BIRTH_ENDED:
        return tell_ended(collector, birth, process);
    }
    return 0;
}

static int tell_births(struct collector *collector)
{
    struct births *births = collector->births;
    const struct birth *birth;
    int err = births ? births_read(births) : 0;
    while (!err && births && (birth = births_next(births))) {
        err = tell_birth(collector, birth);
        if (!err)
            births_skip(births);
    }
    return err < 0 ? err : 0;
}

/* ---- Listed threads ---- */

/* Whether the thread existed before its birth could have been seen. A command's threads did not. */
static bool is_older(const struct collector *collector, const struct made_thread *thread)
{
    return thread->is_old && !collector->has_command;
}

static enum object_origin origin_of(const struct collector *collector,
                                    const struct object_process *process,
                                    const struct made_thread *thread)
{
    if (thread->tid == (uint32_t)process->pid)
        return ORIGIN_MAIN;
    return is_older(collector, thread) ? ORIGIN_BEFORE : ORIGIN_UNSEEN;
}

/* Whether a report of the thread's birth may still come. */
static bool may_be_seen(const struct collector *collector, const struct object_process *process,
                        const struct made_thread *thread)
{
    bool has_source =
        collector->births || process->sources.tell_threads || may_tell_soon(collector, process);
    return has_source && !is_older(collector, thread) && thread->tid != (uint32_t)process->pid &&
           monotonic_ns() - thread->listed_ns < PATIENCE_NS;
}

static int tell_listed(struct collector *collector, struct object_process *process,
                       struct made_thread *thread, bool may_look, bool may_wait)
{
    pid_t tid = (pid_t)thread->tid;
    char name[THREAD_NAME_BYTES];
    bool is_looked_at = may_look && tid != process->pid && object_program(process);
    struct snapshot *snapshot =
        is_looked_at ? collector_take_snapshot(collector, process, BIRTHS_STACK_BYTES) : NULL;
    if (snapshot && !look_at(collector, process, tid, snapshot)) {
        collector_give_snapshot(collector, snapshot);
        snapshot = NULL;
    }
    if (is_looked_at && !snapshot && may_wait)
        return 0;
    /* A thread that is gone is only reported if its birth was seen. */
    bool is_there = procfs_thread_name(process->proc_fd, tid, name);
    char *own_name = is_there ? strdup(name) : NULL;
    if (!own_name) {
        collector_give_snapshot(collector, snapshot);
        return is_there ? -ENOMEM : 0;
    }
    struct program *program = object_program(process);
    struct object_news news = {.change = OBJECT_THERE,
                               .process_id = process->pid,
                               .tid = tid,
                               .program = program ? program_hold(program) : NULL,
                               .snapshot = snapshot,
                               .key = thread->tid,
                               .other_key = thread_robust_list(tid),
                               .origin = origin_of(collector, process, thread),
                               .start = find_start(process, tid),
                               .name = own_name};
    memcpy(thread->name, name, sizeof thread->name);
    thread->name[sizeof thread->name - 1] = '\0';
    note_told(&process->makers, thread);
    return send(collector, process, &news);
}

/* If the kernel does not report names, reads them when they have probably been set, and for a
 * copy. */
static int tell_new_name(struct collector *collector, struct object_process *process,
                         struct made_thread *thread, bool is_last)
{
    char name[THREAD_NAME_BYTES];
    bool is_young = monotonic_ns() - thread->listed_ns < YOUNG_NS;
    if (!(is_young || is_last) || !procfs_thread_name(process->proc_fd, (pid_t)thread->tid, name) ||
        strncmp(name, thread->name, sizeof thread->name - 1) == 0)
        return 0;
    memcpy(thread->name, name, sizeof thread->name - 1);
    return send_name(collector, process, (pid_t)thread->tid, thread->name);
}

/* If there are very many threads, later steps send the rest. */
static int tell_process(struct collector *collector, struct object_process *process)
{
    struct process_makers *own = &process->makers;
    bool tells_names = !collector->births, is_last = is_urgent(collector, process);
    uint64_t now_ns = monotonic_ns();
    size_t looks = 0;
    int err = 0;
    own->is_short = false;
    if ((!own->untold && !tells_names) || (collector->options.is_dump && !is_last))
        return 0;
    for (size_t i = 0; i < own->count && !process->is_gone && !err; i++) {
        struct made_thread *thread = &own->threads[i];
        own->is_short = !collector_has_room(collector, process, 0);
        if (own->is_short)
            break;
        if (thread->is_told && tells_names)
            err = tell_new_name(collector, process, thread, is_last);
        if (thread->is_told || (!is_last && may_be_seen(collector, process, thread)))
            continue;
        bool may_look = looks++ < LOOKS_EACH && !collector->options.is_dump;
        bool may_wait = !is_last && now_ns - thread->listed_ns < PATIENCE_NS;
        if (!may_look && !is_last)
            break;
        err = tell_listed(collector, process, thread, may_look, may_wait);
    }
    return err;
}

static int tell(struct collector *collector)
{
    int err = are_wanted(collector) ? tell_births(collector) : 0;
    for (size_t i = 0; i < collector->process_count && !err && are_wanted(collector); i++)
        err = tell_process(collector, collector->processes[i].process);
    return err;
}

/* Births that still wait after an execve do not belong to this program. */
static uint64_t told_ns(const struct collector *collector, const struct object_process *process)
{
    struct births *births = collector->births;
    if (process->makers.is_short)
        return 0;
    if (!births)
        return UINT64_MAX;
    uint64_t taken_ns = births_taken_ns(births), exec_ns = births_exec_ns(births, process->pid);
    return exec_ns > process->span.opened_ns && taken_ns >= exec_ns ? UINT64_MAX : taken_ns;
}

static void forget(struct collector *collector, struct object_process *process)
{
    free(process->makers.threads);
    process->makers = (struct process_makers){0};
    if (collector->births && !collector_process(collector, process->pid))
        births_unfollow(collector->births, process->pid);
}

static void count(const struct collector *collector, struct object_counts counts[])
{
    struct object_counts *own = &counts[OBJECT_THREAD];
    if (!are_wanted(collector))
        return;
    own->has_source = true;
    own->refusal = collector->births_refusal;
    own->made_lost += collector->births_lost;
    if (collector->births)
        own->made_lost += births_lost(collector->births);
}

static void end(struct collector *collector)
{
    births_free(collector->births);
    collector->births = NULL;
}

const struct object_way way_makers = {.prepare = prepare,
                                      .follow = follow,
                                      .note_thread = note_thread,
                                      .tell = tell,
                                      .told_ns = told_ns,
                                      .forget = forget,
                                      .count = count,
                                      .end = end};

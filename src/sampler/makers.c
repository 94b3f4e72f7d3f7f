#include "sampler/makers.h"
#include "base/clock.h"
#include "proc/procfs.h"
#include "sampler/news.h"
#include "sampler/place.h"
#include "sampler/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long a birth waits until its process is found, or the program that it runs. */
#define HELD_NS 100000000u
/* How long a thread that is listed waits for those who saw it being made. */
#define PATIENCE_NS 100000000u
/* How long a new thread's name is read again and again: it gets one soon, or never. */
#define YOUNG_NS 1000000000u
/* So many threads that nobody saw being made are looked at in a round: this takes a millisecond. */
#define LOOKS_EACH 64
/* At the end, how often the worker is waited for. */
#define REST_ROUNDS_MAX 1000

static bool are_wanted(const struct sampler *sampler)
{
    return sampler->options->objects.kinds[OBJECT_THREAD];
}

static int follow_all(struct sampler *sampler)
{
    int err = 0;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = births_follow(sampler->makers.births, sampler->processes[i]->process.pid);
    return err;
}

int makers_begin(struct sampler *sampler)
{
    struct makers *makers = &sampler->makers;
    int stack_refusal;
    /* A dump looks at threads that are there. */
    if (!are_wanted(sampler) || makers->was_begun || sampler->options->is_dump)
        return 0;
    makers->was_begun = true;
    int err = births_new(sampler->options->has_children, &makers->births, &stack_refusal);
    makers->refusal = err ? -err : -stack_refusal;
    makers->has_stacks = !makers->refusal;
    if (err)
        return err == -ENOMEM ? err : 0;
    return follow_all(sampler);
}

int makers_follow(struct sampler *sampler, pid_t process_id)
{
    return sampler->makers.births ? births_follow(sampler->makers.births, process_id) : 0;
}

/* Sends news of a thread of `process`. */
static int send(struct sampler *sampler, struct sampled_process *process, struct message *message)
{
    message->object.news.kind = OBJECT_THREAD;
    message->object.news.weight = 1;
    return news_send(sampler, process, message);
}

static int send_change(struct sampler *sampler, struct sampled_process *process, pid_t tid,
                       enum object_change change)
{
    struct message message = {.object.news = {.change = change, .key = (uint64_t)tid}};
    return send(sampler, process, &message);
}

static int send_name(struct sampler *sampler, struct sampled_process *process, pid_t tid,
                     const char *name)
{
    struct message message = {.object.news = {.change = OBJECT_NAMED, .key = (uint64_t)tid}};
    message.object.news.name = strdup(name);
    return message.object.news.name ? send(sampler, process, &message) : -ENOMEM;
}

/* ---- Where threads begin ---- */

/* What else is mapped since is read when it is needed, but not too often. */
static bool read_code(struct sampled_process *process)
{
    struct process_makers *own = &process->makers;
    uint64_t now_ns = monotonic_ns();
    bool is_other = own->code_program_plus_1 != process->program->number + 1;
    if (!is_other && !throttle_allows(&own->code_reading, now_ns, PATIENCE_NS, 100))
        return false;
    own->code_program_plus_1 = process->program->number + 1;
    int err = code_ranges_read(&own->code, process->program->maps_fd);
    own->code_reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return !err;
}

/* The address of the thread's first function; 0: not known. */
static uint64_t find_start(struct sampled_process *process, pid_t tid)
{
    struct process_makers *own = &process->makers;
    uint64_t start = 0;
    if (!process->program || tid == process->process.pid)
        return 0;
    bool is_new = own->code_program_plus_1 != process->program->number + 1;
    if (is_new && !read_code(process))
        return 0;
    int err = thread_start_find(tid, &own->code, &start);
    if (err == -ENOTSUP && !is_new && read_code(process))
        thread_start_find(tid, &own->code, &start);
    return start;
}

/* ---- Births ---- */

/* Where the stack of the thread that made another one belongs. */
static enum place find_place(const struct sampler *sampler, const struct sampled_process *maker,
                             uint64_t at_ns)
{
    if (!maker || maker->has_exited)
        return PLACE_NOWHERE;
    return place_in_program(maker, births_exec_ns(sampler->makers.births, maker->process.pid),
                            at_ns);
}

/* The stack of a thread, if it sleeps now. */
static struct snapshot *look_at(struct sampler *sampler, struct sampled_process *process, pid_t tid)
{
    static const struct stack_place no_place = {0};
    struct snapshots *snapshots = channel_snapshots(sampler->channel);
    struct thread *thread = threads_find(&process->threads, tid);
    struct snapshot *snapshot =
        thread ? snapshots_take(snapshots, BIRTHS_STACK_BYTES, &no_place) : NULL;
    if (!snapshot)
        return NULL;
    struct subject subject = subject_of(sampler, process, thread);
    struct observation observation = {.snapshot = snapshot};
    subject.stack_limit = BIRTHS_STACK_BYTES;
    subject.other_stack = no_place;
    subject.wants_copy = true;
    enum outcome outcome = sampler->asleep->observe(sampler->asleep, &subject, &observation);
    /* The source takes this for the thread's last observation, which the worker does not. */
    threads_forget_sleep(&process->threads, thread);
    if (sampler->options->has_no_time)
        watches_forget(&sampler->watches, thread->number);
    if (outcome == OUTCOME_OBSERVED)
        return snapshot;
    snapshots_give(snapshots, snapshot, false);
    return NULL;
}

/* Fills in how the thread was made. Returns false if there is no snapshot for it now. */
static bool complete_made(struct sampler *sampler, const struct birth *birth,
                          struct sampled_process *process, struct sampled_process *maker,
                          bool is_here, struct message *message)
{
    static const struct stack_place no_place = {0};
    struct snapshots *snapshots = channel_snapshots(sampler->channel);
    struct object_news *news = &message->object.news;
    struct snapshot *snapshot = NULL;
    if (is_here && birth->has_stack) {
        snapshot = snapshots_take(snapshots, BIRTHS_STACK_BYTES, &no_place);
        if (!snapshot)
            return false;
        if (births_copy_stack(sampler->makers.births, snapshot)) {
            snapshot_end_stack(snapshot, &maker->areas);
        } else {
            snapshots_give(snapshots, snapshot, false);
            snapshot = NULL;
        }
    } else if (is_here && !sampler->makers.has_stacks) {
        snapshot = look_at(sampler, maker, birth->maker_tid);
        news->origin = ORIGIN_LATER;
    }
    message->object.observation.snapshot = snapshot;
    message->object.observation.program = snapshot           ? program_hold(maker->program)
                                          : process->program ? program_hold(process->program)
                                                             : NULL;
    if (snapshot)
        return true;
    news->origin = birth->tid == birth->process_id ? ORIGIN_MAIN : ORIGIN_UNSEEN;
    news->start = find_start(process, birth->tid);
    return true;
}

/* Whether the program was started with the agent, which will tell who makes its threads. */
static bool may_tell_soon(const struct sampler *sampler, const struct sampled_process *process)
{
    return !sampler->makers.has_stacks && sampler->command.pid && !process->objects.tell_threads &&
           monotonic_ns() - process->program_opened_ns < HELD_NS;
}

/* Why a birth is not told yet. */
enum { WAITS_FOR_PROCESS = 1, WAITS_FOR_SNAPSHOT };

/* Returns why it must wait, 0, or -ENOMEM. */
static int tell_made(struct sampler *sampler, const struct birth *birth,
                     struct sampled_process *process, bool may_wait)
{
    struct sampled_process *maker = sampler_process(sampler, birth->maker_process_id);
    struct thread *thread = threads_find(&process->threads, birth->tid);
    enum place place = find_place(sampler, maker, birth->at_ns);
    struct message message = {
        .object = {.observation = {.process_id = birth->maker_process_id,
                                   .tid = birth->maker_tid,
                                   .sampled_ns = birth->at_ns},
                   .news = {.change = OBJECT_MADE, .key = (uint64_t)birth->tid}},
    };
    if (process->objects.tell_threads && birth->tid != birth->process_id)
        return 0; /* the program itself tells more */
    if (may_wait && (place == PLACE_NOT_YET || may_tell_soon(sampler, process)))
        return WAITS_FOR_PROCESS;
    if (!complete_made(sampler, birth, process, maker, place == PLACE_HERE, &message))
        return WAITS_FOR_SNAPSHOT;
    if (thread)
        thread->birth.is_told = true;
    return send(sampler, process, &message);
}

static int tell_ended(struct sampler *sampler, const struct birth *birth,
                      struct sampled_process *process)
{
    struct thread *thread = threads_find(&process->threads, birth->tid);
    if (thread)
        process->listing.is_wanted = thread->birth.is_told = true;
    return send_change(sampler, process, birth->tid, OBJECT_GONE);
}

/* Returns why it must wait, 0, or -ENOMEM. */
static int tell_birth(struct sampler *sampler, const struct birth *birth)
{
    struct births *births = sampler->makers.births;
    struct sampled_process *process = sampler_process(sampler, birth->process_id);
    bool may_wait = !sampler->clock.end_ns && monotonic_ns() - birth->at_ns < HELD_NS;
    if (!process) {
        /* It was made by a process that is sampled, and is found soon, unless it is gone. */
        if (may_wait && !births_has_end(births, birth->process_id))
            return WAITS_FOR_PROCESS;
        sampler->makers.lost += birth->change == BIRTH_MADE;
        if (birth->change == BIRTH_ENDED && birth->tid == birth->process_id)
            births_unfollow(births, birth->process_id);
        return 0;
    }
    switch (birth->change) {
    case BIRTH_MADE:
        return tell_made(sampler, birth, process, may_wait);
    case BIRTH_NAMED:
        return send_name(sampler, process, birth->tid, birth->name);
    case BIRTH_ENDED:
        return tell_ended(sampler, birth, process);
    }
    return 0;
}

/* Returns why the rest must wait, 0, or -ENOMEM. */
static int tell_births(struct sampler *sampler, bool is_last)
{
    struct births *births = sampler->makers.births;
    const struct birth *birth;
    int err = births_read(births, is_last);
    while (!err && (birth = births_next(births))) {
        err = tell_birth(sampler, birth);
        if (!err)
            births_skip(births);
    }
    return err;
}

/* A birth's stack may only come with the next reading; and if snapshots are lacking, the worker has
 * to give some back. */
static int tell_all_births(struct sampler *sampler)
{
    int err = tell_births(sampler, false);
    if (!err)
        err = tell_births(sampler, true);
    for (unsigned i = 0; i < REST_ROUNDS_MAX && err == WAITS_FOR_SNAPSHOT; i++) {
        channel_await_worker(sampler->channel);
        err = tell_births(sampler, true);
    }
    return err;
}

/* ---- Threads that are listed ---- */

void makers_note_listed(const struct sampled_process *process, struct thread *thread)
{
    thread->birth.is_old = !process->turns.round_ns;
    thread->birth.listed_ns = monotonic_ns();
}

int makers_tell_gone(struct sampler *sampler, struct sampled_process *process,
                     const struct thread *thread)
{
    /* Else its end is told after its name, which may not have been told yet. */
    bool is_needed = are_wanted(sampler) && !sampler->makers.births;
    return is_needed ? send_change(sampler, process, thread->tid, OBJECT_GONE) : 0;
}

/* Whether it was there before anything could see it being made. A command's threads were not. */
static bool is_older(const struct sampler *sampler, const struct thread *thread)
{
    return thread->birth.is_old && !sampler->command.pid;
}

static enum object_origin origin_of(const struct sampler *sampler,
                                    const struct sampled_process *process,
                                    const struct thread *thread)
{
    if (thread->tid == process->process.pid)
        return ORIGIN_MAIN;
    return is_older(sampler, thread) ? ORIGIN_BEFORE : ORIGIN_UNSEEN;
}

/* Whether others may still tell who made it. */
static bool may_be_seen(const struct sampler *sampler, const struct sampled_process *process,
                        const struct thread *thread)
{
    bool has_source =
        sampler->makers.births || process->objects.tell_threads || may_tell_soon(sampler, process);
    return has_source && !is_older(sampler, thread) && thread->tid != process->process.pid &&
           monotonic_ns() - thread->birth.listed_ns < PATIENCE_NS;
}

/* How much is done for a thread that is listed. */
struct effort {
    bool may_look; /* at its stack, */
    bool may_wait; /* until it sleeps */
};

static int tell_listed(struct sampler *sampler, struct sampled_process *process,
                       struct thread *thread, struct effort effort)
{
    struct thread_birth *own = &thread->birth;
    char name[THREAD_NAME_BYTES];
    bool is_main = thread->tid == process->process.pid;
    bool may_look = effort.may_look && !is_main && process->program;
    struct snapshot *snapshot = may_look ? look_at(sampler, process, thread->tid) : NULL;
    if (may_look && !snapshot && effort.may_wait)
        return 0;
    struct message message = {
        .object = {.observation = {.process_id = process->process.pid,
                                   .tid = thread->tid,
                                   .snapshot = snapshot},
                   .news = {.change = OBJECT_THERE,
                            .key = (uint64_t)thread->tid,
                            .other_key = thread_robust_list(thread->tid),
                            .origin = origin_of(sampler, process, thread),
                            .start = find_start(process, thread->tid)}},
    };
    struct object_news *news = &message.object.news;
    /* If it is gone, it is told of if anything saw it. */
    bool is_there = procfs_thread_name(process->process.proc_fd, thread->tid, name);
    news->name = is_there ? strdup(name) : NULL;
    if (!news->name) {
        if (snapshot)
            snapshots_give(channel_snapshots(sampler->channel), snapshot, false);
        return is_there ? -ENOMEM : 0;
    }
    memcpy(own->name, name, sizeof own->name);
    own->name[sizeof own->name - 1] = '\0';
    own->is_told = true;
    message.object.observation.program = process->program ? program_hold(process->program) : NULL;
    return send(sampler, process, &message);
}

/* If the kernel does not tell names: reads them when they are probably given, and for a copy. */
static int tell_new_name(struct sampler *sampler, struct sampled_process *process,
                         struct thread *thread, bool is_last)
{
    struct thread_birth *own = &thread->birth;
    char name[THREAD_NAME_BYTES];
    bool is_young = monotonic_ns() - own->listed_ns < YOUNG_NS;
    if (!(is_young || is_last) ||
        !procfs_thread_name(process->process.proc_fd, thread->tid, name) ||
        strncmp(name, own->name, sizeof own->name - 1) == 0)
        return 0;
    memcpy(own->name, name, sizeof own->name - 1);
    return send_name(sampler, process, thread->tid, own->name);
}

/* The rest of very many threads is told in later rounds. */
static int tell_process(struct sampler *sampler, struct sampled_process *process, bool is_last)
{
    int err = 0;
    bool tells_names = !sampler->makers.births;
    uint64_t now_ns = monotonic_ns();
    size_t looks = 0;
    for (size_t i = 0; i < process->threads.count && !process->has_exited && !err; i++) {
        struct thread *thread = &process->threads.items[i];
        if (thread->birth.is_told && tells_names)
            err = tell_new_name(sampler, process, thread, is_last);
        if (thread->birth.is_told || (!is_last && may_be_seen(sampler, process, thread)))
            continue;
        const struct effort effort = {
            .may_look = looks++ < LOOKS_EACH && !sampler->options->is_dump,
            .may_wait = !is_last && now_ns - thread->birth.listed_ns < PATIENCE_NS,
        };
        if (!effort.may_look && !is_last)
            break;
        err = tell_listed(sampler, process, thread, effort);
    }
    return err;
}

int makers_tell(struct sampler *sampler, bool is_last)
{
    int err = 0;
    if (!are_wanted(sampler) || (sampler->options->is_dump && !is_last))
        return 0;
    if (sampler->makers.births)
        err = is_last ? tell_all_births(sampler) : tell_births(sampler, false);
    for (size_t i = 0; i < sampler->process_count && err >= 0; i++)
        err = tell_process(sampler, sampler->processes[i], is_last);
    return err < 0 ? err : 0;
}

int makers_end_program(struct sampler *sampler, struct sampled_process *process)
{
    int err = 0;
    if (!are_wanted(sampler) || sampler->options->is_dump)
        return 0;
    if (sampler->makers.births)
        err = tell_all_births(sampler);
    return err < 0 ? err : tell_process(sampler, process, true);
}

void makers_count(const struct sampler *sampler, struct object_counts *counts)
{
    const struct makers *makers = &sampler->makers;
    if (!are_wanted(sampler))
        return;
    counts->has_source = true;
    counts->refusal = makers->refusal;
    counts->made_lost = makers->lost;
    if (makers->births)
        counts->made_lost += births_lost(makers->births);
}

void makers_forget_process(struct sampler *sampler, struct sampled_process *process)
{
    code_ranges_free(&process->makers.code);
    if (sampler->makers.births)
        births_unfollow(sampler->makers.births, process->process.pid);
}

void makers_end(struct sampler *sampler)
{
    if (sampler->makers.births)
        sampler->makers.lost += births_lost(sampler->makers.births);
    births_free(sampler->makers.births);
    sampler->makers.births = NULL;
}

#include "sampler/python.h"
#include "base/clock.h"
#include "observe/record_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The minimum time between two listings of the interpreter's threads. */
#define LISTED_EACH_NS 100000000u
#define LISTING_PART_OF_TIME 200
/* How many states are read for each thread, beside one for each interpreter: a longer list must not
 * hold up sampling. */
#define STATES_PER_THREAD 4

static pid_t native_id_of(const struct sampled_process *process, const struct thread *thread)
{
    return process->has_inner_ids ? thread->inner_tid : thread->tid;
}

/* Makes threads that have not moved, and are only now known to run Python, be looked at again. */
static void forget_sleeps(struct sampled_process *process, const struct python_threads *before)
{
    for (size_t i = 0; i < process->threads.count; i++) {
        struct thread *thread = &process->threads.items[i];
        bool was_unknown = process->has_inner_ids && !thread->inner_tid;
        pid_t id = sampled_process_inner_tid(process, thread);
        uint64_t old_state = was_unknown ? 0 : python_threads_find(before, id).state;
        if (python_threads_find(&process->python.threads, id).state != old_state)
            threads_forget_sleep(&process->threads, thread);
    }
}

int python_update(struct sampled_process *process)
{
    struct sampled_python *python = &process->python;
    uint64_t now_ns = monotonic_ns();
    if (!python->place.runtime || !process->program || !process->threads.count ||
        !throttle_allows(&python->listing, now_ns, LISTED_EACH_NS, LISTING_PART_OF_TIME))
        return 0;
    struct python_threads before = python->threads;
    python->threads = (struct python_threads){0};
    const struct python_memory memory = {.layout = &python->place.layout,
                                         .tid = process->threads.items[0].tid,
                                         .areas = &process->areas};
    size_t most = PYTHON_INTERPRETERS_MAX + STATES_PER_THREAD * process->threads.count;
    int err = python_threads_read(&python->threads, python->place.runtime, &memory, most);
    if (!err)
        forget_sleeps(process, &before);
    python_threads_free(&before);
    python->listing = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err;
}

void python_begin(struct sampled_process *process, const struct python_place *place)
{
    process->python.place = *place;
    process->python.listing = (struct throttle){0};
    /* An error is ignored: the next tick tries again. */
    python_update(process);
}

struct python_thread python_of(const struct sampled_process *process, const struct thread *thread)
{
    const struct python_thread_state found =
        python_threads_find(&process->python.threads, native_id_of(process, thread));
    return found.state
               ? (struct python_thread){&process->python.place.layout, found.state, found.id}
               : (struct python_thread){0};
}

/* ---- Frames of samples ---- */

/* More than arrive between two rounds, unless very many CPUs run the process's threads. */
#define COPIES 32u
/* The frames are copied just before the sample gets its time. A thread's samples are further apart
 * than this. */
#define APART_NS_MAX 200000u

struct python_copy {
    pid_t tid;
    uint64_t at_ns;
    uint32_t state; /* enum switch_frames_state */
    uint32_t count;
    struct switch_frame frames[SWITCH_FRAMES_MAX];
};

int python_keep_copy(struct sampled_process *process, const struct past_departure *past)
{
    struct sampled_python *python = &process->python;
    if (past->frame_count > SWITCH_FRAMES_MAX)
        return 0;
    if (!python->copies && !(python->copies = calloc(COPIES, sizeof *python->copies)))
        return -ENOMEM;
    struct python_copy *copy = &python->copies[python->next_copy++ % COPIES];
    *copy = (struct python_copy){.tid = past->departure.tid,
                                 .at_ns = past->departure.out_ns,
                                 .state = past->frames_state,
                                 .count = (uint32_t)past->frame_count};
    memcpy(copy->frames, past->frames, past->frame_count * sizeof *copy->frames);
    return 0;
}

static const struct python_copy *find_copy(const struct sampled_python *python, pid_t tid,
                                           uint64_t at_ns)
{
    for (size_t i = 0; python->copies && i < COPIES; i++) {
        const struct python_copy *copy = &python->copies[i];
        uint64_t apart_ns = at_ns > copy->at_ns ? at_ns - copy->at_ns : copy->at_ns - at_ns;
        if (copy->tid == tid && apart_ns <= APART_NS_MAX)
            return copy;
    }
    return NULL;
}

uint32_t python_take_copy(struct sampled_process *process, const struct thread *thread,
                          uint64_t at_ns, struct snapshot *snapshot)
{
    const struct python_copy *copy = find_copy(&process->python, thread->tid, at_ns);
    if (!copy)
        return SWITCH_FRAMES_NONE;
    const struct past_departure past = {.frames = (const unsigned char *)copy->frames,
                                        .frame_count = copy->count,
                                        .frames_state = copy->state};
    record_source_read_frames(&past, &process->python.place.layout, snapshot);
    return copy->state;
}

/* ---- Tasks ---- */

int python_report_tasks(struct sampler *sampler, struct sampled_process *process, bool is_last)
{
    struct sampled_python *python = &process->python;
    uint64_t now_ns = clock_now_ns(&sampler->clock);
    uint64_t opened_ns = process->span.opened_ns, start_ns = sampler->clock.ticks.start_ns;
    if (!sampler->options->has_tasks || sampler->options->is_dump || !python->place.runtime ||
        !process->program || !process->threads.count ||
        (!is_last && channel_is_behind(sampler->channel)))
        return 0;
    if (!python->tasks_ns)
        python->tasks_ns = opened_ns > start_ns ? opened_ns : start_ns;
    const struct message message = {
        .kind = MESSAGE_TASKS,
        .tasks = {.process = process->number,
                  .process_id = process->process.pid,
                  .tid = process->threads.items[0].tid,
                  .before_ns = python->tasks_ns,
                  .at_ns = now_ns,
                  .is_last = is_last,
                  .program = program_hold(process->program)},
    };
    int err = channel_send(sampler->channel, &message);
    if (err) {
        program_release(process->program);
        return err;
    }
    python->tasks_ns = now_ns;
    channel_hurry(sampler->channel); /* the worker reads tasks when it takes this message */
    return 0;
}

void python_forget(struct sampled_python *python)
{
    free(python->copies);
    python_threads_free(&python->threads);
    *python = (struct sampled_python){0};
}

#include "sampler/naming.h"
#include "base/array.h"
#include "proc/procfs.h"
#include "sampler/report.h"
#include "sampler/schedule.h"
#include "sampler/switch_events.h"

#include <string.h>

/* Names are read often soon after a thread's birth and seldom later: a name is read again when it
 * is older by a part of its age. */
#define PART_OF_AGE 1
#define PART_OF_AGE_OF_CHOICE 8 /* if it decides whether the thread is sampled */
#define LONGEST_NS 1000000000u
#define LONGEST_OF_CHOICE_NS 10000000000u
#define READS_PER_S 200 /* of old names, for all threads together: 2 ms of CPU time a second */

/* Threads of equal age take turns. */
static uint64_t next_tick(const struct sampler *sampler, const struct sampled_process *process,
                          const struct thread *thread, uint64_t tick)
{
    bool is_choice = sampler->options->choice.name_regex != NULL;
    uint64_t part = is_choice ? PART_OF_AGE_OF_CHOICE : PART_OF_AGE;
    uint64_t longest_ns = is_choice ? LONGEST_OF_CHOICE_NS : LONGEST_NS;
    uint64_t all_ns = process->threads.count * (1000000000u / READS_PER_S);
    uint64_t longest = (longest_ns > all_ns ? longest_ns : all_ns) / sampler->clock.ticks.period_ns;
    /* The name may have been read after this round's tick. */
    uint64_t named_tick = thread->naming.named_tick;
    uint64_t wait = 1 + (tick > named_tick ? tick - named_tick : 0) / part;
    wait = wait < longest ? wait : longest;
    return tick + wait - (tick + (uint64_t)thread->tid) % wait;
}

static void note_chosen(struct sampler *sampler, struct thread *thread)
{
    if (thread->phase != PHASE_UNWANTED)
        thread_count_once(thread, FACT_CHOSEN, &sampler->counts.threads_chosen);
}

void naming_first(struct sampler *sampler, struct sampled_process *process, struct thread *thread)
{
    const struct thread_choice *choice = &sampler->options->choice;
    struct thread_naming *naming = &thread->naming;
    naming->named_tick = ticks_until(&sampler->clock.ticks, clock_now_ns(&sampler->clock));
    if (choice->name_regex)
        procfs_thread_name(process->process.proc_fd, thread->tid, naming->name);
    naming->has_news = true;
    if (sampler->options->has_no_time || !thread_choice_has(choice, thread->tid, naming->name))
        thread_note(thread, EVENT_NAME_UNWANTED);
    note_chosen(sampler, thread);
}

/* Ends the thread's time under its old name. */
static int stop_counting(struct sampler *sampler, struct sampled_process *process,
                         struct thread *thread)
{
    const struct reading until = thread_read_account(sampler, process, thread);
    int err = report_gone(sampler, process, thread, &until, false);
    thread_note(thread, EVENT_NAME_UNWANTED);
    watches_forget(&sampler->watches, thread->number);
    switch_events_close(sampler, thread);
    return err;
}

static void start_counting(struct sampler *sampler, struct sampled_process *process,
                           struct thread *thread)
{
    const struct reading begin = thread_read_account(sampler, process, thread);
    thread_note(thread, EVENT_NAME_WANTED);
    thread->idle.has_moved = true; /* changing a name takes a running thread, mostly this one */
    threads_forget_sleep(&process->threads, thread);
    report_begin(thread, &begin);
}

static int read_name(struct sampler *sampler, struct sampled_process *process,
                     struct thread *thread)
{
    struct thread_naming *naming = &thread->naming;
    char name[THREAD_NAME_BYTES];
    int err = 0;
    naming->read_cpu_ns = process->activity_check.cpu_ns;
    if (!procfs_thread_name(process->process.proc_fd, thread->tid, name) ||
        strcmp(name, naming->name) == 0)
        return 0;
    bool is_first = !*naming->name;
    bool is_wanted = thread_choice_has(&sampler->options->choice, thread->tid, name);
    if (!is_first)
        naming->named_tick = ticks_until(&sampler->clock.ticks, clock_now_ns(&sampler->clock));
    if (!is_wanted && thread->phase != PHASE_UNWANTED)
        err = stop_counting(sampler, process, thread);
    memcpy(naming->name, name, sizeof naming->name);
    naming->has_news = true;
    if (is_wanted && thread->phase == PHASE_UNWANTED)
        start_counting(sampler, process, thread);
    /* With another name, the same stack is another sample. */
    threads_forget_sleep(&process->threads, thread);
    note_chosen(sampler, thread);
    return err;
}

/* Only a thread of the process can change a name, and that takes CPU time (comm_write in the
 * kernel's fs/proc/base.c). */
static bool may_have_changed(const struct sampled_process *process,
                             const struct thread_naming *naming)
{
    uint64_t cpu_ns = process->activity_check.cpu_ns;
    return !naming->next_tick || process->activity_check.has_run_unseen || cpu_ns == UINT64_MAX ||
           cpu_ns != naming->read_cpu_ns;
}

static int read_again(struct sampler *sampler, struct sampled_process *process,
                      struct thread *thread, uint64_t tick)
{
    int err = may_have_changed(process, &thread->naming) ? read_name(sampler, process, thread) : 0;
    thread->naming.next_tick = next_tick(sampler, process, thread, tick);
    return err;
}

int naming_again(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                 uint64_t tick)
{
    const struct thread_naming *naming = &thread->naming;
    struct names_due *due = &process->names_due;
    bool has_choice = sampler->options->choice.name_regex != NULL;
    int err = 0;
    if (tick >= naming->next_tick && (thread->phase != PHASE_UNWANTED || has_choice)) {
        if (!naming->next_tick || has_choice)
            err = read_again(sampler, process, thread, tick);
        else
            err = array_append(&due->tids, &due->count, &due->capacity, thread->tid);
    }
    if (thread->phase == PHASE_UNWANTED)
        schedule_leave_out(&thread->schedule, tick, has_choice ? naming->next_tick : UINT64_MAX);
    return err;
}

int naming_take_due(struct sampler *sampler, struct sampled_process *process)
{
    struct names_due *due = &process->names_due;
    int err = 0;
    for (size_t i = 0; i < due->count && !err; i++) {
        struct thread *thread = threads_find(&process->threads, due->tids[i]);
        if (thread && thread_is_counted(thread))
            err = read_again(sampler, process, thread, thread->schedule.looked_tick);
    }
    due->count = 0;
    return err;
}

void naming_expire(struct thread *thread)
{
    thread->naming.next_tick = 0;
}

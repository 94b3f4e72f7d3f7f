#include "sampler/target_choice.h"
#include "sampler/target_book.h"
#include "sampler/target_count.h"
#include "proc/procfs.h"

/* Threads are named soon after they were born, and seldom later. */
#define NAME_SAMPLES_MAX 128 /* from one time that it is read to the next */
#define NAME_PART_OF_AGE 8
#define NAME_MAX_AGE_NS 10000000000u

/* Its time under the name so far ends here. */
static int stop_counting(struct target *target, struct thread *thread)
{
    const struct watch_place place = {target->process.proc_fd, thread->tid,
                                      target->recording->keep_fds_below};
    struct activity activity;
    uint64_t now_ns = recording_now_ns(target->recording);
    bool is_known = watch_read_activity(&place, &thread->watch, &activity) == 0;
    target_book_until(target->recording, thread, now_ns, is_known ? &activity : NULL,
                      thread->is_asleep ? ACCOUNT_ASLEEP : ACCOUNT_RUNNABLE);
    int err = target_count_end(target, thread, now_ns, false);
    thread->is_unwanted = true;
    thread->needs_stop = false;
    watch_close(&thread->watch);
    return err;
}

static void start_counting(struct target *target, struct thread *thread)
{
    thread->is_unwanted = false;
    thread->has_moved = true; /* a name is changed by who runs, as a rule by itself */
    thread_forget_sleep(thread);
    target_book_begin(target, thread, recording_now_ns(target->recording));
}

static void note_chosen(struct recording *recording, struct thread *thread)
{
    recording->threads_chosen += !thread->is_unwanted && !thread->was_chosen;
    thread->was_chosen = thread->was_chosen || !thread->is_unwanted;
}

int target_choose_first(struct target *target, struct thread *thread)
{
    const struct thread_choice *choice = &target->options->choice;
    char name[THREAD_NAME_BYTES] = "";
    int err = 0;
    thread->named_tick = recording_tick_at(target->recording, recording_now_ns(target->recording));
    if (choice->name_regex && procfs_thread_name(target->process.proc_fd, thread->tid, name))
        err = strings_intern(&target->recording->strings, name, &thread->name);
    thread->is_unwanted = !thread_choice_has(choice, thread->tid, name);
    note_chosen(target->recording, thread);
    return err;
}

static int read_name(struct target *target, struct thread *thread)
{
    struct recording *recording = target->recording;
    char name[THREAD_NAME_BYTES];
    uint32_t name_id;
    if (!procfs_thread_name(target->process.proc_fd, thread->tid, name))
        return 0;
    int err = strings_intern(&recording->strings, name, &name_id);
    if (!err && thread->tid == target->process.pid)
        recording->stacks.processes[target->number].name = name_id;
    if (err || name_id == thread->name)
        return err;
    bool is_wanted = thread_choice_has(&target->options->choice, thread->tid, name);
    thread->named_tick = recording_tick_at(recording, recording_now_ns(recording));
    if (!is_wanted && !thread->is_unwanted)
        err = stop_counting(target, thread);
    else if (is_wanted && thread->is_unwanted)
        start_counting(target, thread);
    thread->name = name_id;
    note_chosen(recording, thread);
    return err;
}

int target_name_sampled(struct target *target, struct thread *thread)
{
    uint64_t age = thread->samples_taken++;
    if ((age & (age - 1)) != 0 && age % NAME_SAMPLES_MAX != 0)
        return 0;
    return read_name(target, thread);
}

static unsigned bits(uint64_t number)
{
    return number ? 64 - (unsigned)__builtin_clzll(number) : 0;
}

int target_name_unmoved(struct target *target, struct thread *thread, uint64_t last_look_tick)
{
    uint32_t name = thread->name;
    if (bits(thread->looked_tick - thread->asleep_since_tick) ==
        bits(last_look_tick - thread->asleep_since_tick))
        return 0;
    int err = read_name(target, thread);
    /* Its stack is another row now. */
    if (thread->name != name)
        thread_forget_sleep(thread);
    return err;
}

/* The longer it has had its name, the less often it is read. Those of equal age take turns. */
static uint64_t next_choice_tick(const struct target *target, const struct thread *thread,
                                 uint64_t tick)
{
    uint64_t longest = NAME_MAX_AGE_NS / target->recording->period_ns;
    uint64_t wait = 1 + (tick - thread->named_tick) / NAME_PART_OF_AGE;
    wait = wait < longest ? wait : longest;
    return tick + wait - (tick + (uint64_t)thread->tid) % wait;
}

int target_choose_again(struct target *target, struct thread *thread, uint64_t tick)
{
    int err = 0;
    if (target->options->choice.name_regex && tick >= thread->next_choice_tick) {
        err = read_name(target, thread);
        thread->next_choice_tick = next_choice_tick(target, thread, tick);
    }
    if (thread->is_unwanted) {
        thread->looked_tick = tick;
        thread->next_look_tick =
            target->options->choice.name_regex ? thread->next_choice_tick : UINT64_MAX;
    }
    return err;
}

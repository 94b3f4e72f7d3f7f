#include "sampler/target_count.h"
#include "sampler/target_book.h"
#include "sampler/target_jit.h"
#include "proc/procfs.h"

#include <errno.h>
#include <string.h>

static void note_counted(struct recording *recording, const struct share *share, enum stack_cut cut)
{
    recording->samples += share->ticks;
    if (cut != STACK_WHOLE)
        recording->samples_cut += share->ticks;
    if (cut == STACK_CUT_NOT_CAPTURED)
        recording->samples_not_captured += share->ticks;
}

/* More for a sample that is there. */
static void count_again(struct recording *recording, uint32_t sample, const struct share *share)
{
    struct stack_table *stacks = &recording->stacks;
    stack_table_count(stacks, sample, share->ticks, share->time_ns);
    note_counted(recording, share, stacks->stacks[stacks->samples[sample].stack].cut);
}

/* Returns 0 or -ENOMEM. */
static int label(const struct target *target, const struct thread *thread, enum thread_state state,
                 struct sample_labels *ret_labels)
{
    const struct capture *capture = target->capture;
    struct sample_labels labels = {
        .thread_name = thread->name,
        .tid = options_tells_threads_apart(target->options) ? (uint32_t)thread->tid : 0,
        .state = state,
        .syscall_number = -1,
        .process = target->number,
    };
    if (thread_state_waits(state)) {
        labels.syscall_number = (int32_t)capture->syscall_number;
        struct strings *strings = &target->recording->strings;
        const char *kernel_stack = target->snapshot->kernel_stack;
        if (strings_intern(strings, capture->wait_channel, &labels.wait_channel) ||
            strings_intern(strings, kernel_stack ? kernel_stack : "", &labels.kernel_stack))
            return -ENOMEM;
    }
    *ret_labels = labels;
    return 0;
}

/* Of a dump: what the thread that was counted waits for can be asked by these. */
static int note_wait(const struct target *target, const struct thread *thread, bool is_captured)
{
    const struct capture *capture = target->capture;
    struct wait_facts facts = {
        .process_id = target->process.pid,
        .tid = thread->tid,
        .proc_fd = target->process.proc_fd,
        .syscall_number = -1,
    };
    if (is_captured && capture == &target->look && capture->has_activity &&
        capture->syscall_number >= 0) {
        facts.has_arguments = true;
        facts.syscall_number = capture->syscall_number;
        facts.activity = capture->activity;
        memcpy(facts.arguments, target->snapshot->registers.call_arguments, sizeof facts.arguments);
    }
    return wait_list_add(target->recording->waits, &facts);
}

/* Adds target->stack with the thread's labels. Returns 0 or -ENOMEM. */
static int add_sample(struct target *target, struct thread *thread, enum thread_state state,
                      uint32_t *ret_sample)
{
    bool is_captured = target->stack.cut != STACK_CUT_NOT_CAPTURED;
    struct sample_labels labels;
    int err = label(target, thread, state, &labels);
    return err ? err
               : stack_table_add(&target->recording->stacks,
                                 is_captured ? target->space->id : NO_SPACE, &target->stack,
                                 &labels, 0, 0, ret_sample);
}

/* Counts target->stack for what is owed to the account. */
static int count(struct target *target, struct thread *thread, enum thread_state state,
                 enum account account)
{
    struct recording *recording = target->recording;
    bool is_captured = target->stack.cut != STACK_CUT_NOT_CAPTURED;
    uint32_t sample;
    size_t stacks_before = recording->stacks.stack_count;
    int err = add_sample(target, thread, state, &sample);
    if (!err && is_captured && recording->stacks.stack_count > stacks_before) {
        space_note_sampled(target->space, target->stack.addresses, target->stack.depth);
        err = target_jit_note(target);
    }
    if (!err && recording->waits)
        err = note_wait(target, thread, is_captured);
    if (err)
        return err;
    struct share share = ledger_take(&thread->ledger, account, recording->period_ns);
    if (recording->waits)
        share = (struct share){.ticks = 1}; /* once, however short its round was */
    count_again(recording, sample, &share);
    timeline_give(&recording->timeline, &thread->timeline, thread->name, account, sample);
    if (is_captured) {
        ledger_note_sample(&thread->ledger, account, sample);
        thread->last_sample = sample;
    }
    return 0;
}

int target_count(struct target *target, struct thread *thread)
{
    if (target->recording->waits && ledger_has_sample(&thread->ledger))
        return 0;
    enum account account = ledger_account(target->capture->state);
    target_book(target, thread, account);
    return count(target, thread, target->capture->state, account);
}

void target_count_unmoved(struct target *target, struct thread *thread)
{
    struct recording *recording = target->recording;
    target_book(target, thread, ACCOUNT_ASLEEP);
    struct share share = ledger_take(&thread->ledger, ACCOUNT_ASLEEP, recording->period_ns);
    count_again(recording, thread->last_sample, &share);
    timeline_give(&recording->timeline, &thread->timeline, thread->name, ACCOUNT_ASLEEP,
                  thread->last_sample);
}

/* What is counted next has no stack. Returns 0 or -ENOMEM. */
static int set_not_captured(struct target *target, struct thread *thread)
{
    char name[THREAD_NAME_BYTES];
    target->stack.depth = 0;
    target->stack.cut = STACK_CUT_NOT_CAPTURED;
    /* One that was never captured has a name all the same. */
    if (thread->name || !procfs_thread_name(target->process.proc_fd, thread->tid, name))
        return 0;
    return strings_intern(&target->recording->strings, name, &thread->name);
}

/* Counts what it ran, or wanted to, for no stack. */
static int count_active_not_captured(struct target *target, struct thread *thread)
{
    static const enum account accounts[] = {ACCOUNT_RUNNING, ACCOUNT_RUNNABLE};
    int err = set_not_captured(target, thread);
    for (unsigned i = 0; i < sizeof accounts / sizeof *accounts && !err; i++) {
        if (thread->ledger.owed_ns[accounts[i]])
            err = count(target, thread, THREAD_UNKNOWN, accounts[i]);
    }
    return err;
}

int target_count_not_captured(struct target *target, struct thread *thread)
{
    uint64_t now_ns = recording_now_ns(target->recording);
    if (!thread_is_counted(thread) || target->recording->waits ||
        !target_book_has_gap(target, thread, now_ns))
        return 0;
    thread_forget_sleep(thread);
    target_book_until(target->recording, thread, now_ns, NULL, ACCOUNT_RUNNABLE);
    return count_active_not_captured(target, thread);
}

/* A thread that waits for a CPU stands where it was last seen running, and the other way round:
 * what it owes to the one state is counted there, in that state. */
static int borrow_sample(struct recording *recording, struct ledger *ledger, enum account account,
                         enum account from)
{
    uint32_t sample;
    if (!ledger->owed_ns[account] || ledger->has_sample[account] || !ledger->has_sample[from])
        return 0;
    enum thread_state state = account == ACCOUNT_RUNNING ? THREAD_RUNNING : THREAD_RUNNABLE;
    int err = stack_table_in_state(&recording->stacks, ledger->last_sample[from], state, &sample);
    if (!err)
        ledger_note_sample(ledger, account, sample);
    return err;
}

/* One that could not be captured is there all the same. */
static int count_for_dump(struct target *target, struct thread *thread)
{
    int err = set_not_captured(target, thread);
    return err ? err : count(target, thread, THREAD_UNKNOWN, ACCOUNT_RUNNING);
}

/* At the end of a thread that was never captured: all that it owes is for no stack. */
static int note_not_captured(struct target *target, struct thread *thread)
{
    uint32_t sample;
    int err = set_not_captured(target, thread);
    if (!err)
        err = add_sample(target, thread, THREAD_UNKNOWN, &sample);
    if (!err)
        ledger_note_sample(&thread->ledger, ACCOUNT_RUNNABLE, sample);
    return err;
}

/* What each account owes gets a sample, by which it is settled. */
static int find_heirs(struct target *target, struct thread *thread)
{
    struct ledger *ledger = &thread->ledger;
    if (!ledger_has_sample(ledger))
        return ledger_owes(ledger) ? note_not_captured(target, thread) : 0;
    int err = borrow_sample(target->recording, ledger, ACCOUNT_RUNNABLE, ACCOUNT_RUNNING);
    return err ? err : borrow_sample(target->recording, ledger, ACCOUNT_RUNNING, ACCOUNT_RUNNABLE);
}

int target_count_end(struct target *target, struct thread *thread, uint64_t until_ns,
                     bool is_certain)
{
    struct recording *recording = target->recording;
    struct ledger *ledger = &thread->ledger;
    struct settlement settlements[ACCOUNT_COUNT];
    if (!thread_is_counted(thread))
        return 0;
    if (recording->waits)
        return is_certain && !ledger_has_sample(ledger) ? count_for_dump(target, thread) : 0;
    if (until_ns > ledger->booked_ns)
        target_book_until(recording, thread, until_ns, NULL,
                          thread->is_asleep ? ACCOUNT_ASLEEP : ACCOUNT_RUNNABLE);
    int err = find_heirs(target, thread);
    if (err || !ledger_has_sample(ledger))
        return err;
    /* Those that are there at the end are not the ones that others were counted for. */
    uint64_t *carry_ns = recording->end_ns ? NULL : &recording->carry_ns;
    unsigned count = ledger_settle(ledger, recording->period_ns, carry_ns, settlements);
    for (unsigned i = 0; i < count; i++)
        count_again(recording, settlements[i].sample, &settlements[i].share);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        timeline_give(&recording->timeline, &thread->timeline, thread->name, i,
                      ledger->last_sample[ledger_heir(ledger, i)]);
    return 0;
}

#include "worker/count.h"
#include "base/array.h"

#include <errno.h>
#include <string.h>

static const struct stack no_stack = {.cut = STACK_CUT_NOT_CAPTURED};

static void note_counted(struct result_counts *counts, const struct share *share,
                         enum stack_cut cut)
{
    counts->samples += share->ticks;
    if (cut != STACK_WHOLE)
        counts->samples_cut += share->ticks;
    if (cut == STACK_CUT_NOT_CAPTURED)
        counts->samples_not_captured += share->ticks;
}

/* Counts more for an existing sample. */
static void count_again(const struct counter *counter, uint32_t sample, const struct share *share)
{
    struct stack_table *stacks = &counter->results->stacks;
    stack_table_count(stacks, sample, share->ticks, share->time_ns, 0);
    note_counted(&counter->results->counts, share,
                 stacks->stacks[stacks->samples[sample].stack].cut);
}

/* Gives a sample what is owed to one of the thread's accounts. */
static void give(const struct counter *counter, struct counted_thread *thread, enum account kind,
                 uint32_t sample)
{
    struct thread_account *account = &thread->account;
    struct share share = ledger_take(&account->ledger, kind, counter->period_ns);
    if (counter->waits)
        share = (struct share){.ticks = 1}; /* once, however short its round was */
    count_again(counter, sample, &share);
    timeline_give(&counter->results->timeline, &account->timeline, thread->name, kind, sample);
}

/* Counts the sleep since the last sample. If the thread is not known to have slept on, its time
 * stays owed. */
static void give_sleep(const struct counter *counter, struct counted_thread *thread)
{
    if (thread->account.sleeps_on && !counter->waits)
        give(counter, thread, ACCOUNT_ASLEEP, thread->account.last_sample);
}

void count_book(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread)
{
    struct thread_account *account = &thread->account;
    const struct reading *asleep = &observation->asleep, *look = &observation->look;
    const struct reading *now = &observation->now;
    if (observation->begins) {
        account_begin(account, &observation->begin);
        kept_stack_drop(&thread->kept);
    }
    if (asleep->at_ns) {
        account_book(account, counter->results, thread->tid, asleep, ACCOUNT_ASLEEP);
        give_sleep(counter, thread);
    }
    /* Only the kernel's account tells what the thread did up to this look, before it was
     * stopped. */
    if (look->at_ns && look->has_activity && !look->activity.counts_ends)
        account_book(account, counter->results, thread->tid, look, ACCOUNT_RUNNING);
    if (observation->evidence != EVIDENCE_GONE || now->at_ns > account->ledger.booked_ns)
        account_book(account, counter->results, thread->tid, now,
                     ledger_account(observation->state));
    if (observation->evidence == EVIDENCE_UNMOVED)
        give_sleep(counter, thread);
    else
        account->sleeps_on = false;
}

static int label(const struct counter *counter, const struct observation *observation,
                 const struct counted_thread *thread, enum thread_state state,
                 struct sample_labels *ret_labels)
{
    struct sample_labels labels = {
        .thread_name = thread->name,
        .tid = counter->tells_threads_apart ? (uint32_t)thread->tid : 0,
        .state = state,
        .syscall_number = -1,
        .process = observation->process,
    };
    if (thread_state_waits(state)) {
        struct strings *strings = &counter->results->strings;
        const char *kernel_stack = observation->snapshot->kernel_stack;
        labels.syscall_number = (int32_t)observation->syscall_number;
        if (strings_intern(strings, observation->wait_channel, &labels.wait_channel) ||
            strings_intern(strings, kernel_stack ? kernel_stack : "", &labels.kernel_stack))
            return -ENOMEM;
    }
    *ret_labels = labels;
    return 0;
}

/* For a dump: notes what is needed to find out what the counted thread waits for. */
static int note_wait(const struct counter *counter, const struct observation *observation)
{
    const struct program *program = observation->program;
    struct wait_facts facts = {
        .process_id = (pid_t)counter->results->stacks.processes[observation->process].pid,
        .tid = observation->tid,
        .evidence = observation->evidence,
        .syscall_number = -1,
        .is_uninterruptible = observation->state == THREAD_UNINTERRUPTIBLE,
    };
    if (program && observation->evidence == EVIDENCE_ASLEEP && observation->now.has_activity &&
        observation->syscall_number >= 0) {
        facts.has_arguments = true;
        facts.syscall_number = observation->syscall_number;
        facts.activity = observation->now.activity;
        memcpy(facts.arguments, observation->snapshot->registers.call_arguments,
               sizeof facts.arguments);
    }
    return wait_list_add(counter->waits, &facts, observation->program);
}

/* Notes what the names of a new stack's addresses will need. */
static int note_addresses(const struct observation *observation, struct program_tables *program,
                          const struct stack *stack)
{
    space_note_sampled(program->maps.space, stack->addresses, stack->depth);
    return generated_note(&program->generated, program->maps.space, observation, stack);
}

int count_stack(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack)
{
    struct stack_table *stacks = &counter->results->stacks;
    struct thread_account *account = &thread->account;
    enum account kind = ledger_account(observation->state);
    struct sample_labels labels;
    uint32_t sample;
    size_t stacks_before = stacks->stack_count;
    int err = label(counter, observation, thread, observation->state, &labels);
    if (!err)
        err = stack_table_add(stacks, program->maps.space->id, stack, &labels, 0, 0, &sample);
    if (!err && stacks->stack_count > stacks_before)
        err = note_addresses(observation, program, stack);
    if (!err && counter->waits)
        err = note_wait(counter, observation);
    if (err)
        return err;
    give(counter, thread, kind, sample);
    ledger_note_sample(&account->ledger, kind, sample);
    account->last_sample = sample;
    account->sleeps_on = observation->evidence == EVIDENCE_ASLEEP;
    account->is_dumped = counter->waits != NULL;
    kept_stack_drop(&thread->kept);
    return 0;
}

int count_later(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack)
{
    struct kept_stack *kept = &thread->kept;
    /* The thread's last sample will do. */
    if (ledger_has_sample(&thread->account.ledger))
        return 0;
    kept_stack_drop(kept);
    if (array_reserve(&kept->stack.addresses, &kept->stack.capacity, stack->depth + 1))
        return -ENOMEM;
    if (stack->depth)
        memcpy(kept->stack.addresses, stack->addresses, stack->depth * sizeof *stack->addresses);
    kept->stack.depth = stack->depth;
    kept->stack.cut = stack->cut;
    kept->space = program->maps.space->id;
    kept->kind = ledger_account(observation->state);
    int err = label(counter, observation, thread, observation->state, &kept->labels);
    if (!err)
        err = note_addresses(observation, program, stack);
    kept->is_there = !err;
    return err;
}

/* Adds a sample without a stack for the thread. */
static int add_without_stack(const struct counter *counter, const struct observation *observation,
                             const struct counted_thread *thread, uint32_t *ret_sample)
{
    struct sample_labels labels;
    int err = label(counter, observation, thread, THREAD_UNKNOWN, &labels);
    return err ? err
               : stack_table_add(&counter->results->stacks, NO_SPACE, &no_stack, &labels, 0, 0,
                                 ret_sample);
}

static int count_kind_without_stack(const struct counter *counter,
                                    const struct observation *observation,
                                    struct counted_thread *thread, enum account kind)
{
    uint32_t sample;
    int err = add_without_stack(counter, observation, thread, &sample);
    if (!err)
        give(counter, thread, kind, sample);
    return err;
}

int count_without_stack(const struct counter *counter, const struct observation *observation,
                        struct counted_thread *thread)
{
    /* A dump does this at its end, once. */
    if (counter->waits)
        return 0;
    return count_kind_without_stack(counter, observation, thread,
                                    ledger_account(observation->state));
}

int count_assumed(const struct counter *counter, const struct observation *observation,
                  struct counted_thread *thread)
{
    static const enum account kinds[] = {ACCOUNT_RUNNING, ACCOUNT_RUNNABLE};
    int err = 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds && !err && !counter->waits; i++) {
        if (thread->account.ledger.owed_ns[kinds[i]])
            err = count_kind_without_stack(counter, observation, thread, kinds[i]);
    }
    return err;
}

/* Adds the first sample of a thread that has none: with the stack that was kept, or with no
 * stack. */
static int add_first_sample(const struct counter *counter, const struct observation *observation,
                            const struct counted_thread *thread, enum account *ret_kind,
                            uint32_t *ret_sample)
{
    const struct kept_stack *kept = &thread->kept;
    *ret_kind = kept->is_there ? kept->kind : ACCOUNT_RUNNABLE;
    if (!kept->is_there)
        return add_without_stack(counter, observation, thread, ret_sample);
    return stack_table_add(&counter->results->stacks, kept->space, &kept->stack, &kept->labels, 0,
                           0, ret_sample);
}

/* Puts a thread that was there into a dump even if the dump has no stack of it. */
static int count_for_dump(const struct counter *counter, const struct observation *observation,
                          struct counted_thread *thread)
{
    enum account kind;
    uint32_t sample;
    if (!observation->is_certain || thread->account.is_dumped)
        return 0;
    int err = add_first_sample(counter, observation, thread, &kind, &sample);
    if (!err)
        err = note_wait(counter, observation);
    if (!err)
        give(counter, thread, kind, sample);
    return err;
}

/* A thread that waits for a CPU is where it was last seen running, and vice versa: what it owes to
 * one state is counted at that place, in that state. */
static int borrow_sample(struct stack_table *stacks, struct ledger *ledger, enum account kind,
                         enum account from)
{
    uint32_t sample;
    if (!ledger->owed_ns[kind] || ledger->has_sample[kind] || !ledger->has_sample[from])
        return 0;
    enum thread_state state = kind == ACCOUNT_RUNNING ? THREAD_RUNNING : THREAD_RUNNABLE;
    int err = stack_table_in_state(stacks, ledger->last_sample[from], state, &sample);
    if (!err)
        ledger_note_sample(ledger, kind, sample);
    return err;
}

/* Finds a sample to settle what each account owes. */
static int find_heirs(const struct counter *counter, const struct observation *observation,
                      struct counted_thread *thread)
{
    struct stack_table *stacks = &counter->results->stacks;
    struct ledger *ledger = &thread->account.ledger;
    enum account kind;
    uint32_t sample;
    int err = 0;
    if (!ledger_has_sample(ledger) && ledger_owes(ledger)) {
        err = add_first_sample(counter, observation, thread, &kind, &sample);
        if (err)
            return err;
        ledger_note_sample(ledger, kind, sample);
        if (!thread->kept.is_there)
            return 0;
    }
    err = borrow_sample(stacks, ledger, ACCOUNT_RUNNABLE, ACCOUNT_RUNNING);
    return err ? err : borrow_sample(stacks, ledger, ACCOUNT_RUNNING, ACCOUNT_RUNNABLE);
}

int count_gone(const struct counter *counter, const struct observation *observation,
               struct counted_thread *thread)
{
    struct results *results = counter->results;
    struct thread_account *account = &thread->account;
    struct ledger *ledger = &account->ledger;
    struct settlement settlements[ACCOUNT_COUNT];
    if (counter->waits)
        return count_for_dump(counter, observation, thread);
    int err = find_heirs(counter, observation, thread);
    if (err || !ledger_has_sample(ledger))
        return err;
    /* Threads that are still there at the end do not represent others. */
    uint64_t *carry_ns = observation->is_at_end ? NULL : &results->carry_ns;
    unsigned count = ledger_settle(ledger, counter->period_ns, carry_ns, settlements);
    for (unsigned i = 0; i < count; i++)
        count_again(counter, settlements[i].sample, &settlements[i].share);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        timeline_give(&results->timeline, &account->timeline, thread->name, i,
                      ledger->last_sample[ledger_heir(ledger, i)]);
    kept_stack_drop(&thread->kept);
    return 0;
}

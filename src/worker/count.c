#include "worker/count.h"
#include "base/array.h"
#include "worker/cpu_users.h"
#include "worker/elapsed_ticks.h"

#include <errno.h>
#include <string.h>

static const struct stack no_stack = {.cut = STACK_CUT_NOT_CAPTURED};

static void count_again(const struct means *means, uint32_t sample, const struct share *share)
{
    struct stack_table *stacks = &means->results->stacks;
    stack_table_count(stacks, sample, share->ticks, share->time_ns, share->part_ns);
    means->results->counts.owed_ns -= share->time_ns;
    enum stack_cut cut = stacks->stacks[stacks->samples[sample].stack].cut;
    results_count_samples(&means->results->counts, cut, share->ticks);
}

static void close_window(const struct means *means, struct thread_account *account,
                         enum account kind)
{
    struct settlement settlements[WINDOW_ROWS_MAX];
    unsigned count = ledger_close(&account->ledger, kind, means->period_ns, settlements);
    for (unsigned i = 0; i < count; i++)
        count_again(means, settlements[i].sample, &settlements[i].share);
    if (kind == ACCOUNT_ASLEEP)
        wakers_settle(&account->wakers, settlements, count);
}

void count_close(const struct means *means, struct counted_thread *thread)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT && !means->waits; i++)
        close_window(means, &thread->account, i);
}

/* Gives time that was booked as sleep but was none to where the thread runs. */
static void deny_sleep(const struct means *means, struct counted_thread *thread,
                       uint32_t running_sample)
{
    struct results *results = means->results;
    struct thread_account *account = &thread->account;
    uint64_t denied_ns = ledger_deny_sleep(&account->ledger, means->period_ns);
    results->counts.running_ns += denied_ns;
    if (denied_ns && !account->ledger.owed_ns[ACCOUNT_ASLEEP])
        timeline_give(&results->timeline, &account->timeline, thread->name, ACCOUNT_ASLEEP,
                      running_sample);
}

/* Counts a sample of `ticks` ticks. The timeline gives it the time until now immediately. */
static int count_sample(const struct means *means, struct counted_thread *thread, enum account kind,
                        uint32_t sample, uint64_t ticks)
{
    static const struct share once = {.ticks = 1}; /* however short its round was */
    struct thread_account *account = &thread->account;
    if (means->waits) {
        count_again(means, sample, &once);
        return 0;
    }
    int err =
        ledger_add(&account->ledger, kind, sample, ticks, elapsed_part(&account->elapsed, kind));
    if (err)
        return err;
    timeline_give(&means->results->timeline, &account->timeline, thread->name, kind, sample);
    if (!ledger_is_due(&account->ledger, kind))
        return 0;
    if (kind == ACCOUNT_RUNNING)
        deny_sleep(means, thread, sample);
    close_window(means, account, kind);
    return 0;
}

/* Notes that the thread was there at the `ticks` ticks up to that one. */
static void note_ticks(const struct means *means, struct counted_thread *thread, uint32_t sample,
                       uint64_t last_tick, uint64_t ticks, uint64_t wait)
{
    struct timeline *timeline = &means->results->timeline;
    struct thread_account *account = &thread->account;
    if (account->timeline.thread_plus_1)
        tick_runs_add(&timeline->ticks, &account->ticks, account->timeline.thread_plus_1 - 1,
                      sample, last_tick, ticks, wait);
}

/* It was off its CPU at these ticks, and it is not known where. */
static void note_unseen_ticks(const struct means *means, const struct observation *observation,
                              struct counted_thread *thread)
{
    struct tick_cursor cursor = {0};
    if (thread->account.timeline.thread_plus_1)
        tick_runs_add(&means->results->timeline.ticks, &cursor,
                      thread->account.timeline.thread_plus_1 - 1, TIMELINE_NO_SAMPLE,
                      observation->before.unseen_tick, observation->before.unseen_ticks, 0);
}

/* The time of a running thread's sample that has no tick, because the kernel took it or it comes
 * from a visit. 0: it has one. */
static uint64_t between_ticks_ns(const struct observation *observation)
{
    return observation->evidence == EVIDENCE_SAMPLED   ? observation->sampled.at_ns
           : observation->evidence == EVIDENCE_STOPPED ? observation->stop.visit_ns
                                                       : 0;
}

/* Notes for tick runs where a copy of the thread, which was just counted, found it. A sample
 * without a tick comes before the sample of its period. */
static void note_copy_ticks(const struct means *means, const struct observation *observation,
                            struct counted_thread *thread, uint32_t sample)
{
    struct timeline *timeline = &means->results->timeline;
    struct thread_account *account = &thread->account;
    uint64_t at_ns = between_ticks_ns(observation);
    if (!at_ns)
        note_ticks(means, thread, sample, observation->tick, observation->ticks,
                   account->wakers.departed_ns);
    else if (account->timeline.thread_plus_1 && at_ns > timeline->start_ns)
        tick_runs_add_running(&timeline->ticks, account->timeline.thread_plus_1 - 1, sample,
                              (at_ns - timeline->start_ns) / means->period_ns + 1);
}

/* Counts a sample of a sleeping thread, and the sleeps that began. The elapsed time of its wait
 * goes to the same sample. */
static int count_asleep(const struct means *means, struct counted_thread *thread, uint32_t sample,
                        const struct held_wait *held)
{
    uint64_t ticks = held->ticks + held->missed_ticks;
    struct thread_wakers *wakers = &thread->account.wakers;
    int err = wakers_place(wakers, means->results, held->departed_ns, &sample);
    if (err)
        return err;
    wakers_note(wakers, held->departed_ns, sample, ticks, held->sleeps);
    uint32_t state = means->results->stacks.samples[sample].labels.state;
    enum account kind = ledger_account((enum thread_state)state);
    thread->account.last_sample = sample;
    ledger_note_sample(&thread->account.ledger, kind, sample);
    elapsed_ticks_place_wait(means->results, thread, sample);
    stack_table_count_sleeps(&means->results->stacks, sample, held->sleeps);
    err = count_sample(means, thread, kind, sample, ticks);
    note_ticks(means, thread, sample, held->last_tick, held->ticks, held->departed_ns);
    return err;
}

/* If nothing holds the lock any more, the thread has been woken and is about to run: it is no
 * longer asleep. */
static bool had_owner(const struct results *results, const struct counted_sample *sample)
{
    uint32_t wait_plus_1 = sample->labels.wait_plus_1;
    return wait_plus_1 && results->waits.rows[wait_plus_1 - 1].owner_process != WAIT_NO_OWNER;
}

static int request_owner(const struct means *means, const struct observation *observation,
                         enum request_kind kind)
{
    const struct request request = {
        .kind = kind, .thread = observation->thread, .tid = observation->tid};
    return channel_request(means->channel, &request);
}

/* Notes that sleeps which began were counted without an owner. */
static void note_unowned(struct thread_account *account, uint32_t sample, uint64_t sleeps)
{
    if (!sleeps)
        return;
    account->unowned_sample = sample;
    account->unowned_sleeps = sleeps;
}

/* An owner may become known only later; then the sleeps that were counted without one are taken
 * back. */
static uint64_t take_unowned(struct stack_table *stacks, struct thread_account *account,
                             uint64_t sleeps)
{
    uint64_t unowned = account->unowned_sleeps;
    account->unowned_sleeps = 0;
    if (sleeps)
        return sleeps;
    stack_table_take_sleeps(stacks, account->unowned_sample, unowned);
    return unowned;
}

/* Counts a sleeping thread's sample; later, in count_held, if the wait has an owner. */
static int count_wait(const struct means *means, const struct observation *observation,
                      struct counted_thread *thread, uint32_t sample, uint64_t ticks,
                      uint64_t sleeps)
{
    struct results *results = means->results;
    const struct counted_sample *row = &results->stacks.samples[sample];
    struct held_wait held = {.thread = observation->thread,
                             .at_ns = observation->now.at_ns,
                             .departed_ns = thread->account.wakers.departed_ns,
                             .sample = sample,
                             .last_tick = observation->tick,
                             .ticks = ticks,
                             .sleeps = sleeps,
                             .missed_ticks = observation->missed_ticks};
    bool is_futex = observation->wait.call.kind == CALL_FUTEX;
    int err = owners_read(means->owners, results, observation, row->stack, &held);
    if (!err && held.has_owner && observation->evidence == EVIDENCE_ASLEEP)
        err = request_owner(means, observation, REQUEST_OWNER);
    if (!err && !held.has_owner && observation->evidence == EVIDENCE_UNMOVED && !is_futex)
        err = request_owner(means, observation, REQUEST_NO_OWNER);
    if (err)
        return err;
    if (held.owner != WAIT_NO_OWNER) {
        means->owners->tick = observation->tick;
        held.sleeps = take_unowned(&results->stacks, &thread->account, sleeps);
        return owners_hold(means->owners, &held);
    }
    thread->account.owner_plus_1 = 0;
    elapsed_ticks_end_chain(results, thread, observation->tick - ticks);
    if (observation->evidence == EVIDENCE_UNMOVED && !held.has_owner && is_futex &&
        had_owner(results, row))
        return 0;
    uint32_t wait_plus_1 = 0;
    if (held.wait.kind != RESOURCE_NOT_KNOWN)
        err = waits_add(&results->waits, &held.wait, &wait_plus_1);
    if (!err)
        err = stack_table_in_wait(&results->stacks, sample, wait_plus_1, &sample);
    if (!err)
        note_unowned(&thread->account, sample, sleeps);
    if (err)
        return err;
    return count_asleep(means, thread, sample, &held);
}

/* Counts ticks at which the thread slept on. If that is not certain, its time stays owed. */
static int count_sleep(const struct means *means, const struct observation *observation,
                       struct counted_thread *thread)
{
    struct thread_account *account = &thread->account;
    if (!account->sleeps_on || means->waits)
        return 0;
    if (observation->evidence == EVIDENCE_UNMOVED && observation->wait.has_call)
        return count_wait(means, observation, thread, account->last_sample,
                          observation->before.asleep_ticks, 0);
    uint64_t departed_ns = account->wakers.departed_ns;
    wakers_note(&account->wakers, departed_ns, account->last_sample,
                observation->before.asleep_ticks, 0);
    note_ticks(means, thread, account->last_sample, observation->before.asleep_tick,
               observation->before.asleep_ticks, departed_ns);
    return count_sample(means, thread, ACCOUNT_ASLEEP, account->last_sample,
                        observation->before.asleep_ticks);
}

/* All held waits have their samples by now. The thread at the end of the chain may itself wait for
 * another one, as was seen in an earlier round. */
static int note_chain(const struct means *means, const struct held_wait *held)
{
    struct owners *owners = means->owners;
    struct counted_thread *threads = owners->threads->items;
    if (!resource_is_lock((enum resource_kind)held->wait.kind))
        return 0;
    uint32_t last = owners_end_of_chain(owners, held);
    const struct thread_account *end = &threads[last].account;
    bool goes_on = last != held->thread && end->wait.is_open && end->wait.chain;
    return elapsed_ticks_note_chain(means->results, &threads[held->thread],
                                    goes_on ? end->wait.chain_sample : end->last_sample,
                                    owners->tick - held->ticks);
}

int count_held(const struct means *means)
{
    struct owners *owners = means->owners;
    struct results *results = means->results;
    int err = owners_resolve(owners, results, means->period_ns);
    for (size_t i = 0; i < owners->held_count && !err; i++) {
        const struct held_wait *held = &owners->held[i];
        uint32_t sample;
        err = stack_table_in_wait(&results->stacks, held->sample, held->wait_plus_1, &sample);
        if (!err)
            err = count_asleep(means, &owners->threads->items[held->thread], sample, held);
    }
    for (size_t i = 0; i < owners->held_count && !err; i++) {
        err = owners_detect_deadlock(owners, results, &owners->held[i]);
        if (!err)
            err = note_chain(means, &owners->held[i]);
    }
    owners_drop(owners);
    return err;
}

/* Any observation except one of the same sleep ends a wait: before the ticks that the observation
 * stands for, or at its last tick. */
static int end_wait(const struct means *means, const struct observation *observation,
                    struct counted_thread *thread)
{
    uint64_t tick = observation->tick;
    /* A thread that never moved has waited for longer than a second. */
    if (means->waits || (observation->evidence == EVIDENCE_GONE && observation->end.never_moved))
        return 0;
    if (observation->evidence == EVIDENCE_STOPPED || observation->evidence == EVIDENCE_WAITING ||
        observation->evidence == EVIDENCE_WOKEN)
        tick -= observation->ticks;
    return elapsed_ticks_end_wait(means->results, thread, tick);
}

/* The thread was seen in a span, or in none. What is owed so far belongs to its span before. */
static int note_span(const struct means *means, const struct observation *observation,
                     struct counted_thread *thread, const struct span_sight *sight, uint64_t at_ns)
{
    if (means->waits || !spans_change(&means->spans, thread, sight, at_ns))
        return 0;
    count_close(means, thread);
    return spans_note(&means->spans, means->results, thread, observation->thread, sight, at_ns);
}

int count_span(const struct means *means, const struct observation *observation,
               struct counted_thread *thread, const struct span_sight *sight)
{
    uint64_t at_ns = observation->evidence == EVIDENCE_SAMPLED ? observation->sampled.at_ns
                                                               : observation->now.at_ns;
    return note_span(means, observation, thread, sight, at_ns);
}

/* Whether the thread may have slept since `from_ns`, its last observation: that observation or this
 * one found it asleep, or a tick in between did, or some tick did not find it at all. */
static bool may_have_slept(const struct means *means, const struct thread_account *account,
                           const struct observation *observation, uint64_t from_ns)
{
    return account->sleeps_on || account->is_woken || observation->before.asleep.at_ns ||
           observation->before.unseen_ticks ||
           ledger_account(observation->state) == ACCOUNT_ASLEEP ||
           account->ledger.booked_ns > from_ns + 2 * means->period_ns;
}

int count_book(const struct means *means, const struct observation *observation,
               struct counted_thread *thread)
{
    static const struct span_sight as_before = {0};
    struct thread_account *account = &thread->account;
    const struct reading *asleep = &observation->before.asleep, *look = &observation->before.look;
    const struct reading *now = &observation->now;
    uint32_t process = observation->process;
    int err = 0;
    if (observation->before.begins) {
        account_begin(account, &observation->before.begin);
        kept_stack_drop(&thread->kept);
    }
    uint64_t from_ns = account->ledger.booked_ns;
    uint64_t owed_before_ns = account->ledger.owed_ns[ACCOUNT_ASLEEP];
    sleeps_note_stop(&account->sleeps, observation);
    note_unseen_ticks(means, observation, thread);
    if (asleep->at_ns) {
        account_book(account, means->results, process, thread->tid, asleep, ACCOUNT_ASLEEP);
        err = note_span(means, observation, thread, &as_before, asleep->at_ns);
        if (err)
            return err;
        err = count_sleep(means, observation, thread);
    }
    /* What the thread did up to this look, before it was stopped, is known only from the kernel's
     * account. */
    if (look->at_ns && reading_has_times(look))
        account_book(account, means->results, process, thread->tid, look, ACCOUNT_RUNNING);
    bool is_late =
        observation->evidence == EVIDENCE_GONE && now->at_ns <= account->ledger.booked_ns;
    if (now->at_ns && !is_late)
        account_book(account, means->results, process, thread->tid, now,
                     ledger_account(observation->state));
    if (may_have_slept(means, account, observation, from_ns))
        ledger_note_asleep(&account->ledger, owed_before_ns);
    if (observation->evidence == EVIDENCE_UNMOVED ||
        (observation->evidence == EVIDENCE_SAMPLED &&
         observation->sampled.at_ns <= account->slept_ns))
        return err;
    bool was_here = account->sleeps_on || account->is_woken;
    account->is_woken = was_here && observation->evidence == EVIDENCE_WOKEN;
    account->sleeps_on = false;
    account->wakers.departed_ns = 0;
    if (observation->evidence != EVIDENCE_ASLEEP ||
        !elapsed_ticks_is_same_wait(account, observation))
        wakers_forget_before_record(&account->wakers);
    return err || observation->evidence == EVIDENCE_ASLEEP ? err
                                                           : end_wait(means, observation, thread);
}

/* Interns the kernel functions of a sleeping thread: from /proc, or else from the record of
 * switches. */
static int name_kernel_stack(const struct means *means, const struct snapshot *snapshot,
                             uint32_t *ret_stack)
{
    struct strings *strings = &means->results->strings;
    return snapshot->kernel_stack && *snapshot->kernel_stack
               ? strings_intern(strings, snapshot->kernel_stack, ret_stack)
               : kernel_names_intern_sleep(means->kernel_names, &snapshot->kernel_chain, strings,
                                           ret_stack);
}

static int label(const struct means *means, const struct observation *observation,
                 const struct counted_thread *thread, enum thread_state state,
                 struct sample_labels *ret_labels)
{
    struct sample_labels labels = {
        .thread_name = thread->name,
        .tid = means->tells_threads_apart ? (uint32_t)thread->tid : 0,
        .state = state,
        .syscall_number = -1,
        .process = observation->process,
        .label_set_plus_1 = observation->snapshot ? thread->label_set_plus_1 : 0,
        .goroutine = observation->snapshot ? thread->goroutine : 0,
        .task = thread->has_no_task && thread_state_waits(state) ? TASK_NONE : TASK_THREAD,
        .aside = spans_aside(&means->spans, thread, observation->thread),
    };
    if (thread_state_waits(state)) {
        struct strings *strings = &means->results->strings;
        labels.syscall_number = (int32_t)observation->wait.syscall_number;
        if (strings_intern(strings, observation->wait.channel, &labels.wait_channel) ||
            name_kernel_stack(means, observation->snapshot, &labels.kernel_stack))
            return -ENOMEM;
    }
    if (observation->evidence == EVIDENCE_SAMPLED && state == THREAD_RUNNING &&
        kernel_names_intern(means->kernel_names, &observation->snapshot->kernel_chain,
                            &means->results->strings, &labels.kernel_stack))
        return -ENOMEM;
    *ret_labels = labels;
    return 0;
}

/* For a dump: collects the facts about what the thread waits for. */
static int note_wait(const struct means *means, const struct observation *observation)
{
    struct wait_facts facts = {
        .program = observation->program,
        .process_id = (pid_t)means->results->stacks.processes[observation->process].pid,
        .tid = observation->tid,
        .evidence = observation->evidence,
        .syscall_number = -1,
        .is_uninterruptible = observation->state == THREAD_UNINTERRUPTIBLE,
    };
    if (observation->wait.has_call && observation->wait.call.kind == CALL_FUTEX)
        gils_note(&means->owners->gils, observation, &observation->wait.memory, &facts.gil);
    if (facts.program && observation->evidence == EVIDENCE_ASLEEP &&
        observation->now.has_activity && observation->wait.syscall_number >= 0) {
        facts.has_arguments = true;
        facts.syscall_number = observation->wait.syscall_number;
        facts.activity = observation->now.activity;
        memcpy(facts.arguments, observation->snapshot->registers.call_arguments,
               sizeof facts.arguments);
    }
    return wait_list_add(means->waits, &facts);
}

/* For a dump: reads the lock that the thread waits for, so that it gets its name. Its owner is
 * found at the end, once all threads have been seen. */
static int note_lock(const struct means *means, const struct observation *observation,
                     uint32_t *sample)
{
    struct results *results = means->results;
    struct held_wait held;
    uint32_t wait_plus_1;
    if (!observation->wait.has_call || observation->wait.call.kind != CALL_FUTEX)
        return 0;
    int err = owners_read(means->owners, results, observation,
                          results->stacks.samples[*sample].stack, &held);
    if (!err)
        err = waits_add(&results->waits, &held.wait, &wait_plus_1);
    return err ? err : stack_table_in_wait(&results->stacks, *sample, wait_plus_1, sample);
}

/* Keeps the data needed to name a new stack's addresses. */
static int note_addresses(const struct observation *observation, struct program_tables *program,
                          const struct stack *stack)
{
    space_note_sampled(program->maps.space, stack->addresses, stack->depth);
    return generated_note(&program->generated, program->maps.space, observation, stack);
}

/* If waits for a CPU are not observed: a thread has probably lost its CPU near the place where the
 * kernel samples it, so its waits are counted there, as runnable. */
static int give_wait_for_cpu(const struct means *means, const struct observation *observation,
                             struct counted_thread *thread, uint32_t running_sample)
{
    struct ledger *ledger = &thread->account.ledger;
    uint32_t sample;
    if (means->waits || observation->sampled.waits_are_seen || !ledger->owed_ns[ACCOUNT_RUNNABLE])
        return 0;
    int err =
        stack_table_in_state(&means->results->stacks, running_sample, THREAD_RUNNABLE, &sample);
    if (err)
        return err;
    ledger_note_sample(ledger, ACCOUNT_RUNNABLE, sample);
    return count_sample(means, thread, ACCOUNT_RUNNABLE, sample, 1);
}

/* Notes that the thread was seen, and where if it was awake. */
static void note_seen(const struct observation *observation, struct thread_account *account,
                      enum account kind, uint32_t sample)
{
    ledger_note_sample(&account->ledger, kind, sample);
    if (kind != ACCOUNT_ASLEEP) {
        account->awake_sample = sample;
        account->awake_at_ns = observation->evidence == EVIDENCE_SAMPLED
                                   ? observation->sampled.at_ns
                                   : observation->now.at_ns;
    }
    if (observation->evidence == EVIDENCE_SAMPLED)
        return;
    account->slept_ns = observation->now.at_ns;
    account->owner_plus_1 = 0;
    account->is_in_deadlock = false;
}

/* Counts the sample of a thread that is awake, or whose wait can have no owner. `sample` is
 * replaced by the sample that has the wait's waker, if that is known by now. */
static int count_without_owner(const struct means *means, const struct observation *observation,
                               struct counted_thread *thread, enum account kind, uint64_t sleeps,
                               uint32_t *sample)
{
    struct thread_wakers *wakers = &thread->account.wakers;
    uint64_t ticks = observation->ticks + observation->missed_ticks;
    if (kind == ACCOUNT_ASLEEP) {
        int err = wakers_place(wakers, means->results, wakers->departed_ns, sample);
        if (err)
            return err;
        wakers_note(wakers, wakers->departed_ns, *sample, ticks, sleeps);
    }
    stack_table_count_sleeps(&means->results->stacks, *sample, sleeps);
    note_unowned(&thread->account, *sample, sleeps);
    int err = count_sample(means, thread, kind, *sample, ticks);
    note_copy_ticks(means, observation, thread, *sample);
    return err;
}

int count_stack(const struct means *means, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack)
{
    struct stack_table *stacks = &means->results->stacks;
    struct thread_account *account = &thread->account;
    struct sample_labels labels;
    uint32_t sample;
    size_t stacks_before = stacks->stack_count;
    enum account kind = ledger_account(observation->state);
    int err = label(means, observation, thread, observation->state, &labels);
    if (!err)
        err = stack_table_add(stacks, program->maps.space->id, stack, &labels, 0, 0, &sample);
    if (!err && stacks->stack_count > stacks_before)
        err = note_addresses(observation, program, stack);
    if (!err && kind == ACCOUNT_RUNNABLE && !means->waits)
        err = cpu_user_place(means, observation, &sample);
    if (!err && means->waits)
        err = note_wait(means, observation);
    if (!err && means->waits)
        err = note_lock(means, observation, &sample);
    if (err)
        return err;
    bool may_have_owner = observation->wait.has_call && !means->waits;
    uint64_t sleeps =
        kind == ACCOUNT_ASLEEP && !means->waits ? sleeps_take(&account->sleeps, observation) : 0;
    if (observation->evidence == EVIDENCE_ASLEEP && !means->waits)
        account->wakers.departed_ns =
            observation->record.departed_ns ? observation->record.departed_ns : WAIT_BEFORE_RECORD;
    if (!may_have_owner)
        err = count_without_owner(means, observation, thread, kind, sleeps, &sample);
    if (err)
        return err;
    if (observation->evidence == EVIDENCE_ASLEEP && !means->waits)
        err = elapsed_ticks_note_wait(means->results, observation, thread, sample);
    if (err)
        return err;
    note_seen(observation, account, kind, sample);
    if (observation->evidence != EVIDENCE_SAMPLED) {
        account->last_sample = sample;
        account->sleeps_on = observation->evidence == EVIDENCE_ASLEEP;
        account->sleep_is_over = account->sleeps_on && observation->asleep.is_over;
    }
    account->is_dumped = means->waits != NULL;
    kept_stack_drop(&thread->kept);
    if (observation->evidence == EVIDENCE_SAMPLED)
        return give_wait_for_cpu(means, observation, thread, sample);
    return may_have_owner
               ? count_wait(means, observation, thread, sample, observation->ticks, sleeps)
               : 0;
}

int count_woken(const struct means *means, const struct observation *observation,
                struct counted_thread *thread)
{
    static const struct span_sight as_before = {0};
    struct thread_account *account = &thread->account;
    uint32_t sample;
    if (!account->is_woken || means->waits)
        return 0;
    int err = count_span(means, observation, thread, &as_before);
    if (!err)
        err = stack_table_in_state(&means->results->stacks, account->last_sample, THREAD_RUNNABLE,
                                   &sample);
    if (!err)
        err = cpu_user_place(means, observation, &sample);
    if (err)
        return err;
    note_seen(observation, account, ACCOUNT_RUNNABLE, sample);
    note_ticks(means, thread, sample, observation->tick, observation->ticks, 0);
    return count_sample(means, thread, ACCOUNT_RUNNABLE, sample, observation->ticks);
}

int count_later(const struct means *means, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack)
{
    struct kept_stack *kept = &thread->kept;
    /* The thread's last sample serves instead. */
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
    int err = label(means, observation, thread, observation->state, &kept->labels);
    if (!err)
        err = note_addresses(observation, program, stack);
    kept->is_there = !err;
    return err;
}

/* Adds a sample without a stack for the thread. */
static int add_without_stack(const struct means *means, const struct observation *observation,
                             const struct counted_thread *thread, uint32_t *ret_sample)
{
    struct sample_labels labels;
    int err = label(means, observation, thread, THREAD_UNKNOWN, &labels);
    return err ? err
               : stack_table_add(&means->results->stacks, NO_SPACE, &no_stack, &labels, 0, 0,
                                 ret_sample);
}

static int count_kind_without_stack(const struct means *means,
                                    const struct observation *observation,
                                    struct counted_thread *thread, enum account kind,
                                    uint64_t ticks)
{
    uint32_t sample;
    int err = add_without_stack(means, observation, thread, &sample);
    return err ? err : count_sample(means, thread, kind, sample, ticks);
}

int count_without_stack(const struct means *means, const struct observation *observation,
                        struct counted_thread *thread)
{
    /* A dump does this at its end, once. */
    if (means->waits)
        return 0;
    return count_kind_without_stack(means, observation, thread, ledger_account(observation->state),
                                    observation->ticks);
}

int count_assumed(const struct means *means, const struct observation *observation,
                  struct counted_thread *thread)
{
    const uint64_t *owed_ns = thread->account.ledger.owed_ns;
    int err = 0;
    if (means->waits)
        return 0;
    /* It was found running, and could not be stopped. */
    if (observation->before.look.at_ns && owed_ns[ACCOUNT_RUNNING])
        err = count_kind_without_stack(means, observation, thread, ACCOUNT_RUNNING, 1);
    if (!err && owed_ns[ACCOUNT_RUNNABLE])
        err = count_kind_without_stack(means, observation, thread, ACCOUNT_RUNNABLE,
                                       observation->ticks);
    return err;
}

/* Adds a first sample for a thread without samples: with the kept stack, or without a stack. */
static int add_first_sample(const struct means *means, const struct observation *observation,
                            const struct counted_thread *thread, enum account *ret_kind,
                            uint32_t *ret_sample)
{
    const struct kept_stack *kept = &thread->kept;
    *ret_kind = kept->is_there ? kept->kind : ACCOUNT_RUNNABLE;
    if (!kept->is_there)
        return add_without_stack(means, observation, thread, ret_sample);
    return stack_table_add(&means->results->stacks, kept->space, &kept->stack, &kept->labels, 0, 0,
                           ret_sample);
}

/* Adds a thread that was there to the dump, even without a stack. */
static int count_for_dump(const struct means *means, const struct observation *observation,
                          struct counted_thread *thread)
{
    enum account kind;
    uint32_t sample;
    if (!observation->end.is_certain || thread->account.is_dumped)
        return 0;
    int err = add_first_sample(means, observation, thread, &kind, &sample);
    if (!err)
        err = note_wait(means, observation);
    return err ? err : count_sample(means, thread, kind, sample, 1);
}

/* A thread that waits for a CPU is where it was last seen running, and vice versa: time owed to one
 * state is counted at the other state's place. */
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

/* Finds a sample for what each account owes. */
static int find_heirs(const struct means *means, const struct observation *observation,
                      struct counted_thread *thread)
{
    struct stack_table *stacks = &means->results->stacks;
    struct ledger *ledger = &thread->account.ledger;
    enum account kind;
    uint32_t sample;
    int err = 0;
    if (!ledger_has_sample(ledger) && ledger_owes(ledger)) {
        err = add_first_sample(means, observation, thread, &kind, &sample);
        if (err)
            return err;
        ledger_note_sample(ledger, kind, sample);
        if (!thread->kept.is_there)
            return 0;
    }
    err = borrow_sample(stacks, ledger, ACCOUNT_RUNNABLE, ACCOUNT_RUNNING);
    return err ? err : borrow_sample(stacks, ledger, ACCOUNT_RUNNING, ACCOUNT_RUNNABLE);
}

/* Counts the time that the thread's samples have not been given yet, if it has samples. */
static void settle(const struct means *means, const struct observation *observation,
                   struct counted_thread *thread)
{
    struct results *results = means->results;
    struct thread_account *account = &thread->account;
    struct ledger *ledger = &account->ledger;
    struct settlement settlements[ACCOUNT_COUNT];
    if (!ledger_has_sample(ledger))
        return;
    /* Threads that are still there at the end do not represent others. */
    uint64_t *carry_ns = observation->end.is_at_end ? NULL : &results->carry_ns;
    unsigned count = ledger_settle(ledger, means->period_ns, carry_ns, settlements);
    for (unsigned i = 0; i < count; i++)
        count_again(means, settlements[i].sample, &settlements[i].share);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        timeline_give(&results->timeline, &account->timeline, thread->name, i,
                      ledger->last_sample[ledger_heir(ledger, i)]);
}

int count_gone(const struct means *means, const struct observation *observation,
               struct counted_thread *thread)
{
    struct results *results = means->results;
    struct thread_account *account = &thread->account;
    if (means->waits)
        return count_for_dump(means, observation, thread);
    account_end(account, results, observation->process);
    count_close(means, thread);
    int err = find_heirs(means, observation, thread);
    if (err)
        return err;
    settle(means, observation, thread);
    timeline_end(&results->timeline, &account->timeline);
    kept_stack_drop(&thread->kept);
    ledger_free(&account->ledger);
    return spans_end(&means->spans, results, thread, observation->thread);
}

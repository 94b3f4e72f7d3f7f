#include "observe/record_source.h"
#include "base/clock.h"
#include "observe/sleep_details.h"
#include "proc/memory.h"

#include <errno.h>
#include <string.h>

void record_source_want_stack(struct switch_record *record, uint32_t slot, uint32_t generation,
                              const struct subject *subject)
{
    size_t bytes = subject->stack_limit;
    switch_record_want_stack(record, slot, generation,
                             bytes > SWITCH_STACK_BYTES_DEFAULT ? bytes
                                                                : SWITCH_STACK_BYTES_DEFAULT,
                             subject->leaves_stack);
    switch_record_want_python(record, slot, generation, &subject->python);
}

/* Reads the kernel's account of the thread. Returns false if it is gone. */
static bool read_activity(const struct subject *subject, const struct watches *watches,
                          struct watch *watch, struct observation *observation)
{
    const struct watch_place place = {subject->proc_fd, subject->tid, watches->keep_fds_below};
    int err = watch_read_activity(&place, watch, &observation->now.activity);
    observation->now.at_ns = monotonic_ns();
    observation->now.has_activity = !err;
    return err != -ESRCH;
}

/* Leaves the thread to the next source, without the record's data. */
static enum outcome refuse(struct observation *observation)
{
    observation->record = (struct record_seen){0};
    return OUTCOME_REFUSED;
}

/* Whether the thread has got a CPU since its departure, although the record does not show it. */
static bool has_returned_unseen(struct record_source *source, const struct departure *departure,
                                const struct observation *observation)
{
    const struct activity *activity = &observation->now.activity;
    bool has_returned = observation->now.has_activity && !activity->counts_ends &&
                        departure->switches && departure->switches != activity->switches;
    source->hides_returns |= has_returned;
    return has_returned;
}

/* The thread has not moved since the previous snapshot, as far as the record knows. */
static enum outcome stay(struct record_source *source, const struct subject *subject,
                         struct watch *watch, const struct slot_view *view,
                         struct observation *observation)
{
    const struct departure *departure = &view->departure;
    if (source->hides_returns || switch_record_has_hidden_returns(source->record)) {
        if (!read_activity(subject, source->watches, watch, observation))
            return OUTCOME_GONE;
        if (has_returned_unseen(source, departure, observation))
            return refuse(observation);
    }
    bool is_woken = departure->runnable_ns && departure->runnable_ns <= subject->tick_ns;
    observation->now.at_ns = monotonic_ns();
    observation->now.has_activity = watch->has_activity;
    observation->now.activity = watch->activity;
    observation->evidence = is_woken ? EVIDENCE_WOKEN : EVIDENCE_UNMOVED;
    observation->state = is_woken ? THREAD_RUNNABLE : THREAD_SLEEPING;
    if (!is_woken) {
        observation->wait.call = subject->call;
        sleep_details_read_call(subject, observation);
        if (!switch_record_is_unmoved(source->record, view))
            observation->wait.has_call = false;
    }
    switch_record_acknowledge(source->record, view, subject->tick);
    return is_woken ? OUTCOME_WOKEN : OUTCOME_UNMOVED;
}

static void swap(struct call_memory *one, struct call_memory *other)
{
    struct call_memory kept = *one;
    *one = *other;
    *other = kept;
}

/* Reads the futex from when the thread left its CPU, because the owner of a lock releases it some
 * time before the waiter is awake. */
static bool read_left(const struct record_source *source, const struct slot_view *view,
                      struct observation *observation)
{
    unsigned char futex[SWITCH_FUTEX_BYTES];
    bool has_before;
    struct snapshot *snapshot = observation->snapshot;
    const struct call_target call =
        call_target_of(observation->wait.syscall_number, snapshot->registers.call_arguments);
    return call.kind == CALL_FUTEX &&
           switch_record_read_futex(source->record, view, futex, &has_before) &&
           call_note_futex(&call, futex, has_before, &snapshot->other_futex);
}

/* Returns 0 or -ENOMEM. */
static int read_details(const struct record_source *source, const struct subject *subject,
                        struct watch *watch, const struct slot_view *view,
                        struct observation *observation)
{
    const struct watch_place place = {subject->proc_fd, subject->tid,
                                      source->watches->keep_fds_below};
    struct wait_seen *wait = &observation->wait;
    bool has_left = read_left(source, view, observation);
    uint64_t tick_ns = subject->tick_ns;
    int err = sleep_details_read(subject, &place, watch, observation);
    if (!err)
        sleep_details_read_preemptions(&place, watch, observation);
    bool has_moved = !err && !switch_record_is_unmoved(source->record, view);
    if (has_moved) {
        sleep_details_drop(subject, observation);
        observation->asleep.is_over = true;
    }
    wait->is_left = has_left && (has_moved || tick_ns - view->departure.out_ns <
                                                  observation->now.at_ns - tick_ns);
    wait->has_other = has_left && wait->has_call;
    if (wait->is_left)
        swap(&wait->memory, &observation->snapshot->other_futex);
    wait->has_call |= has_left;
    return err;
}

/* Copies a thread that is still off its CPU. */
static enum outcome copy(struct record_source *source, const struct subject *subject,
                         struct watch *watch, const struct slot_view *view,
                         struct observation *observation)
{
    const struct departure *departure = &view->departure;
    struct snapshot *snapshot = observation->snapshot;
    snapshot->registers = departure->registers;
    subject_copy(subject, snapshot);
    if (!read_activity(subject, source->watches, watch, observation))
        return OUTCOME_GONE;
    if (!switch_record_is_unmoved(source->record, view))
        return OUTCOME_PENDING;
    if (has_returned_unseen(source, departure, observation))
        return refuse(observation);
    observation->state = departure->state;
    observation->evidence =
        departure->state == THREAD_RUNNABLE ? EVIDENCE_WAITING : EVIDENCE_ASLEEP;
    observation->wait.syscall_number = departure->syscall_number;
    watch->departed_ns = departure->out_ns;
    watch->has_activity = observation->now.has_activity;
    watch->activity = observation->now.activity;
    if (read_details(source, subject, watch, view, observation))
        return refuse(observation);
    watch->was_read = true;
    switch_record_acknowledge(source->record, view, subject->tick);
    return OUTCOME_OBSERVED;
}

/* Whether the thread's state at that time is known: the first recorded departure shows nothing
 * about the time before it. */
static bool is_known_at(const struct departure *departure, uint64_t at_ns)
{
    return departure->registers.known && (departure->number > 1 || departure->out_ns <= at_ns);
}

enum outcome record_source_observe(struct record_source *source, const struct subject *subject,
                                   struct observation *observation)
{
    struct watch *watch = watches_get(source->watches, subject->thread);
    struct slot_view view;
    const struct departure *departure = &view.departure;
    if (!watch || switch_record_read(source->record, subject->tid, &view) ||
        departure->process_id != subject->process_id || !is_known_at(departure, subject->tick_ns))
        return OUTCOME_REFUSED;
    record_source_want_stack(source->record, view.slot, view.generation, subject);
    observation->wait.syscall_number = -1;
    observation->wait.channel[0] = '\0';
    watch->is_asleep = false; /* as far as proc_source.c knows */
    bool is_off = !departure->in_ns && departure->out_ns <= subject->tick_ns;
    if (is_off) {
        bool is_same = !subject->wants_copy && watch->departed_ns == departure->out_ns;
        observation->record.departed_ns = departure->out_ns;
        observation->record.woken_ns = departure->runnable_ns;
        observation->record.woken_cpu = departure->runnable_cpu;
        observation->record.moved_ns = departure->moved_ns;
        if (is_same)
            return stay(source, subject, watch, &view, observation);
    }
    watch->departed_ns = 0;
    if (is_off)
        return copy(source, subject, watch, &view, observation);
    if (!read_activity(subject, source->watches, watch, observation))
        return OUTCOME_GONE;
    bool has_moved = departure->out_ns > subject->tick_ns || departure->in_ns > subject->tick_ns;
    return has_moved ? OUTCOME_PENDING : OUTCOME_RUNNING;
}

/* ---- Completed departures ---- */

static void fill(struct stack_copy *copy, uint64_t address, const void *memory, size_t bytes)
{
    copy->address = address;
    copy->bytes = copy->old_bytes = bytes < copy->capacity ? bytes : copy->capacity;
    copy->is_unreadable = false;
    if (copy->bytes)
        memcpy(copy->memory, memory, copy->bytes);
}

static void copy_top(const struct past_departure *past, struct snapshot *snapshot)
{
    snapshot->registers = past->departure.registers;
    fill(&snapshot->stack, registers_sp(&snapshot->registers), past->stack, past->stack_bytes);
    fill(&snapshot->other_stack, past->other_address, past->other_stack, past->other_bytes);
}

/* If memory is short, the chain is omitted. */
static void copy_chain(const struct past_departure *past, struct snapshot *snapshot)
{
    struct kernel_chain *chain = past->chain_depth ? snapshot_kernel_chain(snapshot) : NULL;
    snapshot->kernel_chain.count = 0;
    if (!chain)
        return;
    memcpy(chain->addresses, past->chain, past->chain_depth * sizeof *past->chain);
    chain->count = past->chain_depth;
    chain->is_cut = past->chain_depth == WAKE_CHAIN_MAX;
}

void record_source_read_frames(const struct past_departure *past,
                               const struct python_layout *layout, struct snapshot *snapshot)
{
    if (past->frames_state == SWITCH_FRAMES_NONE || !layout)
        return;
    struct python_frames *frames = snapshot_python(snapshot);
    if (!frames)
        return;
    python_frames_begin(frames);
    for (size_t i = 0; i < past->frame_count; i++) {
        struct switch_frame frame;
        memcpy(&frame, past->frames + i * sizeof frame, sizeof frame);
        const struct python_frame_seen seen = {.code = frame.code,
                                               .instruction = frame.instruction,
                                               .owner = (uint8_t)frame.owner,
                                               .is_entry = frame.is_entry != 0};
        python_frames_add(frames, layout, &seen);
    }
    if (past->frames_state == SWITCH_FRAMES_UNREADABLE)
        frames->state = PYTHON_FRAMES_UNREADABLE;
    frames->is_cut = past->frames_state == SWITCH_FRAMES_CUT;
}

_Static_assert(SWITCH_FUTEX_BYTES_BEFORE == FUTEX_WORDS_BEFORE * sizeof(uint32_t) &&
                   SWITCH_FUTEX_BYTES == FUTEX_WORDS * sizeof(uint32_t),
               "the record has all memory of a futex that is read elsewhere");

/* Notes what the thread waited for, as far as known: memory other than a futex's may have
 * changed. */
static void note_call(const struct past_departure *past, struct observation *observation)
{
    struct call_target *call = &observation->wait.call;
    *call =
        call_target_of(past->departure.syscall_number, past->departure.registers.call_arguments);
    switch (call->kind) {
    case CALL_FUTEX:
        observation->wait.has_call =
            past->futex &&
            call_note_futex(call, past->futex, past->has_futex_before, &observation->wait.memory);
        return;
    case CALL_EPOLL:
    case CALL_PROCESS:
    case CALL_SEMAPHORES:
    case CALL_MESSAGES:
        observation->wait.has_call = true;
        return;
    default:
        return;
    }
}

struct stack_place record_source_other_stack(const struct past_departure *past,
                                             const struct subject *subject)
{
    if (past->other_bytes)
        return (struct stack_place){past->other_address, past->other_bytes};
    return past->has_one_stack ? subject->other_stack : (struct stack_place){0};
}

void record_source_read_past(const struct past_departure *past, const struct subject *subject,
                             struct observation *observation)
{
    const struct departure *departure = &past->departure;
    struct snapshot *snapshot = observation->snapshot;
    const struct stack_place other = record_source_other_stack(past, subject);
    copy_top(past, snapshot);
    copy_chain(past, snapshot);
    record_source_read_frames(past, subject->python.layout, snapshot);
    snapshot_copy_rest(snapshot, subject->tid, subject->stack_areas, subject->stack_limit, &other);
    observation->evidence =
        departure->state == THREAD_RUNNABLE ? EVIDENCE_WAITING : EVIDENCE_ASLEEP;
    observation->state = departure->state;
    observation->wait.syscall_number = departure->syscall_number;
    if (thread_state_waits(departure->state))
        note_call(past, observation);
}

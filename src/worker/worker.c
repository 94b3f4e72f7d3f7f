#include "worker/worker.h"
#include "worker/count.h"
#include "worker/unwind_step.h"
#include "worker/compact.h"
#include "worker/idle.h"
#include "worker/objects.h"
#include "worker/pages.h"
#include "worker/wake_causes.h"
#include "sampler/process.h"
#include "unwind/lookup.h"
#include "unwind/rule_tables.h"
#include "worker/elapsed_ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* At least this many checkpoints are taken while the memory fills. */
#define CHECKPOINTS_IN_FULL 12
/* Without checkpoints, rows that nothing refers to are dropped each time the rows have grown by
 * half and some more: a quarter of those that fit in memory. So each row is visited only a few
 * times in all. */
#define ROW_BYTES 1024 /* about, with what it refers to */

/* How much there is of what comes and goes. */
struct kept_rows {
    size_t rows, files;
};

struct worker {
    struct worker_options options;
    struct channel *channel;
    struct results *results;
    struct rule_tables rules;
    struct means means;
    struct counted_threads threads;
    struct owners owners;
    struct kernel_names kernel_names;
    struct wake_causes wake_causes;
    struct programs programs;
    struct page_checks page_checks;
    struct stack stack; /* room for the stack that is found */
    struct worker_checkpoints checkpoints;
    size_t noted_at_bytes; /* what was used when a checkpoint was last noted */
    size_t full_at_bytes;  /* what stacks took, and no checkpoint could make it less; 0: they fit */
    size_t program_bytes;  /* kept_bytes_of_programs, when rows last went */
    struct kept_rows noted_rows; /* what there was when rows last went */
    bool has_ordered_checkpoint;
    int error; /* the first one */
    struct worker_progress progress;
};

int worker_new(const struct worker_options *options, struct channel *channel,
               struct results *results, struct worker **ret_worker)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return -ENOMEM;
    worker->options = *options;
    worker->channel = channel;
    worker->results = results;
    worker->means = (struct means){
        .channel = channel,
        .results = results,
        .rules = &worker->rules,
        .queries = options->lookups ? &options->lookups->queries : NULL,
        .owners = &worker->owners,
        .peers = &worker->owners.peers,
        .kernel_names = &worker->kernel_names,
        .waits = options->waits,
        .tasks = options->tasks,
        .spans = options->spans,
        .period_ns = options->period_ns,
        .max_depth = options->max_depth,
        .keeps_native_frames = options->keeps_native_frames,
        .tells_threads_apart = options->tells_threads_apart,
    };
    worker->owners.threads = &worker->threads;
    worker->owners.tells_threads_apart = options->tells_threads_apart;
    worker->rules.lookups = options->lookups;
    worker->owners.sites.queries = results->modules.queries = worker->means.queries;
    *ret_worker = worker;
    return 0;
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    programs_end_all(&worker->programs, worker->results, worker->means.rules);
    programs_free(&worker->programs);
    page_checks_free(&worker->page_checks);
    owners_free(&worker->owners);
    kernel_names_free(&worker->kernel_names);
    counted_threads_free(&worker->threads);
    rule_tables_free(&worker->rules);
    free(worker->stack.addresses);
    free(worker);
}

static int add_process(struct worker *worker, const struct message *message)
{
    struct results *results = worker->results;
    uint32_t name, process;
    pid_t pid = message->process.pid;
    int err = strings_intern(&results->strings, message->process.name, &name);
    /* First, because each process has its own times. */
    if (!err)
        err = array_reserve(&results->elapsed, &results->elapsed_capacity,
                            results->stacks.process_count + 1u);
    if (!err)
        err = stack_table_add_process(&results->stacks, pid, name, &process);
    return err ? err
               : elapsed_ticks_begin(results, process, pid, message->process.begin_ns,
                                     worker->options.period_ns);
}

/* Replaces the number of the message's process by its row. Returns false if that is gone, and with
 * it everything that the message could be about. */
static bool find_process(const struct worker *worker, struct message *message)
{
    uint32_t *process = message->kind == MESSAGE_OBSERVATION  ? &message->observation.process
                        : message->kind == MESSAGE_OBJECT     ? &message->object.process
                        : message->kind == MESSAGE_TICK       ? &message->tick.process
                        : message->kind == MESSAGE_GOROUTINES ? &message->goroutines.process
                        : message->kind == MESSAGE_TASKS      ? &message->tasks.process
                                                              : NULL;
    if (process)
        *process = stack_table_find_process(&worker->results->stacks, *process);
    return !process || *process != PROCESS_NONE;
}

/* A process takes the name of its first thread. */
static int take_name(struct results *results, const struct observation *observation,
                     struct counted_thread *thread)
{
    struct counted_process *process = &results->stacks.processes[observation->process];
    if (!observation->has_name)
        return 0;
    int err = strings_intern(&results->strings, observation->name, &thread->name);
    thread->has_own_name = false;
    if (!err && (pid_t)process->pid == observation->tid)
        process->name = thread->name;
    return err;
}

static int update_python(struct worker *worker, const struct observation *observation,
                         struct program_tables *program)
{
    struct program_python *python = &program->python;
    bool had_gil = python->python.gil != 0;
    int err = program_python_update(python, &worker->means, &program->maps, observation);
    if (err || had_gil || !python->python.gil)
        return err;
    const struct gil gil = {observation->program->number, python->python.gil,
                            python->python.layout};
    return gils_add(&worker->owners.gils, &gil);
}

/* A dump counts tasks when it has found them. */
static int update_tasks(struct worker *worker, const struct observation *observation,
                        struct program_tables *program)
{
    struct program_tasks *tasks = &program->tasks;
    bool was_known = tasks->place.version;
    program_tasks_update(tasks, &worker->means, &program->python, &program->maps, observation);
    if (was_known || !worker->means.tasks)
        return 0;
    const struct task_tick tick = {.process = observation->process, .is_last = true};
    return program_tasks_take(tasks, &worker->means, &program->python, &program->maps, observation,
                              &tick);
}

static int update_program(struct worker *worker, const struct observation *observation,
                          struct program_tables **ret_program)
{
    struct results *results = worker->results;
    struct program_tables *program;
    int err = programs_get(&worker->programs, observation->program, &program);
    if (!err)
        err = program_maps_update(&program->maps, results, observation);
    if (!err && program->maps.space && !worker->options.waits)
        err = program_labels_update(&program->labels, &worker->means, &program->maps, observation);
    if (!err && program->maps.space)
        err = update_python(worker, observation, program);
    if (!err && program->maps.space && worker->options.has_tasks)
        err = update_tasks(worker, observation, program);
    if (!err && program->maps.space && worker->options.has_goroutines)
        err = program_goroutines_update(&program->goroutines, &worker->means, &program->maps,
                                        observation);
    if (!err && program->maps.space)
        err = generated_update(&program->generated, worker->means.rules, results, observation,
                               &program->maps.space);
    if (!err)
        *ret_program = program;
    return err;
}

/* The observation was made before the sampling thread knew that there is Python to be read. */
static int ask_for_python(struct worker *worker, const struct observation *observation,
                          struct counted_thread *thread, struct program_tables *program)
{
    const struct request request = {.kind = REQUEST_ANEW,
                                    .thread = observation->thread,
                                    .tid = observation->tid,
                                    .serial = ++thread->unwinding.asked};
    int err = channel_request(worker->channel, &request);
    return err ? err : count_later(&worker->means, observation, thread, program, &worker->stack);
}

static void note_goroutine(const struct worker *worker, const struct observation *observation,
                           struct counted_thread *thread, const struct program_tables *program)
{
    const struct program_goroutines *goroutines = &program->goroutines;
    thread->has_no_task = program_goroutines_is_idle(goroutines, observation, &worker->stack);
    if (worker->options.tells_goroutines)
        thread->goroutine = program_goroutines_current(goroutines, &program->maps, observation);
}

static int count_copy(struct worker *worker, const struct observation *observation,
                      struct counted_thread *thread)
{
    const struct means *means = &worker->means;
    struct program_tables *program = NULL;
    enum unwind_result result;
    if (thread->account.is_dumped)
        return 0;
    int err = observation->program ? update_program(worker, observation, &program) : 0;
    struct span_sight sight = {0};
    thread->label_set_plus_1 = 0;
    if (!err && program)
        err = program_labels_take(&program->labels, means, observation, &thread->label_set_plus_1,
                                  &sight);
    if (!err)
        err = count_span(means, observation, thread, &sight);
    if (err)
        return err;
    if (!program || !program->maps.space)
        return count_without_stack(means, observation, thread);
    uint32_t name = thread->name;
    err = program_python_name_thread(&program->python, &worker->means, &program->maps, observation,
                                     &thread->name);
    if (err)
        return err;
    thread->has_own_name |= thread->name != name;
    err = unwind_observation(&worker->means, observation, program, &thread->unwinding,
                             &worker->stack, &result);
    if (!err &&
        program_python_came_later(&program->python, observation, worker->options.waits != NULL))
        return ask_for_python(worker, observation, thread, program);
    if (!err)
        err = program_python_take(&program->python, &worker->means, &program->maps, observation,
                                  &worker->stack);
    if (err)
        return err;
    note_goroutine(worker, observation, thread, program);
    switch (result) {
    case UNWIND_DONE:
        return count_stack(means, observation, thread, program, &worker->stack);
    case UNWIND_ASKED:
        return count_later(means, observation, thread, program, &worker->stack);
    case UNWIND_GONE:
        return count_without_stack(means, observation, thread);
    }
    return 0;
}

static int count_object(struct worker *worker, const struct object_news *news)
{
    const struct observation observation = objects_observation(news);
    struct program_tables *program = NULL;
    bool has_code = news->snapshot || news->start;
    int err = news->program && has_code ? update_program(worker, &observation, &program) : 0;
    return err ? err : objects_take(&worker->means, news, program, &worker->stack);
}

/* What becomes of pages is known by looking at them. */
static int count_page(struct worker *worker, const struct object_news *news)
{
    struct page_checks *checks = &worker->page_checks;
    switch (news->change) {
    case OBJECT_CHECKED:
        return pages_check(checks, worker->results, worker->channel, news);
    case OBJECT_FORGOTTEN:
        pages_forget(checks, worker->results, news->process);
        return 0;
    case OBJECT_LEFT:
        return pages_leave(checks, worker->results, news->process);
    default:
        return count_object(worker, news);
    }
}

/* The stack of a waker can't be observed again. If it is not whole, it is not shown. */
static int find_waker_stack(struct worker *worker, const struct observation *observation,
                            struct waker *waker)
{
    struct results *results = worker->results;
    struct counted_thread *thread =
        counted_threads_get(&worker->threads, observation->thread, observation->tid);
    struct program_tables *program;
    enum unwind_result result = UNWIND_GONE;
    uint32_t stack;
    int err = thread ? update_program(worker, observation, &program) : -ENOMEM;
    if (!err && program->maps.space)
        err = unwind_observation(&worker->means, observation, program, &thread->unwinding,
                                 &worker->stack, &result);
    if (err || result != UNWIND_DONE)
        return err;
    err = program_python_take(&program->python, &worker->means, &program->maps, observation,
                              &worker->stack);
    if (!err)
        err = stack_table_add_stack(&results->stacks, program->maps.space->id, &worker->stack,
                                    &stack);
    if (err)
        return err;
    waker->stack_plus_1 = stack + 1;
    space_note_sampled(program->maps.space, worker->stack.addresses, worker->stack.depth);
    return generated_note(&program->generated, program->maps.space, observation, &worker->stack);
}

/* The kernel's name is from that moment. The name that a program such as Python gives its thread is
 * known from samples. */
static int take_own_name(struct worker *worker, const struct observation *observation,
                         struct waker *waker)
{
    const struct counted_thread *thread =
        counted_threads_get(&worker->threads, observation->thread, observation->tid);
    if (!thread)
        return -ENOMEM;
    waker->name = thread->has_own_name ? thread->name : waker->name;
    return 0;
}

static int take_wake(struct worker *worker, const struct message *message)
{
    struct results *results = worker->results;
    struct observation waker_seen = message->wake.waker;
    struct waker waker;
    if (worker->options.waits)
        return 0;
    uint32_t process = message->wake.is_sampled
                           ? stack_table_find_process(&results->stacks, waker_seen.process)
                           : PROCESS_NONE;
    int err = wake_find_waker(results, &worker->kernel_names, &worker->wake_causes,
                              message->wake.seen, process, &waker);
    waker_seen.process = process;
    if (!worker->options.tells_threads_apart)
        waker.tid = 0;
    if (!err && waker.kind == WAKER_THREAD && waker_seen.tid)
        err = take_own_name(worker, &waker_seen, &waker);
    if (!err && waker.kind == WAKER_THREAD && waker_seen.snapshot)
        err = find_waker_stack(worker, &waker_seen, &waker);
    if (!err && worker->options.has_kernel_stacks)
        err = wake_find_functions(results, &worker->kernel_names, message->wake.seen, &waker);
    struct counted_thread *thread =
        err ? NULL : counted_threads_get(&worker->threads, message->wake.thread, message->wake.tid);
    if (!err && !thread)
        err = -ENOMEM;
    return err ? err : wake_end_wait(results, thread, message->wake.seen->departed_ns, &waker);
}

/* Whether the round of the held waits is complete. The kernel's samples come at any time. */
static bool is_round_over(const struct worker *worker, const struct observation *observation)
{
    return observation->evidence == EVIDENCE_GONE ||
           (observation->evidence != EVIDENCE_SAMPLED && observation->tick > worker->owners.tick);
}

/* First observations come in any order: those of running threads come late. */
static int begin_peer(struct worker *worker, const struct observation *observation)
{
    struct program_tables *tables;
    int err = programs_get(&worker->programs, observation->program, &tables);
    if (err || tables->is_peer)
        return err;
    tables->is_peer = true;
    return peer_waits_begin(&worker->owners.peers, observation->program, observation->process);
}

static int count_observation(struct worker *worker, const struct observation *observation)
{
    const struct means *means = &worker->means;
    struct counted_thread *thread =
        counted_threads_get(&worker->threads, observation->thread, observation->tid);
    int err = thread ? take_name(worker->results, observation, thread) : -ENOMEM;
    if (err)
        return err;
    if (is_round_over(worker, observation))
        err = count_held(means);
    if (!err)
        err = owners_note_thread(&worker->owners, observation, thread);
    if (!err && observation->program && !worker->options.waits)
        err = begin_peer(worker, observation);
    if (!err)
        err = count_book(means, observation, thread);
    if (err)
        return err;
    switch (observation->evidence) {
    case EVIDENCE_ASLEEP:
    case EVIDENCE_STOPPED:
    case EVIDENCE_WAITING:
    case EVIDENCE_SAMPLED:
        return count_copy(worker, observation, thread);
    case EVIDENCE_UNMOVED:
        return 0;
    case EVIDENCE_WOKEN:
        return count_woken(means, observation, thread);
    case EVIDENCE_ASSUMED:
        return count_assumed(means, observation, thread);
    case EVIDENCE_GONE:
        err = count_gone(means, observation, thread);
        if (!err && observation->end.never_moved && worker->options.tells_threads_apart)
            err = idle_note(worker->results, thread->tid);
        return err;
    }
    return 0;
}

/* Gives all booked time to the samples that are known. */
static int close_windows(struct worker *worker)
{
    int err = count_held(&worker->means);
    for (size_t i = 0; i < worker->threads.count; i++)
        count_close(&worker->means, &worker->threads.items[i]);
    for (size_t i = 0; i < worker->programs.count; i++)
        program_goroutines_close(&worker->programs.items[i].tables->goroutines, &worker->means);
    return err;
}

/* What running programs need can't go: however much it is, half of the memory is for the rest. */
static size_t bytes_used(const struct worker *worker)
{
    size_t program_bytes_max = worker->options.bytes_max / 2;
    return worker->checkpoints.bytes + kept_bytes_counted(worker->results) +
           (worker->program_bytes < program_bytes_max ? worker->program_bytes : program_bytes_max);
}

static size_t bytes_of_kind(const struct worker *worker, enum kept_kind kind)
{
    return kind == KEPT_CHECKPOINTS ? worker->checkpoints.bytes
           : kind == KEPT_UNWINDING ? rule_tables_bytes(&worker->rules)
                                    : kept_bytes(worker->results, kind);
}

/* For other threads to read. */
static void publish(_Atomic uint64_t *shown, uint64_t value)
{
    atomic_store_explicit(shown, value, memory_order_relaxed);
}

static void publish_kept(struct worker *worker)
{
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++)
        publish(&worker->progress.kept[kind], bytes_of_kind(worker, kind));
}

/* Marks everything counted from now on. */
static void begin_epoch(struct worker *worker)
{
    worker->results->stacks.epoch++;
}

/* What was counted before all checkpoints is only in profiles since the start, if there are any. */
static int drop_what_is_old(struct worker *worker, bool may_forget_samples)
{
    struct results *results = worker->results;
    struct timeline *timeline = &results->timeline;
    const struct compaction how = {
        .old = may_forget_samples             ? OLD_GO
               : worker->checkpoints.are_last ? OLD_JOIN
                                              : OLD_STAY,
        .epoch = worker->checkpoints.epoch,
        .rules = worker->means.rules,
        .programs = &worker->programs,
    };
    int err = timeline->is_ring ? timeline_forget(timeline, worker->checkpoints.begin_ns) : 0;
    if (!err)
        err = compact(results, &worker->threads, &worker->owners, &how);
    kernel_names_limit(&worker->kernel_names, results->strings.text_bytes);
    worker->program_bytes = kept_bytes_of_programs(results);
    return err;
}

static struct kept_rows count_rows(const struct results *results)
{
    const struct stack_table *stacks = &results->stacks;
    return (struct kept_rows){
        .rows = stacks->sample_count + stacks->stack_count + stacks->process_count -
                stacks->free_process_count + results->spaces.count - results->spaces.free_count +
                results->waits.count + results->label_sets.set_count + results->strings.count +
                results->objects.maker_count,
        .files = results->modules.open_files,
    };
}

/* Without checkpoints, no stack is forgotten: drops what nothing refers to. If the rest takes more
 * than the limit, merges what has ended; if that is not enough, further stacks are not kept. */
static int make_room(struct worker *worker)
{
    struct results *results = worker->results;
    struct compaction how = {
        .old = OLD_STAY,
        .epoch = results->stacks.epoch,
        .rules = worker->means.rules,
        .programs = &worker->programs,
    };
    begin_epoch(worker);
    results->stacks.is_full = false;
    int err = compact(results, &worker->threads, &worker->owners, &how);
    if (!err && kept_bytes_all(results) > worker->options.bytes_max) {
        how.old = OLD_JOIN;
        how.epoch = worker->options.held_since(worker->options.context, how.epoch);
        err = compact(results, &worker->threads, &worker->owners, &how);
        results->stacks.is_full = kept_bytes_all(results) > worker->options.bytes_max;
    }
    kernel_names_limit(&worker->kernel_names, results->strings.text_bytes);
    worker->noted_rows = count_rows(results);
    return err;
}

/* Stacks since the start leave half of the memory to checkpoints, which are dropped when they are
 * old. */
static bool are_stacks_full(const struct worker *worker)
{
    return worker->options.keeps_stacks &&
           kept_bytes_counted(worker->results) > worker->options.bytes_max / 2;
}

/* If giving up checkpoints did not reduce the stacks, it will not until there is much more to
 * merge. */
static bool must_give_up(const struct worker *worker)
{
    size_t least = worker->full_at_bytes;
    return bytes_used(worker) > worker->options.bytes_max ||
           (are_stacks_full(worker) && kept_bytes_counted(worker->results) > least + least / 2);
}

static int give_up_checkpoints(struct worker *worker)
{
    const struct worker_options *options = &worker->options;
    bool *is_full = &worker->results->stacks.is_full;
    int err = 0;
    while (!err && must_give_up(worker) && options->crowded(options->context, &worker->checkpoints))
        err = drop_what_is_old(worker, !options->keeps_stacks);
    *is_full = are_stacks_full(worker);
    if (!*is_full || must_give_up(worker))
        worker->full_at_bytes = *is_full ? kept_bytes_counted(worker->results) : 0;
    return err;
}

static int note_checkpoint(struct worker *worker, const struct sampling_state *state)
{
    void *context = worker->options.context;
    int err = close_windows(worker);
    worker->has_ordered_checkpoint = false;
    if (err || !worker->options.checkpoint)
        return err ? err : make_room(worker);
    bool may_forget =
        worker->options.checkpoint(context, worker->results, state, &worker->checkpoints);
    begin_epoch(worker);
    for (size_t i = 0; i < worker->threads.count; i++)
        wakers_forget(&worker->threads.items[i].account.wakers);
    worker->results->stacks.is_full = false;
    err = drop_what_is_old(worker, may_forget);
    if (!err)
        err = give_up_checkpoints(worker);
    worker->noted_at_bytes = bytes_used(worker);
    worker->noted_rows = count_rows(worker->results);
    return err;
}

static bool are_more(size_t now, size_t noted, size_t more)
{
    return now >= noted + noted / 2 + more;
}

/* Requests checkpoints more often while much is counted: if there is no room for the whole time to
 * keep, profiles can still begin at one of several. */
static bool needs_checkpoint(const struct worker *worker)
{
    size_t step = worker->options.bytes_max / CHECKPOINTS_IN_FULL;
    const struct kept_rows now = count_rows(worker->results), noted = worker->noted_rows;
    size_t rows_more = worker->options.bytes_max / ROW_BYTES / 4;
    size_t files_more = worker->results->modules.open_for_names_max / 4;
    bool has_more_files = now.files && are_more(now.files, noted.files, files_more);
    if (worker->options.checkpoint)
        return has_more_files || bytes_used(worker) >= worker->noted_at_bytes + step;
    return worker->options.order_checkpoint &&
           (has_more_files || are_more(now.rows, noted.rows, rows_more));
}

static void check_bytes(struct worker *worker)
{
    if (worker->has_ordered_checkpoint || !needs_checkpoint(worker))
        return;
    worker->has_ordered_checkpoint = true;
    worker->options.order_checkpoint(worker->options.context);
}

static int finish(struct worker *worker)
{
    int count_err = close_windows(worker);
    int err = programs_end_all(&worker->programs, worker->results, worker->means.rules);
    int wait_err = worker->options.waits ? wait_list_finish(worker->options.waits) : 0;
    publish_kept(worker);
    return count_err ? count_err : err ? err : wait_err;
}

/* Counts the waits of earlier rounds first, because the tick may end them. */
static int count_tick(struct worker *worker, const struct message *message)
{
    int err = message->tick.number > worker->owners.tick ? count_held(&worker->means) : 0;
    if (!err && worker->means.spans.key)
        err = spans_place_waits(worker->results, &worker->threads, message->tick.process);
    return err ? err : elapsed_ticks_take(worker->results, &worker->threads, message);
}

/* The sampling thread's tables have as many rows as the worker's. */
static size_t goroutine_table_bytes(const struct program_tables *program)
{
    return program->goroutines.count *
           (sizeof(struct counted_goroutine) + sizeof(struct sampled_goroutine) +
            sizeof(struct goroutine_address));
}

static int count_goroutines(struct worker *worker, const struct message *message)
{
    const struct observation observation = {.process_id = message->goroutines.process_id,
                                            .tid = message->goroutines.tid,
                                            .program = message->goroutines.program,
                                            .process = message->goroutines.process,
                                            .round_ns = message->goroutines.round_ns};
    struct program_tables *program;
    const struct goroutine_batch batch = {message->goroutines.process, message->goroutines.tid,
                                          message->goroutines.program, message->goroutines.changes};
    int err = update_program(worker, &observation, &program);
    if (err)
        return err;
    worker->results->goroutine_bytes -= goroutine_table_bytes(program);
    err = program_goroutines_take(&program->goroutines, &worker->means, &program->maps, &batch,
                                  &worker->stack);
    worker->results->goroutine_bytes += goroutine_table_bytes(program);
    return err;
}

static int count_tasks(struct worker *worker, const struct message *message)
{
    const struct observation observation = {.process_id = message->tasks.process_id,
                                            .tid = message->tasks.tid,
                                            .program = message->tasks.program,
                                            .process = message->tasks.process,
                                            .round_ns = message->tasks.at_ns};
    const struct task_tick tick = {message->tasks.process, message->tasks.before_ns,
                                   message->tasks.at_ns, message->tasks.is_last};
    struct program_tables *program;
    int err = update_program(worker, &observation, &program);
    return err || !program->maps.space
               ? err
               : program_tasks_take(&program->tasks, &worker->means, &program->python,
                                    &program->maps, &observation, &tick);
}

/* Counts the time of goroutines that have not moved since. */
static int end_program(struct worker *worker, uint32_t number)
{
    struct program_tables *program = programs_find(&worker->programs, number);
    if (program) {
        program_goroutines_close(&program->goroutines, &worker->means);
        worker->results->goroutine_bytes -= goroutine_table_bytes(program);
    }
    peer_waits_end(&worker->owners.peers, number);
    gils_forget(&worker->owners.gils, number);
    return programs_end(&worker->programs, number, worker->results, worker->means.rules);
}

static int take(struct worker *worker, struct message *message)
{
    if (!find_process(worker, message))
        return 0;
    switch (message->kind) {
    case MESSAGE_PROCESS:
        return add_process(worker, message);
    case MESSAGE_OBSERVATION:
        return count_observation(worker, &message->observation);
    case MESSAGE_WAKE:
        return take_wake(worker, message);
    case MESSAGE_OBJECT:
        return message->object.kind == OBJECT_PAGE ? count_page(worker, &message->object)
                                                   : count_object(worker, &message->object);
    case MESSAGE_OBJECT_COUNTS:
        memcpy(worker->results->object_counts, message->object_counts,
               sizeof worker->results->object_counts);
        return 0;
    case MESSAGE_GOROUTINES:
        return count_goroutines(worker, message);
    case MESSAGE_TASKS:
        return count_tasks(worker, message);
    case MESSAGE_TICK:
        return count_tick(worker, message);
    case MESSAGE_PROGRAM_ENDED:
        return end_program(worker, message->program->number);
    case MESSAGE_COPY:
        return close_windows(worker);
    case MESSAGE_MOMENT:
        return note_checkpoint(worker, message->state);
    case MESSAGE_END:
        return finish(worker);
    }
    return 0;
}

static void note_error(struct worker *worker, int err)
{
    if (!err || worker->error)
        return;
    worker->error = err;
    if (worker->options.failed)
        worker->options.failed(worker->options.context);
}

/* Between messages, reads what the threads of a dump wait for. A closed channel is the end. */
static void receive(struct worker *worker, struct message *ret_message)
{
    if (channel_receive(worker->channel, false, ret_message))
        return;
    if (worker->options.waits && !worker->error)
        note_error(worker, wait_list_read(worker->options.waits));
    if (!channel_receive(worker->channel, true, ret_message))
        *ret_message = (struct message){.kind = MESSAGE_END};
}

/* Includes samples that are still owed their time. */
static uint64_t samples_so_far(const struct worker *worker)
{
    const struct result_counts *counts = &worker->results->counts;
    return counts->samples +
           (worker->options.waits ? 0 : counts->owed_ns / worker->options.period_ns);
}

static void publish_counts(struct worker *worker)
{
    struct worker_progress *progress = &worker->progress;
    const struct results *results = worker->results;
    publish(&progress->samples, samples_so_far(worker));
    publish(&progress->stacks, results->stacks.stack_count);
    publish(&progress->deadlocks, results->deadlocks.count);
    publish(&progress->samples_not_kept, results->counts.samples_not_kept);
    publish(&progress->processes_joined, results->counts.processes_joined);
}

int worker_run(struct worker *worker)
{
    const struct results *results = worker->results;
    struct message message;
    do {
        receive(worker, &message);
        if (!worker->error)
            note_error(worker, take(worker, &message));
        /* A requested copy is made even after an error. */
        if (message.kind == MESSAGE_COPY && worker->options.copy) {
            worker->options.copy(worker->options.context, results, &message);
            begin_epoch(worker);
        }
        if (message.kind == MESSAGE_COPY || message.kind == MESSAGE_MOMENT)
            publish_kept(worker);
        check_bytes(worker);
        channel_release(worker->channel, &message);
        publish_counts(worker);
        channel_done(worker->channel);
    } while (message.kind != MESSAGE_END);
    return worker->error;
}

const struct worker_progress *worker_progress(const struct worker *worker)
{
    return &worker->progress;
}

#include "worker/goroutines.h"
#include "base/array.h"
#include "base/clock.h"
#include "fgprof.h"
#include "proc/memory.h"
#include "runtime/go/abi.h"
#include "worker/labels.h"
#include "worker/peer_waits.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- The runtime ---- */

/* How often a list that was not found is searched for again: there is none before the runtime has
 * started. */
#define SEARCHED_EACH_NS 250000000u

static bool is_search_due(struct program_goroutines *goroutines, const struct program_maps *maps)
{
    const struct go *go = &goroutines->go;
    uint64_t now_ns;
    if (!go->module)
        return goroutines->mapping_count != maps->space->mapping_count;
    if (!go->layout || go->place.layout)
        return false;
    now_ns = monotonic_ns();
    if (now_ns - goroutines->searched_ns < SEARCHED_EACH_NS)
        return false;
    goroutines->searched_ns = now_ns;
    return true;
}

/* For the summary, which says that a program's goroutines are not read. */
static void note_unread(struct program_goroutines *goroutines, struct result_counts *counts)
{
    const struct go *go = &goroutines->go;
    uint64_t unread = !go->module || go->place.layout ? 0
                      : go->layout                    ? go->runtime.minor | FGPROF_GO_WITHOUT_LIST
                      : go->runtime.minor             ? go->runtime.minor
                                                      : 1;
    if (unread || counts->go_version == goroutines->unread)
        counts->go_version = unread;
    goroutines->unread = unread;
}

int program_goroutines_update(struct program_goroutines *goroutines, const struct means *means,
                              struct program_maps *maps, const struct observation *observation)
{
    struct request request = {.kind = REQUEST_GOROUTINES, .program = observation->program->number};
    struct go *go = &goroutines->go;
    if (!is_search_due(goroutines, maps))
        return 0;
    pid_t tid = observation_live_tid(observation);
    bool has_areas = maps->areas.count && !go->module;
    int err = has_areas ? 0 : program_maps_read_areas(maps, observation);
    if (err)
        return err;
    err = go->module ? go_find_list(means->queries, go, tid, &maps->areas)
                     : go_find(means->queries, maps->space, tid, &maps->areas, go);
    if (err && err != -EAGAIN)
        return err;
    if (!err)
        goroutines->mapping_count = maps->space->mapping_count;
    note_unread(goroutines, &means->results->counts);
    if (!go->place.layout)
        return 0;
    goroutines->known = calloc(KNOWN_GO_FUNCTIONS, sizeof *goroutines->known);
    if (!goroutines->known)
        return -ENOMEM;
    goroutines->is_told = true;
    request.go = go->place;
    return channel_request(means->channel, &request);
}

bool program_goroutines_is_idle(const struct program_goroutines *goroutines,
                                const struct observation *observation, const struct stack *stack)
{
    return goroutines->is_told && thread_state_waits(observation->state) &&
           go_is_idle(&goroutines->go, stack->addresses, stack->depth);
}

/* Whether the stack pointer is in the thread's own stack (g0): there the runtime calls the vDSO for
 * the goroutine (runtime/sys_linux_amd64.s). */
static bool is_on_own_stack(pid_t tid, const struct stack_areas *areas, uint64_t m, uint64_t sp)
{
    uint64_t g0, bounds[2]; /* what struct m and struct g begin with */
    return m && memory_read_word(tid, areas, m, &g0) &&
           memory_read(tid, areas, g0, bounds, sizeof bounds) == sizeof bounds && sp >= bounds[0] &&
           sp < bounds[1];
}

/* The register is from the observed moment. Only what does not change while the goroutine lives is
 * read now. */
uint32_t program_goroutines_current(const struct program_goroutines *goroutines,
                                    const struct program_maps *maps,
                                    const struct observation *observation)
{
    const struct registers *registers = &observation->snapshot->registers;
    uint64_t sp = registers_sp(registers);
    struct goroutine current;
    if (!goroutines->is_told || !registers_has(registers, go_current_register))
        return 0;
    pid_t tid = observation_live_tid(observation);
    if (!goroutine_read(goroutines->go.place.layout, registers->values[go_current_register], tid,
                        &maps->areas, &current))
        return 0;
    bool is_current = (sp >= current.stack_low && sp < current.stack_high) ||
                      is_on_own_stack(tid, &maps->areas, current.m, sp);
    return is_current ? (uint32_t)current.id : 0;
}

/* Valid until the next call. What can't be looked up is not known. */
static const struct go_function *function_at(struct program_goroutines *goroutines,
                                             const struct means *means, uint64_t address)
{
    struct known_go_function *known =
        &goroutines->known[hash_bytes(&address, sizeof address, 0) % KNOWN_GO_FUNCTIONS];
    if (known->address != address) {
        free(known->function.text);
        int err = go_function_at(means->queries, &goroutines->go, address, &known->function);
        known->address = err ? 0 : address;
        if (!means->tasks) {
            free(known->function.text);
            known->function.text = NULL;
        }
    }
    return &known->function;
}

/* ---- Time ---- */

static void count(struct results *results, uint32_t sample, uint64_t ticks, uint64_t time_ns)
{
    struct stack_table *stacks = &results->stacks;
    enum stack_cut cut = stacks->stacks[stacks->samples[sample].stack].cut;
    stack_table_count(stacks, sample, ticks, time_ns, 0);
    results->counts.goroutine_ns += time_ns;
    results_count_samples(&results->counts, cut, ticks);
}

static void count_until(struct program_goroutines *goroutines, const struct means *means,
                        struct counted_goroutine *goroutine, uint64_t until_ns)
{
    if (!goroutine->sample_plus_1 || until_ns <= goroutine->since_ns)
        return;
    uint64_t time_ns = until_ns - goroutine->since_ns;
    goroutines->carry_ns += time_ns;
    count(means->results, goroutine->sample_plus_1 - 1, goroutines->carry_ns / means->period_ns,
          time_ns);
    goroutines->carry_ns %= means->period_ns;
    goroutine->since_ns = until_ns;
}

void program_goroutines_close(struct program_goroutines *goroutines, const struct means *means)
{
    for (size_t i = 0; i < goroutines->count; i++)
        count_until(goroutines, means, &goroutines->items[i], goroutines->seen_ns);
}

/* ---- Stacks ---- */

/* A goroutine's saved state has the address to which the call that switched away from it returns
 * (mcall in runtime/asm_amd64.s); one that has not run yet begins with its function. */
static int unwind(struct program_goroutines *goroutines, const struct means *means,
                  struct space *space, const struct goroutine_changes *changes,
                  const struct goroutine_seen *seen, struct stack *stack)
{
    const struct goroutine *goroutine = &seen->goroutine;
    struct unwind_hints hints;
    bool is_entry = function_at(goroutines, means, goroutine->pc)->start == goroutine->pc;
    struct snapshot snapshot = {
        .registers = {.interrupted_call = -1, .finished_call = -1},
        .stack = {.address = goroutine->sp,
                  .memory = changes->stacks + seen->stack_at,
                  .bytes = seen->stack_bytes,
                  .end = goroutine->stack_high,
                  .end_is_known = true},
    };
    struct registers *registers = &snapshot.registers;
    registers_set(registers, architecture.pc, is_entry ? goroutine->pc : goroutine->pc - 1);
    registers_set(registers, architecture.sp, goroutine->sp);
    registers_set(registers, architecture.frame_pointer, goroutine->frame_pointer);
    return unwind_snapshot(means->rules, space, &snapshot, means->max_depth, stack, &hints);
}

/* ---- What they wait for ---- */

#define LOCK_DEPTH_MAX 8

/* By the functions that wait for its semaphore. */
static struct go_wait find_wait(struct program_goroutines *goroutines, const struct means *means,
                                const struct goroutine_seen *seen, const struct stack *stack)
{
    struct go_wait wait = seen->wait;
    for (size_t i = 1; wait.kind == GO_WAIT_SEMAPHORE && i < stack->depth && i < LOCK_DEPTH_MAX;
         i++)
        go_wait_set_lock(&wait, function_at(goroutines, means, stack->addresses[i] - 1)->lock,
                         goroutines->go.runtime.minor);
    return wait;
}

/* What a descriptor is, and whose its other end. */
static int find_file(const struct program_goroutines *goroutines, const struct means *means,
                     const struct stack_areas *areas, const struct goroutine_batch *batch,
                     const struct goroutine_seen *seen, struct counted_wait *ret_wait)
{
    struct observation observation = {
        .program = batch->program,
        .process = batch->process,
        .state = THREAD_SLEEPING,
        .wait.call = {.kind = CALL_FILE,
                      .fd = (int)seen->wait.fd,
                      .use = seen->wait.is_write ? FILE_USE_WRITE : FILE_USE_READ},
    };
    struct waited_child child = {0};
    struct peer_wait found;
    struct goroutine now;
    if (!batch->program)
        return 0;
    call_read_link(&observation.wait.call, batch->program->proc_fd, &observation.wait.memory);
    /* Otherwise the descriptor may be closed, and its number reused. */
    if (!goroutine_read(goroutines->go.place.layout, seen->address, batch->tid, areas, &now))
        return 0;
    const struct goroutine_rest rest = goroutine_rest(&seen->goroutine),
                                rest_now = goroutine_rest(&now);
    if (!goroutine_has_stayed(&rest, &rest_now))
        return 0;
    int err =
        peer_waits_find(means->peers, means->results, &observation, seen->at_ns, &child, &found);
    if (!err)
        *ret_wait = found.wait;
    return err;
}

/* Whether goroutines that wait for the same object are distinguished from others with the same
 * stack. Not if there is only one, as is usual for a wait group: otherwise each would become a
 * separate row. */
static bool is_of_interest(const struct means *means, const struct go_wait *wait)
{
    switch (wait->kind) {
    case GO_WAIT_OTHER:
        return false;
    case GO_WAIT_CHANNEL:
        return wait->count == 1 && (wait->is_shared || means->tasks);
    case GO_WAIT_GROUP:
        return means->tasks;
    default:
        return true;
    }
}

static int add_wait(const struct program_goroutines *goroutines, const struct means *means,
                    const struct program_maps *maps, const struct goroutine_batch *batch,
                    const struct goroutine_seen *seen, const struct go_wait *wait,
                    uint32_t *ret_wait_plus_1)
{
    static const enum resource_kind kinds[] = {
        [GO_WAIT_CHANNEL] = RESOURCE_CHANNEL,     [GO_WAIT_SEMAPHORE] = RESOURCE_SEMAPHORE,
        [GO_WAIT_MUTEX] = RESOURCE_MUTEX,         [GO_WAIT_READ_LOCK] = RESOURCE_RWLOCK,
        [GO_WAIT_WRITE_LOCK] = RESOURCE_RWLOCK,   [GO_WAIT_GROUP] = RESOURCE_WAIT_GROUP,
        [GO_WAIT_CONDITION] = RESOURCE_CONDITION, [GO_WAIT_FILE] = RESOURCE_NOT_KNOWN,
    };
    struct counted_wait row = wait_of_nothing(batch->process);
    int err = 0;
    if (!is_of_interest(means, wait))
        return 0;
    row.kind = kinds[wait->kind];
    row.key = wait->addresses[0];
    row.space = maps->space->id;
    if (wait->kind == GO_WAIT_FILE)
        err = find_file(goroutines, means, &maps->areas, batch, seen, &row);
    return err || row.kind == RESOURCE_NOT_KNOWN
               ? err
               : waits_add(&means->results->waits, &row, ret_wait_plus_1);
}

static int label(const struct means *means, const struct program_goroutines *goroutines,
                 const struct goroutine_batch *batch, const struct goroutine_seen *seen,
                 struct sample_labels *ret_labels)
{
    const struct goroutine *goroutine = &seen->goroutine;
    uint32_t process = batch->process;
    struct results *results = means->results;
    bool is_runnable = goroutine_is_runnable(goroutine);
    *ret_labels = (struct sample_labels){
        .thread_name = results->stacks.processes[process].name,
        .tid = means->tells_threads_apart ? (uint32_t)goroutine->id : 0,
        .state = is_runnable ? THREAD_RUNNABLE : THREAD_SLEEPING,
        .syscall_number = -1,
        .process = process,
        .task = TASK_GOROUTINE,
    };
    const char *reason =
        is_runnable ? "" : go_wait_reason(goroutines->go.runtime.minor, goroutine->reason);
    int err = strings_intern(&results->strings, reason, &ret_labels->wait_reason);
    return err || !seen->label_bytes
               ? err
               : labels_take_texts(results, (const char *)batch->changes->stacks + seen->label_at,
                                   seen->label_bytes, &ret_labels->label_set_plus_1);
}

static int count_parked(struct program_goroutines *goroutines, const struct means *means,
                        const struct program_maps *maps, const struct goroutine_batch *batch,
                        const struct goroutine_seen *seen, struct stack *stack,
                        struct go_wait *ret_wait, uint32_t *ret_sample)
{
    struct stack_table *stacks = &means->results->stacks;
    struct space *space = maps->space;
    size_t stacks_before = stacks->stack_count;
    struct sample_labels labels;
    int err = unwind(goroutines, means, space, batch->changes, seen, stack);
    if (!err)
        err = label(means, goroutines, batch, seen, &labels);
    if (!err) {
        *ret_wait = find_wait(goroutines, means, seen, stack);
        err = add_wait(goroutines, means, maps, batch, seen, ret_wait, &labels.wait_plus_1);
    }
    if (!err)
        err = stack_table_add(stacks, space->id, stack, &labels, 0, 0, ret_sample);
    if (!err && stacks->stack_count > stacks_before)
        space_note_sampled(space, stack->addresses, stack->depth);
    return err;
}

/* ---- A dump ---- */

static int list(struct program_goroutines *goroutines, const struct means *means,
                struct program_maps *maps, pid_t tid, const struct goroutine_seen *seen,
                const struct go_wait *wait)
{
    const struct goroutine *goroutine = &seen->goroutine;
    uint64_t thread, now_ns = seen->at_ns, since_ns = (uint64_t)goroutine->waits_since;
    struct runtime_task listed = {
        .process_id = maps->space->pid,
        .id = goroutine->id,
        .parent = goroutine->parent,
        .is_parked = seen->is_parked,
        .is_in_call = goroutine_is_in_call(goroutine),
        .waits_ns = since_ns && since_ns < now_ns ? now_ns - since_ns : 0,
        .is_locked = goroutine->is_locked,
        .wait = *wait,
    };
    /* Where the go statement's call returns to. Nobody has started the first one. */
    const char *creator =
        goroutine->id > 1 ? function_at(goroutines, means, goroutine->creator - 1)->text : NULL;
    listed.creator = creator ? strdup(creator) : NULL;
    if (!seen->is_parked &&
        memory_read_word(tid, &maps->areas, goroutine->m + goroutines->go.place.layout->m_thread,
                         &thread) &&
        thread <= INT_MAX)
        listed.tid = (pid_t)thread;
    int err = runtime_tasks_add(means->tasks, &listed);
    if (err)
        free(listed.creator);
    return err;
}

static int take_for_dump(struct program_goroutines *goroutines, const struct means *means,
                         struct program_maps *maps, const struct goroutine_batch *batch,
                         const struct goroutine_seen *seen, struct stack *stack)
{
    struct go_wait wait = {0};
    uint32_t sample;
    if (seen->has_moved || function_at(goroutines, means, seen->goroutine.start)->is_own)
        return 0;
    int err = seen->is_parked
                  ? count_parked(goroutines, means, maps, batch, seen, stack, &wait, &sample)
                  : 0;
    if (!err && seen->is_parked)
        count(means->results, sample, 1, 0);
    return err ? err : list(goroutines, means, maps, batch->tid, seen, &wait);
}

static int take(struct program_goroutines *goroutines, const struct means *means,
                const struct program_maps *maps, const struct goroutine_batch *batch,
                const struct goroutine_seen *seen, struct stack *stack)
{
    struct go_wait wait;
    uint32_t sample;
    if (seen->number >= GOROUTINES_MAX)
        return 0;
    if (array_extend(&goroutines->items, &goroutines->count, &goroutines->capacity,
                     seen->number + 1u))
        return -ENOMEM;
    struct counted_goroutine *goroutine = &goroutines->items[seen->number];
    count_until(goroutines, means, goroutine, seen->before_ns);
    /* If a copy was asked for since, time after the last reading is counted already. */
    uint64_t since_ns =
        goroutine->since_ns > seen->before_ns ? goroutine->since_ns : seen->before_ns;
    *goroutine = (struct counted_goroutine){.since_ns = since_ns};
    means->results->counts.goroutines_moved += seen->has_moved;
    if (!seen->is_parked || function_at(goroutines, means, seen->goroutine.start)->is_own)
        return 0;
    int err = count_parked(goroutines, means, maps, batch, seen, stack, &wait, &sample);
    if (!err)
        goroutine->sample_plus_1 = sample + 1;
    return err;
}

int program_goroutines_take(struct program_goroutines *goroutines, const struct means *means,
                            struct program_maps *maps, const struct goroutine_batch *batch,
                            struct stack *stack)
{
    const struct goroutine_changes *changes = batch->changes;
    int err = 0;
    if (!maps->space || !goroutines->is_told)
        return 0;
    for (size_t i = 0; i < changes->count && !err; i++)
        err = means->tasks
                  ? take_for_dump(goroutines, means, maps, batch, &changes->items[i], stack)
                  : take(goroutines, means, maps, batch, &changes->items[i], stack);
    if (changes->seen_ns)
        goroutines->seen_ns = changes->seen_ns;
    means->results->counts.goroutines_left_out = changes->left_out;
    if (changes->seen_ns)
        means->results->counts.goroutines_unreadable = changes->unreadable;
    return err;
}

void program_goroutines_free(struct program_goroutines *goroutines)
{
    for (size_t i = 0; i < KNOWN_GO_FUNCTIONS && goroutines->known; i++)
        free(goroutines->known[i].function.text);
    free(goroutines->known);
    free(goroutines->items);
}

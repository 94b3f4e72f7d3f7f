#include "worker/python_tasks.h"
#include "base/array.h"
#include "base/clock.h"
#include "worker/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How much of all time reading may take. */
#define READING_PART_OF_TIME 30
/* And how long other messages wait for it. */
#define PART_OF_PASS_NS 10000000u
/* How long reading may take at once, at the end all tasks; and in a dump. What there is no time for
 * is left out, and that is said. */
#define READING_NS 1000000000u
#define DUMP_NS 10000000000u
#define DUMP_TRIES 10

void program_tasks_update(struct program_tasks *tasks, const struct means *means,
                          const struct program_python *python, const struct program_maps *maps,
                          const struct observation *observation)
{
    size_t mapping_count = maps->space->mapping_count;
    if (!python->is_told || tasks->place.version || tasks->mapping_count == mapping_count)
        return;
    tasks->mapping_count = mapping_count;
    if (python_tasks_find(means->queries, maps->space, &python->python,
                          observation_live_tid(observation), &maps->areas,
                          &tasks->place) == -ENOTSUP)
        means->results->counts.tasks_version = python->python.version;
}

/* ---- One task ---- */

/* A frame whose code was examined in this pass. */
struct named_frame {
    uint64_t code, instruction, address; /* code 0: none */
};
#define NAMED_FRAMES 512u

/* What reading needs. */
struct task_reading {
    const struct means *means;
    struct program_tasks *tasks;
    struct program_python *python;
    struct python_memory memory;
    struct space *space;
    uint32_t process;
    struct python_frames *frames;
    struct named_frame *named; /* NAMED_FRAMES, by hash */
    struct stack stack;
};

/* Most tasks wait in the same few places. */
static int name_frame(struct task_reading *reading, const struct python_frame *frame,
                      uint64_t *ret_address)
{
    const uint64_t key[] = {frame->code, frame->instruction};
    struct named_frame *named = &reading->named[hash_bytes(key, sizeof key, 0) % NAMED_FRAMES];
    if (named->code == frame->code && named->instruction == frame->instruction) {
        *ret_address = named->address;
        return 0;
    }
    int err = program_python_name(reading->python, &reading->memory, reading->means->results, frame,
                                  ret_address);
    if (!err)
        *named = (struct named_frame){frame->code, frame->instruction, *ret_address};
    return err == -ENODATA ? -ENOENT : err;
}

static int name_frames(struct task_reading *reading)
{
    struct python_frames *frames = reading->frames;
    struct stack *stack = &reading->stack;
    struct results *results = reading->means->results;
    uint32_t none;
    if (array_reserve(&stack->addresses, &stack->capacity, frames->count + 1))
        return -ENOMEM;
    stack->cut = frames->is_cut ? STACK_CUT_AT_MAX_DEPTH : STACK_WHOLE;
    stack->depth = frames->count;
    int err = 0;
    for (size_t i = 0; i < frames->count && !err; i++)
        err = name_frame(reading, &frames->items[i], &stack->addresses[i]);
    if (frames->count)
        return err;
    err = runtime_frames_text(&results->runtime_frames, "[coroutine of another kind]", &none);
    const struct runtime_frame frame = {.name = none, .file = none};
    stack->depth = 1;
    return err ? err : runtime_frames_add(&results->runtime_frames, &frame, stack->addresses);
}

/* The names that asyncio makes tell nothing, and would give each task a sample of its own. */
static int label(const struct task_reading *reading, const struct python_task *task,
                 struct sample_labels *labels)
{
    static const char key[] = "task";
    char text[sizeof key + PYTHON_TEXT_BYTES];
    bool is_made_up;
    memcpy(text, key, sizeof key);
    python_task_name(&reading->tasks->place, &reading->memory, task, text + sizeof key,
                     &is_made_up);
    if (!text[sizeof key] || (is_made_up && !reading->means->tells_threads_apart))
        return 0;
    return labels_take_texts(reading->means->results, text,
                             sizeof key + strlen(text + sizeof key) + 1, &labels->label_set_plus_1);
}

/* `number`: of a task of a dump; else 0. */
static int count(struct task_reading *reading, const struct python_task *task,
                 enum python_task_state state, uint32_t number)
{
    struct results *results = reading->means->results;
    const struct program_tasks *tasks = reading->tasks;
    struct stack_table *stacks = &results->stacks;
    struct sample_labels labels = {
        .tid = number,
        .state = state == PYTHON_TASK_WAITING ? THREAD_SLEEPING : THREAD_RUNNABLE,
        .syscall_number = -1,
        .process = reading->process,
        .task = TASK_PYTHON,
    };
    uint32_t sample;
    int err = strings_intern(&results->strings, "asyncio tasks", &labels.thread_name);
    if (!err)
        err = strings_intern(&results->strings, "", &labels.wait_reason);
    if (!err && !number)
        err = label(reading, task, &labels);
    if (!err)
        err = stack_table_add(stacks, reading->space->id, &reading->stack, &labels, 0, 0, &sample);
    if (err)
        return err;
    stack_table_count(stacks, sample, tasks->ticks, tasks->time_ns, 0);
    results->counts.task_ns += tasks->time_ns;
    enum stack_cut cut = (enum stack_cut)stacks->stacks[stacks->samples[sample].stack].cut;
    results_count_samples(&results->counts, cut, tasks->ticks);
    return 0;
}

static int list(const struct task_reading *reading, const struct python_task *task, bool is_parked,
                uint32_t number)
{
    char name[PYTHON_TEXT_BYTES], awaited_by[PYTHON_AWAITED_BY_BYTES];
    bool is_made_up;
    python_task_name(&reading->tasks->place, &reading->memory, task, name, &is_made_up);
    python_task_awaited_by(&reading->tasks->place, &reading->memory, task, awaited_by);
    struct runtime_task listed = {.process_id = reading->space->pid,
                                  .id = number,
                                  .is_parked = is_parked,
                                  .name = strdup(name),
                                  .awaited_by = *awaited_by ? strdup(awaited_by) : NULL};
    int err = listed.name && (listed.awaited_by || !*awaited_by)
                  ? runtime_tasks_add(reading->means->tasks, &listed)
                  : -ENOMEM;
    if (err)
        runtime_task_clear(&listed);
    return err;
}

static int take(struct task_reading *reading, struct python_task *task, uint32_t number)
{
    const struct python_tasks_place *place = &reading->tasks->place;
    bool is_dump = reading->means->tasks;
    enum python_task_state state = PYTHON_TASK_MOVED;
    for (int i = 0; state == PYTHON_TASK_MOVED && i < (is_dump ? DUMP_TRIES : 1); i++)
        state = python_task_read(place, &reading->memory, task, reading->frames);
    if (state == PYTHON_TASK_MOVED)
        reading->means->results->counts.tasks_moved++;
    if (state == PYTHON_TASK_GONE || state == PYTHON_TASK_MOVED)
        return 0;
    bool is_parked = state != PYTHON_TASK_RUNNING;
    int err = is_parked ? name_frames(reading) : 0;
    if (!err && python_time_is_over(&reading->memory)) /* names may be missing */
        return 0;
    if (!err && is_parked)
        err = count(reading, task, state, is_dump ? number : 0);
    if (!err && is_dump)
        err = list(reading, task, is_parked, number);
    return err == -ENOENT ? 0 : err;
}

/* ---- All tasks ---- */

/* Lists the tasks, each of which stands for the time since the pass before. */
static int begin_pass(struct program_tasks *tasks, const struct task_reading *reading,
                      const struct task_tick *tick, uint64_t now_ns)
{
    uint64_t period_ns = reading->means->period_ns, since_ns = tasks->counted_ns;
    int err = python_tasks_read(&tasks->tasks, &tasks->place, &reading->memory);
    if (tasks->tasks.is_cut)
        reading->means->results->counts.tasks_cut++;
    tasks->time_ns = tick->at_ns > since_ns ? tick->at_ns - since_ns : 0;
    tasks->ticks = (tasks->carry_ns + tasks->time_ns) / period_ns;
    if (reading->means->tasks) {
        tasks->time_ns = 0;
        tasks->ticks = 1;
    }
    tasks->carry_ns = (tasks->carry_ns + tasks->time_ns) % period_ns;
    tasks->counted_ns = since_ns + tasks->time_ns;
    tasks->reading.done_ns = now_ns;
    tasks->cost_ns = tasks->next = 0;
    tasks->is_reading = !err;
    return err;
}

static int read_until(struct program_tasks *tasks, struct task_reading *reading, uint64_t until_ns)
{
    int err = 0;
    while (tasks->next < tasks->tasks.count && !err && !python_time_is_over(&reading->memory)) {
        struct python_task *task = &tasks->tasks.items[tasks->next++];
        err = take(reading, task, (uint32_t)tasks->next);
        if (monotonic_ns() >= until_ns)
            break;
    }
    tasks->is_reading = !err && tasks->next < tasks->tasks.count;
    return err;
}

/* Reads all that there is time for. */
static int read_last(struct program_tasks *tasks, struct task_reading *reading)
{
    int err = read_until(tasks, reading, UINT64_MAX);
    if (!tasks->tasks.is_cut && python_time_is_over(&reading->memory))
        reading->means->results->counts.tasks_cut++;
    return err;
}

/* Begins a pass, or continues one. */
static int read_some(struct program_tasks *tasks, struct task_reading *reading,
                     const struct task_tick *tick)
{
    uint64_t begun_ns = monotonic_ns();
    int err = 0;
    if (!tasks->is_reading)
        err = begin_pass(tasks, reading, tick, begun_ns);
    if (!err)
        err = tick->is_last ? read_last(tasks, reading)
                            : read_until(tasks, reading, begun_ns + PART_OF_PASS_NS);
    tasks->cost_ns += monotonic_ns() - begun_ns;
    tasks->reading.cost_ns = tasks->cost_ns;
    /* What is left of the last time, for which there is as much again. */
    reading->memory.until_ns = monotonic_ns() + READING_NS;
    if (!err && tick->is_last && tick->at_ns > tasks->counted_ns) {
        err = begin_pass(tasks, reading, tick, begun_ns);
        if (!err)
            err = read_last(tasks, reading);
    }
    return err;
}

int program_tasks_take(struct program_tasks *tasks, const struct means *means,
                       struct program_python *python, const struct program_maps *maps,
                       const struct observation *observation, const struct task_tick *tick)
{
    if (!tasks->counted_ns)
        tasks->counted_ns = tick->before_ns;
    if (!tasks->place.version ||
        (!tick->is_last && !tasks->is_reading &&
         !throttle_allows(&tasks->reading, monotonic_ns(), 0, READING_PART_OF_TIME)))
        return 0;
    struct task_reading reading = {
        .means = means,
        .tasks = tasks,
        .python = python,
        .memory = {.layout = &tasks->place.layout,
                   .version = python->python.version,
                   .code_type = python->python.code_type,
                   .tid = observation_live_tid(observation),
                   .areas = &maps->areas,
                   .until_ns = monotonic_ns() + (means->tasks ? DUMP_NS : READING_NS)},
        .space = maps->space,
        .process = tick->process,
        .frames = malloc(sizeof *reading.frames),
        .named = calloc(NAMED_FRAMES, sizeof *reading.named),
    };
    int err = reading.frames && reading.named ? read_some(tasks, &reading, tick) : -ENOMEM;
    free(reading.frames);
    free(reading.named);
    free(reading.stack.addresses);
    return err;
}

void program_tasks_free(struct program_tasks *tasks)
{
    python_tasks_free(&tasks->tasks);
}

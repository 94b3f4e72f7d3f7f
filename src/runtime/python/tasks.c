#include "runtime/python/tasks.h"
#include "base/array.h"
#include "base/bytes.h"
#include "proc/memory.h"
#include "runtime/python/threads.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in bytes. Generators and frames are as in Include/internal/pycore_interpframe_structs.h
 * (before 3.14: Include/cpython/genobject.h, Include/internal/pycore_frame.h), tasks as gdb shows
 * TaskObj of builds with debug information, and states as in pycore_frame.h. */
struct python_version_of_tasks {
    uint32_t minor_version; /* PY_VERSION_HEX >> 16 */
    uint16_t gen_state, gen_frame;
    uint16_t frame_stack;      /* where its stack ends, */
    uint16_t frame_locals;     /* counted in words from here; 0: that is an address */
    uint8_t awaited;           /* what it awaits is this many words below that end */
    int8_t created, executing; /* states below `executing`, other than `created`, are suspended */
    int8_t awaiting; /* suspended in an await; frames that are suspended otherwise await nothing */
    const char *set; /* in asyncio.tasks: those tasks that were scheduled. NULL: there are lists */
    uint16_t task_coroutine, task_name, task_waiter; /* 0: published */
};

static const struct python_version_of_tasks versions[] = {
    /* Before 3.13 all suspended generators have one state. In a suspended task only the leaf may be
     * suspended other than in an await. */
    {0x030b, 75, 80, 64, 72, 1, -2, 0, -1, "_all_tasks", 136, 144, 128},
    {0x030c, 67, 72, 64, 72, 1, -2, 0, -1, "_scheduled_tasks", 136, 144, 128},
    {0x030d, 67, 72, 64, 72, 1, -3, 0, -1, "_scheduled_tasks", 120, 128, 112},
    {0x030e, 67, 72, 64, 0, 1, -3, 0, -1, NULL, 0, 0, 0},
    {0x030f, 67, 72, 64, 0, 2, 0, 4, 2, NULL, 0, 0, 0},
};

#define FRAME_BYTES 88u /* from the frame on, to its locals at most */
#define OBJECT_TYPE 8u  /* of builds that are not free-threaded */
#define OBJECT_BODY 16u
#define WORD sizeof(uint64_t)
#define TASK_BYTES_MAX 512u

static uint64_t untagged(uint64_t word)
{
    return word & ~PYTHON_TAG_BITS;
}

/* ---- Where they are ---- */

void python_tasks_take_version(struct python_tasks_place *place, uint32_t version)
{
    place->version = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (version >> 16 == versions[i].minor_version)
            place->version = &versions[i];
    }
    if (!place->version)
        return;
    place->task_coroutine = place->version->task_coroutine;
    place->task_name = place->version->task_name;
    place->task_waiter = place->version->task_waiter;
}

/* The members of _Py_AsyncioModuleDebugOffsets, each a uint64_t. */
enum {
    TASK_SIZE,
    TASK_NAME,
    TASK_AWAITED_BY,
    TASK_IS_TASK,
    TASK_AWAITED_BY_IS_SET,
    TASK_CORO,
    TASK_NODE,
    INTERPRETER_SIZE,
    INTERPRETER_TASKS,
    THREAD_SIZE,
    RUNNING_LOOP,
    RUNNING_TASK,
    THREAD_TASKS,
};

#define STATE_BYTES_MAX ((uint64_t)64 << 20)

bool python_tasks_take_offsets(struct python_tasks_place *place,
                               const uint64_t offsets[PYTHON_ASYNCIO_WORDS])
{
    uint64_t size = offsets[TASK_SIZE];
    if (size > TASK_BYTES_MAX || size < 2 * WORD || offsets[INTERPRETER_SIZE] > STATE_BYTES_MAX ||
        offsets[THREAD_SIZE] > STATE_BYTES_MAX)
        return false;
    for (size_t i = TASK_NAME; i <= TASK_NODE; i++) {
        bool is_flag = i == TASK_IS_TASK || i == TASK_AWAITED_BY_IS_SET;
        if (offsets[i] + (is_flag ? 1 : WORD) > size || offsets[i] > size)
            return false;
    }
    if (offsets[TASK_CORO] < WORD || offsets[INTERPRETER_TASKS] >= offsets[INTERPRETER_SIZE] ||
        offsets[THREAD_TASKS] >= offsets[THREAD_SIZE])
        return false;
    place->task_name = offsets[TASK_NAME];
    place->task_coroutine = offsets[TASK_CORO];
    place->task_waiter = offsets[TASK_CORO] - WORD; /* the member before it, in 3.14 and 3.15 */
    place->task_awaited_by = offsets[TASK_AWAITED_BY];
    place->task_is_task = offsets[TASK_IS_TASK];
    place->task_awaited_by_is_set = offsets[TASK_AWAITED_BY_IS_SET];
    place->task_node = offsets[TASK_NODE];
    place->interpreter_tasks = offsets[INTERPRETER_TASKS];
    place->thread_tasks = offsets[THREAD_TASKS];
    return true;
}

/* The address of the module's section .AsyncioDebug, in its own addresses; 0: it has none. */
static uint64_t find_section(struct queries *queries, struct module *module)
{
    const struct query section = {.kind = QUERY_SECTION, .name = ".AsyncioDebug"};
    union query_answer answer;
    bool has_it = !query_ask(queries, module, &section, &answer) &&
                  answer.part.bytes >= PYTHON_ASYNCIO_WORDS * sizeof(uint64_t);
    return has_it ? answer.part.address : 0;
}

static bool is_asyncio(const struct mapping *mapping)
{
    const char *slash = strrchr(mapping->path, '/');
    return slash && strncmp(slash, "/_asyncio.", strlen("/_asyncio.")) == 0;
}

/* _asyncio is a module of its own, or a part of the interpreter. */
static bool read_offsets(struct queries *queries, struct space *space, const struct python *python,
                         pid_t tid, const struct stack_areas *areas,
                         struct python_tasks_place *place)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    uint64_t offsets[PYTHON_ASYNCIO_WORDS];
    while ((mapping = space_next_module(space, &walk))) {
        bool may_have = mapping->module == python->module || is_asyncio(mapping);
        uint64_t address = may_have ? find_section(queries, mapping->module) : 0;
        if (address && memory_read(tid, areas, address + mapping->bias, offsets, sizeof offsets) ==
                           sizeof offsets)
            return python_tasks_take_offsets(place, offsets);
    }
    return false;
}

static bool has_module(struct space *space)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    while ((mapping = space_next_module(space, &walk))) {
        if (is_asyncio(mapping))
            return true;
    }
    return false;
}

static void find_types(struct queries *queries, const struct python *python,
                       struct python_task_types *types)
{
    const struct {
        const char *name;
        uint64_t *address;
    } all[] = {
        {"PyCoro_Type", &types->generators[0]},
        {"PyGen_Type", &types->generators[1]},
        {"PyAsyncGen_Type", &types->generators[2]},
        {"_PyAsyncGenASend_Type", &types->wrappers[0]},
        {"_PyAsyncGenAThrow_Type", &types->wrappers[1]},
        {"_PyCoroWrapper_Type", &types->wrappers[2]},
        {"PyLong_Type", &types->integer},
        {"PySet_Type", &types->set},
    };
    struct module_part symbol;
    *types = (struct python_task_types){0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!query_symbol(queries, python->module, all[i].name, STT_OBJECT, &symbol))
            *all[i].address = symbol.address + python->bias;
    }
}

static bool find_all(struct queries *queries, struct space *space, const struct python *python,
                     pid_t tid, const struct stack_areas *areas, struct python_tasks_place *place)
{
    python_tasks_take_version(place, python->version);
    if (!place->version || python->layout.object_type != OBJECT_TYPE)
        return false;
    find_types(queries, python, &place->types);
    if (!place->types.generators[0] || !place->types.set)
        return false;
    if (!place->version->set)
        return read_offsets(queries, space, python, tid, areas, place);
    const struct python_memory memory = {
        .layout = &python->layout, .version = python->version, .tid = tid, .areas = areas};
    place->modules = python_modules_of(&memory, python->runtime);
    return place->modules.offset;
}

int python_tasks_find(struct queries *queries, struct space *space, const struct python *python,
                      pid_t tid, const struct stack_areas *areas,
                      struct python_tasks_place *ret_place)
{
    struct python_tasks_place place = {.runtime = python->runtime, .layout = python->layout};
    *ret_place = (struct python_tasks_place){0};
    if (!find_all(queries, space, python, tid, areas, &place))
        return has_module(space) ? -ENOTSUP : -ENOENT;
    *ret_place = place;
    return 0;
}

/* ---- The list ---- */

static size_t task_bytes(const struct python_tasks_place *place)
{
    const uint64_t last[] = {place->task_coroutine, place->task_name, place->task_waiter,
                             place->task_awaited_by, place->task_node};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        most = last[i] > most ? last[i] : most;
    return (size_t)most + WORD;
}

static void parse_task(const struct python_tasks_place *place, uint64_t address,
                       const unsigned char *bytes, struct python_task *ret_task)
{
    *ret_task = (struct python_task){
        .address = address,
        .coroutine = untagged(load_word(bytes, place->task_coroutine)),
        .name = untagged(load_word(bytes, place->task_name)),
        .waiter = untagged(load_word(bytes, place->task_waiter)),
        .awaited_by =
            place->task_awaited_by ? untagged(load_word(bytes, place->task_awaited_by)) : 0,
        .is_task = !place->task_is_task || bytes[place->task_is_task],
        .awaited_by_is_set = place->task_awaited_by_is_set && bytes[place->task_awaited_by_is_set],
    };
}

/* Also gets the address of the next node in its list. Returns false if it can't be read. */
static bool read_task(const struct python_tasks_place *place, const struct python_memory *memory,
                      uint64_t address, struct python_task *ret_task, uint64_t *ret_next)
{
    unsigned char bytes[TASK_BYTES_MAX] = {0}; /* a flag may be behind what is read */
    if (!python_read(memory, address, bytes, task_bytes(place)))
        return false;
    parse_task(place, address, bytes, ret_task);
    *ret_next = load_word(bytes, place->task_node);
    return true;
}

/* `head` is the node that the list begins and ends with. */
static int read_list(struct python_tasks *tasks, const struct python_tasks_place *place,
                     const struct python_memory *memory, uint64_t head)
{
    uint64_t node;
    struct python_task task;
    int err = 0;
    if (!python_read(memory, head, &node, sizeof node))
        return 0;
    while (node && node != head && !err) {
        if (tasks->count >= PYTHON_TASKS_MAX ||
            !read_task(place, memory, node - place->task_node, &task, &node)) {
            tasks->is_cut = true;
            break;
        }
        err = array_append(&tasks->items, &tasks->count, &tasks->capacity, task);
    }
    return err;
}

static int read_lists(struct python_tasks *tasks, const struct python_tasks_place *place,
                      const struct python_memory *memory)
{
    const struct python_layout *layout = &place->layout;
    struct python_threads threads = {0};
    uint64_t interpreter = 0;
    int err = python_threads_read(&threads, place->runtime, memory, PYTHON_STATES_MAX);
    for (size_t i = 0; i < threads.count && !err; i++)
        err = read_list(tasks, place, memory, threads.items[i].state + place->thread_tasks);
    /* Those of threads that have ended. */
    python_read(memory, place->runtime + layout->runtime_interpreters, &interpreter,
                sizeof interpreter);
    for (size_t i = 0; interpreter && i < PYTHON_INTERPRETERS_MAX && !err; i++) {
        err = read_list(tasks, place, memory, interpreter + place->interpreter_tasks);
        if (!python_read(memory, interpreter + layout->interpreter_next, &interpreter,
                         sizeof interpreter))
            break;
    }
    python_threads_free(&threads);
    return err;
}

/* ---- Before 3.14 ---- */

#define REFERENCE_OBJECT 16u
#define REFERENCES_MAX (4 * PYTHON_TASKS_MAX) /* also to former tasks and other objects */

/* What a WeakSet has its references in. */
static uint64_t find_set(const struct python_tasks_place *place, const struct python_memory *memory)
{
    struct python_set_walk walk;
    uint64_t weak_set =
        python_global(memory, &place->modules, "asyncio.tasks", place->version->set);
    uint64_t set = python_attribute(memory, weak_set, "data");
    return python_set_begin(memory, place->types.set, set, &walk) ? set : 0;
}

static int read_set(struct python_tasks *tasks, const struct python_tasks_place *place,
                    const struct python_memory *memory)
{
    struct python_set_walk walk;
    struct python_task task;
    uint64_t reference, object, next;
    int err = 0;
    if (!tasks->set)
        tasks->set = find_set(place, memory);
    if (!tasks->set || !python_set_begin(memory, place->types.set, tasks->set, &walk)) {
        tasks->set = 0;
        return 0;
    }
    for (size_t left = REFERENCES_MAX; !err && (reference = python_set_next(memory, &walk));
         left--) {
        if (!left || tasks->count >= PYTHON_TASKS_MAX) {
            tasks->is_cut = true;
            break;
        }
        if (python_read(memory, reference + REFERENCE_OBJECT, &object, sizeof object) &&
            read_task(place, memory, object, &task, &next))
            err = array_append(&tasks->items, &tasks->count, &tasks->capacity, task);
    }
    return err;
}

int python_tasks_read(struct python_tasks *tasks, const struct python_tasks_place *place,
                      const struct python_memory *memory)
{
    tasks->count = 0;
    tasks->is_cut = false;
    int err =
        place->version->set ? read_set(tasks, place, memory) : read_lists(tasks, place, memory);
    tasks->is_cut = tasks->is_cut || python_time_is_over(memory);
    return err;
}

void python_tasks_free(struct python_tasks *tasks)
{
    free(tasks->items);
    *tasks = (struct python_tasks){0};
}

/* ---- Coroutines ---- */

static bool is_generator(const struct python_task_types *types, uint64_t type)
{
    return type && (type == types->generators[0] || type == types->generators[1] ||
                    type == types->generators[2]);
}

/* A generator and the most of its frame's stack, read at once. */
#define GENERATOR_BYTES 512u

struct generator {
    uint64_t address;
    size_t bytes;
    unsigned char memory[GENERATOR_BYTES];
};

static bool read_generator(const struct python_tasks_place *place,
                           const struct python_memory *memory, uint64_t address,
                           struct generator *ret_generator)
{
    bool may_read = address && !python_time_is_over(memory);
    ret_generator->address = address;
    ret_generator->bytes = may_read ? memory_read(memory->tid, memory->areas, address,
                                                  ret_generator->memory, GENERATOR_BYTES)
                                    : 0;
    return ret_generator->bytes >= place->version->gen_frame + FRAME_BYTES;
}

static int8_t state_of(const struct python_tasks_place *place, const struct generator *generator)
{
    return (int8_t)generator->memory[place->version->gen_state];
}

/* What it awaits; 0: nothing, or that can't be read. */
static uint64_t awaited(const struct python_tasks_place *place, const struct python_memory *memory,
                        const struct generator *generator)
{
    const struct python_version_of_tasks *version = place->version;
    const unsigned char *frame = generator->memory + version->gen_frame;
    uint64_t at = load_word(frame, version->frame_stack), object;
    if (state_of(place, generator) != version->awaiting)
        return 0;
    if (version->frame_locals) {
        uint64_t depth = at & UINT32_MAX;
        at = depth < version->awaited || depth > INT32_MAX
                 ? 0
                 : generator->address + version->gen_frame + version->frame_locals + depth * WORD;
    }
    at -= at ? version->awaited * WORD : 0;
    if (at >= generator->address && at - generator->address <= generator->bytes - WORD)
        object = load_word(generator->memory, at - generator->address);
    else if (!python_read(memory, at, &object, sizeof object))
        return 0;
    return untagged(object);
}

/* Reads the generator at `address`, or the one that an object there runs. Returns false if there is
 * none: it is a future, or another kind of object. */
static bool next_generator(const struct python_tasks_place *place,
                           const struct python_memory *memory, uint64_t address,
                           struct generator *ret_generator)
{
    const struct python_task_types *types = &place->types;
    for (int i = 0; i < 3; i++) {
        if (!read_generator(place, memory, address, ret_generator))
            return false;
        uint64_t type = load_word(ret_generator->memory, OBJECT_TYPE);
        if (is_generator(types, type))
            return true;
        if (!type || (type != types->wrappers[0] && type != types->wrappers[1] &&
                      type != types->wrappers[2]))
            return false;
        address = load_word(ret_generator->memory, OBJECT_BODY);
    }
    return false;
}

/* What of a generator shows whether it has run since. */
struct generator_rest {
    uint64_t address;
    unsigned char memory[FRAME_BYTES];
};

static void add_frame(const struct python_tasks_place *place, const struct generator *generator,
                      struct python_frames *frames, struct generator_rest *rests)
{
    const unsigned char *frame = generator->memory + place->version->gen_frame;
    struct generator_rest *rest = &rests[frames->count];
    rest->address = generator->address + place->version->gen_frame;
    memcpy(rest->memory, frame, sizeof rest->memory);
    frames->items[frames->count++] = (struct python_frame){
        .code = untagged(load_word(frame, place->layout.frame_code)),
        .instruction = load_word(frame, place->layout.frame_instruction),
    };
}

/* Reads all of it again. */
static bool has_stayed(const struct python_tasks_place *place, const struct python_memory *memory,
                       const struct python_task *task, const struct generator_rest *rests,
                       size_t count)
{
    unsigned char task_bytes_again[TASK_BYTES_MAX] = {0}, (*again)[FRAME_BYTES];
    size_t bytes = task_bytes(place);
    struct python_task task_again;
    struct memory_range *ranges = malloc((count + 1) * (sizeof *ranges + sizeof *again));
    if (!ranges)
        return false;
    again = (unsigned char(*)[FRAME_BYTES])(ranges + count + 1);
    for (size_t i = 0; i < count; i++)
        ranges[i] = (struct memory_range){rests[i].address, again[i], sizeof again[i], 0};
    ranges[count] = (struct memory_range){task->address, task_bytes_again, bytes, 0};
    bool same = !memory_read_many(memory->tid, memory->areas, ranges, count + 1) &&
                ranges[count].got == bytes;
    if (same) {
        parse_task(place, task->address, task_bytes_again, &task_again);
        same = task_again.coroutine == task->coroutine && task_again.waiter == task->waiter;
    }
    for (size_t i = 0; i < count && same; i++)
        same = ranges[i].got == sizeof again[i] &&
               memcmp(again[i], rests[i].memory, sizeof again[i]) == 0;
    free(ranges);
    return same;
}

static void reverse(struct python_frames *frames)
{
    for (size_t i = 0, j = frames->count; i + 1 < j; i++) {
        struct python_frame frame = frames->items[i];
        frames->items[i] = frames->items[--j];
        frames->items[j] = frame;
    }
}

/* A set may also have tasks of other classes, which have another layout; in lists all tasks are
 * asyncio's own, even if their coroutines are of another kind, such as a compiler's. */
static enum python_task_state state_without_generator(const struct python_tasks_place *place,
                                                      const struct python_task *task)
{
    return place->version->set || !task->coroutine ? PYTHON_TASK_GONE
           : task->waiter                          ? PYTHON_TASK_WAITING
                                                   : PYTHON_TASK_READY;
}

static enum python_task_state state_of_task(const struct python_tasks_place *place,
                                            const struct python_task *task, int8_t state)
{
    const struct python_version_of_tasks *version = place->version;
    if (state > version->executing)
        return PYTHON_TASK_GONE;
    if (state == version->executing)
        return PYTHON_TASK_RUNNING;
    if (state == version->created)
        return PYTHON_TASK_NEW;
    return task->waiter ? PYTHON_TASK_WAITING : PYTHON_TASK_READY;
}

enum python_task_state python_task_read(const struct python_tasks_place *place,
                                        const struct python_memory *memory,
                                        struct python_task *task, struct python_frames *ret_frames)
{
    struct generator generator;
    uint64_t next;
    python_frames_begin(ret_frames);
    if (!read_task(place, memory, task->address, task, &next))
        return PYTHON_TASK_GONE;
    enum python_task_state state = state_without_generator(place, task);
    if (place->layout.frame_code + WORD > FRAME_BYTES ||
        place->layout.frame_instruction + WORD > FRAME_BYTES)
        return PYTHON_TASK_GONE;
    struct generator_rest *rests = malloc(PYTHON_COROUTINES_MAX * sizeof *rests);
    uint64_t address = rests ? task->coroutine : 0;
    while (address && next_generator(place, memory, address, &generator)) {
        if (!ret_frames->count)
            state = state_of_task(place, task, state_of(place, &generator));
        if (state == PYTHON_TASK_GONE || state == PYTHON_TASK_RUNNING)
            break;
        if (ret_frames->count == PYTHON_COROUTINES_MAX) {
            ret_frames->is_cut = true;
            break;
        }
        add_frame(place, &generator, ret_frames, rests);
        address = awaited(place, memory, &generator);
    }
    if (ret_frames->count && !has_stayed(place, memory, task, rests, ret_frames->count))
        state = PYTHON_TASK_MOVED;
    if (python_time_is_over(memory)) /* it may have more coroutines */
        state = PYTHON_TASK_GONE;
    free(rests);
    reverse(ret_frames);
    return state;
}

/* ---- Names ---- */

/* PyLongObject from 3.12 on: the number of digits is in the bits above these. */
#define INTEGER_TAG_BITS 3
#define INTEGER_DIGIT_BITS 30

void python_task_name(const struct python_tasks_place *place, const struct python_memory *memory,
                      const struct python_task *task, char ret_name[PYTHON_TEXT_BYTES],
                      bool *ret_is_made_up)
{
    uint64_t words[3]; /* the type, and a number's tag and digits */
    *ret_name = '\0';
    *ret_is_made_up = false;
    if (!python_read(memory, task->name + OBJECT_TYPE, words, sizeof words))
        return;
    /* From 3.13 on asyncio keeps the number only, until somebody asks for the name. */
    if (words[0] && words[0] == place->types.integer) {
        uint64_t digits = words[1] >> INTEGER_TAG_BITS, mask = (1u << INTEGER_DIGIT_BITS) - 1;
        uint64_t number =
            (words[2] & mask) | (digits > 1 ? (words[2] >> 32 & mask) << INTEGER_DIGIT_BITS : 0);
        snprintf(ret_name, PYTHON_TEXT_BYTES, "Task-%" PRIu64, number);
        *ret_is_made_up = true;
        return;
    }
    python_text_read(memory, task->name, ret_name);
    size_t prefix = strlen("Task-");
    *ret_is_made_up = strncmp(ret_name, "Task-", prefix) == 0 && ret_name[prefix] &&
                      ret_name[prefix + strspn(ret_name + prefix, "0123456789")] == '\0';
}

#define AWAITED_BY_MAX 32

struct awaiting {
    const struct python_tasks_place *place;
    const struct python_memory *memory;
    struct python_task queue[AWAITED_BY_MAX]; /* whose awaiters are looked up */
    size_t next, count;
    char *names;
    size_t used;
};

static void add_awaiter(struct awaiting *awaiting, uint64_t address)
{
    struct python_task task;
    char name[PYTHON_TEXT_BYTES];
    uint64_t next;
    bool is_made_up;
    if (!read_task(awaiting->place, awaiting->memory, address, &task, &next))
        return;
    if (!task.is_task) {
        if (awaiting->count < AWAITED_BY_MAX)
            awaiting->queue[awaiting->count++] = task;
        return;
    }
    python_task_name(awaiting->place, awaiting->memory, &task, name, &is_made_up);
    size_t left = PYTHON_AWAITED_BY_BYTES - awaiting->used;
    int length = snprintf(awaiting->names + awaiting->used, left, "%s\"%s\"",
                          awaiting->used ? ", " : "", name);
    if (length < 0 || (size_t)length >= left)
        awaiting->names[awaiting->used] = '\0';
    else
        awaiting->used += (size_t)length;
}

void python_task_awaited_by(const struct python_tasks_place *place,
                            const struct python_memory *memory, const struct python_task *task,
                            char ret_names[PYTHON_AWAITED_BY_BYTES])
{
    struct awaiting awaiting = {
        .place = place, .memory = memory, .queue = {*task}, .count = 1, .names = ret_names};
    *ret_names = '\0';
    while (awaiting.next < awaiting.count) {
        const struct python_task *awaited_task = &awaiting.queue[awaiting.next++];
        struct python_set_walk walk;
        uint64_t awaiter;
        if (!awaited_task->awaited_by)
            continue;
        if (!awaited_task->awaited_by_is_set) {
            add_awaiter(&awaiting, awaited_task->awaited_by);
        } else if (python_set_begin(memory, place->types.set, awaited_task->awaited_by, &walk)) {
            for (int i = 0; i < AWAITED_BY_MAX && (awaiter = python_set_next(memory, &walk)); i++)
                add_awaiter(&awaiting, awaiter);
        }
    }
}

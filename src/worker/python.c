#include "worker/python.h"
#include "base/array.h"
#include "base/clock.h"
#include "fgprof.h"
#include "runtime/python/merge.h"
#include "unwind/moved_part.h"
#include "unwind/rule_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many of the program's code objects, and how many of their line tables, are kept: if there are
 * more, all are read again. */
#define CODES_MAX 16384u
#define LINE_BYTES_MAX (16u << 20)

/* ---- The interpreter ---- */

/* For the summary, which says one that is not read. */
static void note_unread(const struct python *python, struct results *results)
{
    uint64_t version = python->is_known ? python->other_version : python->version;
    uint64_t flags = python->is_known           ? FGPROF_PYTHON_BESIDE
                     : python->is_free_threaded ? FGPROF_PYTHON_FREE_THREADED
                                                : 0;
    if (python->is_known ? python->has_other : python->module != NULL)
        results->counts.python_version = (version ? version : 1) | flags;
}

int program_python_update(struct program_python *python, const struct means *means,
                          struct program_maps *maps, const struct observation *observation)
{
    struct request request = {.kind = REQUEST_PYTHON, .program = observation->program->number};
    if (python->is_told && !python->python.gil)
        python->python.gil =
            python_find_gil(&python->python, observation_live_tid(observation), &maps->areas);
    if (python->python.module || python->mapping_count == maps->space->mapping_count)
        return 0;
    int err = maps->areas.count ? 0 : program_maps_read_areas(maps, observation);
    if (!err)
        err = python_find(means->queries, maps->space, observation_live_tid(observation),
                          &maps->areas, &python->python);
    if (err)
        return err == -EAGAIN ? 0 : err;
    python->mapping_count = maps->space->mapping_count;
    note_unread(&python->python, means->results);
    if (!python->python.is_known)
        return 0;
    python->is_told = true;
    request.python = (struct python_place){python->python.runtime, python->python.layout};
    return channel_request(means->channel, &request);
}

bool program_python_came_later(const struct program_python *python,
                               const struct observation *observation, bool is_dump)
{
    bool can_be_repeated =
        observation->evidence == EVIDENCE_SAMPLED ? is_dump : !observation->record.returned_ns;
    return python->is_told && !observation->knows_python && can_be_repeated;
}

/* ---- Names ---- */

void program_python_forget_codes(struct program_python *python)
{
    for (size_t i = 0; i < python->code_count; i++)
        free(python->codes[i].lines);
    python->code_count = python->line_bytes = 0;
    index_clear(&python->code_index, 0);
}

static bool is_code_at(const void *owner, uint32_t item, const void *key)
{
    const struct program_python *python = owner;
    return python->codes[item].address == *(const uint64_t *)key;
}

/* Python 3.13 and later call constructors through _Py_InitCleanup, a function of that name and file
 * (Python/specialize.c). Tracebacks do not show it. */
static bool is_shim(const struct python_code *code)
{
    return strcmp(code->name, "__init__") == 0 && strcmp(code->file, "__init__") == 0;
}

static int read_code(struct program_python *python, const struct python_memory *memory,
                     struct results *results, const struct python_code_head *head,
                     struct known_code *known)
{
    struct python_code code;
    int err = python_code_read(memory, head, &code);
    if (!err)
        err = runtime_frames_text(&results->runtime_frames, *code.name ? code.name : "[unknown]",
                                  &known->name);
    if (!err)
        err = runtime_frames_text(&results->runtime_frames, code.file, &known->file);
    if (err) {
        free(code.lines);
        return err;
    }
    free(known->lines);
    python->line_bytes += code.line_bytes - known->line_bytes;
    known->head = *head;
    known->is_shim = is_shim(&code);
    known->lines = code.lines;
    known->line_bytes = code.line_bytes;
    return 0;
}

/* Finds or adds the code object at `address`; NULL if memory is short. */
static struct known_code *code_at(struct program_python *python, uint64_t address)
{
    uint64_t hash = hash_bytes(&address, sizeof address, 0);
    uint32_t number = index_find(&python->code_index, hash, is_code_at, python, &address);
    if (number != INDEX_NONE)
        return &python->codes[number];
    if (python->code_count >= CODES_MAX || python->line_bytes >= LINE_BYTES_MAX)
        program_python_forget_codes(python);
    if (array_reserve(&python->codes, &python->code_capacity, python->code_count + 1) ||
        index_add(&python->code_index, hash, (uint32_t)python->code_count))
        return NULL;
    struct known_code *added = &python->codes[python->code_count++];
    *added = (struct known_code){.address = address};
    return added;
}

static bool is_same_head(const struct python_code_head *a, const struct python_code_head *b)
{
    return a->filename == b->filename && a->qualname == b->qualname && a->lines == b->lines &&
           a->first_line == b->first_line;
}

int program_python_name(struct program_python *python, const struct python_memory *memory,
                        struct results *results, const struct python_frame *frame,
                        uint64_t *ret_address)
{
    struct python_code_head head;
    if (!python_code_read_head(memory, frame->code, &head))
        return -ENOENT;
    struct known_code *known = code_at(python, frame->code);
    if (!known)
        return -ENOMEM;
    /* Another one may have been created at its address. */
    int err =
        is_same_head(&known->head, &head) ? 0 : read_code(python, memory, results, &head, known);
    if (err || known->is_shim)
        return err ? err : -ENODATA;
    const struct python_layout *layout = &python->python.layout;
    const struct python_code code = {.head = head,
                                     .line_table = layout->line_table,
                                     .lines = known->lines,
                                     .line_bytes = known->line_bytes};
    uint64_t offset = python_code_offset(layout, frame->code, frame->instruction);
    const struct runtime_frame row = {known->name, known->file, python_code_line(&code, offset)};
    return runtime_frames_add(&results->runtime_frames, &row, ret_address);
}

/* ---- Threads ---- */

/* How often their names are read, at most; for a thread that has none, only the part counts. */
#define NAMES_EACH_NS 1000000000u
#define NAMES_PART_OF_TIME 100
/* And how long that may take. */
#define NAMES_NS 1000000000u

static int read_names(struct program_python *python, const struct program_maps *maps,
                      const struct observation *observation)
{
    uint64_t begun_ns = monotonic_ns();
    const struct python_memory memory = {.layout = &python->python.layout,
                                         .version = python->python.version,
                                         .tid = observation_live_tid(observation),
                                         .areas = &maps->areas,
                                         .until_ns = begun_ns + NAMES_NS};
    int err = python_thread_names_read(&python->names, python->python.runtime, &memory);
    python->naming = (struct throttle){begun_ns, monotonic_ns() - begun_ns};
    return err;
}

int program_python_name_thread(struct program_python *python, const struct means *means,
                               const struct program_maps *maps,
                               const struct observation *observation, uint32_t *name)
{
    pid_t id = observation->inner_tid ? observation->inner_tid : observation->tid;
    char text[PYTHON_THREAD_NAME_BYTES];
    if (!python->is_told || !python_thread_names_are_read(python->python.version) ||
        observation->tid == observation->process_id)
        return 0;
    const char *known = python_thread_names_find(&python->names, id);
    if (throttle_allows(&python->naming, monotonic_ns(), known ? NAMES_EACH_NS : 0,
                        NAMES_PART_OF_TIME)) {
        int err = read_names(python, maps, observation);
        if (err)
            return err;
        known = python_thread_names_find(&python->names, id);
    }
    if (known && !means->tells_threads_apart) {
        python_thread_name_join(known, text);
        known = text;
    }
    return known ? strings_intern(&means->results->strings, known, name) : 0;
}

/* ---- Stacks ---- */

static enum native_kind kind_of(const struct program_python *python, struct rule_tables *rules,
                                struct space *space, uint64_t address)
{
    const struct mapping *mapping = space_find(space, address);
    if (!mapping || !mapping->has_bias || mapping->module != python->python.module)
        return NATIVE_OTHER;
    uint64_t function = rule_tables_function(rules, python->python.module, address - mapping->bias);
    bool evaluates = function && (function == python->python.evaluation.address ||
                                  function == python->moved_part);
    return evaluates ? NATIVE_EVALUATION : NATIVE_INTERPRETER;
}

/* Merges the named frames into the stack; `kinds` has the kinds of its native frames. *ret_fits:
 * they match. */
static int merge(const struct python_frames *frames, const uint64_t *named,
                 const enum native_kind *kinds, bool keeps_native_frames, struct stack *stack,
                 bool *ret_fits)
{
    size_t room = stack->depth + frames->count;
    uint64_t *merged = malloc(room * sizeof *merged);
    if (!merged || array_reserve(&stack->addresses, &stack->capacity, room)) {
        free(merged);
        return -ENOMEM;
    }
    const struct native_stack native = {
        .addresses = stack->addresses,
        .kinds = kinds,
        .depth = stack->depth,
        .is_cut = stack->cut != STACK_WHOLE,
        .keeps_interpreter = keeps_native_frames,
    };
    size_t depth = python_merge(&native, frames, named, merged);
    *ret_fits = depth > 0;
    if (depth) {
        memcpy(stack->addresses, merged, depth * sizeof *merged);
        stack->depth = depth;
    }
    free(merged);
    return 0;
}

static void leave_out(struct python_frames *frames, size_t number)
{
    if (number)
        frames->items[number - 1].is_entry |= frames->items[number].is_entry;
    frames->count--;
    memmove(&frames->items[number], &frames->items[number + 1],
            (frames->count - number) * sizeof *frames->items);
}

static int name_and_merge(struct program_python *python, const struct means *means,
                          const struct program_maps *maps, const struct observation *observation,
                          const enum native_kind *kinds, struct stack *stack, bool *ret_fits)
{
    struct python_frames *frames = observation->snapshot->python;
    const struct python_memory memory = {
        .layout = &python->python.layout,
        .code_type = python->python.code_type,
        .tid = observation->tid,
        .areas = &maps->areas,
    };
    uint64_t *named = malloc((frames->count + 1) * sizeof *named);
    int err = named ? 0 : -ENOMEM;
    for (size_t i = 0; i < frames->count && !err;) {
        err = program_python_name(python, &memory, means->results, &frames->items[i], &named[i]);
        if (err == -ENODATA) {
            leave_out(frames, i);
            err = 0;
        } else {
            i++;
        }
    }
    if (!err)
        err = merge(frames, named, kinds, means->keeps_native_frames, stack, ret_fits);
    free(named);
    return err == -ENOENT ? 0 : err;
}

int program_python_take(struct program_python *python, const struct means *means,
                        const struct program_maps *maps, const struct observation *observation,
                        struct stack *stack)
{
    const struct python_frames *frames = observation->snapshot->python;
    bool was_read = frames && frames->state == PYTHON_FRAMES_READ && frames->count;
    bool evaluates = false, fits = false;
    if (!python->is_told || !stack->depth)
        return 0;
    if (!python->has_looked_for_part)
        python->moved_part =
            moved_part_find(means->rules, python->python.module, &python->python.evaluation);
    python->has_looked_for_part = true;
    enum native_kind *kinds = malloc(stack->depth * sizeof *kinds);
    int err = kinds ? 0 : -ENOMEM;
    for (size_t i = 0; i < stack->depth && !err; i++) {
        kinds[i] = kind_of(python, means->rules, maps->space, stack->addresses[i]);
        evaluates = evaluates || kinds[i] == NATIVE_EVALUATION;
    }
    if (!err && was_read)
        err = name_and_merge(python, means, maps, observation, kinds, stack, &fits);
    free(kinds);
    if (!err && (was_read || evaluates))
        *(fits ? &means->results->counts.python_stacks
               : &means->results->counts.python_stacks_missing) += 1;
    return err;
}

void program_python_free(struct program_python *python)
{
    program_python_forget_codes(python);
    free(python->codes);
    python_thread_names_free(&python->names);
    index_free(&python->code_index);
}

#include "worker/kept_memory.h"

static size_t stack_bytes(const struct results *results)
{
    return stack_table_bytes(&results->stacks);
}

static size_t wait_bytes(const struct results *results)
{
    return results->waits.count * sizeof *results->waits.rows;
}

static size_t timeline_kept_bytes(const struct results *results)
{
    return timeline_bytes(&results->timeline);
}

static size_t string_bytes(const struct results *results)
{
    return strings_bytes(&results->strings);
}

static size_t object_bytes(const struct results *results)
{
    return objects_table_bytes(&results->objects);
}

static size_t label_bytes(const struct results *results)
{
    return label_sets_bytes(&results->label_sets);
}

static size_t runtime_frame_bytes(const struct results *results)
{
    return runtime_frames_bytes(&results->runtime_frames);
}

static size_t goroutine_bytes(const struct results *results)
{
    return results->goroutine_bytes;
}

static size_t process_bytes(const struct results *results)
{
    return results->elapsed_count * sizeof *results->elapsed;
}

static size_t mapping_bytes(const struct results *results)
{
    size_t bytes = 0;
    for (size_t i = 0; i < results->spaces.count; i++)
        bytes += space_bytes(results->spaces.items[i]);
    return bytes;
}

static size_t module_bytes(const struct results *results)
{
    return modules_bytes(&results->modules);
}

static size_t code_bytes(const struct results *results)
{
    size_t bytes = 0;
    for (size_t i = 0; i < results->spaces.count; i++) {
        const struct space *space = results->spaces.items[i];
        if (space->owns_jit)
            bytes += jit_bytes(space->jit);
    }
    return bytes;
}

static const struct {
    const char *name;
    size_t (*bytes)(const struct results *results); /* NULL: not part of these */
    bool is_of_programs; /* otherwise it is dropped with the results, and adding it up is cheap */
} kinds[KEPT_KIND_COUNT] = {
    [KEPT_CHECKPOINTS] = {"checkpoints", NULL, false},
    [KEPT_STACKS] = {"stacks", stack_bytes, false},
    [KEPT_WAITS] = {"waits", wait_bytes, false},
    [KEPT_TIMELINE] = {"timeline", timeline_kept_bytes, false},
    [KEPT_STRINGS] = {"strings", string_bytes, false},
    [KEPT_OBJECTS] = {"objects", object_bytes, false},
    [KEPT_LABELS] = {"labels", label_bytes, false},
    [KEPT_RUNTIME_FRAMES] = {"runtime_frames", runtime_frame_bytes, true},
    [KEPT_GOROUTINES] = {"goroutines", goroutine_bytes, true},
    [KEPT_PROCESSES] = {"processes", process_bytes, false},
    [KEPT_MAPPINGS] = {"mappings", mapping_bytes, true},
    [KEPT_MODULES] = {"modules", module_bytes, true},
    [KEPT_CODE] = {"code", code_bytes, true},
    [KEPT_UNWINDING] = {"unwinding", NULL, false},
    [KEPT_COPY] = {"copy", NULL, false},
    [KEPT_NAMES] = {"names", NULL, false},
};

const char *kept_kind_name(enum kept_kind kind)
{
    return kinds[kind].name;
}

size_t kept_bytes(const struct results *results, size_t checkpoint_bytes, enum kept_kind kind)
{
    if (kind == KEPT_CHECKPOINTS)
        return checkpoint_bytes;
    return kinds[kind].bytes ? kinds[kind].bytes(results) : 0;
}

static size_t sum(const struct results *results, bool is_of_programs)
{
    size_t bytes = 0;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++) {
        if (kinds[kind].is_of_programs == is_of_programs)
            bytes += kept_bytes(results, 0, kind);
    }
    return bytes;
}

size_t kept_bytes_counted(const struct results *results, size_t checkpoint_bytes)
{
    return checkpoint_bytes + sum(results, false);
}

size_t kept_bytes_of_programs(const struct results *results)
{
    return sum(results, true);
}

size_t kept_bytes_all(const struct results *results)
{
    return sum(results, false) + sum(results, true);
}

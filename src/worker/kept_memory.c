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
    size_t (*bytes)(const struct results *results);
    bool is_limited; /* and counted in no time */
} kinds[KEPT_KIND_COUNT] = {
    [KEPT_CHECKPOINTS] = {"checkpoints", NULL, true},
    [KEPT_STACKS] = {"stacks", stack_bytes, true},
    [KEPT_WAITS] = {"waits", wait_bytes, true},
    [KEPT_TIMELINE] = {"timeline", timeline_kept_bytes, true},
    [KEPT_STRINGS] = {"strings", string_bytes, true},
    [KEPT_OBJECTS] = {"objects", object_bytes, true},
    [KEPT_LABELS] = {"labels", label_bytes, true},
    [KEPT_RUNTIME_FRAMES] = {"runtime_frames", runtime_frame_bytes, false},
    [KEPT_GOROUTINES] = {"goroutines", goroutine_bytes, false},
    [KEPT_PROCESSES] = {"processes", process_bytes, true},
    [KEPT_MAPPINGS] = {"mappings", mapping_bytes, false},
    [KEPT_MODULES] = {"modules", module_bytes, false},
    [KEPT_CODE] = {"code", code_bytes, false},
};

const char *kept_kind_name(enum kept_kind kind)
{
    return kinds[kind].name;
}

size_t kept_bytes(const struct results *results, size_t checkpoint_bytes, enum kept_kind kind)
{
    return kinds[kind].bytes ? kinds[kind].bytes(results) : checkpoint_bytes;
}

size_t kept_bytes_all(const struct results *results)
{
    size_t bytes = 0;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++)
        bytes += kept_bytes(results, 0, kind);
    return bytes;
}

size_t kept_bytes_limited(const struct results *results, size_t checkpoint_bytes)
{
    size_t bytes = 0;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++) {
        if (kinds[kind].is_limited)
            bytes += kept_bytes(results, checkpoint_bytes, kind);
    }
    return bytes;
}

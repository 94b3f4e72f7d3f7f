#include "worker/kept_memory.h"

static size_t mapping_bytes(const struct results *results)
{
    size_t bytes = 0;
    for (size_t i = 0; i < results->spaces.count; i++)
        bytes += space_bytes(results->spaces.items[i]);
    return bytes;
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
    bool is_of_programs; /* otherwise it is dropped with the results, and adding it up is cheap */
} kinds[KEPT_KIND_COUNT] = {
    [KEPT_CHECKPOINTS] = {"checkpoints", false},
    [KEPT_STACKS] = {"stacks", false},
    [KEPT_WAITS] = {"waits", false},
    [KEPT_TIMELINE] = {"timeline", false},
    [KEPT_STRINGS] = {"strings", false},
    [KEPT_OBJECTS] = {"objects", false},
    [KEPT_LABELS] = {"labels", false},
    [KEPT_RUNTIME_FRAMES] = {"runtime_frames", true},
    [KEPT_GOROUTINES] = {"goroutines", true},
    [KEPT_PROCESSES] = {"processes", false},
    [KEPT_MAPPINGS] = {"mappings", true},
    [KEPT_MODULES] = {"modules", true},
    [KEPT_CODE] = {"code", true},
    [KEPT_UNWINDING] = {"unwinding", false},
    [KEPT_COPY] = {"copy", false},
    [KEPT_NAMES] = {"names", false},
};

const char *kept_kind_name(enum kept_kind kind)
{
    return kinds[kind].name;
}

size_t kept_bytes(const struct results *results, enum kept_kind kind)
{
    switch (kind) {
    case KEPT_STACKS:
        return stack_table_bytes(&results->stacks);
    case KEPT_WAITS:
        return results->waits.count * sizeof *results->waits.rows;
    case KEPT_TIMELINE:
        return timeline_bytes(&results->timeline);
    case KEPT_STRINGS:
        return strings_bytes(&results->strings);
    case KEPT_OBJECTS:
        return objects_table_bytes(&results->objects);
    case KEPT_LABELS:
        return label_sets_bytes(&results->label_sets);
    case KEPT_RUNTIME_FRAMES:
        return runtime_frames_bytes(&results->runtime_frames);
    case KEPT_GOROUTINES:
        return results->goroutine_bytes;
    case KEPT_PROCESSES:
        return results->elapsed_count * sizeof *results->elapsed;
    case KEPT_MAPPINGS:
        return mapping_bytes(results);
    case KEPT_MODULES:
        return modules_bytes(&results->modules);
    case KEPT_CODE:
        return code_bytes(results);
    default:
        return 0; /* not part of the results */
    }
}

static size_t sum(const struct results *results, bool is_of_programs)
{
    size_t bytes = 0;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++) {
        if (kinds[kind].is_of_programs == is_of_programs)
            bytes += kept_bytes(results, kind);
    }
    return bytes;
}

size_t kept_bytes_counted(const struct results *results)
{
    return sum(results, false);
}

size_t kept_bytes_of_programs(const struct results *results)
{
    return sum(results, true);
}

size_t kept_bytes_all(const struct results *results)
{
    return sum(results, false) + sum(results, true);
}

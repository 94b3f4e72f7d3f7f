#include "runtime/python/find.h"
#include "proc/memory.h"

#include <elf.h>
#include <errno.h>

#define HAS_OFFSETS 0x030d0000u /* from this version on the interpreter tells its layout */

/* PY_VERSION_HEX, which Python has in a constant since 3.11 (Include/pyversion.h, Py_Version).
 * Older versions are recognized by the functions that they have: the C API's documentation gives
 * the first version of each. */
static uint32_t version_of(struct queries *queries, struct module *module)
{
    struct module_part symbol;
    unsigned long version;
    if (!query_symbol(queries, module, "Py_Version", STT_OBJECT, &symbol))
        return module_read(module, symbol.address, &version, sizeof version) ? (uint32_t)version
                                                                             : 0;
    if (!query_symbol(queries, module, "Py_NewRef", STT_FUNC, &symbol))
        return 0x030a0000;
    return !query_symbol(queries, module, "PyModule_AddType", STT_FUNC, &symbol) ? 0x03090000 : 0;
}

static bool learn_layout(struct python *python, pid_t tid, const struct stack_areas *areas)
{
    const struct python_layout *known = python_layout_of(python->version);
    unsigned char offsets[PYTHON_OFFSETS_BYTES];
    if (known)
        python->layout = *known;
    if (known || python->version < HAS_OFFSETS)
        return known;
    size_t bytes = memory_read(tid, areas, python->runtime, offsets, sizeof offsets);
    python->is_free_threaded = python_layout_is_free_threaded(offsets, bytes);
    return python_layout_read(offsets, bytes, &python->layout) == 0;
}

uint64_t python_find_gil(const struct python *python, pid_t tid, const struct stack_areas *areas)
{
    const struct python_layout *layout = &python->layout;
    uint64_t interpreter, gil;
    if (layout->runtime_gil != PYTHON_NOWHERE)
        return python->runtime + layout->runtime_gil;
    uint64_t main_at = python->runtime + layout->runtime_interpreters + sizeof interpreter;
    bool was_read = memory_read_word(tid, areas, main_at, &interpreter) &&
                    memory_read_word(tid, areas, interpreter + layout->interpreter_gil, &gil);
    return was_read ? gil : 0;
}

/* Returns 0; -ENOENT if the module is no interpreter; -EAGAIN or -ENOMEM. */
static int look_into(struct queries *queries, const struct mapping *mapping, pid_t tid,
                     const struct stack_areas *areas, struct python *python)
{
    struct module *module = mapping->module;
    struct module_part runtime, type;
    int err = query_symbol(queries, module, "_PyRuntime", STT_OBJECT, &runtime);
    if (!err)
        err = query_symbol(queries, module, "_PyEval_EvalFrameDefault", STT_FUNC,
                           &python->evaluation);
    if (err)
        return err;
    python->module = module;
    python->bias = mapping->bias;
    python->runtime = runtime.address + mapping->bias;
    python->version = version_of(queries, module);
    if (!query_symbol(queries, module, "PyCode_Type", STT_OBJECT, &type))
        python->code_type = type.address + mapping->bias;
    python->is_known = learn_layout(python, tid, areas);
    if (python->is_known)
        python->gil = python_find_gil(python, tid, areas);
    return 0;
}

enum standing { NO_PYTHON, NOT_KNOWN, NOT_BEGUN, RUNS };

static enum standing standing_of(const struct python *python, pid_t tid,
                                 const struct stack_areas *areas)
{
    uint64_t newest;
    if (!python->module || !python->is_known)
        return python->module ? NOT_KNOWN : NO_PYTHON;
    bool has_interpreter =
        memory_read_word(tid, areas, python->runtime + python->layout.runtime_interpreters,
                         &newest) &&
        newest;
    return has_interpreter ? RUNS : NOT_BEGUN;
}

int python_find(struct queries *queries, struct space *space, pid_t tid,
                const struct stack_areas *areas, struct python *ret_python)
{
    struct module_walk walk = {0};
    const struct mapping *mapping;
    struct python best = {0}, other = {0};
    while ((mapping = space_next_module(space, &walk))) {
        struct python found = {0};
        int err = look_into(queries, mapping, tid, areas, &found);
        if (err == -ENOENT)
            continue;
        if (err)
            return err;
        bool is_better = standing_of(&found, tid, areas) > standing_of(&best, tid, areas);
        const struct python worse = is_better ? best : found;
        enum standing standing = standing_of(&worse, tid, areas);
        /* A library that is not used is no loss. */
        if (standing == NOT_KNOWN || standing == RUNS)
            other = worse;
        if (is_better)
            best = found;
    }
    best.has_other = other.module != NULL;
    best.other_version = other.version;
    *ret_python = best;
    return 0;
}

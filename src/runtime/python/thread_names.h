/* The names that the module threading gives its threads. From 3.14 on it also sets them in the
 * kernel. */
#ifndef FGPROF_RUNTIME_PYTHON_THREAD_NAMES_H
#define FGPROF_RUNTIME_PYTHON_THREAD_NAMES_H

#include "runtime/python/objects.h"
#include "runtime/python/threads.h"

#define PYTHON_THREAD_NAME_BYTES 64u /* longer names are cut */

struct python_thread_name {
    uint32_t native_id; /* in the PID namespace of the process */
    char text[PYTHON_THREAD_NAME_BYTES];
};

/* Zeroed at first. */
struct python_thread_names {
    struct python_thread_name *items; /* by native_id, ascending */
    size_t count, capacity;
};

/* Whether names can be read in this version (PY_VERSION_HEX), and are needed. */
bool python_thread_names_are_read(uint32_t version);

/* Lists them again, while the process runs: a name that changes meanwhile may be missing, and so
 * are those that memory->until_ns leaves no time for. `runtime` is the address of _PyRuntime.
 * Returns 0 or -ENOMEM. */
int python_thread_names_read(struct python_thread_names *names, uint64_t runtime,
                             const struct python_memory *memory);

/* NULL: the thread has none. */
const char *python_thread_names_find(const struct python_thread_names *names, pid_t native_id);

/* Removes the number from a name that threading made, such as "Thread-12 (work)": short-lived
 * threads share a name without it. */
void python_thread_name_join(const char *name, char ret_name[PYTHON_THREAD_NAME_BYTES]);

void python_thread_names_free(struct python_thread_names *names);

#endif

/* The threads that an interpreter knows. */
#ifndef FGPROF_RUNTIME_PYTHON_THREADS_H
#define FGPROF_RUNTIME_PYTHON_THREADS_H

#include "runtime/python/objects.h"

/* Longer lists are taken for circles. */
#define PYTHON_INTERPRETERS_MAX 256
#define PYTHON_STATES_MAX 65536

/* Where a program's interpreter is. */
struct python_place {
    uint64_t runtime; /* the address of _PyRuntime; 0: there is none */
    struct python_layout layout;
};

struct python_thread_state {
    uint32_t native_id; /* in the PID namespace of the process */
    uint64_t state;     /* the address of its PyThreadState; 0: it has none */
    uint64_t id;        /* what its thread_native_id is */
};

/* Zeroed at first. */
struct python_threads {
    struct python_thread_state *items; /* by native_id, ascending */
    size_t count, capacity;
};

/* Lists the threads of all interpreters of the runtime, while the process runs: one that starts or
 * exits meanwhile may be missing. `runtime` is the address of _PyRuntime, and `most` how many
 * thread states are read. Returns 0 or -ENOMEM. */
int python_threads_read(struct python_threads *threads, uint64_t runtime,
                        const struct python_memory *memory, size_t most);

struct python_thread_state python_threads_find(const struct python_threads *threads,
                                               pid_t native_id);

/* The thread of a PyThreadState whose thread_native_id is `id`, in the PID namespace of the
 * process; 0: not known. */
pid_t python_thread_native_id(const struct python_layout *layout, uint64_t id, pid_t tid,
                              const struct stack_areas *areas);

void python_threads_free(struct python_threads *threads);

#endif

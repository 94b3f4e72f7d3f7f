/* The tasks of asyncio, and the coroutines in which each is suspended.
 *
 * From 3.14 on each thread of the interpreter has a list of its tasks, and the module _asyncio
 * publishes the layout of tasks in a section of its own (Modules/_asynciomodule.c, AsyncioDebug).
 * Before that, asyncio.tasks has a set of weak references, which is found by its name, and the
 * table in tasks.c has the layout. */
#ifndef FGPROF_RUNTIME_PYTHON_TASKS_H
#define FGPROF_RUNTIME_PYTHON_TASKS_H

#include "runtime/python/code.h"
#include "runtime/python/find.h"
#include "runtime/python/frames.h"

#define PYTHON_TASKS_MAX 100000u
#define PYTHON_COROUTINES_MAX 256u    /* of a task */
#define PYTHON_AWAITED_BY_BYTES 1024u /* of names; more are left out */

/* Which of an interpreter's types an object may be of; 0: not known. */
struct python_task_types {
    uint64_t
        generators[3];    /* coroutines, generators and asynchronous ones: all are laid out alike */
    uint64_t wrappers[3]; /* their first field is what they run */
    uint64_t integer, set;
};

struct python_version_of_tasks; /* what of the layout differs by version only: see tasks.c */

struct python_tasks_place {
    const struct python_version_of_tasks *version; /* NULL: tasks are not read */
    uint64_t runtime;                              /* the address of _PyRuntime */
    struct python_layout layout;
    struct python_task_types types;
    struct python_modules modules; /* before 3.14 */
    /* From 3.14 on as _asyncio publishes them, in bytes; before, as in the table: */
    uint64_t task_coroutine, task_name, task_waiter;
    /* From 3.14 on: */
    uint64_t task_awaited_by, task_is_task, task_awaited_by_is_set, task_node;
    uint64_t interpreter_tasks, thread_tasks;
};

/* Returns 0; -ENOENT if the program's mappings do not show that it has loaded asyncio; or -ENOTSUP
 * if its tasks can't be read in this version or build. `python` is known. */
int python_tasks_find(struct queries *queries, struct space *space, const struct python *python,
                      pid_t tid, const struct stack_areas *areas,
                      struct python_tasks_place *ret_place);

/* What _asyncio publishes: `offsets` are the words of its section. Returns false if they make no
 * sense. */
#define PYTHON_ASYNCIO_WORDS 13
bool python_tasks_take_offsets(struct python_tasks_place *place,
                               const uint64_t offsets[PYTHON_ASYNCIO_WORDS]);

/* For PY_VERSION_HEX; sets place->version, and more before 3.14. */
void python_tasks_take_version(struct python_tasks_place *place, uint32_t version);

struct python_task {
    uint64_t address;
    uint64_t coroutine, name, waiter, awaited_by; /* the addresses of these objects */
    bool is_task; /* else it is a future, which is only read if it awaits something */
    bool awaited_by_is_set;
};

/* Zeroed at first. */
struct python_tasks {
    struct python_task *items;
    size_t count, capacity;
    bool is_cut;  /* there are more than PYTHON_TASKS_MAX, the list ends in the middle, or there was
                     no time for all */
    uint64_t set; /* before 3.14: the address of the set of references, once it was found */
};

/* Lists the tasks, while the process runs. `memory` has place->layout. Returns 0 or -ENOMEM. */
int python_tasks_read(struct python_tasks *tasks, const struct python_tasks_place *place,
                      const struct python_memory *memory);
void python_tasks_free(struct python_tasks *tasks);

enum python_task_state {
    PYTHON_TASK_GONE,    /* it has ended, or could not be read, or not in time */
    PYTHON_TASK_MOVED,   /* it went on while it was read: what was read is no use */
    PYTHON_TASK_NEW,     /* it has not begun yet */
    PYTHON_TASK_WAITING, /* it is suspended until what it awaits is done */
    PYTHON_TASK_READY,   /* it is suspended, and the event loop will run it */
    PYTHON_TASK_RUNNING, /* on a thread */
};

/* Reads the task again, and the coroutines in which it is suspended, leaf first. `memory` has
 * place->layout. */
enum python_task_state python_task_read(const struct python_tasks_place *place,
                                        const struct python_memory *memory,
                                        struct python_task *task, struct python_frames *ret_frames);

/* The name of a task; "" if it can't be read. *ret_is_made_up: asyncio made it, such as Task-12. */
void python_task_name(const struct python_tasks_place *place, const struct python_memory *memory,
                      const struct python_task *task, char ret_name[PYTHON_TEXT_BYTES],
                      bool *ret_is_made_up);

/* The names of the tasks that await this one, directly or through a future such as that of
 * asyncio.gather(): "a", "b". "": none does, or the version does not record it. */
void python_task_awaited_by(const struct python_tasks_place *place,
                            const struct python_memory *memory, const struct python_task *task,
                            char ret_names[PYTHON_AWAITED_BY_BYTES]);

#endif

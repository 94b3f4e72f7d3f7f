/* Whether a process runs Python, and where its interpreter's data is. */
#ifndef FGPROF_RUNTIME_PYTHON_FIND_H
#define FGPROF_RUNTIME_PYTHON_FIND_H

#include "elf/query.h"
#include "mapping/space.h"
#include "proc/stack_areas.h"
#include "runtime/python/layout.h"

struct python {
    struct module *module; /* the interpreter's file: the program or libpython; NULL: none */
    uint32_t version; /* PY_VERSION_HEX; 0: older than 3.9; for 3.10 and 3.9 only major and minor
                         are known */
    bool is_free_threaded; /* it is built without a GIL, and not read */
    bool is_known;         /* its layout is: */
    struct python_layout layout;
    bool has_other; /* another one runs in the process, or may; its version: */
    uint32_t other_version;
    uint64_t bias;                 /* what is added to the module's own addresses */
    uint64_t runtime;              /* the address of _PyRuntime */
    uint64_t gil;                  /* of the main interpreter's lock; 0: not known yet */
    uint64_t code_type;            /* of PyCode_Type; 0: not known */
    struct module_part evaluation; /* the module's own _PyEval_EvalFrameDefault */
};

/* Searches the modules of the space. `tid` is a live thread of the process. A process may have
 * several interpreters: takes the first one that runs, and prefers a known version. Returns 0, even
 * if it finds none; -EAGAIN if its files can't be read at present; or -ENOMEM. */
int python_find(struct queries *queries, struct space *space, pid_t tid,
                const struct stack_areas *areas, struct python *ret_python);

/* The lock of the main interpreter, which from 3.12 on is made with it; 0: it has none yet. */
uint64_t python_find_gil(const struct python *python, pid_t tid, const struct stack_areas *areas);

#endif

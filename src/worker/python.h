/* The Python frames of a program's threads: finds the interpreter, names what was read, and puts it
 * into the native stacks. */
#ifndef FGPROF_WORKER_PYTHON_H
#define FGPROF_WORKER_PYTHON_H

#include "base/throttle.h"
#include "runtime/python/code.h"
#include "runtime/python/find.h"
#include "runtime/python/thread_names.h"
#include "sampler/channel.h"
#include "unwind/unwind.h"
#include "worker/means.h"
#include "worker/program_maps.h"

/* A code object that was seen. */
struct known_code {
    uint64_t address;
    struct python_code_head head;
    uint32_t name, file; /* in results->runtime_frames */
    bool is_shim;        /* no traceback shows it */
    unsigned char *lines;
    size_t line_bytes;
};

/* Zeroed at first. */
struct program_python {
    struct python python;
    size_t mapping_count; /* of the space when it was last searched for an interpreter */
    bool is_told;         /* it was reported to the sampling thread */
    bool has_looked_for_part;
    uint64_t moved_part; /* of the evaluation loop: see unwind/moved_part.h; 0: none */
    struct known_code *codes;
    size_t code_count, code_capacity;
    size_t line_bytes; /* of all their tables of lines */
    struct index code_index;
    struct python_thread_names names;
    struct throttle naming; /* when these were read */
};

/* Searches for an interpreter if something new is mapped, and tells the sampling thread about it;
 * then for its lock until that is found. Returns 0 or -ENOMEM. */
int program_python_update(struct program_python *python, const struct means *means,
                          struct program_maps *maps, const struct observation *observation);

/* Whether the observation was made before the sampling thread knew about the interpreter, and so
 * has no Python frames: the thread must be observed again. Losing the kernel's samples is
 * acceptable, except in a dump, which has one of each thread. */
bool program_python_came_later(const struct program_python *python,
                               const struct observation *observation, bool is_dump);

/* Sets *name to Python's name for the thread, if it has one; the main thread has its program's
 * name. Returns 0 or -ENOMEM. */
int program_python_name_thread(struct program_python *python, const struct means *means,
                               const struct program_maps *maps,
                               const struct observation *observation, uint32_t *name);

/* Puts the Python frames of the observation, if it has any, into its stack. Returns 0 or -ENOMEM.
 */
int program_python_take(struct program_python *python, const struct means *means,
                        const struct program_maps *maps, const struct observation *observation,
                        struct stack *stack);

/* Finds the address that stands for the frame in stacks. Returns 0; -ENOENT if it is no frame,
 * because it has no code; -ENODATA if it is one that no traceback shows; or -ENOMEM. */
int program_python_name(struct program_python *python, const struct python_memory *memory,
                        struct results *results, const struct python_frame *frame,
                        uint64_t *ret_address);

/* Forgets the code objects, so that they are read again: their texts in results->runtime_frames
 * have new numbers. */
void program_python_forget_codes(struct program_python *python);

void program_python_free(struct program_python *python);

#endif

/* Sends the worker what the collector's ways learn, with the program that it belongs to. */
#ifndef FGPROF_OBJECTS_TELL_H
#define FGPROF_OBJECTS_TELL_H

#include "objects/state.h"

/* The process that is there now with this id; NULL: it is not followed. */
struct object_process *collector_process(const struct collector *collector, pid_t pid);

/* The program whose objects are reported; NULL: unknown. */
static inline struct program *object_program(const struct object_process *process)
{
    return process->program_count ? process->programs[0].program : NULL;
}

/* When that program was found to be over; 0: it still runs. */
static inline uint64_t object_program_over_ns(const struct object_process *process)
{
    return process->program_count ? process->programs[0].over_ns : 0;
}

/* Whether what is not sent now never will be, or too late. */
static inline bool is_urgent(const struct collector *collector,
                             const struct object_process *process)
{
    return collector->is_copying || collector->is_ending || object_program_over_ns(process);
}

/* Where a stack of `at_ns` belongs; see place_in_span. */
enum place object_place(struct object_process *process, uint64_t exec_ns, uint64_t at_ns);

/* The mapping that holds the address; NULL: none that is known. */
const struct stack_area *object_area(struct object_process *process, uint64_t address);

/* Called at the beginning of a step: shares the queue among the processes that have something in
 * it, or found no room in the last step. */
void collector_share_out(struct collector *collector);

/* Whether there is room for a message about the process, and a snapshot with so much stack. If
 * there is not, the collector is soon asked to try again. */
bool collector_has_room(struct collector *collector, struct object_process *process,
                        size_t stack_bytes);
struct snapshot *collector_take_snapshot(struct collector *collector,
                                         struct object_process *process, size_t stack_bytes);
void collector_give_snapshot(struct collector *collector, struct snapshot *snapshot);

/* Sends a message about an object of the process, and takes over its name, its snapshot and its
 * reference to a program. Returns 0 or -ENOMEM. */
int collector_tell(struct collector *collector, struct object_process *process,
                   struct object_news *news);

/* The same for all kinds that are wanted: what was made is gone, or is left. Threads are left out
 * where a program is executed: the end of each is reported, and one lives on. */
int collector_tell_of_all(struct collector *collector, struct object_process *process,
                          enum object_change change, bool with_threads);

/* Reads the mappings of the process's program. */
void object_read_areas(struct object_process *process, int maps_fd);

#endif

/* Reads the reports of the agent in a program about its objects (agent/format.h). The memory is
 * shared with the program: nothing in it is trusted. */
#ifndef FGPROF_OBJECTS_AGENT_H
#define FGPROF_OBJECTS_AGENT_H

#include "objects/source.h"

/* Finds the agent's memory, and turns the agent on. The program must outlive the source. See
 * object_open_fn. Errors:
 *   -ENOENT           there is no agent, or not yet
 *   -ENOEXEC          the same, and the program is linked statically: none can be loaded before it
 *   -EPERM            the same, and the program has more rights than its user: the loader then
 *                     ignores LD_PRELOAD (ld.so(8))
 *   -EBUSY            another profiler reads it
 *   -EPROTONOSUPPORT  it has another version
 *   -EBADMSG          its memory is invalid
 *   -EBADF            the program has closed its descriptor, and we lack CAP_CHECKPOINT_RESTORE
 *   -EACCES           we may not open its memory
 *   -ENOMEM, and errors of openat(2) and mmap(2) */
int agent_source_new(const struct program *program, const struct object_options *options,
                     struct object_source **ret_source);

/* Whether it reports objects of this kind. */
bool agent_tells(enum object_kind kind);

/* What it should report: `wanted` of struct agent_header. */
uint32_t agent_wants(const struct object_options *options);

#endif

/* Reads a program's custom profiles (agent/values_format.h): their names and counts, and, as a
 * source of objects, their values. The program's memory is copied, and nothing in it is trusted.
 *
 * The source reports only on request, by `refresh`: values that were added since its last report,
 * and those that are gone. An object's key is the location of its value in that memory. */
#ifndef FGPROF_OBJECTS_VALUES_H
#define FGPROF_OBJECTS_VALUES_H

#include "agent/values_format.h"
#include "objects/source.h"

/* Where the profiles are. `fd` reads the program's memory by address, like /proc/PID/mem. */
struct values_memory {
    int fd;
    uint64_t address;
};

struct values_listed {
    char name[VALUES_NAME_BYTES];
    uint64_t count;
};

/* Finds the profiles in the maps. Returns 0, -ENOENT if there are none, or another negative
 * errno. */
int values_find(int maps_fd, int mem_fd, struct values_memory *ret_memory);

/* Lists the profiles, in the order in which they were created. The caller frees *ret_profiles.
 * Returns 0, -ENOENT if they are still being created, -EPROTONOSUPPORT if they have another
 * version, -EBADMSG if the memory is damaged, -ESRCH if it can't be read, or -ENOMEM. */
int values_list(const struct values_memory *memory, struct values_listed **ret_profiles,
                size_t *ret_count);

/* Opens a source of the values in that memory; the caller keeps its descriptor. Errors: those of
 * values_list. */
int values_source_at(const struct values_memory *memory, struct object_source **ret_source);

/* The same for a program. See object_open_fn. */
int values_source_new(const struct program *program, const struct object_options *options,
                      struct object_source **ret_source);

#endif

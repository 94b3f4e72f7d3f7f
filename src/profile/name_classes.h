/* Names of C++ classes, each looked for once: that reads all symbols of a file. */
#ifndef FGPROF_PROFILE_NAME_CLASSES_H
#define FGPROF_PROFILE_NAME_CLASSES_H

#include "base/index.h"
#include "mapping/space.h"

struct class_name;

/* Starts zeroed. */
struct class_names {
    struct class_name *items;
    size_t count, capacity;
    struct index index;
};

/* The class whose vtable that address of the process is, as its objects point to it: owned by
 * `names`, or NULL if no symbol says so. Returns 0 or -ENOMEM. */
int class_names_get(struct class_names *names, const struct space *space, uint64_t vtable,
                    const char **ret_name);

void class_names_free(struct class_names *names);

#endif

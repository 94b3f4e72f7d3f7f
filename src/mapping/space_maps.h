/* Takes what a process's maps show into a space. */
#ifndef FGPROF_MAPPING_SPACE_MAPS_H
#define FGPROF_MAPPING_SPACE_MAPS_H

#include "mapping/space.h"

struct maps_reading {
    struct space *space;
    struct modules *modules;
    int proc_fd;         /* the process's directory in /proc */
    pid_t tid;           /* a thread of it */
    const char *program; /* the path of its executable, while maps is read */
    size_t lines;        /* how many were read */
    bool changed;        /* the space has changed */
};

/* Adds the new mappings with code. Returns 0 or a negative errno: -ESTALE at the first mapping that
 * contradicts a known one. */
int space_read_maps(struct maps_reading *reading, int maps_fd);

#endif

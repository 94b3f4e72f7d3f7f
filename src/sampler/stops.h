/* The stops of one process that are under way: asked for together, collected as they come.
 *
 * A row is a capture with a snapshot of its own, so that a thread that has stopped can be copied
 * and let go at once, whatever the others do. */
#ifndef FGPROF_SAMPLER_STOPS_H
#define FGPROF_SAMPLER_STOPS_H

#include "observe/capture.h"
#include "observe/reaper.h"

#define STOPS_MAX                                                                                  \
    64 /* at a time: a thread that has stopped waits for those before it to be copied */

struct pending_stop {
    struct capture capture;
    struct snapshot snapshot;
    enum capture_result result; /* CAPTURE_PENDING until it is collected */
    bool is_interrupted;
};

struct stops {
    struct pending_stop *items;
    size_t count, capacity;
    size_t made;           /* items that were used before: they have room for a stack */
    bool has_dying_leader; /* the process's first thread was killed while it was stopped: */
    struct stop dying_leader;
};

/* Attaches to the thread, which runs on. Returns CAPTURE_PENDING, or why not. */
enum capture_result stops_add(struct stops *stops, struct reaper *reaper,
                              const struct capture_request *request, const struct capture *look);

/* Asks those to stop that were added since. */
void stops_interrupt(struct stops *stops);

/* Copies and lets go those that have stopped; not before `heard_ns`, as far as is known. Returns
 * how many of all are collected now. */
size_t stops_collect(struct stops *stops, struct reaper *reaper, uint64_t heard_ns);

/* The process's first thread may end while it is asked to stop, and others go on: it is a zombie
 * then that never stops. Takes it for gone. */
void stops_drop_dead_leader(struct stops *stops, struct reaper *reaper, int proc_fd);

/* Forgets a collected one; the last takes its place. */
void stops_remove(struct stops *stops, size_t number);

void stops_free(struct stops *stops);

#endif

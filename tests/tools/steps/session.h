/* Stepping through a program, with its true call stack beside the unwinder's results. */
#ifndef FGPROF_STEPS_SESSION_H
#define FGPROF_STEPS_SESSION_H

#include "judge.h"
#include "shadow.h"
#include "tally.h"
#include "tracee.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"
#include "proc/process.h"
#include "unwind/unwind.h"

struct options {
    bool from_entry;
    unsigned after_ms;
    uint64_t windows, skip, steps, every, seconds, show;
};

struct session {
    struct options options;
    struct tracee tracee;
    struct process process;
    int maps_fd;
    struct modules modules;
    struct spaces spaces;
    struct space *space;
    struct stack_areas areas;
    bool maps_are_old;
    struct instructions instructions;
    struct shadow shadow;
    struct snapshot snapshot;
    struct stack stack;
    struct rule_tables rules;
    struct tally tally;
    uint64_t stepped, compared, frames;
    uint64_t deadline_ns;
};

/* Starts the program; session->options are set, the rest is zeroed. Returns 0 or a negative errno;
 * call session_end in either case. */
int session_begin(struct session *session, char **command);

/* Steps through all windows. Returns 0 or a negative errno. */
int session_run(struct session *session);

void session_end(struct session *session);

#endif

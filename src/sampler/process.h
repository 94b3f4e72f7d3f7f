/* A sampled process, as the sampling thread knows it. */
#ifndef FGPROF_SAMPLER_PROCESS_H
#define FGPROF_SAMPLER_PROCESS_H

#include "base/throttle.h"
#include "proc/process.h"
#include "proc/program.h"
#include "proc/stack_areas.h"
#include "sampler/threads.h"

/* listing.c: when its threads were listed. */
struct listing {
    struct thread_list list;
    uint64_t began_ns;      /* when the listing under way began, or the last */
    struct throttle listed; /* when the last whole one began, and what it cost on the CPU */
    uint64_t changed_ns;    /* when the last listing began that found a change */
    bool is_wanted;         /* a thread has gone since the listing */
};

/* rounds.c: where looks and stops continue, as there may be more than one round has time for. */
struct turns {
    uint64_t round_ns, last_round_ns; /* when this round began, and the one before it */
    pid_t next_look_tid, next_stop_tid;
    size_t stops_left; /* threads with wants.stop */
};

struct sampled_process {
    struct process process;
    uint32_t number;  /* in the recording, from 0 */
    bool is_followed; /* a descendant of another one, not asked for by its id */
    bool has_exited;
    struct program *program;  /* what it runs; NULL: it can't be looked at now */
    struct stack_areas areas; /* of that program */
    struct threads threads;
    struct listing listing;
    struct turns turns;
};

#endif

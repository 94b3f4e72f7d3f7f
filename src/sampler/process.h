/* A sampled process, as the sampling thread knows it. */
#ifndef FGPROF_SAMPLER_PROCESS_H
#define FGPROF_SAMPLER_PROCESS_H

#include "base/throttle.h"
#include "objects/source.h"
#include "proc/pages.h"
#include "proc/process.h"
#include "proc/program.h"
#include "proc/stack_areas.h"
#include "proc/thread_start.h"
#include "sampler/channel.h"
#include "sampler/threads.h"

#define OBJECT_SOURCE_COUNT 2 /* see objects.c */

/* listing.c: when its threads were listed. */
struct listing {
    struct thread_list list;
    uint64_t began_ns;      /* when the listing under way began, or the last */
    struct throttle listed; /* when the last whole one began, and what it cost on the CPU */
    uint64_t changed_ns;    /* when the last listing began that found a change */
    bool is_wanted;         /* a thread has gone since the listing */
    bool lacks_begins;      /* threads lack their begin: */
    pid_t next_begin_tid;   /* the first of them */
};

/* stir.c: whether its threads have run unseen. */
struct stir {
    struct throttle reading; /* of the process's CPU time */
    bool is_read;            /* in this round: */
    uint64_t cpu_ns;         /* what that was; UINT64_MAX: it can't be read */
    uint64_t settled_tick;   /* all CPU time was accounted for then */
    uint64_t seen_ns;        /* how much is accounted for, then and by looks since */
    bool has_stirred;        /* it was more */
    struct moment rest;      /* when it last was not */
    bool is_sweeping;        /* a sweep is under way: */
    uint64_t began_tick;     /* it, or the last, began */
    uint64_t sweep_tick;     /* all threads that were looked at before this tick are due */
    uint64_t sweep_began_ns; /* when that sweep, or the last, began */
};

/* rounds.c: where looks and stops continue, as there may be more than one round has time for. */
struct turns {
    uint64_t round_ns, last_round_ns; /* when this round began, and the one before it */
    pid_t next_look_tid, next_stop_tid;
    bool has_looks_left; /* this round did not come to all threads that were due */
    size_t stops_left;   /* threads with wants.stop */
};

/* awake.c: which threads the tick at hand found awake. */
struct awake {
    struct awake_thread *items;
    size_t count, capacity;
    uint64_t tick;       /* the last one; 0: none */
    uint64_t idle_ticks; /* that found none, and are not told yet */
};

/* objects.c: where the objects of its program are told. */
struct object_sources {
    struct object_source *items[OBJECT_SOURCE_COUNT]; /* NULL: not open */
    bool is_refused[OBJECT_SOURCE_COUNT];             /* it will not be there later either */
    bool tell_threads;                                /* one that is open tells who makes threads */
    struct throttle opening;                          /* the last time that they were looked for */
    unsigned hurried; /* so many stacks of its program's objects the worker was to take at once */
};

/* makers.c: where its program has code. */
struct process_makers {
    struct code_ranges code;
    uint32_t code_program_plus_1; /* the number of the program that they were read of */
    struct throttle code_reading;
};

/* page_faults.c: its memory. */
struct process_pages {
    bool is_followed;
    struct pages pages;
    uint32_t program_plus_1;  /* the number of the program whose pages these are */
    struct stack_areas areas; /* read again when something new is mapped */
    struct throttle areas_reading;
    uint64_t checked_ns; /* when its pages were last checked */
    bool has_resident;   /* in bytes: when it was first looked at, last, and the most ever */
    uint64_t resident_before, resident, resident_most;
};

struct sampled_process {
    struct process process;
    uint32_t number;    /* in the recording, from 0 */
    bool has_inner_ids; /* it is in a PID namespace of its own */
    bool is_followed;   /* a descendant of another one, not asked for by its id */
    bool has_exited;
    struct program *program; /* what it runs; NULL: it can't be looked at now */
    uint64_t program_opened_ns;
    /* It still ran after that: an execve(2) that was told before was its own, though it may have
     * been told after the program was opened. */
    uint64_t program_current_ns;
    uint64_t program_checked_ns;  /* 0: to be checked in the next round */
    bool programs_before;         /* it ran another one before, while it was sampled */
    struct stack_areas areas;     /* of that program */
    struct context_place context; /* of the program's threads */
    bool leaves_stack;            /* the program's threads go from one stack to another */
    bool is_in_a_hurry;           /* tell.c: all copies of its threads are */
    struct threads threads;
    struct listing listing;
    struct stir stir;
    struct turns turns;
    struct awake awake;
    struct object_sources objects;
    struct process_makers makers;
    struct process_pages pages;
};

#endif

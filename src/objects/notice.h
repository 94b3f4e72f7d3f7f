/* Messages from the sampling thread to the collector (objects/collector.h). */
#ifndef FGPROF_OBJECTS_NOTICE_H
#define FGPROF_OBJECTS_NOTICE_H

#include "objects/source.h"

struct collector_options {
    struct object_options objects;
    uint64_t seed;     /* of the choice of pages */
    bool has_children; /* children of followed processes are also followed */
    bool is_dump;      /* only threads that exist now are reported */
    bool is_endless;   /* objects that exited processes never freed are not shown */
};

/* A process, as the collector knows it. It is freed some time after NOTICE_GONE. */
struct object_process;

enum notice_kind {
    NOTICE_PROCESS,      /* it is followed from now on */
    NOTICE_GONE,         /* it has exited, after NOTICE_PROGRAM_OVER */
    NOTICE_PROGRAM,      /* it runs this program */
    NOTICE_PROGRAM_OVER, /* the program is over: another one is executed, or the process or the
                            recording ends */
    NOTICE_THREAD,       /* it has this thread */
    NOTICE_THREAD_GONE,
    NOTICE_COPY,        /* a copy was requested: see collector_has_told */
    NOTICE_FEWER_PAGES, /* choose fewer pages from now on: too many are counted */
    NOTICE_END,         /* sampling has ended */
};

struct notice {
    enum notice_kind kind;
    struct object_process *process;
    struct program *program; /* a reference that the collector takes over, even on error */
    pid_t tid;
    bool is_old;    /* NOTICE_THREAD: it existed when the recording began */
    uint64_t at_ns; /* collector_note sets it */
    uint64_t after; /* how many of the sampling thread's messages to the worker come before it */
};

#endif

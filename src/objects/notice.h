/* What the sampling thread says to the collector (objects/collector.h). */
#ifndef FGPROF_OBJECTS_NOTICE_H
#define FGPROF_OBJECTS_NOTICE_H

#include "objects/source.h"

struct collector_options {
    struct object_options objects;
    uint64_t seed;     /* of the choice of pages */
    bool has_children; /* of processes that are followed are followed, too */
    bool is_dump;      /* only threads that exist now are reported */
    bool is_endless;   /* what ended processes never freed is not shown */
};

/* A process, as the collector knows it. It is freed some time after NOTICE_GONE. */
struct object_process;

enum notice_kind {
    NOTICE_PROCESS,      /* it is followed from now on */
    NOTICE_GONE,         /* it has ended, and before that its program */
    NOTICE_PROGRAM,      /* it runs this program */
    NOTICE_PROGRAM_OVER, /* the program is over: another one is executed, or the process or the
                            recording ends */
    NOTICE_THREAD,       /* it has this thread */
    NOTICE_THREAD_GONE,
    NOTICE_COPY,        /* a copy is to be made: see collector_has_told */
    NOTICE_FEWER_PAGES, /* choose fewer pages from now on: too many are counted */
    NOTICE_END,         /* sampling has ended */
};

struct notice {
    enum notice_kind kind;
    struct object_process *process;
    struct program *program; /* a reference, the collector's from now on, also on error */
    pid_t tid;
    bool is_old;    /* NOTICE_THREAD: it was there when the recording began */
    uint64_t at_ns; /* collector_note sets it */
    uint64_t
        after; /* the number of the sampling thread's messages to the worker that come before it */
};

#endif

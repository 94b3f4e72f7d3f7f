/* The collector's state, and functions that its parts share. */
#ifndef FGPROF_OBJECTS_STATE_H
#define FGPROF_OBJECTS_STATE_H

#include "base/throttle.h"
#include "objects/births.h"
#include "objects/faults.h"
#include "objects/news_queue.h"
#include "objects/notice.h"
#include "observe/subject.h"
#include "observe/watch.h"
#include "proc/pages.h"
#include "proc/stack_areas.h"
#include "proc/thread_start.h"

#define PROGRAM_SOURCES 2 /* see in_program.c */

/* in_program.c: the sources of a program's objects. */
struct program_sources {
    struct object_source *items[PROGRAM_SOURCES]; /* NULL: not open */
    bool is_refused[PROGRAM_SOURCES];             /* it will not exist later either */
    bool tell_threads;                            /* an open one reports which thread made which */
    struct throttle opening;                      /* when they were last searched for */
    uint64_t told_ns;                             /* everything before this time was sent */
};

/* makers.c: a thread that was listed or born. */
struct made_thread {
    uint32_t tid;
    bool is_told;
    bool is_old;        /* it existed when the recording began */
    uint64_t listed_ns; /* when it was first listed */
    char name[16];      /* as last reported */
};

struct process_makers {
    struct made_thread *threads; /* by tid, ascending */
    size_t count, capacity;
    size_t untold; /* how many threads are not is_told */
    bool is_short; /* some had to wait for room */
};

/* page_faults.c: its memory. */
struct process_pages {
    bool is_followed;
    bool is_open; /* its program's pages are: */
    struct pages pages;
    uint64_t checked_ns; /* when its pages were last checked */
    bool has_resident;   /* in bytes: when first observed, when last observed, and the most ever */
    uint64_t resident_before, resident, resident_most;
};

struct watched_program {
    struct program *program; /* a reference */
    uint64_t opened_ns;
    uint64_t over_ns; /* when its end was noticed; 0: it still runs */
};

struct object_process {
    pid_t pid;
    int proc_fd; /* /proc/PID, its own descriptor */
    uint32_t number;
    bool is_gone; /* no more notices about it will come */
    struct object_process *next_left;
    atomic_size_t queued; /* bytes in use of its share of the queue */
    bool was_short;       /* in the last step it found no room, or no snapshot */
    /* Objects of the first program are sent; the other programs wait until they are complete. */
    struct watched_program *programs;
    size_t program_count, program_capacity;
    /* Of the first program: */
    struct program_span span;
    struct stack_areas areas;
    struct throttle areas_reading;
    unsigned hurried; /* how many stacks were reported to the worker urgently */
    struct program_sources sources;
    struct process_makers makers;
    struct process_pages pages;
};

struct collected_process {
    uint32_t pid;
    struct object_process *process;
};

struct collector {
    struct collector_options options;
    struct news_queue *queue;
    struct queue *notices;
    struct bell bell; /* rung for notices */
    bool is_running, has_command;
    struct collected_process *processes; /* by pid, ascending */
    size_t process_count, process_capacity;
    struct object_process *left; /* a list of processes that are no longer followed */
    uint64_t now_ns;             /* when this step began */
    uint64_t after;              /* as in the last notice */
    size_t shares;               /* how many processes share the queue */
    bool is_short;               /* something had to wait for room or a snapshot */
    bool is_fast;                /* some source must be polled soon */
    bool wants_fewer_pages;
    bool is_copying;   /* sending for a copy, which was requested at copy_ns */
    uint64_t copy_ns;  /* also of the last copy */
    struct notice end; /* valid once has_end is set */
    atomic_bool has_end;
    bool is_ending, has_ended;
    int error; /* the first error; nothing is sent after it */
    /* Read by other threads: how many messages had been sent when everything for the last copy had
     * been; UINT64_MAX: not yet. */
    _Atomic uint64_t told;
    /* in_program.c: counts of programs that have ended, and why there are no sources */
    struct object_counts ended[OBJECT_KIND_COUNT];
    int refusals[OBJECT_KIND_COUNT];
    /* makers.c */
    struct births *births; /* NULL: the kernel does not report them */
    bool births_begun;     /* they were opened, or refused */
    bool has_stacks;       /* births have the stacks of makers */
    int births_refusal;    /* why births, or their stacks, are not seen (an errno); 0: they are */
    uint64_t births_lost; /* births of processes that were gone too soon, and births for which there
                             was no room */
    struct watches watches; /* to observe threads */
    /* page_faults.c */
    struct faults *faults;              /* NULL: they are not seen */
    int faults_refusal;                 /* why not (an errno); 0: they are seen, or not wanted */
    int follow_refusal;                 /* the same for a process that can't be followed */
    size_t followed;                    /* how many processes are followed */
    uint64_t faults_lost;               /* faults for which there was no room */
    uint64_t resident_before, resident; /* of processes that are gone */
};

/* A way to observe objects. Functions return 0 or -ENOMEM; some may be NULL. */
struct object_way {
    /* Start observing them, if they are wanted and that is permitted: `begin` before any process is
     * followed, and `prepare` for what takes long, in collector_prepare. */
    int (*begin)(struct collector *collector);
    int (*prepare)(struct collector *collector);
    int (*follow)(struct collector *collector, struct object_process *process);
    /* A thread has appeared in the process's list of threads, or left it. */
    int (*note_thread)(struct collector *collector, const struct notice *notice);
    /* Opens sources that have appeared since. */
    int (*open)(struct collector *collector);
    /* Data that can be read at any time should be sent next. */
    void (*refresh)(struct object_process *process);
    /* Sends everything known so far about all processes. */
    int (*tell)(struct collector *collector);
    /* Everything before this time about the process's program has been sent. */
    uint64_t (*told_ns)(const struct collector *collector, const struct object_process *process);
    /* Everything about the process's program has been sent, or was awaited for long enough. */
    void (*end_program)(struct collector *collector, struct object_process *process);
    void (*forget)(struct collector *collector, struct object_process *process);
    void (*count)(const struct collector *collector, struct object_counts counts[]);
    void (*end)(struct collector *collector);
};
extern const struct object_way way_in_program, way_makers, way_page_faults;

/* ---- Shared by the ways: finding an object's process, and sending to the worker ---- */

/* The process that has this id now; NULL: it is not followed. */
struct object_process *collector_process(const struct collector *collector, pid_t pid);

/* The program whose objects are reported; NULL: unknown. */
static inline struct program *object_program(const struct object_process *process)
{
    return process->program_count ? process->programs[0].program : NULL;
}

/* When that program was found to be over; 0: it still runs. */
static inline uint64_t object_program_over_ns(const struct object_process *process)
{
    return process->program_count ? process->programs[0].over_ns : 0;
}

/* Whether messages that are not sent now will never be sent, or too late. */
static inline bool is_urgent(const struct collector *collector,
                             const struct object_process *process)
{
    return collector->is_copying || collector->is_ending || object_program_over_ns(process);
}

/* To which program a stack of `at_ns` belongs; see program_span_match. */
enum program_match object_program_match(struct object_process *process, uint64_t exec_ns,
                                        uint64_t at_ns);

/* The known mapping that contains the address; NULL: none. */
const struct stack_area *object_area(struct object_process *process, uint64_t address);

/* Called at the beginning of a step: divides the queue among the processes that have messages in
 * it, or found no room in the last step. */
void collector_share_out(struct collector *collector);

/* Whether there is room for a message about the process with a snapshot of this much stack. If not,
 * the collector soon tries again. */
bool collector_has_room(struct collector *collector, struct object_process *process,
                        size_t stack_bytes);
struct snapshot *collector_take_snapshot(struct collector *collector,
                                         struct object_process *process, size_t stack_bytes);
void collector_give_snapshot(struct collector *collector, struct snapshot *snapshot);

/* Sends a message about an object of the process, taking ownership of its name, its snapshot and
 * its reference to a program. Returns 0 or -ENOMEM. */
int collector_report(struct collector *collector, struct object_process *process,
                     struct object_news *news);

/* Sends this change for all wanted kinds: the objects are gone, or left. On an exec, threads are
 * left out, because the end of each is reported, and one of them lives on. */
int collector_report_all(struct collector *collector, struct object_process *process,
                         enum object_change change, bool with_threads);

/* Reads the mappings of the process's program. */
void object_read_areas(struct object_process *process, int maps_fd);
/* The same from its current maps, but not too often. Returns whether it did. */
bool object_read_areas_again(struct object_process *process);

#endif

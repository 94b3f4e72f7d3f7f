/* The contents of a report, before it becomes text or JSON: the samples of a profile by threads and
 * by call trees, and what follows from them. Each part has a file that makes it, in this order:
 *
 *   semaphores.c  which semaphores serve as locks
 *   report.c      threads, processes and their times; the call trees; which waits are idle
 *   symbols.c     modules whose symbols would help, and why stacks are cut
 *   holders.c     resources, owners and waiters; which threads had CPUs that others waited for
 *   findings.c    what is worth a look, the largest first
 *   next.c        the command to run next
 *
 * text.c and json.c write the same contents. */
#ifndef FGPROF_OUTPUT_REPORT_REPORT_H
#define FGPROF_OUTPUT_REPORT_REPORT_H

#include "profile/call_tree.h"
#include "profile/view.h"
#include "output/json.h"

/* What threads do. Each activity has a call tree. */
enum report_activity {
    REPORT_RUNNING,
    REPORT_RUNNABLE, /* waiting for a CPU */
    REPORT_WAITING,  /* for anything else, except for what follows */
    REPORT_IDLE,     /* waiting for work or for a time, and not much else */
    REPORT_ELAPSED,  /* all of these, by elapsed time: see count/elapsed.h */
    REPORT_ACTIVITY_COUNT
};

/* The most lines in a report, and of each kind. */
#define REPORT_LINES_MAX 100
#define REPORT_FINDINGS_MAX 15
#define REPORT_HOLDS_MAX 3
#define REPORT_PATHS_MAX 10
#define REPORT_PATHS_MIN 3 /* shown of each of two kinds, if elapsed time is shown too */
#define REPORT_IDLE_MAX 4
#define REPORT_PROCESSES_MAX 4
#define REPORT_THREADS_MAX 6
#define REPORT_MODULES_MAX 3

/* Columns of names within a line. */
#define REPORT_NAME_COLUMNS 24
#define REPORT_FILE_COLUMNS 60
#define REPORT_LINE_COLUMNS 90

struct report_times {
    uint64_t all_ns; /* includes time in no state that is known */
    uint64_t state_ns[FGPROF_STATE_COUNT];
    uint64_t idle_ns; /* of FGPROF_STATE_WAITING */
};

/* A thread, or all threads of a name if they are not distinguished. */
struct report_thread {
    uint32_t process, name;
    uint32_t tid; /* 0: not distinguished */
    bool is_goroutine;
    bool never_moved;
    uint64_t for_work_ns; /* in calls that wait for work or a time, and for no lock */
    struct report_times times;
};

struct report_process {
    size_t threads;
    struct report_times times;
};

/* What one thread did at one node of an activity's tree. */
struct report_use {
    uint32_t activity; /* enum report_activity */
    uint32_t node, thread;
    uint32_t call;    /* the label of the system call or kernel function that it waited in; 0: none.
                         For elapsed time, the state of a thread that waited in none. */
    uint32_t is_lock; /* whether it waited for a lock; the last field that tells uses apart */
    uint64_t time_ns;
};
#define REPORT_USE_KEY_BYTES (offsetof(struct report_use, is_lock) + sizeof(uint32_t))

/* The nodes of an activity with the most self time. */
struct report_path {
    uint32_t node;
    uint32_t call, thread;   /* with the most time there */
    size_t threads, unmoved; /* those that never moved, of all */
};

struct report_paths {
    struct report_path rows[REPORT_PATHS_MAX];
    size_t count;
    size_t left_out; /* more such nodes */
};

/* A finding has a line of text, and most have a line of detail. Names in them are escaped and
 * shortened. */
struct report_finding {
    const char *kind;    /* a stable word. Static. */
    uint64_t time_ns;    /* of the threads that it is about; 0: it is about the recording */
    uint32_t function;   /* the label of the function to look at; 0: none */
    char *text, *detail; /* detail: NULL: none */
};

/* A thread that held what others waited for or, if no holder is known, that ended their waits. */
struct report_hold {
    uint32_t resource, owner_name;  /* strings of the profile */
    uint32_t process;               /* the owner's */
    bool is_for_threads;            /* else the resource's name has the owner */
    uint64_t time_ns;               /* of all waiters */
    char *owner_path, *waiter_path; /* where they mostly were; "": not known */
};

struct report_holds {
    struct report_hold rows[REPORT_HOLDS_MAX];
    size_t count, left_out;
    uint64_t time_ns; /* of all such waits */
};

/* A file whose symbols would name frames or complete stacks. */
struct report_module {
    uint32_t path, build_id; /* strings of the profile */
    uint64_t samples_unnamed, samples_cut;
};

struct report {
    uint64_t samples_generated_unnamed; /* of code that was made at run time */
    const struct fgprof_profile *profile;
    const struct profile_view *view;
    struct labels labels;
    struct call_tree trees[REPORT_ACTIVITY_COUNT];
    struct report_paths paths[REPORT_ACTIVITY_COUNT];
    struct report_use *uses;
    size_t use_count, use_capacity;
    struct index use_index;
    struct report_thread *threads;
    size_t thread_count, thread_capacity;
    struct index thread_index;
    struct report_process *processes; /* one for each of the profile's, and one in any case */
    size_t process_count;
    struct report_times times;
    uint64_t elapsed_idle_ns; /* elapsed time of no thread */
    size_t idle_threads;      /* see report_is_idle */

    struct report_finding findings[REPORT_FINDINGS_MAX];
    size_t finding_count;
    struct report_holds held, woken;
    struct report_holds cpus; /* that threads waited for; a row with no thread: an idle CPU, or that
                                 of a thread that is not sampled */
    struct report_module modules[REPORT_MODULES_MAX];
    size_t module_count, modules_left_out;
    uint32_t cut_note;    /* of most cut stacks: a string of the profile; "": none is cut */
    char *next;           /* a command line */
    const char *next_why; /* static */
};

/* Makes the report of `profile` and `view`, which are set. Returns 0 or -ENOMEM. Free it in either
 * case. */
int report_make(struct report *report);
void report_free(struct report *report);

/* Make the parts. Each returns 0 or -ENOMEM. */
/* Sets for each stack of the profile the name of the function that waits there for a semaphore
 * which serves as a lock, a string of the profile, or NO_TAKER. */
#define NO_TAKER UINT32_MAX
int report_find_semaphores(const struct fgprof_profile *profile, uint32_t *ret_takers);
int report_find_modules(struct report *report);
int report_find_holders(struct report *report);
int report_find(struct report *report);
int report_choose_next(struct report *report);

/* The label of the system call or kernel function in which the thread waits, else of its state. */
int report_label_of_call(struct labels *labels, const struct fgprof_profile *profile,
                         const struct profile_sample *sample, uint32_t *ret_label);

/* The part of `whole`, in percent; 0 of nothing. */
static inline double report_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static inline double report_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static inline double report_rate_hz(const struct fgprof_profile *profile)
{
    return profile->period_ns ? 1e9 / (double)profile->period_ns : 0;
}

/* Appends " on db1", if it is known where the profile was recorded. */
void report_append_host(struct buffer *buffer, const struct fgprof_profile *profile);

/* Appends a process as "name/12", or a thread as "name"/13 with its process if there are several.
 */
void report_append_process(struct buffer *buffer, const struct report *report, uint32_t process);
void report_append_thread(struct buffer *buffer, const struct report *report,
                          const struct report_thread *thread);
/* "thread" or "goroutine". */
const char *report_thread_word(const struct report_thread *thread);

/* Appends "throttled 1.20 s by its control group's quota of 2 CPUs". */
void report_append_throttled(struct buffer *buffer, const struct fgprof_summary *summary);

/* Appends which thread had a CPU that others waited for: "behind compress in backup/991". */
void report_append_cpu_user(struct buffer *buffer, const struct report *report,
                            const struct report_hold *hold);

/* See call_tree_append_path. */
void report_append_path(struct buffer *buffer, const struct report *report,
                        enum report_activity activity, uint32_t node);

/* The percentage of elapsed time in which `first` to `last` threads of a process ran. */
double report_parallel_percent(const struct report *report, size_t first, size_t last);

/* Whether the thread only waited idly. */
static inline bool report_is_idle(const struct report_thread *thread)
{
    return thread->times.idle_ns == thread->times.all_ns;
}

/* Gets up to `max` threads that are not idle: those that want a CPU most, then those with the most
 * busy time. Returns how many there are. */
size_t report_busiest(const struct report *report, uint32_t *ret_threads, size_t max);

/* Appends a file's name as a shell takes it. */
void report_append_file(struct buffer *buffer, const char *path);

/* Writes a member of an object: a text of at most `columns` columns. */
void report_json_string(struct json *json, const char *key, const char *text, size_t columns);
/* Writes the members "frames", the functions on the path to a node, root first, and
 * "frames_omitted". */
void report_json_frames(struct json *json, const struct call_tree *tree,
                        const struct labels *labels, uint32_t node);

/* Fill the sink with the report. */
void report_text(const struct report *report, struct sink *sink);
void report_json(const struct report *report, struct sink *sink);

#endif

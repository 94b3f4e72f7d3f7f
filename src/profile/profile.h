/* The finished profile, as writers see it: named, and independent of the target.
 *
 * Its tables refer to each other by number. A sample has a stack. A stack has locations, leaf
 * first. A location has a mapping and lines: one for its function and one for each call inlined
 * there, innermost first. A line has a function. */
#ifndef FGPROF_PROFILE_PROFILE_H
#define FGPROF_PROFILE_PROFILE_H

#include "fgprof.h"
#include "base/strings.h"
#include "count/timeline.h"
#include "proc/thread_state.h"

#include <stdbool.h>

struct profile_function {
    uint32_t name;        /* demangled */
    uint32_t system_name; /* as in the symbol table */
    uint32_t file;        /* "" if not known */
};

struct profile_line {
    uint32_t function;
    uint32_t line; /* 0: not known */
    bool is_inlined;
};

struct profile_mapping {
    uint64_t start, limit, offset;
    uint32_t path;
    uint32_t build_id; /* in hex */
    uint64_t bias;     /* what is added to the file's own addresses to get these */
    bool has_bias;     /* false: none, because it is not a file, or not ELF */
    bool is_sampled;   /* a location is in it; what follows holds for all of them */
    bool has_functions, has_files, has_lines, has_inlined;
};

#define PROFILE_NO_MAPPING UINT32_MAX

struct profile_location {
    uint64_t address; /* of the instruction; in a caller, of the call */
    uint32_t mapping; /* or PROFILE_NO_MAPPING */
    /* For generated code, the number + 1 of the function that was at the address at that time,
     * because functions may replace each other. Otherwise 0. */
    uint32_t jit_function_plus_1;
    uint64_t function_offset;        /* of the address in its function */
    uint32_t first_line, line_count; /* in profile.lines; 0: no name */
    bool has_debug_info;             /* calls inlined here would be known */
    bool is_kernel;                  /* a kernel function, whose address is not known */
    bool is_note; /* not a place in the code: its name says why the stack ends here */
};

struct profile_stack {
    size_t first_location; /* in profile.stack_locations */
    size_t depth;
};

struct profile_process {
    uint32_t pid;
    uint32_t name;
    uint32_t title; /* what it calls itself, "postgres: walwriter"; "" if it is not known */
};

#define PROFILE_NO_STACK UINT32_MAX

/* Something that threads wait for, and its owner at one place of its code. */
struct profile_wait {
    uint32_t kind;              /* "mutex", "pipe" ...; "": not known, but the waker is */
    uint32_t resource;          /* which one: kind and name, as users see it */
    uint32_t owner_process;     /* or PROFILE_NO_OWNER */
    uint32_t owner_name;        /* the thread's, or "NAME/PID" if only the process is known */
    uint32_t owner_tid;         /* 0: threads are not distinguished */
    uint32_t owner_stack;       /* or PROFILE_NO_STACK: not known */
    uint32_t owner_wait_plus_1; /* what the owner itself waited for; 0: nothing, or not known */
    /* What ended it: a thread's name, "NAME/PID" if its process is not sampled, or "timer",
     * "network" ... "": not known. */
    uint32_t waker;
    uint32_t waker_process_plus_1; /* 0: it is not a thread of a sampled process */
    uint32_t waker_tid;            /* 0: threads are not distinguished */
    uint32_t waker_stack_plus_1;   /* where it was then; 0: not known */
    uint32_t label;      /* the row of the same resource, owner and waker, but without the owner's
                            place and wait */
    uint32_t waker_path; /* of its stack's functions, once all have names: "main > put" */
};

#define PROFILE_NO_OWNER UINT32_MAX

struct profile_sample {
    /* What is before never_moved, without padding, tells samples apart. */
    uint64_t object_bytes; /* of a profile of objects: how large each is; 0: they have no size */
    uint32_t stack;
    uint32_t process;
    uint32_t thread_name;
    uint32_t tid;              /* or the id of a goroutine or task, which a thread may have, too; 0:
                                  threads are not distinguished */
    uint32_t goroutine;        /* that the thread runs, by its id; 0: none, or not known */
    uint32_t state;            /* enum thread_state */
    uint32_t syscall_name;     /* the system call that the thread waits in; for a goroutine, the
                                  reason for its wait, in Go's words; "": none */
    uint32_t wait_channel;     /* the kernel function that it waits in; "": not known */
    uint32_t wait_plus_1;      /* what it waits for; 0: nothing, or not known */
    uint32_t label_set_plus_1; /* 0: its threads gave it no labels */
    bool is_goroutine;         /* it is of a goroutine that is on no thread */
    bool is_task;              /* it is of a task of asyncio that is suspended */
    bool never_moved;          /* its threads have not, in the whole recording; false: not known */
    uint64_t count;
    uint64_t time_ns;
    uint64_t elapsed_ns; /* its part of its process's time */
    uint64_t sleeps;     /* how many began there, an estimate; if a wait saw several owners, it is
                            counted with the first */
    /* In a profile of objects (profile_is_of_objects): the sampled objects that the stack made, not
     * scaled. The count and times are 0. */
    uint64_t made, gone; /* those that are gone are among those that were made */
};

/* A thread's label, such as the route of a request. */
struct profile_label {
    uint32_t key, value;
};

/* The labels of a sample, sorted by key. */
struct profile_label_set {
    uint32_t first_label, label_count; /* in profile.labels */
};

#define PROFILE_NO_SAMPLE UINT32_MAX

/* Time that a thread spends in a sample; PROFILE_NO_SAMPLE: it was absent. */
struct profile_run {
    uint32_t sample;
    uint64_t time_ns;
};

/* Successive ticks that a thread spends in a sample; PROFILE_NO_SAMPLE: it is not known. */
struct profile_tick_run {
    uint32_t sample;
    uint32_t ticks;
    bool is_inferred; /* from what was seen before or after these ticks */
};

/* One thread's runs in the order of time. */
struct profile_timeline {
    uint32_t thread_name;
    uint32_t tid;
    uint64_t begin_ns;           /* since the recording's start */
    uint64_t lost_ns;            /* counted, but after the timeline's end */
    size_t first_run, run_count; /* in profile.runs */
    /* The same by ticks, without gaps, if the kernel reported what ended waits: */
    uint32_t first_tick;
    size_t first_tick_run, tick_run_count; /* in profile.tick_runs */
};

/* What a profile of a critical path tells in words: see profile_make_critical. */
#define CRITICAL_ENDS 3
struct profile_critical {
    char *of;       /* the thread, or the label; NULL: it is no such profile */
    uint64_t ticks; /* of all paths; the rest as in struct fgprof_summary: */
    uint64_t waited, inferred, unknown;
    struct critical_end {
        uint32_t text;
        uint64_t ticks;
    } ends[CRITICAL_ENDS]; /* where most of what it waited for was spent */
};

/* Which thread created a thread, and where. */
struct profile_birth {
    uint32_t tid;
    uint32_t maker;    /* the thread that made it, like "name/123"; "": not known */
    uint32_t function; /* the function that made it or, if the maker is not known, the function that
                          it began with; "": not known */
};

struct profile_attribute {
    uint32_t key, value;
};

/* A profile of objects: how they were sampled, and what else is known of memory. */
struct profile_objects {
    uint32_t name; /* of FGPROF_KIND_CUSTOM, the program's own name for it */
    uint64_t rate; /* FGPROF_KIND_HEAP and _ALLOCS: the mean number of bytes between two sampled
                      objects; an object of n bytes is sampled with probability 1-e^(-n/rate). 0:
                      all were sampled */
    uint64_t made_lost, gone_lost; /* sampled objects that could not be reported */
    uint64_t resident_peak;        /* bytes, VmHWM; 0: not known */
    /* Bytes of glibc's malloc (mallinfo2(3)): from brk, from mmap, in use, and free. All 0: not
     * known, as in what this version records. */
    uint64_t heap_arena, heap_mmap, heap_used, heap_free;
};

#define PROFILE_IDLE "[idle]" /* its only location, a note */

struct fgprof_profile {
    struct strings strings;
    struct profile_process *processes; /* those with samples */
    size_t process_count, process_capacity;
    struct profile_function *functions;
    size_t function_count, function_capacity;
    struct index function_index;
    struct profile_line *lines;
    size_t line_count, line_capacity;
    struct profile_mapping *mappings;
    size_t mapping_count, mapping_capacity;
    struct profile_location *locations;
    size_t location_count, location_capacity;
    struct index location_index;
    uint32_t *stack_locations;
    size_t stack_location_count, stack_location_capacity;
    struct profile_stack *stacks;
    size_t stack_count, stack_capacity;
    struct index stack_index;
    struct profile_sample *samples;
    size_t sample_count, sample_capacity;
    struct index sample_index;
    struct profile_wait *waits;
    size_t wait_count, wait_capacity;
    struct index wait_index;
    struct profile_label *labels; /* one set's after the other */
    size_t label_count, label_capacity;
    struct profile_label_set *label_sets;
    size_t label_set_count, label_set_capacity;
    bool has_elapsed; /* samples have their parts of their processes' elapsed time; elapsed time
                         that no thread used is a separate sample without count and time:
                         PROFILE_IDLE */
    bool has_sleeps;  /* samples have theirs */
    uint64_t *parallel_ns; /* by number: how long this many threads of a process ran at once */
    size_t parallel_count, parallel_capacity;
    struct profile_birth *births; /* of threads with samples, by id; none if they are not known */
    size_t birth_count, birth_capacity;
    bool has_timelines; /* timelines were wanted */
    struct profile_timeline *timelines;
    size_t timeline_count, timeline_capacity;
    struct profile_run *runs; /* one timeline's after the other */
    size_t run_count, run_capacity;
    struct profile_tick_run *tick_runs; /* the same */
    size_t tick_run_count, tick_run_capacity;
    struct profile_critical critical;
    uint64_t start_time_ns; /* since 1970 */
    uint64_t period_ns;
    struct fgprof_summary summary;
    uint32_t *unreadable; /* modules with frames that could not be read: "path (why)" */
    size_t unreadable_count, unreadable_capacity;
    uint32_t *deadlocks; /* a line of text for each */
    size_t deadlock_count, deadlock_capacity;
    unsigned folded_flags;
    char **root_labels; /* keys of labels whose values are root frames of FGPROF_FOLDED */
    size_t root_label_count, root_label_capacity;
    enum fgprof_kept kept;
    enum fgprof_kind kind;
    struct profile_objects objects;       /* of a profile of objects */
    bool is_difference;                   /* of two of these: see fgprof_profile_subtract */
    bool is_of_threads;                   /* it counts threads: see FGPROF_DUMP_PPROF */
    enum fgprof_threads threads;          /* by id: as recorded */
    unsigned times;                       /* see fgprof_profile_set_times */
    struct profile_attribute *attributes; /* see fgprof_profile_set_attribute */
    size_t attribute_count, attribute_capacity;
    char *command;     /* the command line that writes it; NULL: not known */
    char *read_from;   /* the file; NULL: it was not read */
    char *recorded_by; /* the command line in the file that it was read from: see
                          profile_recorded_by */
    char *reason;      /* why it was written; NULL: not known */
    char *host;        /* the name of the machine that recorded it; NULL: not known */
};

/* The command line that recorded it; "" if not known. If it was not read from a file, this is the
 * command that writes it. */
const char *profile_recorded_by(const struct fgprof_profile *profile);

/* The state as shown to users, without the kind of sleep. */
enum fgprof_state sample_state(const struct profile_sample *sample);

/* Whether it has the types of Go's block and mutex profiles: contentions and delay. */
static inline bool profile_is_of_contentions(const struct fgprof_profile *profile)
{
    return profile->kind == FGPROF_KIND_BLOCK || profile->kind == FGPROF_KIND_MUTEX;
}

/* Whether it counts objects and not time: allocations, pages, threads, or what the program counts
 * itself. */
static inline bool profile_is_of_objects(const struct fgprof_profile *profile)
{
    return profile->kind >= FGPROF_KIND_HEAP;
}

/* The stack's location number `i`, counted from the leaf. */
static inline const struct profile_location *
stack_location(const struct fgprof_profile *profile, const struct profile_stack *stack, size_t i)
{
    return &profile->locations[profile->stack_locations[stack->first_location + i]];
}

/* How many waits it stands for. Old recordings only have the number of ticks. */
static inline uint64_t sample_contentions(const struct fgprof_profile *profile,
                                          const struct profile_sample *sample)
{
    return profile->has_sleeps ? sample->sleeps : sample->count;
}

/* What the sample's thread waits for; NULL: nothing, or not known. */
static inline const struct profile_wait *sample_wait(const struct fgprof_profile *profile,
                                                     const struct profile_sample *sample)
{
    const struct profile_wait *wait =
        sample->wait_plus_1 ? &profile->waits[sample->wait_plus_1 - 1] : NULL;
    return wait && wait->kind ? wait : NULL;
}

/* The same for waits whose waker is known, though what they were for need not be. */
static inline const struct profile_wait *sample_waker(const struct fgprof_profile *profile,
                                                      const struct profile_sample *sample)
{
    const struct profile_wait *wait =
        sample->wait_plus_1 ? &profile->waits[sample->wait_plus_1 - 1] : NULL;
    return wait && wait->waker ? wait : NULL;
}

static inline const char *profile_kept_name(const struct fgprof_profile *profile)
{
    static const char *const names[] = {[FGPROF_KEPT_ALL] = "all",
                                        [FGPROF_KEPT_ON_CPU] = "on-cpu",
                                        [FGPROF_KEPT_OFF_CPU] = "off-cpu"};
    return names[profile->kept];
}

static inline bool sample_is_on_cpu(const struct profile_sample *sample)
{
    return sample->state == THREAD_RUNNING;
}

/* Whether it is elapsed time of its process that no thread used. */
static inline bool sample_is_idle(const struct profile_sample *sample)
{
    return !sample->count && !sample->time_ns && !sample->thread_name && !sample->made &&
           !sample->gone;
}

/* Whether `tid` is a thread's id, and not that of a goroutine or task, which may be the same. */
static inline bool sample_is_of_thread(const struct profile_sample *sample)
{
    return !sample->is_goroutine && !sample->is_task;
}

/* The id of a thread, or a goroutine's as a negative number, so that neither is taken for the
 * other. */
static inline int64_t signed_tid(uint32_t tid, bool is_goroutine)
{
    return is_goroutine ? -(int64_t)tid : (int64_t)tid;
}

static inline bool profile_keeps(const struct fgprof_profile *profile,
                                 const struct profile_sample *sample)
{
    return profile->kept == FGPROF_KEPT_ALL ||
           (profile->kept == FGPROF_KEPT_ON_CPU) == sample_is_on_cpu(sample);
}

/* The sample's label number `i`; NULL after the last. */
static inline const struct profile_label *
sample_label(const struct fgprof_profile *profile, const struct profile_sample *sample, uint32_t i)
{
    const struct profile_label_set *set =
        sample->label_set_plus_1 ? &profile->label_sets[sample->label_set_plus_1 - 1] : NULL;
    return set && i < set->label_count ? &profile->labels[set->first_label + i] : NULL;
}

/* Whether writers show the processes of samples, even if not asked to. */
static inline bool profile_shows_processes(const struct fgprof_profile *profile)
{
    return profile->process_count > 1 || profile->folded_flags & FGPROF_FOLDED_PROCESSES;
}

/* Returns 0 or -ENOMEM. */
int profile_new(struct fgprof_profile **ret_profile);
/* Takes NULL. */
void profile_free(struct fgprof_profile *profile);

/* Adds a process in a new row. Returns 0 or -ENOMEM. */
int profile_add_process(struct fgprof_profile *profile, uint32_t pid, const char *name,
                        uint32_t *ret_process);

/* Each of these finds the equal row or adds one, and returns 0 or -ENOMEM. */
int profile_add_function(struct fgprof_profile *profile, const char *name, const char *system_name,
                         const char *file, uint32_t *ret_function);
int profile_add_mapping(struct fgprof_profile *profile, const struct profile_mapping *mapping,
                        uint32_t *ret_mapping);
/* *ret_is_new: its lines must still be set, by profile_set_lines. */
int profile_add_location(struct fgprof_profile *profile, uint64_t address, uint32_t mapping,
                         uint32_t *ret_location, bool *ret_is_new);
/* Adds a location in a new row, even if there is an equal one; profile_add_location does not find
 * it. Returns 0 or -ENOMEM. */
int profile_append_location(struct fgprof_profile *profile, const struct profile_location *location,
                            uint32_t *ret_location);
/* A location for a kernel function as a whole, in the kernel's mapping. */
int profile_add_kernel_function(struct fgprof_profile *profile, const char *name,
                                uint32_t *ret_location);
/* Replaces *stack by the same stack with kernel frames on top: `names`, leaf first, each followed
 * by a line feed. If *stack is PROFILE_NO_STACK, the new stack has only these frames. */
int profile_add_kernel_frames(struct fgprof_profile *profile, const char *names, uint32_t *stack);
/* A location in the generated code of `function`. */
int profile_add_jit_location(struct fgprof_profile *profile, uint64_t address, uint32_t mapping,
                             uint32_t function, uint32_t *ret_location, bool *ret_is_new);
int profile_add_note(struct fgprof_profile *profile, const char *text, uint32_t *ret_location);
int profile_set_lines(struct fgprof_profile *profile, uint32_t location,
                      const struct profile_line *lines, size_t count);
int profile_add_stack(struct fgprof_profile *profile, const uint32_t *locations, size_t depth,
                      uint32_t *ret_stack);
/* A stack that is made of others, and of notes, leaf first. Starts zeroed but for its profile; the
 * caller frees the locations. The first error stays, and then nothing more is done. */
struct made_stack {
    struct fgprof_profile *profile;
    uint32_t *locations;
    size_t count, capacity;
    int error; /* 0 or -ENOMEM */
};
void made_stack_push(struct made_stack *made, uint32_t location);
void made_stack_push_stack(struct made_stack *made, uint32_t stack);
__attribute__((format(printf, 2, 3))) void made_stack_push_note(struct made_stack *made,
                                                                const char *format, ...);
/* Adds it to its profile. Returns the error. */
int made_stack_add(struct made_stack *made, uint32_t *ret_stack);
/* Sets the label of `wait`. */
int profile_add_wait(struct fgprof_profile *profile, const struct profile_wait *wait,
                     uint32_t *ret_wait);
/* Adds a set of no labels in a new row, and a label to the last set. */
int profile_add_label_set(struct fgprof_profile *profile, uint32_t *ret_set);
int profile_add_label(struct fgprof_profile *profile, const char *key, const char *value);
/* Adds an unreadable module, once for each path. Returns 0 or -ENOMEM. */
int profile_add_unreadable(struct fgprof_profile *profile, const char *path, const char *why);
/* Adds the counts to the sample with equal stack and labels. `ret_sample` may be NULL. */
int profile_add_sample(struct fgprof_profile *profile, const struct profile_sample *sample,
                       uint32_t *ret_sample);

/* Gives the profile the samples of `from`, which keeps none, and drops timelines. */
void profile_replace_samples(struct fgprof_profile *profile, struct fgprof_profile *from);

/* Copies the timelines. `samples` maps each sample of the stack table to its number in the profile,
 * or to PROFILE_NO_SAMPLE; `strings` has the threads' names. Returns 0 or -ENOMEM. */
int profile_set_timelines(struct fgprof_profile *profile, const struct timeline *timeline,
                          const uint32_t *samples, const struct strings *strings);

/* The numbers of the timelines: first those of threads that do more than wait for at least a tenth
 * of their time, then those of idle threads, each group in its own order. A wait for a lock does
 * not make a thread idle, and time spent waiting for a CPU does not count. The caller frees them;
 * NULL: no memory. */
uint32_t *profile_timelines_idle_last(const struct fgprof_profile *profile);

/* Call this once all locations have names: sets the mappings' has_* flags and the summary's
 * samples_unnamed. */
void profile_finish(struct fgprof_profile *profile);

/* Finds in timelines how long threads did the same thing without interruption, as
 * fgprof_profile_spans does. The caller frees the rows; their strings belong to the profile. */
int profile_spans(const struct fgprof_profile *profile, const struct fgprof_span_query *query,
                  struct fgprof_span **ret_rows, size_t *ret_count);

#endif

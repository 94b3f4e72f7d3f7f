/* fgprof.h - samples the stacks of all threads of running processes, on and off the CPU.
 *
 * The way of use:
 *
 *     fgprof_options *options;
 *     fgprof_recorder *recorder;
 *     fgprof_profile *profile;
 *     fgprof_options_new(&options);
 *     fgprof_options_set_duration_ns(options, 30000000000);
 *     fgprof_recorder_new(options, &recorder);
 *     fgprof_recorder_attach(recorder, pid);
 *     fgprof_recorder_run(recorder, &profile);
 *     fgprof_profile_write(profile, FGPROF_FOLDED, STDOUT_FILENO);
 *
 * Functions that return int return 0 or a negative errno; what they give back through a pointer
 * named ret_* is written only on success, and is the caller's to free. All _free functions accept
 * NULL. Nothing here prints. Times are in nanoseconds; sampling uses CLOCK_MONOTONIC.
 *
 * One recorder is used by one thread at a time, except fgprof_recorder_stop and
 * fgprof_recorder_profile_so_far. */
#ifndef FGPROF_H
#define FGPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FGPROF_API __attribute__((visibility("default")))

/* The library's version, as "0.1.0". Static. */
FGPROF_API const char *fgprof_version(void);

/* ---- Options: how to sample, and how to label what was sampled ---- */

typedef struct fgprof_options fgprof_options;

/* Whose stacks are told apart. */
enum fgprof_threads {
    FGPROF_THREADS_BY_NAME, /* equal stacks of threads of equal name are one sample */
    FGPROF_THREADS_BY_ID,   /* each thread has samples of its own, labelled with its id */
};

/* How functions are named. */
enum fgprof_names {
    /* As pprof shows them: those of C++ without parameters, return type and template arguments. */
    FGPROF_NAMES_SHORT,
    FGPROF_NAMES_FULL, /* demangled, with all of these */
    FGPROF_NAMES_RAW,  /* as in the symbol table or the debug information: not demangled */
};

/* Called while sampling, from the thread that runs the recorder, a few times a second; it may take
 * its time, sampling goes on. `progress` is valid during the call. */
struct fgprof_progress {
    uint64_t elapsed_ns;
    uint64_t duration_ns; /* 0: without end */
    uint64_t threads;     /* alive at the last tick */
    uint64_t samples;     /* stacks taken, each weighted by the ticks that it stands for */
    uint64_t stacks;      /* distinct ones */
    uint64_t ticks_late;  /* ticks that were not taken at their time */
};
typedef void fgprof_progress_fn(const struct fgprof_progress *progress, void *context);

/* Defaults: 99 Hz, no duration, depth 1024, pauses of 2 percent, threads by name, short names.
 * -ENOMEM. */
FGPROF_API int fgprof_options_new(fgprof_options **ret_options);
FGPROF_API void fgprof_options_free(fgprof_options *options);

/* Ticks a second, 1 to 1000; else -ERANGE. */
FGPROF_API int fgprof_options_set_rate(fgprof_options *options, unsigned hertz);

/* When sampling ends by itself; 0: only when its targets have exited or it is stopped. */
FGPROF_API int fgprof_options_set_duration_ns(fgprof_options *options, uint64_t duration_ns);

/* The most frames of a stack that are kept, counted from the leaf; at least 1, else -ERANGE. A
 * deeper one ends in the frame "[truncated: max depth]". */
FGPROF_API int fgprof_options_set_max_depth(fgprof_options *options, size_t frames);

/* The most of its running time that a thread may lose to pauses, in percent: more than 0, at most
 * 100, else -ERANGE. Where stopping a thread at each tick would cost it more, it is stopped less
 * often, and each of its samples stands for more time. Of a pause that the machine made long 2 ms
 * count at once, until a thread has lost 500 ms more than its share. */
FGPROF_API int fgprof_options_set_max_pause(fgprof_options *options, double percent);

/* -EINVAL for a value that is none of the enum's. */
FGPROF_API int fgprof_options_set_threads(fgprof_options *options, enum fgprof_threads threads);

/* -EINVAL for a value that is none of the enum's. In FGPROF_PPROF a function's system_name is that
 * of the symbol table in any case. */
FGPROF_API int fgprof_options_set_names(fgprof_options *options, enum fgprof_names names);

/* Only threads are sampled whose name, at the time, the extended regular expression (regex(7)) is
 * found in, and those of fgprof_options_add_thread_id; the others are neither looked at nor
 * stopped. A thread's time counts from when it is seen with such a name. -ENOMEM, -EINVAL where it
 * is no regular expression. */
FGPROF_API int fgprof_options_set_thread_name(fgprof_options *options, const char *regex);

/* Likewise, the thread with this id, as the calling process's PID namespace has it. May be called
 * again, for more. -ENOMEM, -EINVAL where it is not positive. */
FGPROF_API int fgprof_options_add_thread_id(fgprof_options *options, pid_t tid);

/* Whether samples of threads that never moved are kept, from the beginning of the recording to its
 * end: they are by default. */
FGPROF_API int fgprof_options_set_idle(fgprof_options *options, bool are_kept);

/* Whether the stacks of sleeping threads go on in the kernel, to the function that they wait in:
 * not by default. It takes CAP_SYS_ADMIN. */
FGPROF_API int fgprof_options_set_kernel_stacks(fgprof_options *options, bool are_wanted);

/* Whether descendants of the processes are sampled too, from their birth on, each as a process of
 * its own; also those whose parent has exited. Not by default. Never the calling process. A spawned
 * command's end still ends the recording. */
FGPROF_API int fgprof_options_set_children(fgprof_options *options, bool are_followed);

/* Whether the order of each thread's samples is kept, as FGPROF_SPEEDSCOPE needs: not by default.
 * At most 4,194,304 runs of one sample are, of 16 bytes; then the timelines end, and the
 * summary's timeline_lost_ns says what they lack. */
FGPROF_API int fgprof_options_set_timeline(fgprof_options *options, bool is_wanted);

/* `callback` may be NULL. `context` is handed to it. */
FGPROF_API int fgprof_options_set_progress(fgprof_options *options, fgprof_progress_fn *callback,
                                           void *context);

/* Called while debug information is fetched, in the thread that called fgprof_recorder_run: `share`
 * of the file of the module `path` is there, 0 to 1. */
typedef void fgprof_fetch_fn(const char *path, double share, void *context);

/* Debug information that is not on this machine is asked for, by build id, from the servers that
 * the environment's DEBUGINFOD_URLS names (debuginfod(7)), for at most `limit_ns` in all; 0, the
 * default: nobody is asked. `callback` may be NULL. -ENOTSUP where libdebuginfod is not
 * installed. */
FGPROF_API int fgprof_options_set_debuginfod(fgprof_options *options, uint64_t limit_ns,
                                             fgprof_fetch_fn *callback, void *context);

/* ---- Recorder: chooses processes and samples them ---- */

typedef struct fgprof_recorder fgprof_recorder;
typedef struct fgprof_profile fgprof_profile;

/* Copies what it needs of `options`. -ENOMEM, -EMFILE, -EAGAIN (no thread could be started); where
 * kernel stacks are wanted -EACCES (no CAP_SYS_ADMIN), or -ENOENT (the kernel shows none). */
FGPROF_API int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder);

/* Also ends a run's claim on its command: what was spawned runs on. */
FGPROF_API void fgprof_recorder_free(fgprof_recorder *recorder);

/* Adds the running process `pid`, with all its threads, those born later too. Nothing is done to it
 * yet. Errors:
 *   -ESRCH    there is no such process, or it is a zombie
 *   -EDEADLK  it is the calling process
 *   -ENOEXEC  it is a kernel thread
 *   -EINVAL   it is the id of a thread, not of a process
 *   -EBUSY    another process traces it (ptrace allows one tracer)
 *   -ENOTSUP  it is a 32-bit program
 *   -EPERM    it may not be looked at
 *   -EXDEV    /proc is that of another PID namespace
 *   -EEXIST   it was added before
 * fgprof_explain says more. */
FGPROF_API int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid);

/* Whether one of the processes that were added has the thread `tid`. */
FGPROF_API bool fgprof_recorder_has_thread(const fgprof_recorder *recorder, pid_t tid);

/* Starts the program `argv[0]`, found by PATH, with the arguments `argv` (which ends with NULL) and
 * this process's environment, and adds it from its exec on. `stdout_fd` becomes its standard
 * output, unless it is -1. Once a recorder. The command is a child of the calling process; it is
 * waited for by fgprof_recorder_wait and by nothing else.
 * Errors: what execvp gives (-ENOENT, -EACCES, -ENOEXEC ...), -EEXIST where one was started. */
FGPROF_API int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd);

/* The process id of the spawned command, 0 where there is none or its end was waited for. */
FGPROF_API pid_t fgprof_recorder_child(const fgprof_recorder *recorder);

/* Samples until the duration has passed, all processes have exited, or fgprof_recorder_stop is
 * called, whichever comes first; then names what it found. The profile is the caller's, and does
 * not need the recorder any more. Once a recorder.
 * Errors: -ENOMEM, -EAGAIN (no thread could be started), -ESRCH where nothing was added, -EALREADY.
 * While it samples, SIGCHLD is blocked in the calling thread, and taken by the sampling one, as far
 * as no other thread of the program takes it.
 * Raises the process's soft limit of open files to the hard one: two or three are kept for each
 * thread. */
FGPROF_API int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile);

/* While fgprof_recorder_run is in progress: a profile of what was found until now, the caller's.
 * From the progress callback or another thread; sampling goes on. Names are kept, so that a second
 * call looks up only what is new. Until the recorder is freed it holds all stacks twice. Threads
 * that have not moved are in it: that they never do is known only at the end.
 * -ESRCH where sampling has not begun or has ended, -ENOMEM. */
FGPROF_API int fgprof_recorder_profile_so_far(fgprof_recorder *recorder,
                                              fgprof_profile **ret_profile);

/* Ends fgprof_recorder_run soon, from any thread or from a signal handler. */
FGPROF_API void fgprof_recorder_stop(fgprof_recorder *recorder);

/* Waits for the end of the spawned command. *ret_status is as of waitpid(2). -ECHILD where none was
 * started. */
FGPROF_API int fgprof_recorder_wait(fgprof_recorder *recorder, int *ret_status);

/* ---- Profile: what was found ---- */

/* How it went. Times and counts are of the whole recording. */
struct fgprof_summary {
    uint64_t elapsed_ns;
    uint64_t ticks_planned; /* that came due in that time */
    uint64_t ticks_taken;
    uint64_t ticks_late; /* planned, not taken at their time: later ones carry their weight */
    uint64_t threads_seen;
    uint64_t threads_chosen; /* of these: all of them, where no choice was made */
    uint64_t threads_idle;   /* that never moved, and whose samples were dropped; their time: */
    uint64_t idle_ns;
    uint64_t processes_seen;    /* that were sampled */
    uint64_t processes_refused; /* descendants that could not be: see fgprof_recorder_attach */
    uint64_t samples;           /* weighted by ticks */
    uint64_t samples_cut; /* of these, with a stack that does not reach its thread's first frame */
    uint64_t samples_unnamed;      /* of these, with a frame that has no function name */
    uint64_t samples_not_captured; /* of these, whose thread could not be stopped in its time */
    uint64_t samples_assumed;    /* of these, between two looks at a thread that moved meanwhile */
    uint64_t stacks;             /* distinct ones */
    uint64_t modules_unreadable; /* files with frames that have no names for it */
    uint64_t timeline_lost_ns;   /* of all threads, counted after the end of the timelines */
    uint64_t samples_thinned;    /* ticks at which a running thread was not stopped, to spare it */
    uint64_t observations_put_off; /* looks that came later, as counting was behind */
    bool lacks_files; /* the limit of open files is too low to keep those of all threads open */
    /* Of perf maps and jitdumps, by which processes name the code that they generate: those that
     * were not believed, being no regular files, of another user, or older than the process; and
     * what was left out of the others, as too much or broken. */
    uint64_t jit_files_refused, jit_bytes_unread;
    uint64_t pauses; /* how often a thread that was running was paused */
    uint64_t pause_median_ns, pause_p99_ns, pause_max_ns;
    double pause_share; /* of the time that threads were found running; 0 to 1 */
    /* The time of all threads, by what they were doing: the sum of the five is all of it. */
    uint64_t running_ns;
    uint64_t runnable_ns; /* waiting for a CPU */
    uint64_t waiting_ns;  /* for anything else */
    uint64_t stopped_ns;  /* by a signal or a debugger */
    uint64_t unknown_ns;  /* of samples that were not captured */
    int error;            /* why sampling ended before its time: 0 or a negative errno */
};

/* Valid as long as the profile. */
FGPROF_API const struct fgprof_summary *fgprof_profile_summary(const fgprof_profile *profile);

/* The modules that could not be read, as "/usr/lib/libfoo.so (damaged or cut short)": numbered from
 * 0; NULL behind the last. Valid as long as the profile. */
FGPROF_API const char *fgprof_profile_unreadable_module(const fgprof_profile *profile,
                                                        size_t number);

/* What a thread did in a part of its time. */
enum fgprof_state {
    FGPROF_STATE_UNKNOWN, /* of samples that were not captured */
    FGPROF_STATE_RUNNING,
    FGPROF_STATE_RUNNABLE, /* waiting for a CPU */
    FGPROF_STATE_WAITING,  /* for anything else */
    FGPROF_STATE_STOPPED,  /* by a signal or a debugger */
    FGPROF_STATE_COUNT
};

/* The time of all threads in one function: in itself, and in all that it called. A stack that it is
 * in more than once counts once. Equal functions have equal names and modules. */
struct fgprof_function {
    const char *name;   /* NULL: not known, all such code of the module together */
    const char *module; /* its path, or as "[vdso]"; "" where there is none */
    uint64_t self_ns, total_ns;
    uint64_t state_ns[FGPROF_STATE_COUNT]; /* total_ns in parts: what its thread did meanwhile */
};

/* The time of one thread in one state, system call and leaf function. */
struct fgprof_activity {
    pid_t tid; /* 0 unless threads are told apart by id */
    const char *thread_name;
    enum fgprof_state state;
    const char *syscall;  /* that it waited in; "": none */
    const char *function; /* as in struct fgprof_function */
    const char *module;
    uint64_t time_ns;
};

/* Rows of the samples that fgprof_profile_set_kept keeps, in no order, for the caller to free(3);
 * their strings are valid as long as the profile. `tids`, ascending: of these threads alone; NULL:
 * of all. -ENOMEM. */
FGPROF_API int fgprof_profile_functions(const fgprof_profile *profile, const pid_t *tids,
                                        size_t tid_count, struct fgprof_function **ret_rows,
                                        size_t *ret_count);
FGPROF_API int fgprof_profile_activities(const fgprof_profile *profile,
                                         struct fgprof_activity **ret_rows, size_t *ret_count);

enum fgprof_format {
    FGPROF_FOLDED, /* flamegraph.pl's: "root;caller;leaf COUNT" lines, sorted */
    FGPROF_PPROF,  /* gzipped profile.proto (github.com/google/pprof/proto/profile.proto) */
    FGPROF_TEXT,   /* Go's legacy profile text, as of its pprof with debug=1 */
    /* speedscope's JSON: one profile a thread, in the order of time. Needs the timeline; of the
     * flags of FGPROF_FOLDED, lines and state hold for it too. */
    FGPROF_SPEEDSCOPE,
    /* All of the profile, gzipped, for fgprof_profile_read: samples that are not kept too, and
     * threads as they were recorded. */
    FGPROF_RAW,
    FGPROF_HTML, /* a page with a flame graph, alone; with threads by id it tells all apart */
};

/* How FGPROF_FOLDED writes frames; the others write all they know. */
enum fgprof_folded_flags {
    FGPROF_FOLDED_THREADS = 1, /* a root frame with the thread's name, "name/tid" by id */
    /* "function (file:line)"; without a name "libfoo.so+0x1234", the file's own address, and not
     * "[libfoo.so]" */
    FGPROF_FOLDED_LINES = 2,
    /* A leaf frame with what the thread was doing: "[running]"; "[runnable]", waiting for a CPU;
     * "[futex]", the system call that it slept in, or "[sleeping]"; "[uninterruptible:
     * io_schedule]", with the kernel's function that it waited in; "[stopped]"; "[unknown]". */
    FGPROF_FOLDED_STATE = 4,
    /* A root frame with the process, "name/pid", before the thread's. The other formats say it as
     * labels, "process" and "pid", where more than one was sampled, or this is set. */
    FGPROF_FOLDED_PROCESSES = 8,
};
FGPROF_API int fgprof_profile_set_folded_flags(fgprof_profile *profile, unsigned flags);

/* Which samples are written, in all formats. */
enum fgprof_kept {
    FGPROF_KEPT_ALL, /* the default */
    FGPROF_KEPT_ON_CPU,
    FGPROF_KEPT_OFF_CPU, /* all others: of threads that waited, for a CPU too, or were stopped */
};
/* -EINVAL for a value that is none of the enum's. */
FGPROF_API int fgprof_profile_set_kept(fgprof_profile *profile, enum fgprof_kept kept);

/* Whose stacks are told apart when it is written: FGPROF_THREADS_BY_NAME makes of a recording by id
 * what one by name had given. The default is as it was recorded. -EINVAL for a value that is none
 * of the enum's. */
FGPROF_API int fgprof_profile_set_threads(fgprof_profile *profile, enum fgprof_threads threads);

/* The command line that makes or writes the profile: FGPROF_HTML shows it. Unless the profile was
 * read from a file, it is also the one that recorded it, which FGPROF_RAW keeps, FGPROF_PPROF has
 * as a comment, and FGPROF_HTML shows of a profile that was read, too. Copied; NULL: none, the
 * default. -ENOMEM. */
FGPROF_API int fgprof_profile_set_command(fgprof_profile *profile, const char *command);

/* Writes to `fd`, from its current offset. Errors are write(2)'s (-EPIPE only where SIGPIPE is
 * ignored), -EINVAL for an unknown format, -ENODATA for one that needs
 * a timeline where none was kept, -ENOMEM; after one, what was written is not whole. */
FGPROF_API int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format,
                                    int fd);

/* Reads what was written as FGPROF_RAW, from the file's beginning: the profile is as it was before,
 * with all settings as at first. The file need not be trusted: all that is in it is checked.
 * Errors are open(2)'s and read(2)'s, -ENOMEM, and
 *   -ENOEXEC          it is no regular file
 *   -EILSEQ           it is no such recording
 *   -EPROTONOSUPPORT  it is one of a later version of the format
 *   -EBADMSG          it is damaged: what is in it, or its checksum
 *   -ENODATA          it is cut short
 *   -EFBIG            it has more than 256 MiB once it is inflated */
FGPROF_API int fgprof_profile_read(const char *path, fgprof_profile **ret_profile);

/* The version of the format that FGPROF_RAW writes, and the latest that fgprof_profile_read reads.
 */
#define FGPROF_RECORDING_VERSION 1

/* The version of the file's format, also where that is a later one. Errors as of
 * fgprof_profile_read; but what follows the version is not checked. */
FGPROF_API int fgprof_recording_version(const char *path, unsigned *ret_version);

/* Writes how two profiles differ, as a page (FGPROF_HTML) that shows what grew red and what shrank
 * blue, or (FGPROF_FOLDED) as difffolded.pl does (brendangregg/FlameGraph), for flamegraph.pl:
 * "root;caller;leaf COUNT1 COUNT2" lines, sorted, with the samples of `before` and of `after`, each
 * as its own settings choose and fold them. `is_normalized`: those of `before` as if it had as many
 * in all as `after`. Errors as of fgprof_profile_write; -EINVAL for another format. */
FGPROF_API int fgprof_profile_write_difference(const fgprof_profile *before,
                                               const fgprof_profile *after,
                                               enum fgprof_format format, bool is_normalized,
                                               int fd);

FGPROF_API void fgprof_profile_free(fgprof_profile *profile);

/* ---- Dump: what every thread does now ---- */

typedef struct fgprof_dump fgprof_dump;

/* Takes the stack of every thread of the recorder's processes once, with what it waits for: the
 * lock and its owner, the file or socket, the time. Instead of fgprof_recorder_run, with its errors
 * and those that end sampling. The dump is the caller's, and does not need the recorder any more.
 * Threads that sleep are not stopped. */
FGPROF_API int fgprof_recorder_dump(fgprof_recorder *recorder, fgprof_dump **ret_dump);

enum fgprof_dump_format {
    FGPROF_DUMP_TEXT,    /* a paragraph for each thread, much as Go's goroutines with debug=2 */
    FGPROF_DUMP_GROUPED, /* one for each distinct stack, most threads first, as with debug=1 */
    FGPROF_DUMP_JSON,
};

/* As fgprof_profile_write. */
FGPROF_API int fgprof_dump_write(const fgprof_dump *dump, enum fgprof_dump_format format, int fd);

/* How many threads it has, and how many groups of them wait for each other in a circle. */
FGPROF_API size_t fgprof_dump_threads(const fgprof_dump *dump);
FGPROF_API size_t fgprof_dump_deadlocks(const fgprof_dump *dump);

/* As of fgprof_profile_summary; its times and ticks are of no use here. Valid as long as the dump.
 */
FGPROF_API const struct fgprof_summary *fgprof_dump_summary(const fgprof_dump *dump);

FGPROF_API void fgprof_dump_free(fgprof_dump *dump);

/* ---- Processes by name ---- */

/* Lists the processes whose name (/proc/PID/comm) the extended regular expression (regex(7)) is
 * found in, in no order; not the calling process, kernel threads and zombies. *ret_pids is for the
 * caller to free(3). -EINVAL where it is no regular expression, -ENOMEM, or what opening /proc
 * gives. */
FGPROF_API int fgprof_find_processes(const char *regex, pid_t **ret_pids, size_t *ret_count);

/* Writes the name of process `pid` into `buffer`, cut to `buffer_bytes`. False, and "", where it
 * can't be read. */
FGPROF_API bool fgprof_process_name(pid_t pid, char *buffer, size_t buffer_bytes);

/* ---- Errors in words ---- */

/* Writes into `buffer` one line, cut to `buffer_bytes`, on why attaching to `pid` failed with the
 * negative errno `error`, and what would help. Looks at the process and the system for it. */
FGPROF_API void fgprof_explain(pid_t pid, int error, char *buffer, size_t buffer_bytes);

#ifdef __cplusplus
}
#endif

#endif

/* fgprof.h - samples the stacks of all threads of running processes, on and off the CPU.
 *
 * How to use it:
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
 * Conventions:
 * - A function that returns int returns 0 or a negative errno. A result behind a pointer named
 *   ret_* is written only on success. If it is an object, the caller frees it.
 * - All _free functions accept NULL.
 * - Times are in nanoseconds. Sampling uses CLOCK_MONOTONIC.
 * - The library never prints.
 * - Use each object from one thread at a time, except with the functions that say otherwise.
 *
 * Compatibility: a program that was built with this header also runs with later libraries of the
 * same major version, without being compiled again.
 * - Structs only grow at their end. If the library fills in a struct of yours, pass its size:
 *   fields that your struct does not have are left out, and fields that the library does not know
 *   are set to zero. The library's struct fgprof_progress contains its own size.
 * - Enums only get new values. Treat a value that you do not know as "something else".
 * - All other types are opaque.
 * - Each function keeps its symbol version, which names the release that added it. */
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

/* Returns the library's version, for example "0.1.0". The string is static. */
FGPROF_API const char *fgprof_version(void);

/* ---- Options: how to sample, and how to label the samples ---- */

typedef struct fgprof_options fgprof_options;

/* Whether threads of the same name share their samples. */
enum fgprof_threads {
    FGPROF_THREADS_BY_NAME, /* equal stacks of threads with equal names are one sample */
    FGPROF_THREADS_BY_ID,   /* each thread has its own samples, labelled with its id */
};

/* How functions are named. */
enum fgprof_names {
    /* As pprof shows them: C++ names without parameters, return type and template arguments. */
    FGPROF_NAMES_SHORT,
    FGPROF_NAMES_FULL, /* demangled in full */
    FGPROF_NAMES_RAW,  /* as the symbol table or the debug information has them: not demangled */
};

/* How running threads are observed, and whether the kernel records where the others left their CPUs
 * (bpf(2)), so that their state at a tick is known. Without that record, they are observed after
 * the tick. */
enum fgprof_capture {
    FGPROF_CAPTURE_AUTO,   /* sampled by the kernel if that is permitted, else stopped */
    FGPROF_CAPTURE_KERNEL, /* sampled by the kernel (perf_event_open(2)), without any pause */
    FGPROF_CAPTURE_PTRACE, /* stopped for a moment (ptrace(2)); the kernel does not record */
    FGPROF_CAPTURE_RECORD, /* as FGPROF_CAPTURE_AUTO, and the kernel must be permitted to record */
};

/* What a profile is about. */
enum fgprof_kind {
    /* Where threads spend their time, running or waiting: as it is recorded. */
    FGPROF_KIND_WALL,
    /* Where they run. */
    FGPROF_KIND_CPU,
    /* Where threads wait for other threads, as in Go's block profile: for locks, condition
     * variables, semaphores, barriers, and threads to exit. */
    FGPROF_KIND_BLOCK,
    /* Where threads hold locks that others wait for, as in Go's mutex profile, but by where the
     * owner was meanwhile, and not by where it released the lock: the stack and thread are the
     * owner's, and the time is that of all waiters. */
    FGPROF_KIND_MUTEX,
    /* Waits under their owners: the stack of the owning thread, a frame such as "[holds mutex
     * g_lock]" or "[pipe to sort/123]", the name of the waiting thread, and its stack. If the owner
     * waits itself, its own owner comes first, and so on. A wait without a known owner is under the
     * thread that ended it, and left out if that is not known either. */
    FGPROF_KIND_BLAME,
    /* The kinds from here on are of objects and not of time: what code made, and whether it still
     * exists. See fgprof_recorder_objects. */
    /* Memory in use, by the stacks that allocated it, as in Go's heap profile. The program must
     * have fgprof-c's agent in it. */
    FGPROF_KIND_HEAP,
    /* The same, but everything that was allocated is shown first, as in Go's allocs profile. */
    FGPROF_KIND_ALLOCS,
    /* Resident memory, by the stacks that touched it first: of any program. */
    FGPROF_KIND_GROWTH,
    /* Threads, by the stacks that created them, as in Go's threadcreate profile. */
    FGPROF_KIND_THREADCREATE,
    /* A profile that a program keeps itself, as with Go's NewProfile: see fgprof_profiles.h. */
    FGPROF_KIND_CUSTOM,
};

/* How far sampling has come. */
struct fgprof_progress {
    size_t bytes;         /* the size of this struct in the library: later fields are not there */
    uint64_t elapsed_ns;  /* since sampling began */
    uint64_t duration_ns; /* as it was set; 0: no limit */
    uint64_t threads;     /* that were alive at the last tick */
    uint64_t samples;     /* taken so far, in ticks: a sample may stand for several */
    uint64_t stacks;      /* distinct ones */
    uint64_t ticks_late;  /* ticks that were not taken on time */
    uint64_t deadlocks;   /* that were found so far */
    uint64_t ticks;       /* that were taken so far */
    /* Samples of running threads that the kernel dropped, or that it took of threads that were gone
     * before they were listed. */
    uint64_t samples_lost;
    uint64_t samples_not_kept; /* without a stack, because it did not fit in memory */
    uint64_t processes_joined; /* that had ended, and are shown together by name */
};

/* Called a few times a second while fgprof_recorder_run samples, in the thread that called it. The
 * callback may be slow: sampling continues meanwhile. `progress` is valid during the call. */
typedef void fgprof_progress_fn(const struct fgprof_progress *progress, void *context);

/* Makes options with these defaults: 99 Hz, no duration, depth 1024, pauses of at most 2 percent,
 * threads by name, short function names. The caller frees them. Errors: -ENOMEM. */
FGPROF_API int fgprof_options_new(fgprof_options **ret_options);

/* Recorders that were made with the options do not need them any more. */
FGPROF_API void fgprof_options_free(fgprof_options *options);

/* Sets the number of ticks per second: 1 to 1000. Each comes at a random moment of its part of the
 * second, so that ticks are in step with nothing that the program does. Errors: -ERANGE. */
FGPROF_API int fgprof_options_set_rate(fgprof_options *options, unsigned hertz);

/* Sets how long to sample. 0, the default: until all processes have exited or
 * fgprof_recorder_stop is called. */
FGPROF_API int fgprof_options_set_duration_ns(fgprof_options *options, uint64_t duration_ns);

/* Sets the number that determines the random moments of all ticks: the same seed gives the same
 * moments, relative to the start. Default: a random 32-bit number for each recorder, which is in
 * the summary. */
FGPROF_API int fgprof_options_set_seed(fgprof_options *options, uint64_t seed);

/* Sets how many frames of a stack are kept, counted from the leaf: at least 1. A deeper stack ends
 * in the frame "[truncated: max depth]". Errors: -ERANGE. */
FGPROF_API int fgprof_options_set_max_depth(fgprof_options *options, size_t frames);

/* Sets the largest share of its running time that a thread may lose to pauses, in percent: more
 * than 0, at most 100. A thread that would lose more if it were stopped at each tick is stopped
 * less often, and each of its samples then stands for more ticks. If the machine stalls while a
 * thread is paused, only 2 ms of that pause are charged to the thread, as long as its pauses exceed
 * its share by less than 500 ms in all. Errors: -ERANGE. */
FGPROF_API int fgprof_options_set_max_pause(fgprof_options *options, double percent);

/* Sets how running threads are observed; the default is FGPROF_CAPTURE_AUTO. With
 * FGPROF_CAPTURE_KERNEL, fgprof_recorder_new fails if the kernel does not permit it: it needs
 * CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8, and on some kernels if kernel.perf_event_paranoid is
 * 3 or more) or kernel.perf_event_paranoid of at most 1. Even then, threads that the kernel can't
 * sample well are stopped: those whose stack needs more than 63 KiB, or continues elsewhere. With
 * FGPROF_CAPTURE_RECORD it fails without CAP_BPF and CAP_PERFMON, without BTF, and before Linux
 * 5.15 (on aarch64 5.18). Errors: -EINVAL for an unknown value. */
FGPROF_API int fgprof_options_set_capture(fgprof_options *options, enum fgprof_capture capture);

/* Sets whether threads of the same name share their samples. Errors: -EINVAL for an unknown value.
 */
FGPROF_API int fgprof_options_set_threads(fgprof_options *options, enum fgprof_threads threads);

/* Sets how functions are named. In FGPROF_PPROF, a function's system_name is always the name from
 * the symbol table. Errors: -EINVAL for an unknown value. */
FGPROF_API int fgprof_options_set_names(fgprof_options *options, enum fgprof_names names);

/* Samples only threads whose current name matches the extended regular expression (regex(7))
 * anywhere, and those of fgprof_options_add_thread_id. All others are neither read nor stopped. A
 * thread's time counts from the moment it is first seen with such a name. The expression is
 * copied. Errors: -EINVAL if it is not a regular expression, -ENOMEM. */
FGPROF_API int fgprof_options_set_thread_name(fgprof_options *options, const char *regex);

/* Samples only the thread with this id, as the caller's PID namespace numbers it, and those of
 * fgprof_options_set_thread_name. Call it again to add more threads. Errors: -EINVAL if the id is
 * not positive, -ENOMEM. */
FGPROF_API int fgprof_options_add_thread_id(fgprof_options *options, pid_t tid);

/* Sets whether to keep the samples of threads that never moved from the beginning of the recording
 * to its end. Default: true. */
FGPROF_API int fgprof_options_set_idle(fgprof_options *options, bool are_kept);

/* Sets whether the stacks of threads continue in the kernel: for sleeping threads down to the
 * function in which they wait, and for running threads, if the kernel samples them, down to the
 * function that they run. Default: false. fgprof_recorder_new fails without CAP_SYS_ADMIN. */
FGPROF_API int fgprof_options_set_kernel_stacks(fgprof_options *options, bool are_wanted);

/* Sets whether stacks of threads that run Python keep the interpreter's own frames, in addition to
 * the Python functions that these run. Default: false: only Python functions and those of libraries
 * are shown. */
FGPROF_API int fgprof_options_set_native_frames(fgprof_options *options, bool are_kept);

/* Sets whether goroutines of Go programs are sampled: waiting ones are read from memory, without a
 * stop, and threads that have none to run are left out. Goroutines are not sampled if threads are
 * selected by name or id, or spans by fgprof_options_set_slow. Default: true. */
FGPROF_API int fgprof_options_set_goroutines(fgprof_options *options, bool are_wanted);

/* Sets whether tasks of asyncio (Python 3.11 to 3.15) are sampled, too: suspended ones are read
 * from memory, without a stop, and count where they are suspended, next to the event loop's thread.
 * The label "task" has the name that the program gave the task. Tasks are not sampled if threads
 * are selected by name or id, or spans by fgprof_options_set_slow. A dump always has them. Default:
 * false. */
FGPROF_API int fgprof_options_set_tasks(fgprof_options *options, bool are_wanted);

/* Sets whether to sample the descendants of the processes too, each as a separate process, from its
 * birth, and even after its parent has exited. The calling process is never sampled, nor are
 * helpers of other profilers that are already running. Sampling still ends when a spawned command
 * exits. Default: false. */
FGPROF_API int fgprof_options_set_children(fgprof_options *options, bool are_followed);

/* Sets whether to keep the order of each thread's samples, which FGPROF_SPEEDSCOPE and
 * FGPROF_FIREFOX need and FGPROF_HTML shows. Up to 4,194,304 runs of equal samples are kept, of 16
 * bytes each. After that the timelines end, and the summary's timeline_lost_ns says how much time
 * is missing from them. Default: false. */
FGPROF_API int fgprof_options_set_timeline(fgprof_options *options, bool is_wanted);

/* Keeps only the last part of the recording, so that it can run forever:
 * fgprof_recorder_profile_last reaches back `keep_ns`, and every other profile at most slightly
 * further, by a twelfth of that or half a second. Earlier samples are forgotten, and so are stacks,
 * timelines, what threads waited for, and threads that have ended: they stay counted by name, with
 * up to 1,000 names. Processes, the names of functions, and mappings of running programs stay.
 * Timelines are kept, and all profiles have them, even those of a recording that is still running.
 * `bytes`: how much memory all of that may take, at least 1 MiB; 0, for 64 MiB. What is known of
 * the mappings, files and code of running programs can't be forgotten, and counts as at most half
 * of it. If it is not enough, less time is kept, but at least a second: a profile then begins
 * later, and its timelines may begin even later. While a profile is made, as much memory again is
 * needed. UINT64_MAX: no limit, and stacks are kept as with fgprof_options_set_keep_stacks. If
 * keep_ns is 0, the whole recording is kept, and `bytes` is the memory for all of it: beyond that,
 * processes and threads that have ended are shown together, by name, as the summary's
 * processes_joined and ended_are_joined say; if that is not enough, new stacks are not kept
 * (samples_not_kept). This is the default, with 256 MiB. Errors: -ERANGE if `bytes` is too small,
 * or it and keep_ns are 0. */
FGPROF_API int fgprof_options_set_keep(fgprof_options *options, uint64_t keep_ns, uint64_t bytes);

/* Sets whether stacks are kept since the start, even if keep_ns is not 0, so that profiles of the
 * whole recording can be made as well as of its last part. Then only timelines are forgotten after
 * keep_ns, and the ids of threads and processes that have ended, whose samples are merged by name.
 * `bytes` of 0 then means 256 MiB. If the memory is not enough, what has ended is merged earlier,
 * and fgprof_recorder_profile_last reaches back less far, but at least a second; once earlier
 * stacks take half of the memory, new ones are not kept. Default: false. */
FGPROF_API int fgprof_options_set_keep_stacks(fgprof_options *options, bool are_kept);

/* Sets whether the trace and span ids of OpenTelemetry's thread context, if threads publish them,
 * become labels of the samples, "trace_id" and "span_id". There are many of them: see the summary's
 * labels_limited. All other labels that threads give themselves are always read. Default: false. */
FGPROF_API int fgprof_options_set_trace_ids(fgprof_options *options, bool are_wanted);

/* Keeps only the samples of spans that last longer than `min_ns`: a span is the time for which
 * ticks find a thread with the same value of the label `key`, which is copied, and the same trace
 * and span ids. Samples of a span are set aside until it has lasted that long; those of shorter
 * spans, and those without the label, are left out. The summary's `samples` nevertheless counts
 * them; its spans_kept and spans_dropped say how many spans there were. Spans are measured in
 * ticks. Two spans with the same value and without ids count as one if no tick falls between them.
 * There are no timelines then. Errors: -EINVAL if `key` is empty, -ENOMEM. */
FGPROF_API int fgprof_options_set_slow(fgprof_options *options, const char *key, uint64_t min_ns);

/* Also records objects (enum fgprof_kind, from FGPROF_KIND_HEAP on): see fgprof_recorder_objects.
 * May be called for several kinds. Errors: -EINVAL for a kind of time. */
FGPROF_API int fgprof_options_add_objects(fgprof_options *options, enum fgprof_kind kind);

/* Sets whether time is recorded: threads are observed at each tick. If not, only objects are
 * recorded, and profiles of time are empty. Default: true. */
FGPROF_API int fgprof_options_set_time(fgprof_options *options, bool is_recorded);

/* Sets how allocations are sampled: one for each `rate_bytes` on average, 512 KiB by default. If
 * `has_mappings`, memory that the program maps itself (mmap(2)) counts as an allocation. Errors:
 * -ERANGE if rate_bytes is 0. */
FGPROF_API int fgprof_options_set_heap(fgprof_options *options, uint64_t rate_bytes,
                                       bool has_mappings);

/* Sets the function that progress is reported to, and the pointer that it gets. NULL: none. */
FGPROF_API int fgprof_options_set_progress(fgprof_options *options, fgprof_progress_fn *callback,
                                           void *context);

/* Called if the kernel refuses the record of switches (record_refusal), at most once for a
 * recorder, in any thread, before fgprof_recorder_new or fgprof_recorder_run returns. `log` is the
 * output of the kernel's verifier and of libbpf, from a few lines to several MiB, valid until the
 * function returns. */
typedef void fgprof_bpf_log_fn(const char *log, void *context);

/* Sets the function that gets this log, and the pointer that is passed to it. NULL, the default:
 * none. */
FGPROF_API int fgprof_options_set_bpf_log(fgprof_options *options, fgprof_bpf_log_fn *callback,
                                          void *context);

/* Called while debug information is fetched, in the thread that makes a profile: that of
 * fgprof_recorder_run, or of a function such as fgprof_recorder_profile_so_far. `path` is the
 * module that it belongs to, `share` the part of the file that has arrived, 0 to 1. */
typedef void fgprof_fetch_fn(const char *path, double share, void *context);

/* Sets how long, in total, to wait for debug information that is not on this machine. It is fetched
 * by build id from the servers in the environment variable DEBUGINFOD_URLS (debuginfod(7)). 0, the
 * default: nothing is fetched. `callback` may be NULL. Errors: -ENOTSUP if libdebuginfod is not
 * installed. */
FGPROF_API int fgprof_options_set_debuginfod(fgprof_options *options, uint64_t limit_ns,
                                             fgprof_fetch_fn *callback, void *context);

/* ---- Recorder: chooses processes and samples them ---- */

typedef struct fgprof_recorder fgprof_recorder;
typedef struct fgprof_profile fgprof_profile;

/* Makes a recorder with a copy of the options. The caller frees it. It forks two processes without
 * privileges that read files of the targets. They are children of the calling process, and end with
 * the recorder, or when the calling process ends. Errors: -ENOMEM; -EMFILE; -EAGAIN if no thread or
 * process can be started; if kernel stacks are wanted, -EACCES without CAP_SYS_ADMIN, and -ENOENT
 * if the kernel does not provide them; with FGPROF_CAPTURE_KERNEL, those of perf_event_open(2),
 * such as -EACCES and -EPERM; with FGPROF_CAPTURE_RECORD, those of bpf(2), such as -EPERM, and
 * -ENOTSUP if the kernel is too old. */
FGPROF_API int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder);

/* A spawned command that has not exited runs on, and remains a child of the calling process. */
FGPROF_API void fgprof_recorder_free(fgprof_recorder *recorder);

/* Adds the running process `pid` with all its threads, including those that start later. The
 * process is not touched yet. If it is a child of the calling process, and exits just while its
 * first thread is stopped for a sample, its exit status is lost: waitpid(2) then fails with ECHILD.
 * With fgprof_recorder_spawn that can't happen. Errors:
 *   -ESRCH    there is no such process, or it is a zombie
 *   -EDEADLK  it is the calling process
 *   -ENOEXEC  it is a kernel thread
 *   -EINVAL   it is the id of a thread, not of a process
 *   -EBUSY    another process traces it (ptrace allows one tracer)
 *   -ENOTSUP  it is a 32-bit program
 *   -EPERM    the caller has no permission
 *   -EXDEV    /proc belongs to another PID namespace
 *   -EEXIST   it was already added
 *   -ENOMEM, -EMFILE, -ENFILE
 * fgprof_explain describes them in words. */
FGPROF_API int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid);

/* Returns whether one of the processes that were added has the thread `tid`. */
FGPROF_API bool fgprof_recorder_has_thread(const fgprof_recorder *recorder, pid_t tid);

/* Starts the program argv[0] and adds it, from its exec on. The program is searched for in PATH; it
 * gets the arguments `argv`, which end with NULL, and the environment of the calling process.
 * `stdout_fd` becomes its standard output, unless it is -1. A recorder starts only one command. The
 * command is a child of the calling process. Wait for it with fgprof_recorder_wait and in no other
 * way. Errors: those of execvp (-ENOENT, -EACCES, -ENOEXEC ...), -EEXIST if the recorder has
 * already started a command, and those of fgprof_recorder_attach, in which case the command runs
 * on. If allocations are recorded, the command also gets the agent by LD_PRELOAD, and so do the
 * processes that it starts, if these are recorded, too. The same holds if threads are recorded
 * (FGPROF_KIND_THREADCREATE) and the kernel does not report their stacks; it is then no error if
 * the agent can't be loaded. Errors if allocations are recorded: -ELIBACC if libfgprof-agent.so
 * is found neither next to the program or library nor where libraries are installed; -ELIBBAD if
 * its path has a space or a colon. */
FGPROF_API int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd);

/* Returns the process id of the spawned command, or 0 if there is none or its exit has been seen.
 * May be called from any thread and from a signal handler. */
FGPROF_API pid_t fgprof_recorder_child(const fgprof_recorder *recorder);

/* Samples until the duration has passed, all processes have exited, the spawned command has exited,
 * or fgprof_recorder_stop is called. Then looks up names. The caller frees the profile, which does
 * not need the recorder any more. A recorder runs once. Errors: -ESRCH if no process was added,
 * -EALREADY if the recorder has run before, -ENOMEM, -EAGAIN if no thread can be started. If
 * sampling ends early, there still is a profile: see the summary's `error`. During sampling,
 * SIGCHLD is blocked in the calling thread and taken by the sampling thread, unless another thread
 * of the program takes it. Raises the calling process's soft limit of open files to the hard limit,
 * because two or three files are kept open for each thread. */
FGPROF_API int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile);

/* Makes a profile of what was found so far, while fgprof_recorder_run continues: call it from the
 * progress callback or from another thread. The caller frees the profile. Sampling is not delayed.
 * Once sampling has ended, the profile is that of the whole recording. The names are kept for the
 * next call, which looks up only new ones. From the first call until it is freed, the recorder
 * holds all stacks twice. Threads that have not moved are included, because only the end of the
 * recording shows that a thread never moved. Errors: -ESRCH if sampling has not begun, -ENOMEM. */
FGPROF_API int fgprof_recorder_profile_so_far(fgprof_recorder *recorder,
                                              fgprof_profile **ret_profile);

/* Makes a profile of the objects of one kind that were found so far, or during the whole recording
 * if it has ended: see fgprof_options_add_objects. `name`: for FGPROF_KIND_CUSTOM, which profile;
 * otherwise NULL. May be called like fgprof_recorder_profile_so_far, and after fgprof_recorder_run.
 * Errors: those of that function, and
 *
 *   -EINVAL           objects of this kind are not recorded
 *   -ENOENT           no process has a source of them: for allocations, the agent
 *   -ENOEXEC          the same, and it is linked statically, so that no agent can be preloaded
 *   -EPERM            the same, and it has more rights than its user: nothing is preloaded then; or
 *                     the kernel does not permit what is needed
 *   -EACCES           the kernel does not permit opening the agent's memory or, for
 *                     FGPROF_KIND_GROWTH, the events
 *   -ENOSYS, -EMFILE, -ENFILE
 *                     for FGPROF_KIND_GROWTH: no event can be opened
 *   -EBUSY            another profiler reads the agent
 *   -EPROTONOSUPPORT  the agent is of another version
 *   -EBADMSG          the agent's memory is damaged
 *   -EBADF            the program has closed the agent's file: CAP_CHECKPOINT_RESTORE would help
 *
 * fgprof_explain_objects describes them in words. */
FGPROF_API int fgprof_recorder_objects(fgprof_recorder *recorder, enum fgprof_kind kind,
                                       const char *name, fgprof_profile **ret_profile);

/* Counts the objects of one kind that the recorder knows: sampled allocations in use; for
 * FGPROF_KIND_ALLOCS, all sampled allocations; for threads, all that were created. Cheaper than a
 * profile. See fgprof_recorder_objects. */
FGPROF_API int fgprof_recorder_count_objects(fgprof_recorder *recorder, enum fgprof_kind kind,
                                             const char *name, uint64_t *ret_count);

/* Checks, before fgprof_recorder_run, whether objects of this kind can be recorded for one of the
 * added processes. That may still become possible later, as programs load libraries. Errors: those
 * of fgprof_recorder_objects. */
FGPROF_API int fgprof_recorder_check_objects(fgprof_recorder *recorder, enum fgprof_kind kind);

/* A moment of a recording. */
typedef struct fgprof_moment fgprof_moment;

/* Marks this moment, so that a profile can be made of what comes after it. Call it like
 * fgprof_recorder_profile_so_far, with the same errors. The caller frees the moment, which takes
 * about 50 bytes for each distinct sample so far. It may be freed after its recorder. */
FGPROF_API int fgprof_recorder_moment(fgprof_recorder *recorder, fgprof_moment **ret_moment);

/* Makes a profile of what was found since a moment of this recorder; NULL: since the start. Any
 * number of such profiles may overlap: the processes are sampled once. Call it like
 * fgprof_recorder_profile_so_far, with the same errors. The profile's time, ticks and samples are
 * those since the moment; the summary's numbers of threads and processes, and deadlocks, are those
 * of the whole recording so far. Such a profile has timelines only if fgprof_options_set_keep was
 * called, and then none that are longer. */
FGPROF_API int fgprof_recorder_profile_since(fgprof_recorder *recorder, const fgprof_moment *moment,
                                             fgprof_profile **ret_profile);

/* Makes a profile of the last `last_ns`; needs fgprof_options_set_keep. It begins at a kept moment,
 * so it is somewhat longer. If less is kept, or the recording is younger, it is shorter: the
 * summary's elapsed_ns is its length. Otherwise it is like fgprof_recorder_profile_since. */
FGPROF_API int fgprof_recorder_profile_last(fgprof_recorder *recorder, uint64_t last_ns,
                                            fgprof_profile **ret_profile);

/* Like fgprof_recorder_profile_since, and moves the moment to the end of the profile: consecutive
 * profiles that are made this way neither overlap nor leave gaps. Call it with *moment NULL for the
 * first one. The caller frees the last moment. After an error *moment is as before. */
FGPROF_API int fgprof_recorder_profile_next(fgprof_recorder *recorder, fgprof_moment **moment,
                                            fgprof_profile **ret_profile);

FGPROF_API void fgprof_moment_free(fgprof_moment *moment);

/* Returns the name of a kind of memory that a recording keeps, such as "stacks", and its bytes when
 * a profile or moment was last made, or kept for fgprof_recorder_profile_last. Kinds are numbered
 * from 0; NULL after the last. May be called while fgprof_recorder_run is running, from any thread,
 * once fgprof_recorder_profile_so_far can be. */
FGPROF_API const char *fgprof_recorder_kept_memory(const fgprof_recorder *recorder, size_t kind,
                                                   uint64_t *ret_bytes);

/* Makes fgprof_recorder_run end soon. May be called from any thread and from a signal handler. */
FGPROF_API void fgprof_recorder_stop(fgprof_recorder *recorder);

/* Waits until the spawned command has exited. *ret_status is that of waitpid(2). Errors: -ECHILD if
 * no command was started, or it has been waited for. */
FGPROF_API int fgprof_recorder_wait(fgprof_recorder *recorder, int *ret_status);

/* ---- Profile: what was found ---- */

/* Flags of python_version, below. */
#define FGPROF_PYTHON_FREE_THREADED (1ull << 32) /* it is built without a GIL */
#define FGPROF_PYTHON_BESIDE (1ull << 33)        /* its process has another one, which was read */

/* A flag of go_version, below: no list of goroutines was found that makes sense. */
#define FGPROF_GO_WITHOUT_LIST (1ull << 32)

/* How the recording went. Times and counts cover all of it. Samples are counted in ticks: a sample
 * may stand for several. */
struct fgprof_summary {
    int error;              /* why sampling ended early: 0 or a negative errno */
    bool lacks_files;       /* too few files may be open for all threads: sampling cost more */
    uint64_t elapsed_ns;    /* how long it sampled */
    uint64_t ticks_planned; /* that were due in this time */
    uint64_t ticks_taken;
    uint64_t ticks_late; /* planned, but not taken on time: later ticks count for them */
    uint64_t threads_seen;
    uint64_t threads_chosen;       /* those to be sampled: all, unless threads were chosen */
    uint64_t threads_idle;         /* that never moved and whose samples were dropped, if so set */
    uint64_t idle_ns;              /* the time of those */
    uint64_t processes_seen;       /* that were sampled */
    uint64_t processes_refused;    /* descendants that could not be: see fgprof_recorder_attach */
    uint64_t samples;              /* all that were counted */
    uint64_t samples_cut;          /* whose stack does not reach the first frame of its thread */
    uint64_t samples_unnamed;      /* with a frame that has no function name */
    uint64_t samples_not_captured; /* without a stack: the thread was not observed in time */
    uint64_t samples_assumed; /* between two looks at a thread that moved in between, or before the
                                 first look */
    uint64_t samples_thinned; /* ticks at which a running thread was not stopped, to spare it */
    uint64_t observations_put_off; /* made later, because counting was behind */
    uint64_t stacks;               /* distinct ones */
    uint64_t modules_unreadable;   /* files that could not be read, so that frames lack names */
    uint64_t timeline_lost_ns;     /* time of all threads after the end of the timelines */
    /* Perf maps and jitdumps, in which processes name the code that they generate: files that were
     * not trusted, because they are not regular files, belong to another user or are older than the
     * process; and bytes of other files that were left out, because they were too many or broken.
     */
    uint64_t jit_files_refused, jit_bytes_unread;
    uint64_t pauses; /* how often a running thread was paused */
    uint64_t pause_median_ns, pause_p99_ns, pause_max_ns;
    double pause_share; /* of the time in which threads were running: 0 to 1 */
    /* The time of all threads, by what they were doing. The five add up to all of it. */
    uint64_t running_ns;
    uint64_t runnable_ns; /* waiting for a CPU */
    uint64_t waiting_ns;  /* for anything else */
    uint64_t stopped_ns;  /* by a signal or a debugger */
    uint64_t unknown_ns;  /* of samples that were not captured */
    uint64_t seed;        /* of the ticks' random moments: see fgprof_options_set_seed */
    /* How running threads were observed: see fgprof_options_set_capture. */
    bool has_kernel_samples;         /* the kernel could sample them; false: they were stopped */
    bool has_thread_events;          /* with an event for each thread, not for each CPU */
    int kernel_refusal;              /* an errno: why it could not; 0: it could, or was not tried */
    uint64_t kernel_samples;         /* that were counted; for how much time each stands differs */
    uint64_t kernel_samples_lost;    /* dropped by the kernel, because they came too fast */
    uint64_t kernel_samples_dropped; /* of threads that ended before they were listed */
    uint64_t threads_kernel_sampled; /* at any time */
    uint64_t threads_stopped;        /* at any time while they ran */
    /* Threads that the kernel should have sampled, but that were stopped instead: each needs an
     * event, and there could be none for these; or they ran for long without being sampled, as on a
     * CPU without an event. */
    uint64_t threads_without_event, threads_unsampled;
    /* Threads that wait for CPUs a lot and whose waits were not seen: they are counted where the
     * kernel sampled the threads. */
    uint64_t threads_waits_unseen;
    int event_refusal, waits_refusal; /* errnos: why there could be no event; 0: none was refused */
    uint64_t deadlocks;               /* that were found: see fgprof_profile_deadlock */
    /* Labels that threads gave themselves (OpenTelemetry's thread context), by how often a thread
     * was observed: */
    uint64_t labels_read;
    uint64_t labels_later;      /* read after the sample of a running thread, by up to a tick, so
                                   that the thread may have had others */
    uint64_t labels_changed;    /* that changed while they were read, and were not used */
    uint64_t labels_unreadable; /* the thread's C library does not show where they are */
    uint64_t labels_bad;        /* with a value that is not UTF-8, which was left out */
    uint64_t labels_limited;    /* with a value that became "[other]", because its key had 1,000
                                   others; or left out, because there were 1,024 other keys, or too
                                   many different labels together */
    /* If only slow spans are kept (fgprof_options_set_slow): how many were kept and dropped, and
     * the time of the dropped ones. */
    uint64_t spans_kept, spans_dropped, spans_dropped_ns;
    /* Only profiles of objects (FGPROF_KIND_HEAP and later) have these. Their samples are their
     * objects, and the only time that they have is the length of the recording. */
    bool allocator_is_own; /* a program has an allocator of its own, whose objects are not seen */
    uint64_t objects_made, objects_gone; /* that were seen; those that have gone were made, too */
    uint64_t objects_made_lost, objects_gone_lost; /* that were seen, but came too fast */
    uint64_t objects_rate; /* of allocations: see fgprof_options_set_heap; 0: all were seen */
    /* Estimates for all objects, not only those that were seen: how large they were, and are. */
    uint64_t objects_bytes, objects_bytes_in_use;
    /* Where threads were off their CPU at a tick: */
    bool has_switch_record; /* the kernel recorded it; false: they were observed after the tick */
    int record_refusal;     /* an errno: why it did not; 0: it did, or was not tried */
    uint64_t recorded_samples; /* of waits that were over when their thread was observed */
    uint64_t recorded_lost;    /* such waits that could not be counted where they were */
    /* An errno: why the kernel's samples of running threads lack kernel functions, such as EACCES
     * if /proc/kallsyms hides the addresses; 0: they have them, or none were wanted. */
    uint64_t kernel_names_refusal;
    uint64_t waits_limited; /* shown as waits for "[other]", because there were 65,536 different
                               locks, owners of these, files and so on */
    /* For threads that run Python (3.9 to 3.15), by how often a stack was observed: */
    uint64_t python_stacks;         /* those with Python frames in place of the interpreter's */
    uint64_t python_stacks_missing; /* without: shown with the interpreter's own frames, because the
                                       thread had moved or the two did not match */
    uint64_t python_version; /* of an interpreter that was not read, as PY_VERSION_HEX, with a flag
                                (FGPROF_PYTHON_...); 1: older than 3.9; 0: there was none */
    /* For Go programs, whose goroutines are counted (fgprof_options_set_goroutines): */
    uint64_t goroutine_ns;                 /* of goroutines while they were on no thread */
    uint64_t threads_without_goroutine_ns; /* of threads that had none to run: left out */
    uint64_t goroutines_moved;      /* how often one ran while it was read: not counted then */
    uint64_t goroutines_left_out;   /* at last, beyond the first 1,000,000 */
    uint64_t goroutines_unreadable; /* at last, or what was read of them made no sense */
    uint64_t go_version; /* Go 1.go_version can't be read: its threads are shown; 1: an unknown
                            version; with FGPROF_GO_WITHOUT_LIST, a known one; 0: there was none */
    /* What did not fit in the memory that fgprof_options_set_keep gives: */
    bool ended_are_joined;     /* threads that had ended are shown together, by name */
    uint64_t processes_joined; /* processes that had ended, the same */
    uint64_t samples_not_kept; /* samples without a stack, because it was new */
    /* Tasks of asyncio, if they are counted (fgprof_options_set_tasks), or of a dump: */
    uint64_t task_ns;     /* of tasks while they were suspended */
    uint64_t tasks_moved; /* how often one went on while it was read: not counted then */
    uint64_t tasks_cut;   /* how often not all were read: more than 100,000, too many for the time,
                             or the list changed */
    uint64_t tasks_version; /* of an interpreter whose tasks can't be read, as PY_VERSION_HEX; 0:
                               there was none */
    /* If a critical path was asked for (fgprof_profile_set_critical): */
    uint64_t critical_ns;          /* all of it, */
    uint64_t critical_waited_ns;   /* and waiting, for a CPU too; of all */
    uint64_t critical_inferred_ns; /* what was seen shortly before or after, */
    uint64_t critical_unknown_ns;  /* and what could not be followed to its end */
    uint64_t critical_lost_ns;     /* time of all threads that is in no path: there was too much */
    /* What kept threads that could run off the CPUs, besides other threads: the quota of the
     * processes' control groups and those above them, and the hypervisor. */
    uint64_t throttled_ns;   /* summed over CPUs, as the kernel counts */
    uint64_t quota_millicpu; /* in thousandths of a CPU; 0: there is none */
    uint64_t steal_ns;       /* that other machines took, summed over all CPUs */
    /* An errno: why other processes' samples are not dropped in the kernel, which costs more; for
     * growth: why pages are not chosen there, so that sizes are less exact. 0: they are. */
    uint64_t filter_refusal;
    /* How often the kernel did not report when a thread got a CPU: that is then computed from how
     * long the thread ran, so shares of short waits may be off. */
    uint64_t hidden_returns;
    uint64_t sees_user_only; /* of growth, 1: pages that system calls touch first are missing */
    uint64_t wakes_lost; /* waits of which it is not known what ended them: too many did at once */
    /* How often a thread's leaving its CPU was not recorded, because there were more threads than
     * the record has room for, or the kernel had no memory for it: such threads are observed after
     * the tick. */
    uint64_t switches_unrecorded;
};

/* Fills the caller's struct. `bytes` is its size, sizeof *ret_summary: see "Compatibility". */
FGPROF_API void fgprof_profile_summary(const fgprof_profile *profile,
                                       struct fgprof_summary *ret_summary, size_t bytes);

/* Returns a module that could not be read, and why, such as "/usr/lib/libfoo.so (damaged or cut
 * short)". They are numbered from 0; NULL after the last. Valid until the profile is freed. */
FGPROF_API const char *fgprof_profile_unreadable_module(const fgprof_profile *profile,
                                                        size_t number);

/* Returns a deadlock, threads that wait for each other in a circle, as a line such as
 *   deadlock since 1.0 s: "a" (12) waits for mutex g_1 of "b" (13), which waits for mutex g_2 of
 *   "a" (12)
 * with the time since the recording began, and ids in the caller's PID namespace. It was proven
 * when it was found: its threads were asleep, and none moved, while each lock's owner was read.
 * Names come from the processes, and are not escaped. Numbered from 0; NULL after the last, or
 * after the 256th. Valid until the profile is freed. */
FGPROF_API const char *fgprof_profile_deadlock(const fgprof_profile *profile, size_t number);

/* How long this many threads of a process ran at once: *ret_time_ns is the sum over all processes.
 * 0 threads: none ran. The rows from 0 on add up to the time for which the processes were sampled.
 * Errors: -ERANGE after the last row, which stands for 256 threads or more if it is number 256, and
 * for a recording by a program that did not measure this. */
FGPROF_API int fgprof_profile_parallelism(const fgprof_profile *profile, size_t threads,
                                          uint64_t *ret_time_ns);

/* What a thread was doing. */
enum fgprof_state {
    FGPROF_STATE_UNKNOWN, /* its sample was not captured */
    FGPROF_STATE_RUNNING,
    FGPROF_STATE_RUNNABLE, /* waiting for a CPU */
    FGPROF_STATE_WAITING,  /* for anything else */
    FGPROF_STATE_STOPPED,  /* by a signal or a debugger */
    FGPROF_STATE_COUNT     /* how many this header knows */
};

/* More states than there will ever be: the size of arrays with an item for each. */
#define FGPROF_STATES_MAX 8

/* The time of all threads in one function. A stack in which the function occurs several times
 * counts once. No two rows have the same name and module. */
struct fgprof_function {
    const char *name;                     /* NULL: all code of the module that has no name */
    const char *module;                   /* its path, or as "[vdso]"; "": none */
    uint64_t self_ns;                     /* in the function itself */
    uint64_t total_ns;                    /* in it and in all that it called */
    uint64_t state_ns[FGPROF_STATES_MAX]; /* total_ns, by what the thread was doing */
    uint64_t own_ns; /* in it and in what the C or C++ library or the kernel did for it; the self_ns
                        of such functions is part of some caller's own_ns, as in struct
                        fgprof_activity */
};

/* The time of one thread in one state, system call and function, and for one resource. */
struct fgprof_activity {
    pid_t tid; /* 0 unless threads are distinguished by id; -7: goroutine 7, on no thread */
    enum fgprof_state state;
    const char *thread_name;
    const char *syscall; /* that it waited in; "": none */
    /* Where it was in the program's own code, as in struct fgprof_function: the function nearest to
     * the leaf that is not in the kernel or the C or C++ library; the leaf if there is none. */
    const char *function;
    const char *module;
    uint64_t time_ns;
    const char
        *resource; /* what it waited for, such as "mutex g_lock"; "": nothing, or not known */
};

/* The time that one thread waited for one resource of one owner. */
struct fgprof_wait {
    pid_t pid; /* the process of the thread that waited */
    pid_t tid; /* as in struct fgprof_activity */
    const char *thread_name;
    const char *resource; /* as "mutex g_lock" */
    const char *owner;    /* the name of the thread that had it; NULL: not known */
    uint64_t time_ns;
    /* What ended the wait, by the kernel's record of switches: the name of a thread, or for example
     * "timer"; NULL: not known. */
    const char *waker;
};

/* Tables of these rows, in no particular order. */
typedef struct fgprof_functions fgprof_functions;
typedef struct fgprof_activities fgprof_activities;
typedef struct fgprof_waits fgprof_waits;

/* Sums up the samples that fgprof_profile_set_kept keeps, by function. If `tids` is not NULL, only
 * those of these `tid_count` threads, in ascending order of id: a goroutine that is on no thread
 * has its id negated, as in struct fgprof_activity. The caller frees the table, before the profile.
 * Errors: -ENOMEM. */
FGPROF_API int fgprof_profile_functions(const fgprof_profile *profile, const pid_t *tids,
                                        size_t tid_count, fgprof_functions **ret_functions);
FGPROF_API size_t fgprof_functions_count(const fgprof_functions *functions);

/* Fills in the caller's struct from row `number`, from 0 on. `bytes` is its size, sizeof *ret_row:
 * see "Compatibility". Its strings are valid until the profile is freed. Errors: -ERANGE if there
 * is no such row. */
FGPROF_API int fgprof_functions_get(const fgprof_functions *functions, size_t number,
                                    struct fgprof_function *ret_row, size_t bytes);
FGPROF_API void fgprof_functions_free(fgprof_functions *functions);

/* The same by activity: see fgprof_profile_functions and fgprof_functions_get. */
FGPROF_API int fgprof_profile_activities(const fgprof_profile *profile,
                                         fgprof_activities **ret_activities);
FGPROF_API size_t fgprof_activities_count(const fgprof_activities *activities);
FGPROF_API int fgprof_activities_get(const fgprof_activities *activities, size_t number,
                                     struct fgprof_activity *ret_row, size_t bytes);
FGPROF_API void fgprof_activities_free(fgprof_activities *activities);

/* The same by what threads are known to have waited for: see fgprof_profile_functions and
 * fgprof_functions_get. */
FGPROF_API int fgprof_profile_waits(const fgprof_profile *profile, fgprof_waits **ret_waits);
FGPROF_API size_t fgprof_waits_count(const fgprof_waits *waits);
FGPROF_API int fgprof_waits_get(const fgprof_waits *waits, size_t number,
                                struct fgprof_wait *ret_row, size_t bytes);
FGPROF_API void fgprof_waits_free(fgprof_waits *waits);

/* Which times of threads are looked for in timelines. Zeroed, it finds all. */
struct fgprof_span_query {
    /* Only while the thread waited for a lock that another thread of its process holds, or was in
     * uninterruptible sleep. */
    bool is_blocked;
    const char *thread_name; /* only of threads whose last name matches the extended regular
                                expression (regex(7)) anywhere; NULL: of all threads */
    const char *function;    /* only with this function in the stack, by its name as formats show
                                it, without a mark such as "_[i]"; NULL: any stack */
    uint64_t least_ns;       /* only those that took at least this long */
    uint64_t last_ns;        /* only those that ended in this last part of the profile's time; 0:
                                all */
};

/* A time that one thread spent without interruption in samples that match a query. Time in which
 * the thread's state is unknown interrupts it only if no match follows. */
struct fgprof_span {
    pid_t pid;
    pid_t tid; /* 0 unless threads are distinguished by id */
    const char *thread_name;
    /* Where most of the time was spent: the function nearest to the leaf that has a name and is not
     * in the kernel or the C or C++ library; if all are there, the nearest one; NULL: none has a
     * name. */
    const char *function;
    uint64_t begin_ns; /* since 1970 */
    uint64_t time_ns;
    const char *resource; /* what it waited for there, such as "mutex g_lock"; NULL: nothing, or
                             not known */
    const char *owner;    /* the thread that held it, or the process, such as "redis-server/123";
                             NULL: not known */
    pid_t owner_tid;      /* 0: not known */
    const char *owner_function; /* where that was, as `function`; NULL: not known */
    const char *waker;          /* what ended the last wait there: as in struct fgprof_wait */
};

/* A table of these rows, longest first. */
typedef struct fgprof_spans fgprof_spans;

/* Searches the profile's timelines for times of threads. `query_bytes` is sizeof *query: see
 * "Compatibility". Get rows of the table as with fgprof_functions_get. The caller frees the table,
 * before the profile. Errors: -ENODATA if the profile has no timelines, -EINVAL if
 * query->thread_name is not a regular expression, -ENOMEM. */
FGPROF_API int fgprof_profile_spans(const fgprof_profile *profile,
                                    const struct fgprof_span_query *query, size_t query_bytes,
                                    fgprof_spans **ret_spans);
FGPROF_API size_t fgprof_spans_count(const fgprof_spans *spans);
FGPROF_API int fgprof_spans_get(const fgprof_spans *spans, size_t number,
                                struct fgprof_span *ret_row, size_t bytes);
FGPROF_API void fgprof_spans_free(fgprof_spans *spans);

enum fgprof_format {
    FGPROF_FOLDED, /* flamegraph.pl's: sorted lines "root;caller;leaf COUNT" */
    FGPROF_PPROF,  /* gzipped profile.proto (github.com/google/pprof/proto/profile.proto) */
    FGPROF_TEXT,   /* Go's legacy profile text, as its pprof handler writes it with debug=1 */
    /* speedscope's JSON: one profile for each thread, in the order of time. Needs the timeline.
     * FGPROF_FOLDED_LINES and FGPROF_FOLDED_STATE apply to it too. */
    FGPROF_SPEEDSCOPE,
    /* The whole profile, gzipped, for fgprof_profile_read. Includes samples that are not kept, and
     * distinguishes threads as the recording did. */
    FGPROF_RAW,
    FGPROF_HTML, /* a page with a flame graph, in one file; with the timeline, also when */
    /* At most 100 lines of text about where the time went, with long names shortened; the same as
     * JSON. Most useful if threads are distinguished by id. */
    FGPROF_REPORT,
    FGPROF_REPORT_JSON,
    /* OpenTelemetry's profiles, gzipped: an ExportProfilesServiceRequest of opentelemetry-proto
     * 1.10 or later, package v1development, which is also ProfilesData. Each process is a resource
     * with service.name, process.pid and process.executable.name, and has a Profile for each type
     * of value: see fgprof_profile_set_times. For FGPROF_KIND_BLOCK and FGPROF_KIND_MUTEX these are
     * contentions and delay, and for objects those of FGPROF_PPROF. Samples have the attribute
     * thread.name. If threads are distinguished by id, they also have thread.id, and goroutine,
     * which FGPROF_PPROF has as a label. */
    FGPROF_OTLP,
    /* The Firefox Profiler's processed format, gzipped, for https://profiler.firefox.com: threads
     * in the order of time, with their states as categories and their waits as markers. Needs the
     * timeline. FGPROF_FOLDED_STATE applies to it too. */
    FGPROF_FIREFOX,
};

/* How FGPROF_FOLDED writes frames. The other formats write all that is known. */
enum fgprof_folded_flags {
    FGPROF_FOLDED_THREADS = 1, /* adds a root frame: "name"; by id "name/tid", "name/goroutine 7" */
    /* Writes "function (file:line)"; without a name "libfoo.so+0x1234", the address in the file,
     * instead of "[libfoo.so]". */
    FGPROF_FOLDED_LINES = 2,
    /* Adds a leaf frame that says what the thread was doing: "[running]"; "[runnable]", waiting for
     * a CPU; "[mutex g_lock]", what it waited for, if that is known ("[mutex]" for a mutex without
     * a name), otherwise "[read]", the system call in which it slept, or "[sleeping]";
     * "[uninterruptible: io_schedule]", with the kernel function in which it waited; "[stopped]";
     * "[unknown]". */
    FGPROF_FOLDED_STATE = 4,
    /* Adds a root frame "name/pid" for the process, before that of the thread. The other formats
     * have the labels "process" and "pid" if several processes were sampled or this flag is set. */
    FGPROF_FOLDED_PROCESSES = 8,
    /* Counts elapsed time, in ticks: each instant of a process is divided among its threads, so
     * that its lines add up to the time for which it was sampled. The line "[idle]" has the time
     * that no thread used. FGPROF_HTML then shows elapsed time first. FGPROF_PPROF always has it,
     * as a sample type. */
    FGPROF_FOLDED_ELAPSED = 16,
};

/* Adds a root frame to FGPROF_FOLDED: the value of the label `key`, which is copied, if a sample
 * has it, after the process's frame and before the thread's. The first key that was added is
 * outermost. Threads use labels to say what they work on: see fgprof_label.h. Errors: -EINVAL if
 * `key` is empty, -ENOMEM. */
FGPROF_API int fgprof_profile_add_root_label(fgprof_profile *profile, const char *key);

/* Sets the sum of the flags. Default: 0. Errors: -EINVAL for unknown flags. */
FGPROF_API int fgprof_profile_set_folded_flags(fgprof_profile *profile, unsigned flags);

/* Which samples are written. */
enum fgprof_kept {
    FGPROF_KEPT_ALL, /* the default */
    FGPROF_KEPT_ON_CPU,
    FGPROF_KEPT_OFF_CPU, /* threads that waited, for a CPU too, or were stopped */
};

/* Sets which samples are written and summed up. Errors: -EINVAL for an unknown value, or for any
 * value but FGPROF_KEPT_ALL if the profile is of objects. */
FGPROF_API int fgprof_profile_set_kept(fgprof_profile *profile, enum fgprof_kept kept);

/* Turns a profile of FGPROF_KIND_WALL into the critical path of a thread, which can't be undone:
 * while the thread waited for something that another thread ended, its time goes to what that other
 * thread did meanwhile, and so on. A stack begins with the thread's own; a frame "[waits for NAME]"
 * precedes each next thread's, or "[waits for a CPU used by NAME]" if the thread waited for a CPU.
 * The last frame says what ended the last wait, if that was not a sampled thread, such as "[ended
 * by timer]"; and "[inferred]" marks what is not known for the tick itself. The time of all stacks
 * is the thread's, in ticks. `of` is a thread's name, id, or "NAME/ID"; or "KEY=VALUE", for all
 * threads while they have that label.
 *
 * The recording must have distinguished threads, and have had timelines and the kernel's record of
 * switches (FGPROF_CAPTURE_RECORD). Errors: -ENODATA if it did not; -ENOENT if there is no such
 * thread or label; -EINVAL if the profile is of another kind; -ENOMEM. */
FGPROF_API int fgprof_profile_set_critical(fgprof_profile *profile, const char *of);

/* Sets whether threads of the same name share their samples in the output. FGPROF_THREADS_BY_NAME
 * turns a recording by id into what a recording by name would have been. Default: as it was
 * recorded. Errors: -EINVAL for an unknown value. */
FGPROF_API int fgprof_profile_set_threads(fgprof_profile *profile, enum fgprof_threads threads);

/* Turns a profile of FGPROF_KIND_WALL into one of another kind, which can't be undone. Time that
 * does not belong to that kind is left out. FGPROF_KIND_BLOCK and FGPROF_KIND_MUTEX have the types
 * and header of Go's: contentions (here estimated from how often the kernel gave the threads a CPU
 * or, for a recording by an older program, the number of ticks at which they were seen waiting) and
 * delay; a comment in the file says which. FGPROF_KIND_CPU has the types of Go's CPU profile,
 * samples and cpu. Of these kinds only FGPROF_KIND_WALL has timelines, and can be written as
 * FGPROF_RAW; only it and FGPROF_KIND_CPU have elapsed time.
 *
 * For profiles of objects, FGPROF_KIND_HEAP and FGPROF_KIND_ALLOCS can be turned into each other.
 * Errors: -EINVAL for an unknown kind, or one into which the profile can't be turned; -ENOMEM. */
FGPROF_API int fgprof_profile_set_kind(fgprof_profile *profile, enum fgprof_kind kind);

/* Returns what the profile is about. */
FGPROF_API enum fgprof_kind fgprof_profile_kind(const fgprof_profile *profile);

/* Makes a profile of what came and went between two profiles of objects: the difference of `after`
 * and `before`, for equal stacks, sizes, threads and labels. An object that was made before, and
 * has gone since, counts only as gone: what is in use may be negative, as in Go's profiles with
 * "seconds". FGPROF_PPROF, FGPROF_OTLP, FGPROF_RAW, the reports, and the FGPROF_TEXT of heap
 * profiles have such values; the other formats leave out stacks with negative values. The time is
 * that between the two. The caller frees it. Errors: -EINVAL unless both are of objects, and of the
 * same kind, name and rate; -ENOMEM. */
FGPROF_API int fgprof_profile_subtract(const fgprof_profile *after, const fgprof_profile *before,
                                       fgprof_profile **ret_difference);

enum fgprof_times {
    FGPROF_TIME_WALL = 1,
    FGPROF_TIME_CPU = 2,
    FGPROF_TIME_OFF_CPU = 4,
};

/* Sets which times of a profile of FGPROF_KIND_WALL are written in FGPROF_PPROF and FGPROF_OTLP: a
 * sum of values of enum fgprof_times. In FGPROF_PPROF they are the types wall, cpu and off_cpu, in
 * nanoseconds. In FGPROF_PPROF of any kind, samples then have no labels except, if there are
 * several processes, process_executable_name and process_pid: servers for continuous profiling make
 * a series of each distinct set of labels. 0, the default: FGPROF_PPROF as Go's fgprof, and in
 * FGPROF_OTLP all three, or the one that fgprof_profile_set_kept keeps. Errors: -EINVAL for an
 * unknown time. */
FGPROF_API int fgprof_profile_set_times(fgprof_profile *profile, unsigned times);

/* Sets an attribute, such as "service.name", of all resources that FGPROF_OTLP writes; replaces one
 * with the same key. The strings are copied. Errors: -EINVAL if the key is empty, -ENOMEM. */
FGPROF_API int fgprof_profile_set_attribute(fgprof_profile *profile, const char *key,
                                            const char *value);

/* Removes all samples with this function in their stack, by its name in the symbol table: workers'
 * waits for work, for example. In timelines their threads are then absent. The summary and the
 * elapsed time of other samples do not change. Errors: -ENOMEM. */
FGPROF_API int fgprof_profile_leave_out(fgprof_profile *profile, const char *function);

/* Sets the command line that makes or writes the profile, which FGPROF_HTML shows. Unless the
 * profile was read from a file, this is also the command line that recorded it: FGPROF_RAW keeps
 * that, FGPROF_PPROF has it as a comment, and FGPROF_HTML shows it for a profile that was read. The
 * string is copied. NULL, the default: none. Errors: -ENOMEM. */
FGPROF_API int fgprof_profile_set_command(fgprof_profile *profile, const char *command);

/* Sets why the profile is written, in one line for its readers: all formats except FGPROF_FOLDED,
 * FGPROF_SPEEDSCOPE, FGPROF_FIREFOX and FGPROF_OTLP have it. A profile that is read from a file
 * keeps that of the file. The string is copied. NULL, the default: none. Errors: -ENOMEM. */
FGPROF_API int fgprof_profile_set_reason(fgprof_profile *profile, const char *reason);

/* Returns why the profile was written; NULL: not known. Valid until the profile is freed or the
 * reason is set. */
FGPROF_API const char *fgprof_profile_reason(const fgprof_profile *profile);

/* Writes the profile to `fd`, from its current offset. After an error the output is incomplete.
 * Errors: those of write(2) (-EPIPE only if SIGPIPE is ignored); -EINVAL for an unknown format, for
 * FGPROF_RAW of a kind of time other than FGPROF_KIND_WALL, and for FGPROF_SPEEDSCOPE and
 * FGPROF_FIREFOX of objects; -ENODATA if the format needs a timeline and none was kept, or elapsed
 * time is to be counted and the profile has none, because it is of another kind or was recorded by
 * a program that did not measure it; -ENOMEM. */
FGPROF_API int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format,
                                    int fd);

/* Reads a file that was written as FGPROF_RAW. The profile is as it was recorded, with default
 * settings; the caller frees it. The file need not be trusted: everything in it is checked. Errors:
 * those of open(2) and read(2), -ENOMEM, and
 *   -ENOEXEC          it is not a regular file
 *   -EILSEQ           it is not such a recording
 *   -EPROTONOSUPPORT  its format is of a later version
 *   -EBADMSG          its contents or their checksum are damaged
 *   -ENODATA          it is truncated
 *   -EFBIG            it has more than 256 MiB when decompressed, or 1 GiB in memory */
FGPROF_API int fgprof_profile_read(const char *path, fgprof_profile **ret_profile);

/* The same for an open file, from its current offset, for a process that may not open files: a
 * privileged process can open a file and leave it to an unprivileged child to read it. `name` is
 * the file's name in reports. Unless `ret_version` is NULL, it gets the version of the format if
 * that could be read, even with -EPROTONOSUPPORT. */
FGPROF_API int fgprof_profile_read_fd(int fd, const char *name, unsigned *ret_version,
                                      fgprof_profile **ret_profile);

/* The latest version of the format that fgprof_profile_read reads. FGPROF_RAW writes profiles of
 * objects in version 2, and those of time still in version 1. */
#define FGPROF_RECORDING_VERSION 2

/* Reads the version of a recording's format, even if it is too new for fgprof_profile_read. What
 * follows the version is not checked. Errors: those of fgprof_profile_read. */
FGPROF_API int fgprof_recording_version(const char *path, unsigned *ret_version);

/* Writes the difference of two profiles to `fd`. FGPROF_HTML: a page that shows in red what grew
 * and in blue what shrank. FGPROF_FOLDED: sorted lines "root;caller;leaf COUNT1 COUNT2" for
 * flamegraph.pl, as difffolded.pl writes them (brendangregg/FlameGraph). Each profile is filtered
 * and folded by its own settings. If `is_normalized`, the counts of `before` are scaled so that
 * both have the same total. FGPROF_REPORT: what has grown and shrunk the most, in words;
 * FGPROF_REPORT_JSON: the same, but only for profiles of objects. Errors: those of
 * fgprof_profile_write, and -EINVAL for other formats, or if one profile is of time and the other
 * of objects, or they are of different kinds of objects, or for a report if fgprof_profile_subtract
 * can't take them. */
FGPROF_API int fgprof_profile_write_difference(const fgprof_profile *before,
                                               const fgprof_profile *after,
                                               enum fgprof_format format, bool is_normalized,
                                               int fd);

FGPROF_API void fgprof_profile_free(fgprof_profile *profile);

/* ---- Dump: what every thread is doing now ---- */

typedef struct fgprof_dump fgprof_dump;

/* Takes the stack of every thread of the recorder's processes once, and what the thread waits for:
 * a lock and its owner, a file or socket, a time. Call it instead of fgprof_recorder_run. Sleeping
 * threads are not stopped. Running ones are observed as fgprof_options_set_capture says, but one
 * that the kernel has not sampled within 10 ms is stopped in any case. The caller frees the dump,
 * which does not need the recorder any more. Errors: those of fgprof_recorder_run, and those that
 * ended sampling early. */
FGPROF_API int fgprof_recorder_dump(fgprof_recorder *recorder, fgprof_dump **ret_dump);

enum fgprof_dump_format {
    FGPROF_DUMP_TEXT,    /* a paragraph for each thread, much like Go's goroutines with debug=2 */
    FGPROF_DUMP_GROUPED, /* one for each distinct stack, most threads first, as with debug=1 */
    FGPROF_DUMP_JSON,
    FGPROF_DUMP_PPROF,     /* how many threads are at each stack: gzipped profile.proto, of the type
                              thread/count, like Go's goroutine profile without debug */
    FGPROF_DUMP_ADDRESSES, /* as FGPROF_DUMP_TEXT, with the addresses of frames and futexes */
};

/* Writes the dump to `fd`, from its current offset. Errors: those of write(2), -EINVAL for an
 * unknown format, -ENOMEM. After an error the output is incomplete. */
FGPROF_API int fgprof_dump_write(const fgprof_dump *dump, enum fgprof_dump_format format, int fd);

/* Returns how many threads, goroutines of Go programs and tasks of asyncio the dump has. */
FGPROF_API size_t fgprof_dump_threads(const fgprof_dump *dump);

/* Returns how many groups of threads wait for each other in a circle. */
FGPROF_API size_t fgprof_dump_deadlocks(const fgprof_dump *dump);

/* Fills in the caller's struct, as fgprof_profile_summary does. Its times and ticks have no meaning
 * for a dump. */
FGPROF_API void fgprof_dump_summary(const fgprof_dump *dump, struct fgprof_summary *ret_summary,
                                    size_t bytes);

FGPROF_API void fgprof_dump_free(fgprof_dump *dump);

/* ---- A program profiles itself ---- */

typedef struct fgprof_session fgprof_session;

/* Starts to profile the calling process, as Go's fgprof.Start(w, format) does
 * (github.com/felixge/fgprof): the profile goes to `fd` when fgprof_stop is called, or when the
 * process ends. A helper process, fgprof-c, samples it from outside; it is searched for next to
 * this library, then in PATH. It is not a child of the calling process, which gets no SIGCHLD from
 * it, unless orphans are reparented to the calling process: the first process of a PID namespace,
 * or a subreaper (prctl(2)). No signal handler or thread is added. The helper is declared to Yama
 * (prctl(2), PR_SET_PTRACER), which replaces the process's own declaration. The threads are the
 * process's own, without the time in this function and fgprof_stop; processes that it forks are not
 * sampled. The caller ends the session with fgprof_stop. May be called from any thread. Errors:
 *   -EBUSY            a session is running, or another process traces this one
 *   -ENOENT           there is no fgprof-c
 *   -EPROTONOSUPPORT  it is of another version
 *   -EPERM            the process may not be traced, for example because it has more rights
 *   -EBADF, -EINVAL   no such descriptor or format
 *   -ENOMEM, -EAGAIN, -EMFILE, those of execve(2)
 *   -ECONNRESET       the helper was killed */
FGPROF_API int fgprof_start(int fd, enum fgprof_format format, fgprof_session **ret_session);

/* Ends the session: waits until the profile is written, possibly to a pipe that the caller should
 * read, and frees the session in any case. Errors: those of fgprof_recorder_run and
 * fgprof_profile_write, -ECONNRESET if the helper was killed, -ESRCH if it is the copy of a session
 * in a forked process. The caller closes the `fd` of fgprof_start. */
FGPROF_API int fgprof_stop(fgprof_session *session);

/* Answers a request to a server of the calling process: writes a complete HTTP/1.1 response, head
 * and body, to `fd`, as `fgprof-c serve` answers GET at `path`, such as "/debug/fgprof", with
 * `query`, the part of the URL after "?"; NULL: none. It takes as long as the request asks for, by
 * default 30 seconds; nothing was sampled before, so the parameter "last" is refused. A response
 * that says what is wrong with the request counts as success, too. The helper is that of
 * fgprof_start, with the same errors; only one of them works at a time. The calling thread's wait
 * is left out of profiles of time. */
FGPROF_API int fgprof_http_handle(const char *path, const char *query, int fd);

/* What the helper runs: for fgprof-c only. `answer` writes the response. */
typedef int fgprof_answer_fn(pid_t pid, const char *path, const char *query, int fd);
FGPROF_API int fgprof_helper(int argc, char **argv, fgprof_answer_fn *answer);

/* ---- Processes by name ---- */

/* Lists the processes whose name (/proc/PID/comm) matches the extended regular expression
 * (regex(7)) anywhere, in no particular order. The calling process, profilers' helper processes,
 * kernel threads and zombies are left out. The caller frees *ret_pids with free(3), even if
 * *ret_count is 0. Errors: -EINVAL if it is not a regular expression, -ENOMEM, those of opening
 * /proc. */
FGPROF_API int fgprof_find_processes(const char *regex, pid_t **ret_pids, size_t *ret_count);

/* Writes the name of process `pid` (/proc/PID/comm) into `buffer`, cut to `buffer_bytes` including
 * the final NUL. Returns whether the name could be read; if not, `buffer` is "". */
FGPROF_API bool fgprof_process_name(pid_t pid, char *buffer, size_t buffer_bytes);

typedef void fgprof_custom_listed_fn(const char *name, uint64_t values, void *context);

/* Calls `function` for each profile that process `pid` has made with fgprof_profiles.h, sorted by
 * name, with the number of its values; the name is valid during the call. To read one, see
 * FGPROF_KIND_CUSTOM. Errors:
 *   -ENOENT           it has none
 *   -EPROTONOSUPPORT  its agent is of another version
 *   -EBADMSG          its memory is damaged
 *   -ENOMEM, those of fgprof_recorder_attach */
FGPROF_API int fgprof_list_custom(pid_t pid, fgprof_custom_listed_fn *function, void *context);

/* ---- Errors in words ---- */

/* Writes one line into `buffer`, cut to `buffer_bytes` including the final NUL: why attaching to
 * `pid` failed with `error`, a negative errno, and what would help. Inspects the process and the
 * system to find out. */
FGPROF_API void fgprof_explain(pid_t pid, int error, char *buffer, size_t buffer_bytes);

/* The same for errors of fgprof_recorder_objects, of fgprof_recorder_check_objects, and of
 * fgprof_recorder_spawn if allocations are recorded. `pid`: the process; 0: a command that has
 * exited, or several processes. */
FGPROF_API void fgprof_explain_objects(pid_t pid, enum fgprof_kind kind, int error, char *buffer,
                                       size_t buffer_bytes);

#ifdef __cplusplus
}
#endif

#endif

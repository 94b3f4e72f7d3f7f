/* A world in which the sampler runs: processes and threads that a test scripts, sources that answer
 * according to these, a clock that only moves when the test lets it, and a worker that keeps its
 * messages. Functions that the sampler calls are wrapped (see CMakeLists.txt) and replaced here.
 *
 * The sampler runs in a thread of its own, but only while the test waits for it: fake_step lets the
 * sampler or the collector, whichever is due first, run from one wait to the next. So nothing
 * depends on how fast anything is. */
#ifndef FGPROF_TESTS_SAMPLER_FAKE_H
#define FGPROF_TESTS_SAMPLER_FAKE_H

#include "unit.h"
#include "objects/births.h"
#include "observe/bpf/switch_record.h"
#include "objects/faults.h"
#include "proc/pages.h"
#include "sampler/sampler.h"
#include "objects/collector.h"
#include "sampler/processes.h"

#include <pthread.h>
#include <semaphore.h>

#define FAKE_PERIOD_NS 10000000u
#define FAKE_START_NS 1000000000000u
#define FAKE_THREADS_MAX 400
#define FAKE_PROCESSES_MAX 80
#define FAKE_QUEUE_MAX 600
#define FAKE_PROGRAMS_MAX 16
#define FAKE_DEPARTURES_MAX 256
#define FAKE_STACK_BYTE 0x5a /* fills the stack of a departure */

/* What a thread does. */
enum fake_doing {
    FAKE_SLEEPS,  /* read as it is; unmoved until `switches` grows */
    FAKE_SLIPS,   /* it sleeps, but moves before the proof */
    FAKE_RUNS,    /* on a CPU */
    FAKE_WAITS,   /* for a CPU that it has lost */
    FAKE_WOKEN,   /* it was woken where it slept, and waits for a CPU */
    FAKE_REFUSES, /* it may not be looked at */
    FAKE_GONE,    /* it exits, and is still listed */
};

struct fake_thread {
    pid_t tid;
    struct fake_process *process;
    char name[THREAD_NAME_BYTES];
    enum fake_doing doing;
    struct activity activity; /* the kernel's account */
    uint64_t pc, sp;          /* where it is */
    long syscall_number;
    bool is_over;           /* it moves right after the proof */
    bool has_call;          /* it waits for something that has an owner */
    bool is_slow;           /* when asked to stop, it gets no CPU to do so */
    uint64_t slow_until_ns; /* until then it is also slow */
    bool is_refused_stop;   /* it can't be stopped */
    bool is_group_stopped;  /* a signal has also stopped it */
    uint64_t pause_ns;      /* how long a stop takes */
    bool has_no_event;      /* the kernel can't sample it */
    int policy;             /* SCHED_OTHER and others of sched(7) */
    int cpu;                /* where it is, if `cpus` is not 0 */
    uint64_t left_ns;       /* when it left that CPU, by that CPU's clock */
    uint64_t start;         /* its first function */
    /* The calls about it: how many, and the last ones. */
    unsigned looks, stops, reads, forgotten;
    uint64_t looked_ns, let_go_ns;
    struct subject look, stop;
    bool is_armed;     /* it has an event for its switches */
    bool has_window;   /* it has one before each tick */
    uint64_t slept_pc; /* where that shows that it slept at each tick, though it has moved since; 0:
                          it did not */
    bool was_awake;    /* that shows that it was awake at each tick */
    /* Of the source of sleeping threads: */
    bool was_copied;
    uint64_t copied_switches;
    /* Of the record of switches: its past and future departures, in order. Those that have happened
     * by now are in its slot, or in a message. */
    struct departure departures[FAKE_DEPARTURES_MAX];
    size_t departure_count;
    size_t departures_told; /* for this many it is decided whether there is a message */
    uint64_t acknowledged_tick;
    unsigned slips;            /* before how many of its next proofs it moves */
    uint64_t old_wait_ends_ns; /* it waits since before the record, until a timer wakes it then; 0:
                                  never */
};

struct fake_process {
    pid_t pid;
    struct fake_thread *threads[FAKE_THREADS_MAX];
    size_t thread_count;
    uint64_t cpu_ns;     /* of threads that are gone */
    uint64_t counted_ns; /* when its threads were last counted */
    uint64_t named_ns;   /* when a thread's name was last read */
    unsigned programs;   /* how many it has executed */
    uint64_t exec_ns;    /* when, by the kernel's events */
    bool is_hidden;      /* its program can't be opened */
    bool is_followed, is_samples_refused;
    bool is_recorded;         /* its switches are recorded */
    const char *syscall_file; /* the file opened as its "syscall"; NULL: it can't be opened */
};

/* A message that the worker received. */
struct fake_told {
    struct message message; /* of an observation: without its snapshot */
    bool has_snapshot;
    uint64_t pc;
    size_t stack_capacity, stack_bytes;
    unsigned char stack_byte;     /* the first of the stack */
    uint32_t program;             /* its number; UINT32_MAX: none */
    struct awake_thread awake[8]; /* MESSAGE_TICK: the first of them */
    char name[64];                /* of an object */
};

struct fake_sample {
    pid_t process_id, tid;
    uint64_t at_ns;
};

struct fake_news {
    pid_t tid;
    struct object_news news;
    bool has_snapshot;
};

struct fake {
    struct sampler sampler;
    struct sampler_options options;
    struct channel *channel;
    uint64_t now_ns;
    uint64_t look_ns; /* how long a look takes */
    unsigned yields;  /* how often the sampler yielded */
    struct fake_process processes[FAKE_PROCESSES_MAX];
    size_t process_count;
    struct fake_thread threads[FAKE_THREADS_MAX];
    size_t thread_count;
    struct relative born[8]; /* descendants that are found next */
    size_t born_count;
    uint64_t sought_ns; /* when they were last searched for */

    /* The kernel's samples. */
    int kernel_error, follow_error, arm_error; /* 0: permitted */
    enum perf_scope scope;
    struct fake_sample samples[FAKE_QUEUE_MAX];
    size_t sample_count;
    uint64_t rings_read_ns; /* when they were first read since this was set to 0 */
    uint64_t samples_lost;
    int filter_refusal; /* a negative errno */
    size_t adjusted_stack_limit;
    unsigned kernel_opened, unfollowed;
    struct snapshot_pool *snapshots;

    /* Windows of switches. */
    bool is_window_open;
    uint64_t window_opened_ns;
    unsigned windows_opened;

    /* The record of switches. */
    int record_error;          /* 0: permitted, which it is not at first */
    _Atomic bool holds_record; /* opening takes until this is false, or sampling has ended */
    _Atomic unsigned records_opened, records_freed;
    struct ticks recorded_ticks; /* as the record knows them */
    uint64_t messages_lost, wakes_lost, hidden_returns, without_slot, without_memory;
    bool holds_messages; /* messages are held back */
    bool are_cpus_watched;
    struct cpu_user cpu_user; /* the record's answer for every CPU */
    unsigned asked_cpu;
    uint64_t asked_tick_ns; /* of the last query */

    /* Stops. */
    struct fake_stop {
        struct observation observation;
        struct subject subject;
        bool has_stopped;
    } stops[STOPS_MAX];
    size_t stop_count;
    unsigned interrupts;
    pid_t exited; /* the end of this process was seen while stopping */
    int exit_status;

    /* CPUs. */
    int cpus;         /* the sampler may run on this many, from 0; 0: not known on which */
    int cpu;          /* where the sampler is */
    uint64_t came_ns; /* when it came there, by that CPU's clock; 0: not known */
    unsigned came_asked;
    bool is_pinned;                          /* it has asked to stay there */
    bool resets_on_fork, lost_reset_on_fork; /* a stop has given it SCHED_RESET_ON_FORK, which it
                                                no longer has */
    unsigned moves;                          /* how often it has asked to go to one CPU */

    /* Births, page faults, objects. */
    int births_error, births_read_error, stack_error, faults_error, agent_error;
    bool has_births;
    struct birth births[FAKE_QUEUE_MAX];
    size_t birth_count, births_taken;
    uint64_t births_lost;
    struct fault faults[FAKE_QUEUE_MAX];
    size_t fault_count, faults_taken;
    uint64_t faults_lost;
    pid_t unfaultable;   /* the faults of this process can't be followed */
    unsigned frees_left; /* how many the agent still reports */
    unsigned fewer_pages;
    struct page page; /* the page at every address; 0 bytes: an ordinary page */
    uint64_t resident;
    struct fake_news news[FAKE_QUEUE_MAX];
    size_t news_count, news_taken;
    struct object_source agent;
    unsigned agents_sought, agents_opened, agents_closed, agents_refreshed;

    /* The worker. */
    bool is_absent; /* it does nothing */
    struct fake_told *told;
    size_t told_count, told_capacity, told_next;
    struct fake_hoard {
        struct snapshot *items[SNAPSHOTS_MAX];
        size_t count;
    } hoards[2]; /* of the sampler's and the collector's snapshots */
    struct object_counts object_counts[OBJECT_KIND_COUNT]; /* the last received */
    bool collector_has_ended;

    /* The sampler's thread. */
    pthread_t thread;
    sem_t goes, waits;
    uint64_t wait_until_ns, collector_until_ns;
    bool is_running, has_ended;
    int result;
};

extern struct fake *fake; /* the only one */

/* A test's setup and teardown. At first the world is empty, and running threads are stopped. */
int fake_set_up(void **state);
int fake_tear_down(void **state);

struct fake_process *fake_process(pid_t pid); /* without threads */
struct fake_thread *fake_thread(struct fake_process *process, pid_t tid, enum fake_doing doing);
void fake_thread_leaves(struct fake_thread *thread); /* it leaves the list */
struct fake_thread *fake_find(pid_t tid);
struct fake_process *fake_find_process(pid_t pid);

/* Opens the sampler with all existing processes, and starts it: it then waits for a tick. */
void fake_begin(void);
/* Lets the sampler run until it waits again. Returns false if it has ended. */
bool fake_step(void);
/* The same without letting time pass, as if it was woken. */
void fake_wake(void);
/* Lets it take this many ticks, and then wait. */
void fake_ticks(unsigned count);
/* The same, while the thread has a CPU all the time. */
void fake_run(struct fake_thread *thread, unsigned ticks);
/* Ends sampling now, and waits until it has ended. */
void fake_end(void);

/* The next message of this kind that the worker received; NULL: there is none. */
const struct fake_told *fake_next(enum message_kind kind);
const struct observation *fake_next_of(pid_t tid);
/* Messages so far are no longer returned. */
void fake_forget_told(void);
/* How many observations of the thread, with this evidence, were received since. */
unsigned fake_count(pid_t tid, enum evidence evidence);
unsigned fake_count_news(enum object_kind kind, enum object_change change);

/* The worker sends a request. */
void fake_request(const struct request *request);
void fake_request_of(pid_t tid, struct request request);

/* The worker takes all snapshots except this many, or gives them back. */
void fake_hoard(size_t left);
void fake_hoard_no_more(void);
/* The worker stops working, with more messages than it can handle: channel_is_behind. */
void fake_fall_behind(void);

void fake_sample(pid_t process_id, pid_t tid, uint64_t at_ns);

/* The thread leaves its CPU at `out_ns`, to sleep or, if `state` is THREAD_RUNNABLE, because it is
 * preempted; it is woken at `runnable_ns`, and back on a CPU at `in_ns`. 0: it is not. */
struct departure *fake_departs(struct fake_thread *thread, enum thread_state state, uint64_t out_ns,
                               uint64_t runnable_ns, uint64_t in_ns);

/* ---- For the replaced functions ---- */
void fake_wait(uint64_t until_ns);

#endif

/* The messages between the sampling thread and the worker, and from the collector to the worker.
 *
 * The worker receives observations and the messages that belong to them, and, in a separate queue
 * (objects/news_queue.h), the collector's messages about objects. It takes from both queues in
 * turn; each message says how many messages of the other queue must be taken before it. The worker
 * sends requests back: what one of its steps needed but lacked, served at the thread's next
 * observation. Neither thread waits for the other. Observations are bounded by their snapshots
 * (observe/snapshot_pool.h), other messages by the number of threads that come and go, and by
 * channel_is_behind. */
#ifndef FGPROF_SAMPLER_CHANNEL_H
#define FGPROF_SAMPLER_CHANNEL_H

#include "base/histogram.h"
#include "objects/news_queue.h"
#include "observe/observation.h"
#include "observe/snapshot_pool.h"
#include "observe/wake.h"
#include "proc/cpu_limits.h"
#include "runtime/go/goroutine_changes.h"
#include "runtime/python/threads.h"

#include <stddef.h>

/* Bytes of a thread's stack that are copied before the worker has said how much it needs: enough
 * for almost every whole stack. Both threads start with it. */
#define STACK_LIMIT_FIRST (16u << 10)

/* How sampling has gone so far, as counted by the sampling thread. */
struct sampling_counts {
    /* Sums since the start, SAMPLING_SUMS of them: */
    uint64_t ticks_taken;
    uint64_t samples_thinned;      /* looks at running threads that were not stopped */
    uint64_t samples_assumed;      /* ticks between two looks at a sleeper that has moved in
                                      between, and before its account was first read */
    uint64_t observations_put_off; /* deferred because the worker was behind */
    uint64_t recorded_samples;     /* ticks at which only the record knew where threads were */
    uint64_t recorded_lost;        /* waits whose place the record did not know, or knew too late */
    uint64_t wakes_lost;           /* ends of waits that the record had no room for */
    uint64_t hidden_returns;       /* to a CPU that the kernel did not report to the record */
    uint64_t switches_unrecorded;  /* of threads that the record had no room or memory for */
    uint64_t kernel_samples;       /* of threads that ran; of these: */
    uint64_t kernel_samples_lost;  /* dropped by the kernel, not collected in time */
    uint64_t kernel_samples_dropped; /* of threads that were gone before they were listed */

    uint64_t ticks_planned; /* up to the last one taken, which may stand for others */
    uint64_t threads_seen, threads_chosen; /* of those that were seen */
    uint64_t processes_refused;            /* descendants that could not be sampled */
    bool has_kernel_samples;               /* the kernel samples running threads, */
    bool has_thread_events;                /* with an event for each thread */
    int kernel_refusal;                    /* why it does not (an errno); 0: it was not asked to */
    int filter_refusal;       /* why samples of other processes are not dropped in the kernel (an
                                 errno) */
    int kernel_names_refusal; /* why samples lack kernel functions that are wanted (an errno); 0:
                                 they have them */
    bool has_switch_record;   /* the kernel records where threads leave their CPUs */
    int record_refusal;       /* why it does not (an errno); 0: it was not asked to */
    uint64_t threads_kernel_sampled, threads_stopped;  /* while they ran, at any time */
    uint64_t threads_without_event, threads_unsampled; /* stopped instead while they ran */
    uint64_t threads_waits_unseen;                     /* for a CPU */
    int event_refusal, waits_refusal;                  /* errnos: why */
    bool lacks_files;             /* too few descriptors: some files are reopened for each look */
    struct histogram pauses;      /* of threads that were running */
    struct cpu_losses cpu_losses; /* as of when this was sent */
};
#define SAMPLING_SUMS (offsetof(struct sampling_counts, ticks_planned) / sizeof(uint64_t))

/* How many ticks there should have been by now, if `ticks` were due: at least the ticks up to the
 * last one that was taken. */
static inline uint64_t sampling_ticks_planned(const struct sampling_counts *counts, uint64_t ticks)
{
    return ticks > counts->ticks_planned ? ticks : counts->ticks_planned;
}

struct sampling_state {
    struct sampling_counts counts;
    uint64_t now_ns; /* CLOCK_MONOTONIC */
};

/* A thread that a tick found running or waiting for a CPU. */
struct awake_thread {
    uint32_t number; /* as in observations */
    pid_t tid;
};

enum message_kind {
    MESSAGE_PROCESS,       /* a process is sampled from now on */
    MESSAGE_OBSERVATION,   /* owned by the worker from now on */
    MESSAGE_WAKE,          /* what ended a thread's wait */
    MESSAGE_OBJECT,        /* an object was made, or is gone */
    MESSAGE_OBJECT_COUNTS, /* what all sources of objects know now */
    MESSAGE_GOROUTINES,    /* changes of a Go program's goroutines */
    MESSAGE_TASKS,         /* a tick at which a Python program's tasks may be read */
    MESSAGE_TICK,          /* the threads of a process that a tick found awake */
    MESSAGE_PROGRAM_ENDED, /* no more observations or objects of this program; holds its own
                              reference */
    MESSAGE_COPY,          /* requests a copy of everything counted so far */
    MESSAGE_MOMENT,        /* requests a note of how much was counted so far */
    MESSAGE_END,           /* nothing follows */
};

struct message {
    enum message_kind kind;
    uint64_t after; /* how many of the collector's messages come before it */
    union {
        struct {
            uint32_t number; /* in the order of these messages, from 0 */
            pid_t pid;
            uint64_t begin_ns; /* CLOCK_MONOTONIC; 0: when the recording began */
            char name[THREAD_NAME_BYTES];
        } process;
        struct observation observation;
        struct {
            /* The thread that woke it. tid 0: it is not a known, sampled thread; no snapshot: its
             * stack is not known. */
            struct observation waker;
            bool is_sampled; /* the waker's process is sampled, and has this number */
            uint32_t thread; /* the thread that waited: its number, and its tid */
            pid_t tid;
            struct wake_seen *seen; /* the worker's to free */
        } wake;
        struct object_news object;
        struct object_counts *object_counts; /* by their kinds; the worker's to free */
        struct {
            uint32_t process;
            uint64_t number;              /* as in observations */
            uint64_t ticks;               /* this one, and those that were missed before it */
            uint64_t idle_ticks;          /* earlier ticks that found no thread awake */
            uint64_t end_ns;              /* the process's time ends here; 0: it continues */
            struct awake_thread *threads; /* the worker's to free; NULL: none */
            size_t thread_count;
        } tick;
        struct {
            uint32_t process;
            pid_t process_id, tid; /* a live thread */
            uint64_t round_ns;
            struct program *program; /* a reference */
            struct goroutine_changes *changes;
        } goroutines;
        struct {
            uint32_t process;
            pid_t process_id, tid;     /* a live thread */
            uint64_t before_ns, at_ns; /* the tick before, and this one (CLOCK_MONOTONIC) */
            bool is_last;              /* of the recording */
            struct program *program;   /* a reference */
        } tasks;
        struct program *program;
        struct sampling_state *state; /* MESSAGE_COPY, MESSAGE_MOMENT: the worker's to free */
    };
};

enum request_kind {
    REQUEST_STACK,         /* copy this much of the thread's stacks from now on */
    REQUEST_STACK_ANEW,    /* the same, and observe it again: the copy was too short */
    REQUEST_ANEW,          /* observe it again: its observation can't be counted */
    REQUEST_LATER,         /* observe it again in the next round, even if it has not moved */
    REQUEST_FRAME_POINTER, /* stop it while it sleeps where it was seen, for its registers */
    REQUEST_REGISTERS,     /* from its next sleeps on, report more registers than /proc does */
    REQUEST_OWNER,    /* read the owner of what it waits for at each observation, until it moves */
    REQUEST_NO_OWNER, /* stop that: the owner will not change */
    REQUEST_AREAS,    /* the process's mappings now end elsewhere */
    REQUEST_CONTEXT,  /* read the contexts of the program's threads from now on */
    REQUEST_PYTHON,   /* the program has an interpreter: read Python frames from now on */
    REQUEST_GOROUTINES,  /* the program has Go's runtime: read its goroutines from now on */
    REQUEST_FEWER_PAGES, /* choose fewer pages from now on: too many are counted */
    REQUEST_HURRY,       /* the program's code changes: report all copies urgently from now on */
};

struct request {
    enum request_kind kind;
    uint32_t thread; /* its number; its tid too, as numbers are reused: */
    pid_t tid;
    uint32_t serial;    /* counts each thread's requests to be observed again; 0: another request */
    size_t stack_limit; /* REQUEST_STACK*: bytes */
    struct stack_place other_stack; /* REQUEST_STACK*: address 0: none */
    struct sleep_place asleep;      /* REQUEST_FRAME_POINTER */
    uint32_t program; /* REQUEST_AREAS, _CONTEXT, _PYTHON, _GOROUTINES, _HURRY: its number */
    struct stack_areas areas;     /* REQUEST_AREAS: owned by the sampling thread from now on */
    struct context_place context; /* REQUEST_CONTEXT */
    struct python_place python;   /* REQUEST_PYTHON */
    struct go_place go;           /* REQUEST_GOROUTINES */
};

struct channel;

/* Returns 0 or a negative errno. */
int channel_new(struct channel **ret_channel);
/* Call it when both threads have ended. Drops all pending messages and requests. Accepts NULL. */
void channel_free(struct channel *channel);

struct snapshot_pool *channel_snapshots(struct channel *channel);

/* The collector's queue to the worker. */
struct news_queue *channel_news(struct channel *channel);

/* For the sampling thread: sends a message; channel_ring wakes the worker. Returns 0 or -ENOMEM; on
 * error the caller still owns the message. */
int channel_send(struct channel *channel, const struct message *message);
void channel_ring(struct channel *channel);
/* How many messages were sent. */
uint64_t channel_sent(const struct channel *channel);
/* Rings if that is due (base/bell.h). Returns whether it rang. */
bool channel_ring_if_due(struct channel *channel, uint64_t now_ns);
/* Hurries the worker: its request in answer to the last message may soon come too late. */
void channel_hurry(struct channel *channel);
/* Whether too many messages are unread to send one that a later message can replace. */
bool channel_is_behind(const struct channel *channel);
/* How many messages with changes of goroutines the worker has not finished. */
unsigned channel_goroutine_changes(const struct channel *channel);
/* Nothing more will be sent: the worker ends once it has taken all messages, including the
 * collector's. */
void channel_close(struct channel *channel);
/* Takes a request. Returns false if there is none. */
bool channel_next_request(struct channel *channel, struct request *ret_request);
/* channel_await waits until CLOCK_MONOTONIC is `until_ns`, or for a request since `heard`, which
 * channel_heard returned before pending requests were taken. It may return early. */
uint32_t channel_heard(struct channel *channel);
void channel_await(struct channel *channel, uint32_t heard, uint64_t until_ns);
/* Ends that wait. Safe to call from any thread or signal handler. */
void channel_end_wait(struct channel *channel);
/* Waits briefly for a request: the worker is behind, and no later tick makes up for messages that
 * can't be sent now. */
void channel_await_worker(struct channel *channel);
/* Whether the worker has handled all messages and its requests have been taken. */
bool channel_is_settled(struct channel *channel);

/* For the worker: takes the next message, and waits for it if `may_wait`. Returns false if there is
 * none; with `may_wait`, that means that the channel is closed. */
bool channel_receive(struct channel *channel, bool may_wait, struct message *ret_message);
/* The worker is done with the message that it received last. */
void channel_done(struct channel *channel);
/* Releases what came with a message. */
void channel_release(struct channel *channel, struct message *message);
/* For the worker: sends a request. Returns 0 or -ENOMEM; on error the caller still owns the
 * areas. */
int channel_request(struct channel *channel, const struct request *request);

#endif

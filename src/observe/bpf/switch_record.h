/* The kernel's own record of context switches: for each thread of the followed processes where,
 * when and how it last left its CPU, since when it is runnable, and when it came back.
 *
 * BPF programs on sched_switch, sched_wakeup and sched_waking write it (switch_record.bpf.c). Each
 * thread that has left a CPU has a slot in shared memory, which holds its last departure with all
 * registers. So what a thread did at the moment of a tick is known however late it is looked at:
 *
 *   - It can be computed when ticks are, so the programs know of each.
 *   - A thread that is still off its CPU when it is looked at is read from its slot. The reader
 *     copies its stack, makes sure that it has not moved, and acknowledges the tick.
 *   - A thread that was off its CPU at a tick, but is back before the tick was acknowledged, is
 *     told of by a message, with the top of its stack as it was when it left.
 *   - A thread that was on a CPU at the tick has no departure that spans it.
 *   - If tells_wakes is set, a message tells what ended a wait that a tick found, with the stack of
 *     the thread that did.
 *   - While the CPUs are watched, it is known which thread had a CPU at a tick, of whatever
 * process.
 *
 * Needs a kernel with BTF: 5.15 or later, and 5.18 on aarch64; CAP_BPF and CAP_PERFMON
 * (capabilities(7)). The kernel does not check whether the caller may read the processes as
 * ptrace(2) would: the caller must. Once the caller has ended, however it did, nothing is left.
 *
 * Not for use by several threads at once, but the record may be handed from one to another. */
#ifndef FGPROF_OBSERVE_BPF_SWITCH_RECORD_H
#define FGPROF_OBSERVE_BPF_SWITCH_RECORD_H

#include "base/ticks.h"
#include "observe/bpf/departure.h"
#include "runtime/python/frames.h"

#define SWITCH_THREADS_DEFAULT 16384u
#define SWITCH_RING_BYTES_DEFAULT (4u << 20)

struct switch_options {
    uint32_t threads_max; /* that have a slot at a time, at most SWITCH_SLOTS_MAX; 0: the default.
                             Each takes 472 bytes (aarch64: 600) from the beginning */
    uint32_t stack_bytes; /* to copy at each departure, at most SWITCH_STACK_BYTES_MAX, unless
                             switch_record_want_stack says otherwise; 0: none. A thread that has
                             moved takes two pages then */
    /* Stacks are copied only by threads that leave their CPU so long before the next tick; 0: by
     * all. A copy costs about as much as all the rest.
     * Threads whose last copy is `stack_pause_ns` old are copied anyway: they may sleep on until
     * after the tick. */
    uint64_t stack_window_ns, stack_pause_ns;
    uint32_t ring_bytes; /* for messages, a power of two and at least a page; 0: the default */
    /* What libbpf and the kernel's verifier say, in pieces; NULL: nobody wants to know. */
    void (*log)(void *argument, const char *text);
    void *log_argument;
    bool tells_wakes;  /* what ends waits that ticks found */
    bool keeps_chains; /* the kernel's functions that a thread sleeps in, with its stack */
    bool has_full_log; /* else the verifier speaks only if it refuses a program */
    /* Memory for a thread is allocated when it is made or woken, and not when it first leaves a
     * CPU. Set by itself for kernels before 6.4, see switch_record.bpf.c. */
    bool allocates_when_woken;
};

struct switch_record;

/* Returns 0; -ENOTSUP if the kernel has no BTF, or not the helpers that are needed; -EPERM if it is
 * not permitted; -EINVAL for options out of range; or another negative errno, whose reason went to
 * `log`. */
int switch_record_open(const struct switch_options *options, struct switch_record **ret_record);
/* Accepts NULL. */
void switch_record_free(struct switch_record *record);

/* Departures of this process, and so its slots, are recorded from now on, or no longer. It is
 * known by its id: a process that has ended must be unfollowed before its id is used again. */
int switch_record_follow(struct switch_record *record, pid_t process_id);
void switch_record_unfollow(struct switch_record *record, pid_t process_id);

/* Says when ticks are, in CLOCK_MONOTONIC; they are numbered from 1. Until then there are none. */
void switch_record_set_ticks(struct switch_record *record, const struct ticks *ticks);

/* What a slot held when it was read. */
struct slot_view {
    struct departure departure;
    uint32_t slot, generation; /* the two are of no other thread */
    uint32_t sequence;
};

/* Reads the last departure of a thread. Returns 0; -ENOENT if it has no slot: it has not left a CPU
 * since its process is followed, or no slot was free; or -EAGAIN if it switches so often that its
 * slot could not be read. */
int switch_record_read(struct switch_record *record, pid_t tid, struct slot_view *ret_view);

/* Whether the thread has neither left a CPU nor got one since it was read: if it was off its CPU,
 * its memory did not change meanwhile. */
bool switch_record_is_unmoved(const struct switch_record *record, const struct slot_view *view);

/* Whether a thread has returned to a CPU without a switch that told of it. */
bool switch_record_has_hidden_returns(const struct switch_record *record);

/* Reads the memory of the futex that the thread waits for as it was when it left, from
 * SWITCH_FUTEX_BYTES_BEFORE before it on. *ret_has_before: what is before the futex is known, too.
 * Returns false if nothing is known: departures without a copied stack have none. */
bool switch_record_read_futex(const struct switch_record *record, const struct slot_view *view,
                              unsigned char ret_futex[SWITCH_FUTEX_BYTES], bool *ret_has_before);

/* No message is wanted for this tick and those before it, for the departure that was read. (One may
 * still come, if the thread moves at this moment.) */
void switch_record_acknowledge(struct switch_record *record, const struct slot_view *view,
                               uint64_t tick);

/* Sets how much of a thread's stack is copied at its next departures, if any is, and whether the
 * stack that its frame pointers lead to is copied, too. The thread is the one with this slot in
 * this generation. */
void switch_record_want_stack(const struct switch_record *record, uint32_t slot,
                              uint32_t generation, size_t bytes, bool wants_other);
/* The same for its Python frames; layout NULL: it has none. */
void switch_record_want_python(const struct switch_record *record, uint32_t slot,
                               uint32_t generation, const struct python_thread *thread);

/* Whether the program for samples, below, copies the thread's Python frames. */
bool switch_record_has_python(struct switch_record *record, pid_t tid);

/* A program for filter_set_next: at each sample of a thread of Python it sends a message. Valid
 * while the record is. */
int switch_record_sample_program(const struct switch_record *record);

/* Takes the messages out, oldest first. `take` returns 0, or a negative errno to stop behind this
 * message, which is then returned. What it is given is valid until it returns. Returns how many
 * there were, or a negative errno. */
typedef int switch_take_fn(void *argument, const struct past_departure *past);
int switch_record_drain(struct switch_record *record, switch_take_fn *take, void *argument);

/* Watches the CPUs from now on, or no longer. That makes each switch dearer, also those of
 * processes that are not followed. */
void switch_record_watch_cpus(struct switch_record *record, bool is_wanted);

/* Finds the thread that had this CPU at a tick that was published. Returns false if it is not
 * known: the CPU was not watched, the tick is too long ago, or there are too many CPUs. */
bool switch_record_find_cpu_user(struct switch_record *record, unsigned cpu, uint64_t tick_ns,
                                 struct cpu_user *ret_user);

struct switch_counters {
    uint64_t without_slot;   /* departures of followed threads: all slots were taken */
    uint64_t without_memory; /* nothing, or no stack, was recorded; also while memory is allocated
                                when threads are woken, and the thread never was */
    uint64_t lost_messages;  /* nobody has taken older ones out in time */
    uint64_t lost_wakes;     /* the same of those about what ended waits */
    uint64_t hidden_returns; /* of threads to a CPU: no switch told of them */
    uint32_t slots_used;     /* how many slots were ever needed at a time */
};
struct switch_counters switch_record_counters(const struct switch_record *record);

#endif

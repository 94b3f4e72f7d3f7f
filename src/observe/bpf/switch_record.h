/* The kernel's own record of context switches: for each thread of the followed processes where,
 * when and how it last left its CPU, when it became runnable, and when it came back.
 *
 * BPF programs on sched_switch, sched_wakeup and sched_waking write it (switch_record.bpf.c). Each
 * thread that has left a CPU has a slot in shared memory, which holds its last departure with all
 * registers. So the state of a thread at the time of a tick is known however late we look:
 *
 *   - The times of ticks can be computed, so the programs know each tick.
 *   - A thread that is still off its CPU when we look is read from its slot. The reader copies its
 *     stack, makes sure that it has not moved, and acknowledges the tick.
 *   - A thread that was off its CPU at a tick, but is back before the tick was acknowledged, is
 *     reported by a message, with the top of its stack at its departure.
 *   - A thread that was on a CPU at the tick has no departure that spans it.
 *   - If tells_wakes is set, a message reports what ended a wait that a tick found, with the stack
 *     of the thread that ended it.
 *   - While the CPUs are watched, it is known which thread, of any process, had a CPU at a tick.
 *
 * Needs a kernel with BTF, 5.15 or later (5.18 on aarch64), and CAP_BPF and CAP_PERFMON
 * (capabilities(7)). The kernel does not check whether the caller may read the processes, as it
 * does for ptrace(2), so the caller must. Once the caller has exited, for whatever reason, nothing
 * is left in the kernel.
 *
 * Only one thread may use the record at a time, but it may be passed from one to another. */
#ifndef FGPROF_OBSERVE_BPF_SWITCH_RECORD_H
#define FGPROF_OBSERVE_BPF_SWITCH_RECORD_H

#include "base/ticks.h"
#include "observe/bpf/departure.h"
#include "runtime/python/frames.h"

#define SWITCH_THREADS_DEFAULT 16384u
#define SWITCH_STACK_BYTES_DEFAULT 4096u
#define SWITCH_RING_BYTES_DEFAULT (4u << 20)

struct switch_options {
    uint32_t threads_max; /* with a slot at the same time, at most SWITCH_SLOTS_MAX; 0: the default.
                             Each slot takes sizeof(struct switch_slot) from the start, and each
                             thread that has moved two pages */
    uint32_t stack_bytes; /* to copy at departures, at most SWITCH_STACK_BYTES_MAX, unless
                             switch_record_want_stack says otherwise; 0: the default */
    /* Stacks are only copied at departures within `stack_window_ns` before the next tick, because a
     * copy costs about as much as all the rest. Threads whose last copy is `stack_pause_ns` old are
     * copied anyway: they may stay asleep until after the tick. 0: all are. */
    uint64_t stack_window_ns, stack_pause_ns;
    uint32_t ring_bytes; /* for messages, a power of two and at least a page; 0: the default */
    /* Gets what libbpf and the kernel's verifier say of a refusal, in pieces; NULL: it is
     * dropped. */
    void (*log)(void *argument, const char *text);
    void *log_argument;
    bool tells_wakes;  /* report what ends waits that ticks found */
    bool keeps_chains; /* with its stack, copy the kernel's functions in which a thread sleeps */
    /* Memory for a thread is allocated when it is created or woken, and not when it first leaves a
     * CPU. Set automatically for kernels before 6.4, see switch_record.bpf.c. */
    bool allocates_when_woken;
};

struct switch_record;

/* Returns 0; -ENOTSUP if the kernel lacks BTF or a needed helper; -EPERM if it is not permitted;
 * -EINVAL for options out of range; or another negative errno, whose reason was written to
 * `log`. */
int switch_record_open(const struct switch_options *options, struct switch_record **ret_record);
/* Accepts NULL. */
void switch_record_free(struct switch_record *record);

/* Starts or stops recording departures of this process, and so using slots for it. A process is
 * known by its id, so one that has exited must be unfollowed before its id is reused. */
int switch_record_follow(struct switch_record *record, pid_t process_id);
void switch_record_unfollow(struct switch_record *record, pid_t process_id);

/* Sets when ticks are, in CLOCK_MONOTONIC; they are numbered from 1. Before this call there are
 * none. */
void switch_record_set_ticks(struct switch_record *record, const struct ticks *ticks);

/* The contents of a slot when it was read. */
struct slot_view {
    struct departure departure;
    uint32_t slot, generation; /* together they identify the thread */
    uint32_t sequence;
};

/* Reads the last departure of a thread. Returns 0; -ENOENT if it has no slot, because it has not
 * left a CPU since its process is followed, or no slot was free; or -EAGAIN if it switches so often
 * that its slot could not be read. */
int switch_record_read(struct switch_record *record, pid_t tid, struct slot_view *ret_view);

/* Whether the thread has neither left nor got a CPU since it was read: if it was off its CPU, its
 * stack has not changed meanwhile. */
bool switch_record_is_unmoved(const struct switch_record *record, const struct slot_view *view);

/* Whether any thread has returned to a CPU without a switch that reported it. */
bool switch_record_has_hidden_returns(const struct switch_record *record);

/* Reads the memory of the futex for which the thread waits, as it was at the departure, from
 * SWITCH_FUTEX_BYTES_BEFORE before it on. *ret_has_before: the memory before the futex is known
 * too. Returns false if nothing is known: departures without a copied stack have no futex. */
bool switch_record_read_futex(const struct switch_record *record, const struct slot_view *view,
                              unsigned char ret_futex[SWITCH_FUTEX_BYTES], bool *ret_has_before);

/* No message is wanted for this tick and earlier ones, for the departure that was read. (A message
 * may still come if the thread moves at the same time.) */
void switch_record_acknowledge(struct switch_record *record, const struct slot_view *view,
                               uint64_t tick);

/* Sets how much of a thread's stack is copied at its next departures, and whether the stack to
 * which its frame pointers lead is copied too. The thread is the one with this slot in this
 * generation. */
void switch_record_want_stack(const struct switch_record *record, uint32_t slot,
                              uint32_t generation, size_t bytes, bool wants_other);
/* Sets where to find its Python frames, to copy them too; layout NULL: it has none. */
void switch_record_want_python(const struct switch_record *record, uint32_t slot,
                               uint32_t generation, const struct python_thread *thread);

/* Whether the program of switch_record_sample_program copies the thread's Python frames. */
bool switch_record_has_python(struct switch_record *record, pid_t tid);

/* A program for filter_set_next: at each sample of a Python thread it sends a message. Valid as
 * long as the record. */
int switch_record_sample_program(const struct switch_record *record);

/* Takes the messages out, oldest first. `take` returns 0, or a negative errno to stop after this
 * message; that errno is then returned. A message is valid until `take` returns. Returns how many
 * messages there were, or a negative errno. */
typedef int switch_take_fn(void *argument, const struct past_departure *past);
int switch_record_drain(struct switch_record *record, switch_take_fn *take, void *argument);

/* Starts or stops watching the CPUs. That makes every switch more expensive, even those of
 * processes that are not followed. */
void switch_record_watch_cpus(struct switch_record *record, bool is_wanted);

/* Finds the thread that had this CPU at a tick that was set. Returns false if it is not known: the
 * CPU was not watched, the tick is too long ago, or there are too many CPUs. */
bool switch_record_find_cpu_user(struct switch_record *record, unsigned cpu, uint64_t tick_ns,
                                 struct cpu_user *ret_user);

struct switch_counters {
    uint64_t without_slot;   /* departures of followed threads: all slots were taken */
    uint64_t without_memory; /* nothing was recorded; 0 where memory is allocated when threads are
                                woken, so that it may also mean that they never were */
    uint64_t lost_messages;  /* older ones were not taken out in time */
    uint64_t lost_wakes;     /* the same for messages about what ended waits */
    uint64_t hidden_returns; /* of threads to a CPU that no switch reported */
    uint32_t slots_used;     /* the most slots ever used at a time */
};
struct switch_counters switch_record_counters(const struct switch_record *record);

#endif

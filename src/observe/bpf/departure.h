/* How a thread left its CPU, as the kernel's record has it, in the reader's terms. */
#ifndef FGPROF_OBSERVE_BPF_DEPARTURE_H
#define FGPROF_OBSERVE_BPF_DEPARTURE_H

#include "observe/bpf/switch_format.h"
#include "observe/wake.h"
#include "observe/registers.h"
#include "proc/thread_state.h"

/* Times are of CLOCK_MONOTONIC. */
struct departure {
    pid_t tid, process_id;
    uint64_t start_ns;    /* when the thread was made: CLOCK_BOOTTIME, as in /proc/PID/stat */
    uint64_t number;      /* of the thread's departures since its first one was recorded, from 1 */
    uint64_t out_ns;      /* when it left its CPU */
    uint64_t runnable_ns; /* since when it waits for a CPU: it was woken, or never slept; 0: it
                             still sleeps */
    uint64_t moved_ns;    /* when another CPU's queue got it since then; 0: none did */
    uint64_t in_ns;       /* when it was back on a CPU; 0: it is not */
    uint64_t switches;    /* how often it had got a CPU then, as in struct activity; 0: not known */
    unsigned runnable_cpu;   /* for which it waits from runnable_ns to moved_ns */
    enum thread_state state; /* from out_ns to runnable_ns; THREAD_RUNNABLE: it did not sleep */
    long syscall_number;     /* that it is in; -1: none */
    /* As they were when it entered the kernel. In a call, the register for the result is not known.
     * None is known of a thread that runs 32-bit code. */
    struct registers registers;
};

/* How far our clocks are ahead of the kernel's, modulo 2^64: time_namespaces(7). */
struct clock_offsets {
    uint64_t monotonic_ns, boot_ns;
};

/* Parses /proc/PID/timens_offsets: lines such as "monotonic -86400 0". A clock that is not in it is
 * not ahead. */
struct clock_offsets clock_offsets_parse(const char *text);

void departure_translate(const struct switch_departure *raw, const struct clock_offsets *offsets,
                         struct departure *ret_departure);

/* Reads which thread had a CPU. */
void cpu_user_read(const struct switch_stay *raw, struct cpu_user *ret_user);

/* The registers among the words; in the x86_64/ and aarch64/ folders. *ret_syscall_number is -1 if
 * the thread is in no call. */
void departure_registers(const __u64 words[SWITCH_WORDS], struct registers *ret_registers,
                         long *ret_syscall_number);

/* A departure that spans ticks, and was over before anybody looked; or what else the record tells.
 */
struct past_departure {
    enum switch_message_kind kind;
    /* SWITCH_MESSAGE_WAKE: the end of the wait of this thread. All else is of the thread that woke
     * it, as it was then; its registers are known only if it runs code of a process. */
    pid_t woken_process_id, woken_tid;
    struct wake_seen wake;
    struct departure departure;
    unsigned chain_depth; /* the kernel's functions that it slept in, leaf first */
    uint64_t chain[WAKE_CHAIN_MAX];
    uint64_t first_tick, last_tick; /* that it spans */
    uint32_t slot, generation;      /* as in struct slot_view */
    const unsigned char *stack;     /* what was at the stack pointer then */
    size_t stack_bytes;
    const unsigned char *other_stack; /* what was at other_address, on the stack that it had left */
    uint64_t other_address;
    size_t other_bytes; /* 0: none */
    bool has_one_stack; /* as far as frame pointers show them */
    /* The memory of the futex that it waited for, from SWITCH_FUTEX_BYTES_BEFORE before it on;
     * NULL: none. `has_futex_before`: what is before the futex is known, too. */
    const unsigned char *futex;
    bool has_futex_before;
    /* The frames of a Python thread: struct switch_frame each, not aligned; see switch_format.h. */
    const unsigned char *frames;
    size_t frame_count;
    uint32_t frames_state;
};

/* Reads a message. The stack stays where it is. Returns false if the message is not whole. */
bool past_departure_read(const void *data, size_t bytes, const struct clock_offsets *offsets,
                         struct past_departure *ret_past);

#endif

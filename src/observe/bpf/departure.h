/* A thread's departure from its CPU, from the kernel's record, converted to the reader's types. */
#ifndef FGPROF_OBSERVE_BPF_DEPARTURE_H
#define FGPROF_OBSERVE_BPF_DEPARTURE_H

#include "observe/bpf/switch_format.h"
#include "observe/wake.h"
#include "observe/registers.h"
#include "proc/procfs.h"
#include "proc/thread_state.h"

/* Times are CLOCK_MONOTONIC unless noted. */
struct departure {
    pid_t tid, process_id;
    uint64_t start_ns;    /* when the thread was created: CLOCK_BOOTTIME, as in /proc/PID/stat */
    uint64_t number;      /* counts the thread's recorded departures, from 1 */
    uint64_t out_ns;      /* when it left its CPU */
    uint64_t runnable_ns; /* it waits for a CPU since then: it was woken, or never slept; 0: it
                             still sleeps */
    uint64_t moved_ns;    /* when it was moved to another CPU's queue since then; 0: it was not */
    uint64_t in_ns;       /* when it was back on a CPU; 0: it is not */
    uint64_t switches; /* how often it had got a CPU by then, as in struct activity; 0: not known */
    unsigned runnable_cpu;   /* the CPU for which it waits from runnable_ns to moved_ns */
    enum thread_state state; /* from out_ns to runnable_ns; THREAD_RUNNABLE: it did not sleep */
    long syscall_number;     /* the call that it is in; -1: none */
    /* As they were on entry to the kernel. In a call, the register for the result is not known. For
     * a thread that runs 32-bit code, no registers are known. */
    struct registers registers;
};

void departure_translate(const struct switch_departure *raw, const struct clock_offsets *offsets,
                         struct departure *ret_departure);

/* Converts which thread had a CPU. */
void cpu_user_read(const struct switch_stay *raw, struct cpu_user *ret_user);

/* Takes the registers from the words; defined in the x86_64/ and aarch64/ folders.
 * *ret_syscall_number is -1 if the thread is not in a call. */
void departure_registers(const __u64 words[SWITCH_WORDS], struct registers *ret_registers,
                         long *ret_syscall_number);

/* A message of the record: a departure that spans ticks and ended before we looked, or another kind
 * of message. */
struct past_departure {
    enum switch_message_kind kind;
    /* SWITCH_MESSAGE_WAKE: the end of this thread's wait. All other fields describe the thread that
     * woke it, as it was then; its registers are only known if it runs user code. */
    pid_t woken_process_id, woken_tid;
    struct wake_seen wake;
    struct departure departure;
    unsigned chain_depth; /* the kernel's functions in which it slept, leaf first */
    uint64_t chain[WAKE_CHAIN_MAX];
    uint64_t last_tick;         /* that it spans */
    uint32_t slot, generation;  /* as in struct slot_view */
    const unsigned char *stack; /* the memory at the stack pointer then */
    size_t stack_bytes;
    const unsigned char *other_stack; /* the memory at other_address, on the stack that it left */
    uint64_t other_address;
    size_t other_bytes; /* 0: none */
    bool has_one_stack; /* as far as frame pointers show */
    /* The memory of the futex for which it waited, from SWITCH_FUTEX_BYTES_BEFORE before it on;
     * NULL: none. `has_futex_before`: the memory before the futex is known too. */
    const unsigned char *futex;
    bool has_futex_before;
    /* The frames of a Python thread: struct switch_frame each, not aligned; see switch_format.h. */
    const unsigned char *frames;
    size_t frame_count;
    uint32_t frames_state;
};

/* Reads a message. The stack is not copied. Returns false if the message is incomplete. */
bool past_departure_read(const void *data, size_t bytes, const struct clock_offsets *offsets,
                         struct past_departure *ret_past);

#endif

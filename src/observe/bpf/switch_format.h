/* Data that the programs on context switches share with the loader: see switch_record.h. */
#ifndef FGPROF_OBSERVE_BPF_SWITCH_FORMAT_H
#define FGPROF_OBSERVE_BPF_SWITCH_FORMAT_H

#include <linux/types.h>

/* How many words of registers a departure has. x86-64: struct pt_regs up to sp (asm/ptrace.h).
 * aarch64: struct user_pt_regs, orig_x0 and the number of the system call. */
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define SWITCH_WORDS 36
#else
#define SWITCH_WORDS 20
#endif

/* Together with the data stored with it, a thread's copy takes two pages. */
#define SWITCH_STACK_BYTES_MAX 7232u
/* If a thread switched from one stack to another, this much of the stack that it left is kept, at
 * this offset in the copy. Less is then kept of its current stack. */
#define SWITCH_OTHER_BYTES 4096u
#define SWITCH_OTHER_OFFSET (SWITCH_STACK_BYTES_MAX - SWITCH_OTHER_BYTES)

/* For a Python thread, its frames are kept there instead, leaf first. */
#define SWITCH_FRAMES_MAX 128u
struct switch_frame {
    __u64 code, instruction;
    __u32 owner, is_entry;
};
/* Where to find the thread's frames: the needed part of struct python_layout
 * (runtime/python/layout.h). */
struct switch_python {
    __u64 state; /* the address of its PyThreadState; 0: it is not known to run Python */
    __u64 native_id;
    __u16 thread_native_id, thread_frame, noted_frame;
    __u16 frame_code, frame_previous, frame_instruction, frame_owner, frame_is_entry;
};
#define SWITCH_NO_FIELD 0xffffu /* noted_frame and frame_is_entry: there is none */

enum switch_frames_state {
    SWITCH_FRAMES_NONE, /* frames were not read */
    SWITCH_FRAMES_WHOLE,
    SWITCH_FRAMES_CUT, /* there are more than SWITCH_FRAMES_MAX */
    SWITCH_FRAMES_UNREADABLE,
};

/* The memory of a futex that is kept, before it and from it on: it contains a lock's owner. */
#define SWITCH_FUTEX_BYTES_BEFORE 160u
#define SWITCH_FUTEX_BYTES_FROM 64u
#define SWITCH_FUTEX_BYTES (SWITCH_FUTEX_BYTES_BEFORE + SWITCH_FUTEX_BYTES_FROM)

#define SWITCH_SLOTS_MAX 65536u /* struct switch_births has 16 bits for a slot */

/* Bits of the kernel's task state (include/linux/sched.h). */
#define SWITCH_STATE_UNINTERRUPTIBLE 0x0002u
#define SWITCH_STATE_STOPPED 0x0004u
#define SWITCH_STATE_TRACED 0x0008u
#define SWITCH_STATE_DEAD 0x0080u

/* A thread left its CPU. */
struct switch_departure {
    __u64 number;      /* counts its departures since it has its slot, from 1 */
    __u64 out_ns;      /* when: bpf_ktime_get_ns */
    __u64 in_ns;       /* when it was back on a CPU; 0: it is not */
    __u64 runnable_ns; /* it waits for a CPU since then; 0: it is not runnable yet */
    __u64 moved_ns;    /* when it was moved to another CPU's queue since then; 0: it was not */
    __u64 start_ns;    /* when the thread was created: since boot */
    __u64 switches;    /* how often it had got a CPU, as in /proc/PID/schedstat; 0: not known */
    __u32 tid, process_id;
    __u32 state;        /* of the task; 0: it stayed runnable */
    __u32 runnable_cpu; /* the CPU for which it waits from runnable_ns to moved_ns */
    __u64 words[SWITCH_WORDS];
};

/* When a thread got its CPU, if no switch reported that: it leaves the CPU at now_ns, and has run
 * for ran_ns since its last departure. If the difference can't be right, it got the CPU when it was
 * woken or, if that is not known either, right after its last departure. */
static inline __u64 switch_unseen_return_ns(const struct switch_departure *departure, __u64 ran_ns,
                                            __u64 now_ns)
{
    __u64 since_ns = now_ns - ran_ns;
    __u64 begin_ns = departure->runnable_ns ? departure->runnable_ns : departure->out_ns;
    return since_ns > begin_ns && since_ns < now_ns ? since_ns : begin_ns;
}

/* A thread's last departure. */
struct switch_slot {
    __u32 sequence;   /* odd while a departure is written; changes with each switch */
    __u32 generation; /* changes whenever the slot is given to a thread, or given back */
    __u64 looked;     /* by the reader: a tick's number + 1, see switch_record_acknowledge */
    /* Written by the reader: how much of the stack to keep; 0: the default. */
    __u32 wanted_bytes;
    __u32 wants_other; /* also keep the stack that the thread has left */
    struct switch_python python;
    struct switch_departure departure;
    /* How much of the futex for which the thread waits is known, from its departure: all of
     * `futex`, or the last SWITCH_FUTEX_BYTES_FROM; 0: nothing, or it waits for none. */
    __u32 futex_bytes;
    __u32 looked_departure; /* by the reader: the number, truncated, of the last departure that it
                               found at a tick */
    unsigned char futex[SWITCH_FUTEX_BYTES];
};

/* 0 is for threads without a slot. */
static inline __u32 switch_generation_after(__u32 generation)
{
    return generation + 1 ? generation + 1 : 1;
}

/* The kind of thread that had a CPU. If another thread was woken there, either it or an interrupt
 * did that: the kernel's functions show which. */
enum switch_waker {
    SWITCH_WAKER_THREAD,
    SWITCH_WAKER_KERNEL_THREAD, /* or a process's thread that works only in the kernel */
    SWITCH_WAKER_IDLE,          /* the CPU had nothing to do */
};

/* The kernel's functions in which a thread was, leaf first: the lower bits of addresses that are
 * all within 2 GiB of the first one. */
#define SWITCH_CHAIN_MAX 42u
struct switch_chain {
    __u64 first;
    __u32 depth; /* 0: they were not wanted, or are not known */
    __u32 addresses[SWITCH_CHAIN_MAX];
};

/* The end of a wait that a tick found, by the thread that ran then. */
struct switch_wake {
    __u64 out_ns;          /* of the departure; 0: its process was not followed yet */
    __u32 tid, process_id; /* of the thread that was woken */
    __u32 waker;           /* enum switch_waker */
    __u32 unused;
    char name[16]; /* of the thread that ran */
};

enum switch_message_kind {
    SWITCH_MESSAGE_PAST,   /* a departure that ended before the reader looked */
    SWITCH_MESSAGE_SAMPLE, /* the Python frames of a thread that was sampled while it ran, at
                              departure.out_ns */
    SWITCH_MESSAGE_WAKE, /* `departure` and stacks are those of the thread that woke another one, at
                            that time. Registers are 0 if it has none */
};

struct switch_message {
    __u32 kind, unused; /* enum switch_message_kind */
    __u64 last_tick;    /* at which the thread was off its CPU */
    __u32 slot, generation;
    __u32 stack_bytes; /* of the stack, from the stack pointer; they follow the message */
    __u32 other_bytes; /* of the other stack, at SWITCH_OTHER_OFFSET behind the message */
    __u64 other_address;
    __u32 futex_bytes;   /* as in struct switch_slot */
    __u32 has_one_stack; /* the other stack was wanted, but frame pointers lead to none */
    __u32 frames_state;  /* enum switch_frames_state */
    __u32 frame_count;   /* at SWITCH_OTHER_OFFSET behind the message */
    struct switch_departure departure;
    struct switch_chain chain; /* where the thread left its CPU, or woke another one */
    union {
        unsigned char futex[SWITCH_FUTEX_BYTES];
        struct switch_wake wake;
    };
};

/* Which slots were given to threads. A reader that is too far behind looks at all slots. */
#define SWITCH_BIRTHS 4096u /* a power of two */
struct switch_births {
    __u64 count;
    __u64 items[SWITCH_BIRTHS]; /* number n at n % SWITCH_BIRTHS: (n + 1) << 16 | slot */
};

/* An interval in which a thread had a CPU. */
struct switch_stay {
    __u64 since_ns, until_ns;
    __u32 tid, process_id;
    __u32 kind; /* enum switch_waker */
    __u32 unused;
    char name[16], process_name[16];
};

/* CPUs that are distinguished; the others share counters, and their stays are not known. */
#define SWITCH_CPUS 256u
#define SWITCH_STAYS 16u /* a power of two */
struct switch_cpu {
    /* While the CPUs are watched: */
    __u64 since_ns; /* the thread that has the CPU has had it since then */
    __u64 task;     /* that thread's task_struct; 0: not known */
    __u64 tick_ns;  /* the first tick since then */
    __u64 stay_count;
    __u32 sequence; /* odd while a stay is written */
    __u32 unused[7];
    struct switch_stay stays[SWITCH_STAYS]; /* the last ones that contain a tick: number n at
                                               n % SWITCH_STAYS */
};

struct switch_failures {
    __u64 slots;   /* departures of threads without a slot, because all were taken */
    __u64 storage; /* departures for which there was no memory */
    __u64 ring;    /* messages of departures for which there was no room, */
    __u64 wakes;   /* and of wakes */
    __u64 returns; /* to a CPU that no switch reported */
};

#endif

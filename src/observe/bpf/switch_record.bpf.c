/* The switch record: keeps, for each thread of the followed processes, where, when and how it last
 * left its CPU, and when it was runnable and running again. switch_record.h describes its purpose
 * and how the loader uses it.
 *
 * All data of a thread is written under the lock of its run queue: at sched_switch by the CPU that
 * the thread leaves or gets, at sched_wakeup, when the thread is put on a run queue, and at
 * sched_migrate_task, when it is moved to another one. (sched_waking is earlier, and may come while
 * the thread is still leaving its CPU.) So there is one writer at a time, and only readers need the
 * slot's sequence. */
#include "base/ticks.h"
#include "observe/bpf/kernel_types.h"
#include "observe/bpf/process_set.h"
#include "observe/bpf/switch_format.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#ifdef __TARGET_ARCH_arm64
#include "observe/bpf/aarch64/machine.bpf.h"
#else
#include "observe/bpf/x86_64/machine.bpf.h"
#endif

char licence[] SEC("license") = "Dual MIT/GPL";

/* ---- Set before the program is loaded ---- */

const volatile __u32 slots_max = 1;
const volatile __u32 stack_bytes = 1;   /* to copy at a departure, unless the reader wants another
                                           amount */
const volatile bool has_prev_state = 0; /* sched_switch has the state as 4th argument: since 5.18 */
const volatile bool tells_wakes = 0;
const volatile bool keeps_chains = 0;        /* the kernel's functions where threads leave a CPU */
const volatile bool allocates_at_switch = 1; /* else storage is allocated when a thread is woken */

const volatile __u64 stack_window_ns = 0; /* copy stacks within this before a tick, */
const volatile __u64 stack_pause_ns = 0;  /* or if the last copy is at least this old */

/* ---- Shared with the loader ---- */

struct process_set followed;
struct ticks ticks; /* in the time of bpf_ktime_get_ns */
struct switch_births births;
struct switch_cpu cpus[SWITCH_CPUS];
struct switch_failures failures;
__u32 slots_used; /* slots from this one on were never used */
/* The loader's PID namespace, to which all ids belong. Level 0 is the first namespace. */
__u32 namespace_level;
__u64 namespace_address;
__u64 watched_since_ns; /* CPUs are watched since then; 0: they are not */
/* For find_current: the CPU that it reads, and its result. */
__u32 wanted_cpu;
struct switch_stay current_stay;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct switch_slot);
} slots SEC(".maps");

/* Slots that were given back. */
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 1);
    __type(value, __u32);
} free_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} messages SEC(".maps");

/* A buffer for the kernel's functions in which a thread is. */
struct kernel_chain {
    __u64 addresses[SWITCH_CHAIN_MAX];
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct kernel_chain);
} kernel_chains SEC(".maps");

/* ---- Thread storage ---- */

struct thread {
    __u32 slot, generation;        /* 0: it has no slot; `slot` is WAKE_TOLD then, or 0 */
    __u64 ran_ns;                  /* in total, when it last left its CPU */
    __u64 unreadable;              /* where the stack was last seen to end; 0: nowhere */
    __u64 copied_ns;               /* when its stack was last copied */
    struct switch_message message; /* only the stack's size is set until it is sent */
    unsigned char stack[SWITCH_STACK_BYTES_MAX];
};
/* The thread was waiting when its process was first followed; the end of that wait was reported. */
#define WAKE_TOLD 0xffffffffu

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

/* A buffer per CPU for the frames of a sampled thread: the sample may come while the thread's own
 * storage is being written. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct thread);
} samples SEC(".maps");

static __always_inline struct thread *thread_of(struct task_struct *task, __u64 flags)
{
    return bpf_task_storage_get(&threads, task, 0, flags);
}

static __always_inline void count(__u64 *counter)
{
    __sync_fetch_and_add(counter, 1);
}

/* ---- Ids ---- */

/* The id in the loader's PID namespace; 0: it is not visible there. Pointers are read by a helper:
 * for each direct load of a pointer, the verifier searches all types of the kernel, for 1 ms. */
static __always_inline __u32 id_of(const struct pid *pid)
{
    struct upid in_namespace;
    __u32 level = namespace_level;
    if (!pid || BPF_CORE_READ(pid, level) < level)
        return 0;
    const char *numbers = (const char *)__builtin_preserve_access_index(&pid->numbers[0]);
    if (bpf_probe_read_kernel(&in_namespace, sizeof in_namespace,
                              numbers + level * sizeof in_namespace) ||
        (__u64)in_namespace.ns != namespace_address)
        return 0;
    return (__u32)in_namespace.nr;
}

static __always_inline __u32 process_id_of(const struct task_struct *task)
{
    return namespace_level ? id_of(BPF_CORE_READ(task, group_leader, thread_pid))
                           : (__u32)task->tgid;
}

static __always_inline __u32 tid_of(const struct task_struct *task)
{
    return namespace_level ? id_of(BPF_CORE_READ(task, thread_pid)) : (__u32)task->pid;
}

static __always_inline bool is_followed(__u32 process_id)
{
    return process_set_has(&followed, process_id);
}

/* ---- Slots ---- */

static __always_inline struct switch_slot *slot_of(const struct thread *thread)
{
    __u32 number = thread->slot;
    struct switch_slot *slot = thread->generation ? bpf_map_lookup_elem(&slots, &number) : NULL;
    return slot && slot->generation == thread->generation ? slot : NULL;
}

/* Announces to the reader that the slot has a new thread. */
static __always_inline void tell_birth(__u32 slot)
{
    __u64 number = __sync_fetch_and_add(&births.count, 1);
    births.items[number % SWITCH_BIRTHS] = (number + 1) << 16 | slot;
}

static struct switch_slot *assign_slot(struct thread *thread)
{
    __u32 number;
    if (bpf_map_pop_elem(&free_slots, &number)) {
        if (slots_used >= slots_max)
            return NULL;
        number = __sync_fetch_and_add(&slots_used, 1);
        if (number >= slots_max) {
            __sync_fetch_and_add(&slots_used, -1);
            return NULL;
        }
    }
    struct switch_slot *slot = bpf_map_lookup_elem(&slots, &number);
    if (!slot)
        return NULL;
    slot->generation = switch_generation_after(slot->generation);
    slot->looked = slot->looked_departure = 0;
    slot->wanted_bytes = slot->wants_other = 0;
    slot->departure.number = 0;
    slot->departure.tid = 0;
    thread->slot = number;
    thread->generation = slot->generation;
    return slot;
}

/* Called for a thread of any process that exits and leaves its CPU for the last time. */
static __always_inline void release_slot(struct task_struct *task)
{
    struct thread *thread = thread_of(task, 0);
    struct switch_slot *slot = thread ? slot_of(thread) : NULL;
    if (!slot)
        return;
    /* The loader may take back the slot, if the process is no longer followed. */
    __u32 number = thread->slot, generation = thread->generation;
    if (__sync_val_compare_and_swap(&slot->generation, generation,
                                    switch_generation_after(generation)) != generation)
        return;
    slot->departure.tid = 0;
    step_sequence(&slot->sequence, 2);
    thread->generation = 0;
    bpf_map_push_elem(&free_slots, &number, 0);
}

/* ---- The kernel's functions ---- */

/* The innermost function is this program, whose code may be far from the kernel's. */
#define CHAIN_SKIPPED 1

static __always_inline void read_chain(void *ctx, struct switch_chain *ret_chain)
{
    __u32 key = 0;
    struct kernel_chain *chain = bpf_map_lookup_elem(&kernel_chains, &key);
    long bytes =
        chain ? bpf_get_stack(ctx, chain->addresses, sizeof chain->addresses, CHAIN_SKIPPED) : 0;
    ret_chain->depth = bytes > 0 ? (__u32)bytes / sizeof *chain->addresses : 0;
    ret_chain->first = chain ? chain->addresses[0] : 0;
    for (__u32 i = 0; i < SWITCH_CHAIN_MAX && chain; i++)
        ret_chain->addresses[i] = (__u32)chain->addresses[i];
}

/* ---- Departures ---- */

static __always_inline __u64 storage_flags(void)
{
    return allocates_at_switch ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0;
}

/* The minimum distance of another stack, and the number of frames within which it must be found. */
#define OTHER_DISTANCE_MIN (64u << 10)
#define OTHER_FRAMES_MAX 24
/* An interrupted function may not have set its frame pointer yet: its frame is below its caller's.
 */
#define OTHER_BYTES_BELOW 1024

/* How much to copy: up to the known end of the stack, but every 64th departure tries all again. */
static __always_inline __u64 bytes_before_end(const struct thread *thread,
                                              const struct switch_slot *slot, __u64 sp)
{
    __u64 wanted = slot->wanted_bytes ?: stack_bytes;
    if ((thread->message.other_bytes || thread->message.frame_count) &&
        wanted > SWITCH_OTHER_OFFSET)
        wanted = SWITCH_OTHER_OFFSET;
    __u64 bytes = thread->unreadable - sp;
    return slot->departure.number % 64 && thread->unreadable > sp && bytes < wanted ? bytes
                                                                                    : wanted;
}

/* A copy fails as a whole if any part of it can't be read. Returns how much to try next: without
 * the last page; 0: do not try again. */
static __always_inline __u64 try_copy(struct thread *thread, __u64 sp, __u64 bytes)
{
    if (!bytes || bytes > SWITCH_STACK_BYTES_MAX)
        return 0;
    if (!bpf_probe_read_user(thread->stack, bytes, (const void *)sp)) {
        thread->message.stack_bytes = bytes;
        return 0;
    }
    thread->unreadable = (sp + bytes - 1) & -4096ull;
    bytes = thread->unreadable > sp ? thread->unreadable - sp : 0;
    barrier_var(bytes); /* else the compiler compares sp, and the verifier sees no bound */
    return bytes;
}

/* A copied stack spans at most three pages. */
static __always_inline void copy_stack(struct thread *thread, const struct switch_slot *slot,
                                       const struct switch_departure *departure)
{
    __u64 sp = departure->words[WORD_SP], bytes = bytes_before_end(thread, slot, sp);
    bytes = try_copy(thread, sp, bytes);
    bytes = try_copy(thread, sp, bytes);
    try_copy(thread, sp, bytes);
}

/* Follows the frame pointers to the first one that leads away from this stack; 0: none does. Code
 * that switches stacks keeps the frame pointer, as Go's does. */
static __always_inline __u64 find_other(const struct switch_departure *departure)
{
    __u64 sp = departure->words[WORD_SP], at = departure->words[WORD_FP], next;
#pragma unroll
    for (int i = 0; i < OTHER_FRAMES_MAX; i++) {
        if (at - sp >= OTHER_DISTANCE_MIN)
            return at;
        if (bpf_probe_read_user(&next, sizeof next, (const void *)at))
            return 0;
        at = next;
    }
    return 0;
}

/* Global functions are verified once, and not again for each path that leads to them: that makes
 * loading six times as fast. */
__noinline int copy_other(struct thread *thread, const struct switch_departure *departure)
{
    if (!thread || !departure)
        return 0;
    __u64 address = find_other(departure), bytes = SWITCH_OTHER_BYTES;
    void *copy = thread->stack + SWITCH_OTHER_OFFSET;
    thread->message.has_one_stack = !address;
    if (!address)
        return 0;
    address -= OTHER_BYTES_BELOW;
    thread->message.other_address = address;
    if (bpf_probe_read_user(copy, bytes, (const void *)address)) {
        bytes = 4096 - address % 4096;
        barrier_var(bytes);
        if (bytes > SWITCH_OTHER_BYTES || bpf_probe_read_user(copy, bytes, (const void *)address))
            return 0;
    }
    thread->message.other_bytes = bytes;
    return 0;
}

static __always_inline bool read_word(__u64 address, __u64 *ret_word)
{
    return !bpf_probe_read_user(ret_word, sizeof *ret_word, (const void *)address);
}

/* Finds the first frame of a Python thread. Its state may belong to another thread by now. */
static __always_inline bool find_frame(const struct switch_python *python, __u64 *ret_frame)
{
    __u64 native_id;
    if (!read_word(python->state + python->thread_native_id, &native_id) ||
        native_id != python->native_id ||
        !read_word(python->state + python->thread_frame, ret_frame))
        return false;
    return python->noted_frame == SWITCH_NO_FIELD ||
           read_word(*ret_frame + python->noted_frame, ret_frame);
}

__noinline int read_frame(const struct switch_python *python, __u64 at,
                          struct switch_frame *ret_frame, __u64 *ret_previous)
{
    __u8 owner, is_entry = 0;
    if (!python || !ret_frame || !ret_previous)
        return false;
    if (!read_word(at + python->frame_code, &ret_frame->code) ||
        !read_word(at + python->frame_instruction, &ret_frame->instruction) ||
        !read_word(at + python->frame_previous, ret_previous) ||
        bpf_probe_read_user(&owner, sizeof owner, (const void *)(at + python->frame_owner)) ||
        (python->frame_is_entry != SWITCH_NO_FIELD &&
         bpf_probe_read_user(&is_entry, sizeof is_entry,
                             (const void *)(at + python->frame_is_entry))))
        return false;
    ret_frame->owner = owner;
    ret_frame->is_entry = is_entry;
    return true;
}

/* Like runtime/python/frames.c. */
__noinline int copy_python(struct thread *thread, const struct switch_slot *slot)
{
    if (!thread || !slot)
        return 0;
    const struct switch_python *python = &slot->python;
    struct switch_frame *frames = (struct switch_frame *)(thread->stack + SWITCH_OTHER_OFFSET);
    __u64 at = 0;
    thread->message.frames_state = SWITCH_FRAMES_UNREADABLE;
    if (!find_frame(python, &at))
        return 0;
    for (__u32 i = 0; i < SWITCH_FRAMES_MAX && at; i++) {
        if (!read_frame(python, at, &frames[i], &at))
            return 0;
        thread->message.frame_count = i + 1;
    }
    thread->message.frames_state = at ? SWITCH_FRAMES_CUT : SWITCH_FRAMES_WHOLE;
    return 0;
}

/* How many ticks came before that time. */
static __always_inline __u64 ticks_before(__u64 at_ns)
{
    return ticks_until(&ticks, at_ns - 1);
}

/* Whether a tick comes within the window. */
static __always_inline bool is_before_tick(__u64 out_ns)
{
    return ticks_due_ns(&ticks, ticks_before(out_ns)) - out_ns <= stack_window_ns;
}

/* The futex is copied at the departure, because a lock has its owner in memory only until that
 * releases it, and the waiting thread is awake only some time later. */
static __always_inline void copy_futex(struct switch_slot *slot)
{
    const struct switch_departure *departure = &slot->departure;
    __u64 address = departure->words[WORD_FIRST_ARGUMENT];
    if (!departure->state || departure->words[WORD_CALL] != FUTEX_CALL)
        return;
    if (!bpf_probe_read_user(slot->futex, SWITCH_FUTEX_BYTES,
                             (const void *)(address - SWITCH_FUTEX_BYTES_BEFORE)))
        slot->futex_bytes = SWITCH_FUTEX_BYTES;
    else if (!bpf_probe_read_user(slot->futex + SWITCH_FUTEX_BYTES_BEFORE, SWITCH_FUTEX_BYTES_FROM,
                                  (const void *)address))
        slot->futex_bytes = SWITCH_FUTEX_BYTES_FROM;
}

/* A thread that leaves long before the next tick is usually back by then. If it is still asleep, it
 * is unlikely to wake just between the tick and the look; and even if it does, it leaves its CPU so
 * seldom that its last copy was older than the pause. */
static __always_inline bool is_to_keep(const struct thread *thread, __u64 out_ns)
{
    return out_ns - thread->copied_ns >= stack_pause_ns || is_before_tick(out_ns);
}

__noinline int keep_stack(struct thread *thread, const struct switch_slot *slot,
                          const struct switch_departure *departure)
{
    if (!thread || !slot || !departure)
        return 0;
    if (slot->python.state)
        copy_python(thread, slot);
    else if (slot->wants_other)
        copy_other(thread, departure);
    copy_stack(thread, slot, departure);
    return 0;
}

static __always_inline void forget_stack(struct switch_message *message)
{
    message->stack_bytes = message->other_bytes = 0;
    message->has_one_stack = 0;
    message->frames_state = SWITCH_FRAMES_NONE;
    message->frame_count = 0;
}

/* Kernel threads, and threads of a process that work only in the kernel, have no user registers. */
static __always_inline bool runs_user_code(const struct task_struct *task)
{
    return task->mm && !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
}

static __always_inline struct switch_slot *slot_to_write(struct task_struct *task,
                                                         struct thread *thread)
{
    struct switch_slot *slot = slot_of(thread) ?: assign_slot(thread);
    if (!slot) {
        count(&failures.slots);
        return NULL;
    }
    /* A thread that executes a program takes over the id of its process. */
    __u32 tid = tid_of(task);
    if (slot->departure.tid != tid) {
        step_sequence(&slot->sequence, 1);
        slot->departure.tid = tid;
        slot->departure.start_ns = task->start_boottime;
        step_sequence(&slot->sequence, 1);
        tell_birth(thread->slot);
    }
    return slot;
}

/* The CPU on whose run queue the task is, or was last. */
static __always_inline __u32 cpu_of(const struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return task->thread_info.cpu;
    return task->cpu;
}

/* ---- Returns ---- */

/* The last tick at which the thread was off its CPU, if the reader has not acknowledged it; 0:
 * there is none. */
static __always_inline __u64 find_tick(const struct switch_slot *slot, __u64 now_ns)
{
    __u64 last = ticks_before(now_ns);
    return last > ticks_before(slot->departure.out_ns) && last >= slot->looked ? last : 0;
}

static __always_inline void fill_message(struct switch_message *message,
                                         const struct thread *thread,
                                         const struct switch_slot *slot)
{
    message->kind = SWITCH_MESSAGE_PAST;
    message->slot = thread->slot;
    message->generation = thread->generation;
    message->departure = slot->departure;
    message->futex_bytes = slot->futex_bytes;
    if (slot->futex_bytes)
        __builtin_memcpy(message->futex, slot->futex, sizeof message->futex);
}

static __always_inline bool output(const struct thread *thread)
{
    const struct switch_message *message = &thread->message;
    __u64 bytes = message->stack_bytes;
    if (message->other_bytes || message->frame_count)
        bytes = SWITCH_STACK_BYTES_MAX;
    return bytes <= SWITCH_STACK_BYTES_MAX &&
           !bpf_ringbuf_output(&messages, (void *)message, sizeof *message + bytes,
                               BPF_RB_NO_WAKEUP);
}

/* The thread got its CPU at that time. */
static __always_inline void come_back(struct thread *thread, struct switch_slot *slot,
                                      __u64 since_ns)
{
    slot->departure.in_ns = since_ns;
    step_sequence(&slot->sequence, 2);
    __u64 last = find_tick(slot, since_ns);
    if (!last)
        return;
    fill_message(&thread->message, thread, slot);
    thread->message.last_tick = last;
    if (!output(thread))
        count(&failures.ring);
}

/* Some kernels hide certain threads, and call no program when these leave a CPU (seen on Linux 6.18
 * in a virtual machine: the threads of process 1, and an idle CPU). The thread that then gets the
 * CPU is seen when it leaves it: the kernel knows how long it has run since its departure. */
static __always_inline void come_back_unseen(struct task_struct *task, struct thread *thread,
                                             struct switch_slot *slot, __u64 now_ns)
{
    __u64 ran_ns = task->se.sum_exec_runtime - thread->ran_ns;
    count(&failures.returns);
    come_back(thread, slot, switch_unseen_return_ns(&slot->departure, ran_ns, now_ns));
}

/* ---- Leaving a CPU ---- */

static __always_inline __u64 switches_of(const struct task_struct *task)
{
    return bpf_core_field_exists(task->sched_info.pcount) ? task->sched_info.pcount : 0;
}

static __always_inline void depart(void *ctx, struct task_struct *task, __u32 process_id,
                                   __u32 state, __u64 now_ns)
{
    __u32 cpu = bpf_get_smp_processor_id();
    if (!runs_user_code(task))
        return;
    struct thread *thread = thread_of(task, storage_flags());
    if (!thread) {
        count(&failures.storage);
        return;
    }
    struct switch_slot *slot = slot_to_write(task, thread);
    if (!slot)
        return;
    struct switch_departure *departure = &slot->departure;
    if (departure->number && !departure->in_ns)
        come_back_unseen(task, thread, slot, now_ns);
    bool keeps = is_to_keep(thread, now_ns);
    step_sequence(&slot->sequence, 1);
    departure->number++;
    departure->out_ns = now_ns;
    departure->in_ns = 0;
    departure->runnable_ns = state ? 0 : now_ns;
    departure->moved_ns = 0;
    departure->switches = switches_of(task);
    departure->runnable_cpu = cpu;
    departure->process_id = process_id;
    departure->state = state;
    thread->ran_ns = task->se.sum_exec_runtime;
    read_words(departure->words, (const struct pt_regs *)bpf_task_pt_regs(task));
    slot->futex_bytes = 0;
    if (keeps)
        copy_futex(slot);
    step_sequence(&slot->sequence, 1);
    forget_stack(&thread->message);
    thread->message.chain.depth = 0;
    if (keeps) {
        thread->copied_ns = now_ns;
        keep_stack(thread, slot, departure);
        if (keeps_chains && state)
            read_chain(ctx, &thread->message.chain);
    }
}

static __always_inline void arrive(struct task_struct *task, __u64 now_ns)
{
    struct thread *thread = thread_of(task, 0);
    struct switch_slot *slot = thread ? slot_of(thread) : NULL;
    if (slot && !slot->departure.in_ns)
        come_back(thread, slot, now_ns);
}

/* ---- Which thread has a CPU ---- */

static __always_inline __u32 kind_of(__u32 pid, __u32 flags)
{
    if (!pid)
        return SWITCH_WAKER_IDLE;
    return flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) ? SWITCH_WAKER_KERNEL_THREAD
                                                                : SWITCH_WAKER_THREAD;
}

/* The task may be any address. */
static __always_inline void fill_stay(struct switch_stay *stay, const struct task_struct *task)
{
    const struct task_struct *leader = BPF_CORE_READ(task, group_leader);
    bool is_first = namespace_level == 0;
    __u32 pid = (__u32)BPF_CORE_READ(task, pid);
    stay->tid = is_first ? pid : id_of(BPF_CORE_READ(task, thread_pid));
    stay->process_id =
        is_first ? (__u32)BPF_CORE_READ(task, tgid) : id_of(BPF_CORE_READ(leader, thread_pid));
    stay->kind = kind_of(pid, BPF_CORE_READ(task, flags));
    bpf_core_read(stay->name, sizeof stay->name, &task->comm);
    bpf_core_read(stay->process_name, sizeof stay->process_name, &leader->comm);
}

/* A thread leaves this CPU to another one. That is noted only if a tick came while it had the CPU:
 * queries are only about ticks, and so most switches cost no more than reading the clock. */
static __always_inline void note_stay(const struct task_struct *task,
                                      const struct task_struct *next, __u64 now_ns)
{
    __u32 cpu = bpf_get_smp_processor_id();
    if (cpu >= SWITCH_CPUS)
        return;
    struct switch_cpu *own = &cpus[cpu];
    if (now_ns > own->tick_ns) {
        struct switch_stay *stay = &own->stays[own->stay_count++ % SWITCH_STAYS];
        step_sequence(&own->sequence, 1);
        stay->since_ns = own->since_ns < watched_since_ns ? watched_since_ns : own->since_ns;
        stay->until_ns = now_ns;
        fill_stay(stay, task);
        step_sequence(&own->sequence, 1);
        own->tick_ns = ticks_due_ns(&ticks, ticks_before(now_ns));
    }
    *(volatile __u64 *)&own->since_ns = now_ns;
    *(volatile __u64 *)&own->task = (__u64)next;
}

/* ---- Wakers ---- */

struct wake_context {
    void *ctx;
    struct task_struct *waker, *woken;
    const struct switch_departure *departure; /* of the woken thread; NULL: its wait began before it
                                                 was followed */
    bool waker_runs_user_code;
};

static __always_inline void fill_wake(const struct wake_context *context,
                                      struct switch_message *message)
{
    struct task_struct *waker = context->waker;
    struct switch_departure *departure = &message->departure;
    struct switch_wake *wake = &message->wake;
    __u64 now_ns = bpf_ktime_get_ns();
    message->kind = SWITCH_MESSAGE_WAKE;
    message->last_tick = 0;
    message->slot = message->generation = 0;
    message->futex_bytes = 0;
    departure->number = 0;
    departure->out_ns = departure->runnable_ns = departure->in_ns = now_ns;
    departure->moved_ns = 0;
    departure->switches = 0;
    departure->start_ns = waker->start_boottime;
    departure->tid = tid_of(waker);
    departure->process_id = process_id_of(waker);
    departure->state = 0;
    if (context->waker_runs_user_code)
        read_words(departure->words, (const struct pt_regs *)bpf_task_pt_regs(waker));
    else
        __builtin_memset(departure->words, 0, sizeof departure->words);
    wake->out_ns = context->departure ? context->departure->out_ns : 0;
    wake->tid = tid_of(context->woken);
    wake->process_id = process_id_of(context->woken);
    wake->waker = kind_of((__u32)waker->pid, waker->flags);
    bpf_probe_read_kernel(wake->name, sizeof wake->name, waker->comm);
    read_chain(context->ctx, &message->chain);
}

static __always_inline void send_wake_alone(const struct wake_context *context)
{
    struct switch_message *message = bpf_ringbuf_reserve(&messages, sizeof *message, 0);
    if (!message) {
        count(&failures.wakes);
        return;
    }
    fill_wake(context, message);
    forget_stack(message);
    bpf_ringbuf_submit(message, BPF_RB_NO_WAKEUP);
}

/* The waker is running, so its storage is free: its last departure was sent when it came
 * back. */
static __always_inline void send_wake_with_stack(const struct wake_context *context,
                                                 struct thread *waker,
                                                 const struct switch_slot *waker_slot)
{
    struct switch_message *message = &waker->message;
    fill_wake(context, message);
    message->slot = waker->slot;
    message->generation = waker->generation;
    forget_stack(message);
    keep_stack(waker, waker_slot, &message->departure);
    if (!output(waker))
        count(&failures.wakes);
    forget_stack(message);
}

/* One thread may wake thousands at once, so half of the ring is reserved for departures. */
static __always_inline bool has_room_for_stacks(void)
{
    return bpf_ringbuf_query(&messages, BPF_RB_AVAIL_DATA) <
           bpf_ringbuf_query(&messages, BPF_RB_RING_SIZE) / 2;
}

static __always_inline void tell_wake(void *ctx, struct task_struct *woken,
                                      const struct switch_departure *departure)
{
    struct task_struct *waker = bpf_get_current_task_btf();
    const struct wake_context context = {ctx, waker, woken, departure, runs_user_code(waker)};
    bool may_have_stack =
        context.waker_runs_user_code && is_followed(process_id_of(waker)) && has_room_for_stacks();
    struct thread *thread = may_have_stack ? thread_of(waker, 0) : NULL;
    struct switch_slot *waker_slot = thread ? slot_of(thread) : NULL;
    if (waker_slot && waker_slot->departure.in_ns)
        send_wake_with_stack(&context, thread, waker_slot);
    else
        send_wake_alone(&context);
}

/* Whether a tick found the thread asleep. */
static __always_inline bool was_found(const struct switch_slot *slot)
{
    const struct switch_departure *departure = &slot->departure;
    return !departure->in_ns && !departure->runnable_ns && departure->state &&
           (slot->looked_departure == (__u32)departure->number ||
            find_tick(slot, bpf_ktime_get_ns()));
}

/* ---- Entry points ---- */

SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
    bool is_preempted = ctx[0];
    struct task_struct *prev = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];
    /* A waker may already have changed the state in the task. */
    __u32 state = has_prev_state ? (__u32)ctx[3] : prev->__state, process_id = process_id_of(prev);
    bool is_dead = state & SWITCH_STATE_DEAD, departs = !is_dead && is_followed(process_id);
    bool comes = is_followed(process_id_of(next));
    if (is_dead)
        release_slot(prev);
    if (!departs && !comes && !watched_since_ns)
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    if (watched_since_ns)
        note_stay(prev, next, now_ns);
    if (departs)
        depart(ctx, prev, process_id, is_preempted ? 0 : state, now_ns);
    if (comes)
        arrive(next, now_ns);
    return 0;
}

/* Called by perf_filter.bpf.c for a sample of a followed process: copies the Python frames of the
 * running thread. */
SEC("perf_event")
int on_sample(void *ctx)
{
    __u32 zero = 0;
    struct thread *thread = thread_of(bpf_get_current_task_btf(), 0);
    const struct switch_slot *slot = thread ? slot_of(thread) : NULL;
    struct thread *copy = bpf_map_lookup_elem(&samples, &zero);
    (void)ctx;
    if (!slot || !copy || !slot->python.state)
        return 1;
    struct switch_message *message = &copy->message;
    forget_stack(message);
    fill_message(message, thread, slot);
    message->last_tick = 0;
    message->kind = SWITCH_MESSAGE_SAMPLE;
    message->chain.depth = 0;
    message->departure.out_ns = bpf_ktime_get_ns();
    copy_python(copy, slot);
    /* If the ring is full, the sample shows the interpreter's native frames, and is counted
     * (python_stacks_missing). */
    bpf_ringbuf_output(&messages, message, sizeof *message + SWITCH_STACK_BYTES_MAX,
                       BPF_RB_NO_WAKEUP);
    return 1;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
    if (!is_followed(process_id_of(task)))
        return 0;
    struct thread *thread = thread_of(task, 0);
    struct switch_slot *slot = thread ? slot_of(thread) : NULL;
    if (slot && !slot->departure.in_ns && !slot->departure.runnable_ns) {
        slot->departure.runnable_cpu = cpu_of(task);
        slot->departure.runnable_ns = bpf_ktime_get_ns();
    }
    return 0;
}

/* Called before a thread is assigned to a CPU, even if it is still asleep or the CPU is the same
 * (set_task_cpu in the kernel's kernel/sched/core.c). The rest of its wait for a CPU is not
 * followed: threads are usually moved to a free CPU. */
SEC("tp_btf/sched_migrate_task")
int on_migrate(__u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    if (!is_followed(process_id_of(task)))
        return 0;
    struct thread *thread = thread_of(task, 0);
    struct switch_slot *slot = thread ? slot_of(thread) : NULL;
    if (slot && slot->departure.runnable_ns && !slot->departure.in_ns &&
        !slot->departure.moved_ns && (__u32)ctx[1] != slot->departure.runnable_cpu)
        slot->departure.moved_ns = bpf_ktime_get_ns();
    return 0;
}

/* The kernel calls this on the waker's CPU, but sched_wakeup possibly on another one. Kernels that
 * allocate storage with kmalloc (before 6.4) do so here and not in sched_switch: kmalloc may wake a
 * kernel thread, which takes the lock of a run queue, and sched_switch already holds one. */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    if (!is_followed(process_id_of(task)))
        return 0;
    struct thread *thread = thread_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread || !tells_wakes)
        return 0;
    struct switch_slot *slot = slot_of(thread);
    if (slot && was_found(slot)) {
        tell_wake(ctx, task, &slot->departure);
    } else if (!thread->generation && !thread->slot && BPF_CORE_READ(task, mm)) {
        thread->slot = WAKE_TOLD;
        tell_wake(ctx, task, NULL);
    }
    return 0;
}

/* Needed if storage is allocated when threads are woken: a new thread may sleep before any wake. */
SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
    struct task_struct *made = (struct task_struct *)ctx[1];
    if (is_followed(process_id_of(made)))
        thread_of(made, BPF_LOCAL_STORAGE_GET_F_CREATE);
    return 0;
}

/* The loader runs this to learn which thread has a CPU. If that thread leaves it meanwhile, the
 * result may be garbage; the loader then asks again. */
SEC("raw_tp")
int find_current(void *ctx)
{
    __u64 task = *(volatile __u64 *)&cpus[wanted_cpu % SWITCH_CPUS].task;
    (void)ctx;
    if (!task)
        return 1;
    fill_stay(&current_stay, (const struct task_struct *)task);
    return 0;
}

/* The loader runs this to learn its own PID namespace. */
SEC("raw_tp")
int find_namespace(void *ctx)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct pid *pid = BPF_CORE_READ(task, thread_pid);
    __u32 level = BPF_CORE_READ(pid, level);
    struct upid in_namespace;
    const char *numbers = (const char *)__builtin_preserve_access_index(&pid->numbers[0]);
    (void)ctx;
    if (bpf_probe_read_kernel(&in_namespace, sizeof in_namespace,
                              numbers + level * sizeof in_namespace))
        return 1;
    namespace_address = (__u64)in_namespace.ns;
    namespace_level = level;
    return 0;
}

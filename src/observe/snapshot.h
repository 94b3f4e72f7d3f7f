/* The contents of a thread's registers and stacks at one moment: all that unwinding reads. */
#ifndef FGPROF_OBSERVE_SNAPSHOT_H
#define FGPROF_OBSERVE_SNAPSHOT_H

#include "observe/call.h"
#include "observe/registers.h"
#include "observe/thread_context.h"
#include "proc/stack_areas.h"
#include "runtime/python/frames.h"

struct stack_copy {
    uint64_t address; /* of memory[0] */
    unsigned char *memory;
    size_t bytes;       /* how many were copied */
    size_t old_bytes;   /* of a past departure: how many of these are from when the thread left its
                           CPU; the others were read after it had moved */
    size_t capacity;    /* how many fit */
    uint64_t end;       /* of the mapping that contains it */
    bool end_is_known;  /* false: only its page was copied, and `end` is where the page ends */
    bool is_unreadable; /* the bytes after the copied ones were requested, but could not be read */
};

/* A word of the process's memory. */
struct other_word {
    uint64_t address; /* 0: none was read */
    uint64_t value;
};

/* The kernel code in which a running thread was, leaf first. All but the leaf are return
 * addresses. */
struct kernel_chain {
    uint64_t *addresses; /* NULL: none was ever read */
    unsigned count;      /* 0: it was in user code, or this is unknown */
    bool is_cut;         /* there are, or may be, more towards the root */
};
/* As many as the kernel records by default (perf_event_max_stack in its
 * Documentation/admin-guide/sysctl/kernel.rst). */
#define KERNEL_CHAIN_MAX 127

struct snapshot {
    struct registers registers;
    struct stack_copy stack;
    /* A thread may have switched from one stack to another: to handle a signal (sigaltstack(2)), or
     * to run code that needs more room than a coroutine has. This is the stack that it left. */
    struct stack_copy other_stack;
    /* The word that says where that stack was left, if that is not on the stack: read afterwards,
     * when unwinding requests it. It must be a word that seldom changes. */
    struct other_word other_word;
    char *kernel_stack; /* of a sleeping thread, as made by kernel_stack_parse; NULL: never read */
    struct kernel_chain kernel_chain; /* of a running thread */
    struct thread_context *context;   /* NULL: never read */
    struct python_frames *python;     /* NULL: never read */
    struct call_memory other_futex; /* wait_seen.has_other: the memory of its futex at the other of
                                       two times */
};

/* Where the other stack is, and how much of it to copy; address 0: there is none. */
struct stack_place {
    uint64_t address;
    size_t bytes;
};

/* Makes room for this much of the stacks, before a thread is paused. Returns false if memory is
 * short. */
bool snapshot_make_room(struct snapshot *snapshot, size_t stack_limit,
                        const struct stack_place *other);

/* Copies the stack of thread `tid`, whose registers are in the snapshot: at most `stack_limit`
 * bytes, for which there must be room, and not beyond the end of the stack's mapping. Memory behind
 * that may be anything, even slow to read, or provided only by the thread that we hold
 * (userfaultfd(2)). If the mapping is not known, copies up to the end of the page. The other stack
 * is copied if its mapping is known. */
void snapshot_copy_stacks(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                          size_t stack_limit, const struct stack_place *other);

/* The same for a snapshot that already has the top of the stacks: copies the rest. */
void snapshot_copy_rest(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                        size_t stack_limit, const struct stack_place *other);

/* For a snapshot whose stack was copied without knowing the mappings: cuts the copy at the end of
 * the stack's mapping, if that is known. */
void snapshot_end_stack(struct snapshot *snapshot, const struct stack_areas *areas);

/* Reads the Python frames of thread `tid`, if it has any. As for the stack, the thread must be
 * asleep or stopped. */
void snapshot_copy_python(struct snapshot *snapshot, const struct python_thread *thread, pid_t tid,
                          const struct stack_areas *areas);

/* Forgets what an earlier look may have read of another thread, except the stacks. */
void snapshot_forget(struct snapshot *snapshot);

/* A kernel chain to fill, with room for KERNEL_CHAIN_MAX; NULL if memory is short. */
struct kernel_chain *snapshot_kernel_chain(struct snapshot *snapshot);

/* Empty Python frames to fill; NULL if memory is short. */
struct python_frames *snapshot_python(struct snapshot *snapshot);

/* A context to fill; NULL if memory is short. */
struct thread_context *snapshot_context(struct snapshot *snapshot);

/* Frees the snapshot's memory, and leaves it empty. */
void snapshot_clear(struct snapshot *snapshot);

#endif

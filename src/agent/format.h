/* The memory that fgprof-c shares with the agent in a program.
 *
 * The agent makes it as a memfd of this name. fgprof-c finds it in /proc/PID/maps and opens it
 * through /proc/PID/fd. It is sealed against changes of its size (F_SEAL_SHRINK, F_SEAL_GROW). It
 * has a header, which fills whole pages and of which `magic` is written last, followed by a ring of
 * records: threads of the program append, fgprof-c takes them out. Records are in the order of
 * their positions: an allocation is appended before malloc returns, and a free before the memory is
 * given back, so no object goes before it was made. There are two apparent exceptions: a free after
 * a new epoch may be of an object from the epoch before, and an object may be made that is known as
 * live, because its free was lost.
 *
 * To append: raise `written` by the record's size if there is room, fill in the record, and last
 * store its position + 1 in `committed`, with release. A record does not wrap around: a record of
 * AGENT_PADDING fills the rest of the ring; it has at least 16 bytes, and only its fields up to
 * `kind` count. A record may be longer than its contents. If there is no room, the record is
 * dropped and counted; nobody waits. A record that is not committed, because its thread was killed,
 * blocks those after it: after a second, fgprof-c counts it as lost and continues at the next
 * record that is committed. `epoch` stays.
 *
 * To begin a new epoch, fgprof-c raises `epoch` and only then reads `written`: records before that
 * position belong to earlier epochs, and later ones do not. If the ring has been full for ten
 * seconds and `read` has not moved, the agent sets `wanted` to 0, because fgprof-c may have been
 * killed.
 *
 * fgprof-c trusts nothing in here. The agent trusts what fgprof-c writes: `wanted`, `rate`, `epoch`
 * and `read`. */
#ifndef FGPROF_AGENT_FORMAT_H
#define FGPROF_AGENT_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#define AGENT_MEMFD "FGPROF"
#define AGENT_MAGIC "FGPROF\0A" /* 8 bytes */
#define AGENT_VERSION 1         /* of this layout */
#define AGENT_HEADER_BYTES 4096u
#define AGENT_RING_BYTES (1u << 20)
#define AGENT_STACK_BYTES_MAX (16u << 10)
#define AGENT_RATE_DEFAULT (512u << 10)

/* What is reported: a sum of these in `wanted`. */
enum {
    AGENT_WANTS_HEAP = 1,    /* allocations, sampled, and what becomes of them */
    AGENT_WANTS_MMAP = 2,    /* ... of mmap and munmap, too */
    AGENT_WANTS_THREADS = 4, /* threads that are made */
};

struct agent_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* where the ring begins */
    uint64_t ring_bytes;   /* a power of two */
    uint32_t pid;          /* in the program's own PID namespace; not that of a child of fork */
    char release[16];      /* of the agent, such as "0.1.0" */
    char allocator[64];    /* the file that provides malloc, base name; "": not known. If it is the
                              program itself, no allocations are seen */
    uint64_t code_start, code_limit; /* the agent's own code: stacks begin in it */

    /* Written by fgprof-c: */
    _Alignas(64) _Atomic uint32_t wanted; /* 0: the agent is idle */
    _Atomic uint32_t epoch;               /* raised when records begin again: both sides forget all
                                             objects */
    _Atomic uint64_t rate;                /* mean bytes between two sampled allocations */
    _Atomic uint32_t may_end;             /* all that there was is taken: see `is_ending` */
    _Alignas(64) _Atomic uint64_t read;   /* all before this position was taken */

    /* Written by the agent: */
    _Alignas(64) _Atomic uint64_t written;   /* the next record's position: bytes since the start */
    _Alignas(64) _Atomic uint64_t made_lost; /* records of these kinds that were dropped */
    _Atomic uint64_t gone_lost;
    _Atomic uint64_t threads_lost;
    _Atomic uint64_t live; /* sampled allocations that were not freed yet */
    uint64_t unused[5]; /* mallinfo2(3) is not asked: it waits for locks of malloc, which a thread
                           that is interrupted by a signal may have, and holds them for long */
    _Atomic uint32_t is_ending; /* the program is about to exit, and waits briefly for `may_end`:
                                   once it has exited, nobody can find out which files its code is
                                   from */
};

enum agent_record_kind {
    AGENT_PADDING = 1,
    AGENT_ALLOCATED, /* object: its address. Also mapped, with `is_mapping` */
    AGENT_FREED,     /* object: its address. No stack follows */
    AGENT_THREAD, /* object: the new thread's list of robust mutexes, which the kernel also reports
                     (get_robust_list(2)) */
};

/* Which registers follow, by their DWARF numbers, in this order: the callee-saved ones, the stack
 * pointer, and last the code address, which is one of the agent's. */
#if defined(__x86_64__)
#define AGENT_REGISTERS                                                                            \
    {                                                                                              \
        3, 6, 7, 12, 13, 14, 15, 16                                                                \
    }
#define AGENT_REGISTER_COUNT 8u
#elif defined(__aarch64__)
#define AGENT_REGISTERS                                                                            \
    {                                                                                              \
        19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 32                                         \
    }
#define AGENT_REGISTER_COUNT 13u
#endif

/* At a multiple of 16. */
struct agent_record {
    _Atomic uint64_t committed; /* position + 1 */
    uint32_t bytes;             /* of the record, with what follows: a multiple of 16 */
    uint16_t kind;              /* enum agent_record_kind */
    uint8_t is_mapping;
    uint8_t is_cut;       /* the stack continues after the copy */
    uint32_t tid;         /* in the program's own PID namespace */
    uint32_t stack_bytes; /* how many bytes of stack follow the registers, from the stack pointer
                             on, a multiple of 8; if 0, no registers follow either */
    uint64_t object;
    uint64_t object_bytes;
    uint64_t at_ns;       /* CLOCK_MONOTONIC; 0: not known */
    uint64_t registers[]; /* AGENT_REGISTER_COUNT, and then the stack's bytes */
};

#endif

/* What is reported of objects, which are what a process's code makes: memory that it allocates or
 * touches first, threads, or values of a profile of its own; and the interface of a source of them
 * inside a program. A new source is a new file. The collector (objects/collector.h) opens and asks
 * it. */
#ifndef FGPROF_OBJECTS_SOURCE_H
#define FGPROF_OBJECTS_SOURCE_H

#include "observe/bpf/perf_filter.h"
#include "observe/snapshot_pool.h"
#include "proc/program.h"

#include <errno.h>

enum object_kind {
    OBJECT_ALLOCATION, /* key: its address */
    OBJECT_PAGE,       /* key: its address, with an enum page_extent */
    OBJECT_THREAD,     /* key: its id; if that is not known, where its list of robust mutexes is */
    OBJECT_VALUE,      /* key: the value, of the profile `name` */
    OBJECT_KIND_COUNT
};

enum object_change {
    OBJECT_MADE,  /* the snapshot is of the thread that made it; if another object of its kind has
                     the key, that one is gone */
    OBJECT_THERE, /* the same of a thread, unless it is known; the snapshot is of itself */
    OBJECT_NAMED, /* `name` is its name from now on */
    OBJECT_GONE,
    OBJECT_FORGOTTEN, /* the same for all of the process's objects of this kind */
    OBJECT_LEFT, /* the process has ended: these stay as they are, and are not reported any more */
    OBJECT_CHECKED, /* OBJECT_PAGE: it is to be checked which are resident; see `check` */
};

/* How many pages an object stands for: that is in the low bits of its key. */
enum page_extent {
    PAGE_SINGLE,
    PAGE_HUGE,   /* all that are mapped of a huge page */
    PAGE_WINDOW, /* all that are mapped of a window: see proc/pages.h */
    PAGE_EXTENTS = 3
};

/* How pages are to be checked. */
struct page_check {
    uint64_t seed;             /* by which pages are chosen */
    struct page_levels levels; /* as they are chosen now: others that were chosen are given up */
    bool is_rough;             /* not all faults of a page were reported */
    bool is_due;               /* at any cost, as a copy is to be made */
};

/* How an object's maker is known. */
enum object_origin {
    ORIGIN_SEEN,   /* the stack is that which made it */
    ORIGIN_LATER,  /* the stack is where the thread was that made it, soon after */
    ORIGIN_UNSEEN, /* nobody saw it; the stack is that of the object, a thread, itself */
    ORIGIN_BEFORE, /* the same, as it was there before the recording */
    ORIGIN_MAIN,   /* it is a process's first thread, whose birth was not seen */
    ORIGIN_COUNT
};

struct object_news {
    enum object_kind kind;
    enum object_change change;
    uint32_t process;          /* whose object it is: its number in the recording */
    pid_t process_id, tid;     /* of the thread that made it; 0: not known */
    struct program *program;   /* that this thread ran: a reference; NULL: not known */
    struct snapshot *snapshot; /* of the thread; NULL: there is none */
    uint64_t at_ns;            /* CLOCK_MONOTONIC: when it was made; 0: not known */
    uint64_t told_ns;          /* when the sources were asked */
    uint64_t key;
    uint64_t
        other_key; /* OBJECT_THERE: that it may be known by; its key is the right one. 0: none */
    enum object_origin origin; /* OBJECT_MADE, OBJECT_THERE */
    uint64_t start;  /* if the stack is its own: the address of its first function, if that is all
                        that is known; 0: not known */
    uint64_t bytes;  /* OBJECT_MADE: how large it is; 0: it has no size */
    uint32_t weight; /* OBJECT_MADE: for how many it stands, at least 1 */
    unsigned level;  /* OBJECT_MADE, OBJECT_PAGE: one in 2^level pages is chosen */
    struct page_check check; /* OBJECT_CHECKED */
    char *name; /* OBJECT_VALUE: the profile's; OBJECT_THREAD: the thread's, if it is known; the
                   receiver's to free; NULL: none */
    /* The first frames of the stack are left out while they are in this code, and then so many. */
    uint64_t code_start, code_limit;
    unsigned skip;
};

/* What is known of all that a source reports. */
struct object_counts {
    bool has_source; /* of any process */
    int refusal;     /* an errno: why there is none, as far as that is known; 0: none */
    uint64_t rate;   /* see struct profile_objects */
    uint64_t made_lost, gone_lost; /* messages that could not be sent */
    uint64_t heap_arena, heap_mmap, heap_used, heap_free;
    uint64_t resident_peak; /* of the process; 0: not known, or there are several */
    bool allocator_is_own;  /* a program has an allocator that no source sees */
    /* OBJECT_PAGE, bytes of all processes: when they were first looked at, and last. */
    uint64_t resident_before, resident;
    bool sees_user_only; /* OBJECT_PAGE: not what system calls touch */
    int filter_refusal;  /* OBJECT_PAGE: an errno: why pages are not chosen in the kernel */
};

/* Which objects are recorded, and how. */
struct object_options {
    bool kinds[OBJECT_KIND_COUNT];
    uint64_t heap_rate; /* mean bytes between two reported allocations; at least 1 */
    bool has_mappings;  /* what the program maps itself is an allocation, too */
};

/* Why there is none of these objects, as a negative errno; 0: there is a source. */
static inline int object_counts_refusal(const struct object_counts *counts)
{
    return counts->has_source ? 0 : counts->refusal ? -counts->refusal : -ENOENT;
}

struct object_source {
    /* Set by collect and refresh if there is more than there were snapshots or time for. */
    bool has_more;
    /* Set by collect if messages come so fast that the source should be asked again soon. */
    bool is_fast;
    /* Takes the next message. Returns false if there is none now, or no snapshot for it. It sets
     * tid, snapshot, at_ns if that is known, and what says which object it is; the rest is the
     * caller's. */
    bool (*collect)(struct object_source *source, struct snapshot_pool *snapshots,
                    struct object_news *ret_news);
    /* Adds what this source knows to the counts of its kinds. */
    void (*count)(const struct object_source *source,
                  struct object_counts counts[OBJECT_KIND_COUNT]);
    void (*free)(struct object_source *source);
    /* A copy is to be made, or the program has ended: what can be learnt at any time and was not
     * sent yet is collected next. NULL: there is no such thing. */
    void (*refresh)(struct object_source *source);
};

/* Opens a source of a program's objects. Returns 0, -ENOENT if there is nothing to open yet, or
 * another negative errno: why there can be none. */
typedef int object_open_fn(const struct program *program, const struct object_options *options,
                           struct object_source **ret_source);

#endif

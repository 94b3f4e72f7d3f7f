/* Reports about objects, which are things that a process's code makes: memory that it allocates or
 * touches first, threads, or values of a custom profile; and the interface of a source of objects
 * inside a program. Each source has its own file. The collector (objects/collector.h) opens and
 * polls sources. */
#ifndef FGPROF_OBJECTS_SOURCE_H
#define FGPROF_OBJECTS_SOURCE_H

#include "observe/bpf/perf_filter.h"
#include "observe/snapshot_pool.h"
#include "proc/program.h"

#include <errno.h>

enum object_kind {
    OBJECT_ALLOCATION, /* key: its address */
    OBJECT_PAGE,       /* key: its address, with an enum page_extent */
    OBJECT_THREAD,     /* key: its id, or if that is not known, the address of its robust list */
    OBJECT_VALUE,      /* key: the value, of the profile `name` */
    OBJECT_KIND_COUNT
};

enum object_change {
    OBJECT_MADE,  /* the snapshot is of the thread that made it; if another object of its kind has
                     the key, that object is gone */
    OBJECT_THERE, /* a thread exists, which may be known already; the snapshot is its own */
    OBJECT_NAMED, /* `name` is its name from now on */
    OBJECT_GONE,
    OBJECT_FORGOTTEN, /* all of the process's objects of this kind are gone */
    OBJECT_LEFT,      /* the process has exited: they stay as they are, without further reports */
    OBJECT_CHECKED,   /* OBJECT_PAGE: check which pages are resident; see `check` */
};

/* How many pages an object represents, in the low bits of its key. */
enum page_extent {
    PAGE_SINGLE,
    PAGE_HUGE,   /* all mapped pages of a huge page */
    PAGE_WINDOW, /* all mapped pages of a window: see proc/pages.h */
    PAGE_EXTENTS = 3
};

/* How to check pages. */
struct page_check {
    uint64_t seed;             /* of the choice of pages */
    struct page_levels levels; /* of the current choice: pages outside it are dropped */
    bool is_rough;             /* not all faults on a page were reported */
    bool is_due;               /* check at any cost, because a copy was requested */
};

/* How an object's maker is known. */
enum object_origin {
    ORIGIN_SEEN,   /* the stack is its maker's when it made it */
    ORIGIN_LATER,  /* the stack is its maker's soon after it made it */
    ORIGIN_UNSEEN, /* the maker is not known; the object is a thread, and the stack is its own */
    ORIGIN_BEFORE, /* the same, because it existed before the recording */
    ORIGIN_MAIN,   /* it is a process's first thread, whose birth was not seen */
    ORIGIN_COUNT
};

struct object_news {
    enum object_kind kind;
    enum object_change change;
    uint32_t process;          /* the number in the recording of the process that has it */
    pid_t process_id, tid;     /* of the thread that made it; 0: not known */
    struct program *program;   /* the thread's program: a reference; NULL: not known */
    struct snapshot *snapshot; /* of the thread; NULL: there is none */
    uint64_t at_ns;            /* CLOCK_MONOTONIC: when it was made; 0: not known */
    uint64_t told_ns;          /* when the sources were polled */
    uint64_t key;
    uint64_t other_key; /* OBJECT_THERE: the key under which it may be known, to be replaced by
                           `key`; 0: none */
    enum object_origin origin; /* OBJECT_MADE, OBJECT_THERE */
    uint64_t start;  /* if the stack is its own: the address of its first function, if nothing else
                        is known of the stack; 0: not known */
    uint64_t bytes;  /* OBJECT_MADE: its size; 0: it has none */
    uint32_t weight; /* OBJECT_MADE: how many objects it represents, at least 1 */
    unsigned level;  /* OBJECT_MADE, OBJECT_PAGE: one in 2^level pages is chosen */
    struct page_check check; /* OBJECT_CHECKED */
    char *name; /* OBJECT_VALUE: the profile's; OBJECT_THREAD: the thread's, if it is known; freed
                   by the receiver; NULL: none */
    /* The first frames of the stack are skipped while they are in this code, then `skip` more. */
    uint64_t code_start, code_limit;
    unsigned skip;
};

/* Totals about a kind of objects. */
struct object_counts {
    bool has_source; /* in any process */
    int refusal;     /* why there is none, if that is known (an errno); 0: not known */
    uint64_t rate;   /* see struct profile_objects */
    uint64_t made_lost, gone_lost; /* messages that could not be sent */
    uint64_t resident_peak;        /* of the process; 0: not known, or there are several */
    bool allocator_is_own;         /* a program has an allocator that no source sees */
    /* OBJECT_PAGE, bytes of all processes: when they were first and last observed. */
    uint64_t resident_before, resident;
    bool sees_user_only; /* OBJECT_PAGE: pages that system calls touch are not seen */
    int filter_refusal;  /* OBJECT_PAGE: why pages are not chosen in the kernel (an errno) */
};

/* Which objects are recorded, and how. */
struct object_options {
    bool kinds[OBJECT_KIND_COUNT];
    uint64_t heap_rate; /* mean bytes between two reported allocations; at least 1 */
    bool has_mappings;  /* mappings by the program are also allocations */
};

/* Why there is no source of these objects, as a negative errno; 0: there is one. */
static inline int object_counts_refusal(const struct object_counts *counts)
{
    return counts->has_source ? 0 : counts->refusal ? -counts->refusal : -ENOENT;
}

struct object_source {
    /* Set by collect and refresh if there is more to report, but no snapshots or time were left. */
    bool has_more;
    /* Set by collect if messages come so fast that the source should be polled again soon. */
    bool is_fast;
    /* Takes the next message. Returns false if there is none now, or no snapshot for it. It sets
     * tid, snapshot, at_ns if known, and the fields that describe the object; the caller sets the
     * rest. */
    bool (*collect)(struct object_source *source, struct snapshot_pool *snapshots,
                    struct object_news *ret_news);
    /* Adds what this source knows to the counts of its kinds. */
    void (*count)(const struct object_source *source,
                  struct object_counts counts[OBJECT_KIND_COUNT]);
    void (*free)(struct object_source *source);
    /* A copy was requested, or the program has ended: data that can be read at any time and was not
     * sent yet is collected next. NULL: there is no such data. */
    void (*refresh)(struct object_source *source);
};

/* Opens a source of a program's objects. Returns 0, -ENOENT if there is nothing to open yet, or
 * another negative errno that says why there can't be a source. */
typedef int object_open_fn(const struct program *program, const struct object_options *options,
                           struct object_source **ret_source);

#endif

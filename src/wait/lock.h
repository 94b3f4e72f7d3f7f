/* What lock a futex belongs to, and which thread holds it.
 *
 * A futex is a word and nothing more. It is taken for part of a glibc lock only if the thread's own
 * stack says so, and an owner is believed only if the lock's other words agree. */
#ifndef FGPROF_WAIT_LOCK_H
#define FGPROF_WAIT_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCK_WORDS_BEFORE 4
#define LOCK_WORDS 20

/* The words around the futex; the futex itself is words[LOCK_WORDS_BEFORE]. */
struct lock_words {
    uint32_t words[LOCK_WORDS];
    bool has_before, has_rest; /* the words before it were readable; it and those after it */
    bool is_pi;                /* it was waited for with FUTEX_LOCK_PI */
};

enum lock_kind {
    LOCK_NOT_KNOWN,
    LOCK_MUTEX,
    LOCK_RWLOCK,
    LOCK_CONDITION, /* a condition variable: it has no owner */
    LOCK_SEMAPHORE,
    LOCK_THREAD, /* the end of a thread, which is the "owner" */
    LOCK_KIND_COUNT,
};

struct lock {
    enum lock_kind kind;
    uint32_t owner;   /* a thread id within the process's PID namespace; 0: not known */
    uint32_t readers; /* how many threads hold a read-write lock */
    bool is_shared;   /* shared between processes: the owner may be in another process */
};

/* `functions` are the names of the innermost frames, leaf first; `is_glibc` says whether each lies
 * in a file with glibc's name. In a static program the function names may prove that too. */
struct lock lock_of(const struct lock_words *words, const char *const *functions,
                    const bool *is_glibc, size_t function_count);

#endif

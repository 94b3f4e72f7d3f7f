/* What lock a futex belongs to, and who holds it.
 *
 * A futex is a word and nothing more. That it is part of a lock of glibc's is believed where the
 * thread's own stack says so, and an owner is where the lock's other words agree. */
#ifndef FGPROF_WAIT_LOCK_H
#define FGPROF_WAIT_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCK_WORDS_BEFORE 4
#define LOCK_WORDS 20

/* What is read around the futex: its own word is words[LOCK_WORDS_BEFORE]. */
struct lock_words {
    uint32_t words[LOCK_WORDS];
    bool has_before, has_rest; /* the words before it could be read; it and what follows could */
    bool is_pi;                /* it was waited for with FUTEX_LOCK_PI */
};

enum lock_kind {
    LOCK_NOT_KNOWN,
    LOCK_MUTEX,
    LOCK_RWLOCK,
    LOCK_CONDITION, /* a condition variable: nobody owns it */
    LOCK_SEMAPHORE,
    LOCK_THREAD, /* the end of a thread, which is the "owner" */
    LOCK_KIND_COUNT,
};

struct lock {
    enum lock_kind kind;
    uint32_t owner;   /* a thread id as the process itself has it; 0: not known */
    uint32_t readers; /* how many hold a read-write lock */
    bool is_shared;   /* between processes: the owner may be of another */
};

/* `functions` are names of the innermost frames, leaf first; `is_glibc` says whether each lies in a
 * file of glibc's name. The names of a static program's functions may prove that too. */
struct lock lock_of(const struct lock_words *words, const char *const *functions,
                    const bool *is_glibc, size_t function_count);

#endif

#include "wait/lock.h"

#include <linux/futex.h>
#include <string.h>

/* pthread_mutex_t on 64-bit machines, in words (glibc's sysdeps/nptl/bits/thread-shared-types.h and
 * struct_mutex.h). */
enum { MUTEX_LOCK = 0, MUTEX_OWNER = 2, MUTEX_USERS = 3, MUTEX_KIND = 4 };
/* Its __kind (nptl/pthreadP.h): type, robust, priority inheritance, priority protection, shared,
 * elision and its opposite. */
#define KIND_ROBUST 0x10u
#define KIND_PROTECT 0x40u
#define KIND_SHARED 0x80u
#define KIND_KNOWN (3u | KIND_ROBUST | 0x20u | KIND_PROTECT | KIND_SHARED | 0x100u | 0x200u)
/* The value of __lock while others wait (sysdeps/nptl/lowlevellock.h). */
#define LOCKED_WITH_WAITERS 2

/* pthread_rwlock_t on 64-bit machines, in words (sysdeps/nptl/bits/struct_rwlock.h), and the bits
 * of __readers (nptl/pthread_rwlock_common.c). */
enum { RWLOCK_READERS = 0, RWLOCK_PHASE = 2, RWLOCK_WRITERS = 3, RWLOCK_OWNER = 6, RWLOCK_SHARED };
#define READERS_WRITE_PHASE 1u
#define READERS_WRITE_LOCKED 2u
#define READERS_SHIFT 3
#define READERS_MAX 0x10000u /* more than that means that it is no lock */

static const struct {
    const char *name;
    enum lock_kind kind;
} functions_of_locks[] = {
    {"pthread_mutex_lock", LOCK_MUTEX},
    {"pthread_mutex_lock_full", LOCK_MUTEX},
    {"pthread_mutex_timedlock", LOCK_MUTEX},
    {"pthread_mutex_clocklock", LOCK_MUTEX},
    {"pthread_mutex_clocklock_common", LOCK_MUTEX},
    {"pthread_mutex_cond_lock", LOCK_MUTEX},
    {"pthread_mutex_cond_lock_full", LOCK_MUTEX},
    {"pthread_rwlock_rdlock", LOCK_RWLOCK},
    {"pthread_rwlock_rdlock_full64", LOCK_RWLOCK},
    {"pthread_rwlock_timedrdlock", LOCK_RWLOCK},
    {"pthread_rwlock_clockrdlock", LOCK_RWLOCK},
    {"pthread_rwlock_wrlock", LOCK_RWLOCK},
    {"pthread_rwlock_wrlock_full64", LOCK_RWLOCK},
    {"pthread_rwlock_timedwrlock", LOCK_RWLOCK},
    {"pthread_rwlock_clockwrlock", LOCK_RWLOCK},
    {"pthread_cond_wait", LOCK_CONDITION},
    {"pthread_cond_wait_common", LOCK_CONDITION},
    {"pthread_cond_timedwait", LOCK_CONDITION},
    {"pthread_cond_clockwait", LOCK_CONDITION},
    {"sem_wait", LOCK_SEMAPHORE},
    {"sem_timedwait", LOCK_SEMAPHORE},
    {"sem_clockwait", LOCK_SEMAPHORE},
    {"new_sem_wait", LOCK_SEMAPHORE},
    {"new_sem_wait_slow64", LOCK_SEMAPHORE},
    {"pthread_join", LOCK_THREAD},
    {"pthread_clockjoin_ex", LOCK_THREAD},
    {"pthread_clockjoin_np", LOCK_THREAD},
    {"pthread_timedjoin_np", LOCK_THREAD},
};

/* Takes off the underscores, version and suffix of its symbol:
 * "___pthread_mutex_lock@@GLIBC_2.2.5", "__pthread_rwlock_rdlock_full64.constprop.0". */
static enum lock_kind kind_of_function(const char *name)
{
    name += strspn(name, "_");
    size_t length = strcspn(name, "@.");
    for (size_t i = 0; i < sizeof functions_of_locks / sizeof *functions_of_locks; i++) {
        const char *known = functions_of_locks[i].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return functions_of_locks[i].kind;
    }
    return LOCK_NOT_KNOWN;
}

static void read_mutex(const struct lock_words *read, struct lock *lock)
{
    const uint32_t *mutex = &read->words[LOCK_WORDS_BEFORE];
    uint32_t kind = mutex[MUTEX_KIND], word = mutex[MUTEX_LOCK];
    if (!read->has_rest || (kind & ~KIND_KNOWN) || !mutex[MUTEX_USERS])
        return;
    lock->is_shared = kind & KIND_SHARED;
    /* The word itself holds the owner; a dead owner counts as none (futex(2),
     * get_robust_list(2)). */
    if (kind & KIND_ROBUST)
        lock->owner =
            word & FUTEX_WAITERS && !(word & FUTEX_OWNER_DIED) ? word & FUTEX_TID_MASK : 0;
    else if (!(kind & KIND_PROTECT) && word == LOCKED_WITH_WAITERS)
        lock->owner = mutex[MUTEX_OWNER];
}

/* The futex is one of three words of the lock. The function's argument would tell which, but is not
 * known. So the lock is believed only if its words make sense for exactly one of them. */
static void read_rwlock(const struct lock_words *read, struct lock *lock)
{
    static const unsigned places[] = {RWLOCK_READERS, RWLOCK_PHASE, RWLOCK_WRITERS};
    unsigned matches = 0;
    struct lock found = *lock;
    if (!read->has_before || !read->has_rest)
        return;
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        const uint32_t *rwlock = &read->words[LOCK_WORDS_BEFORE - places[i]];
        uint32_t readers = rwlock[RWLOCK_READERS] >> READERS_SHIFT;
        bool is_write_locked = (rwlock[RWLOCK_READERS] & READERS_WRITE_LOCKED) != 0;
        bool is_write_phase = (rwlock[RWLOCK_READERS] & READERS_WRITE_PHASE) != 0;
        /* At most 1, plus 2 if it is waited for (PTHREAD_RWLOCK_FUTEX_USED). */
        if (rwlock[RWLOCK_PHASE] > 3 || rwlock[RWLOCK_WRITERS] > 3 || rwlock[RWLOCK_SHARED] > 1 ||
            readers > READERS_MAX)
            continue;
        if (is_write_phase && is_write_locked && rwlock[RWLOCK_OWNER]) {
            found.owner = rwlock[RWLOCK_OWNER];
        } else if (!is_write_phase && readers && !rwlock[RWLOCK_OWNER]) {
            found.readers = readers;
        } else {
            continue;
        }
        found.is_shared = rwlock[RWLOCK_SHARED];
        matches++;
    }
    if (matches == 1)
        *lock = found;
}

/* Functions that glibc has and musl has not. */
static bool proves_glibc(const char *name)
{
    return strncmp(name, "__lll_lock_wait", 15) == 0 || strncmp(name, "___pthread_", 11) == 0 ||
           strncmp(name, "__futex_abstimed_wait", 21) == 0;
}

struct lock lock_of(const struct lock_words *words, const char *const *functions,
                    const bool *is_glibc, size_t function_count)
{
    struct lock lock = {.kind = LOCK_NOT_KNOWN};
    bool has_glibc = false;
    for (size_t i = 0; i < function_count && !lock.kind; i++) {
        lock.kind = kind_of_function(functions[i]);
        has_glibc = has_glibc || proves_glibc(functions[i]) || (lock.kind && is_glibc[i]);
    }
    /* The kernel itself reads this word, so it is valid for any library's lock (futex(2)). */
    if (words->is_pi && words->has_rest) {
        lock.kind = LOCK_MUTEX;
        lock.owner = words->words[LOCK_WORDS_BEFORE] & FUTEX_TID_MASK;
    } else if (has_glibc && lock.kind == LOCK_MUTEX) {
        read_mutex(words, &lock);
    } else if (has_glibc && lock.kind == LOCK_RWLOCK) {
        read_rwlock(words, &lock);
    } else if (has_glibc && lock.kind == LOCK_THREAD && words->has_rest) {
        /* The thread's id, which the kernel clears at its end (set_tid_address(2)). */
        lock.owner = words->words[LOCK_WORDS_BEFORE];
    }
    return lock;
}

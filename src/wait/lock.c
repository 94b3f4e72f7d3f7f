#include "wait/lock.h"
#include "base/array.h"

#include <linux/futex.h>
#include <string.h>

/* pthread_mutex_t on 64-bit machines, in words (glibc's sysdeps/nptl/bits/thread-shared-types.h and
 * struct_mutex.h). */
enum { MUTEX_LOCK = 0, MUTEX_OWNER = 2, MUTEX_USERS = 3, MUTEX_KIND = 4, MUTEX_WORDS = 5 };
/* Its __kind (nptl/pthreadP.h): type, robust, priority inheritance, priority protection, shared,
 * elision and its opposite. */
#define KIND_ROBUST 0x10u
#define KIND_PROTECT 0x40u
#define KIND_SHARED 0x80u
#define KIND_KNOWN (3u | KIND_ROBUST | 0x20u | KIND_PROTECT | KIND_SHARED | 0x100u | 0x200u)
/* The value of __lock while others wait (sysdeps/nptl/lowlevellock.h). With priority protection,
 * the higher bits have the ceiling. */
#define LOCKED_WITH_WAITERS 2
#define CEILING_SHIFT 19

/* pthread_rwlock_t on 64-bit machines, in words (sysdeps/nptl/bits/struct_rwlock.h), and the bits
 * of __readers (nptl/pthread_rwlock_common.c). */
enum {
    RWLOCK_READERS = 0,
    RWLOCK_PHASE = 2,
    RWLOCK_WRITERS = 3,
    RWLOCK_PAD = 4,
    RWLOCK_OWNER = 6,
    RWLOCK_SHARED = 7,
    RWLOCK_FLAGS = 12,
    RWLOCK_WORDS = 13,
};
#define READERS_WRITE_PHASE 1u
#define READERS_WRITE_LOCKED 2u
#define READERS_SHIFT 3
#define READERS_MAX 0x10000u /* more than that means that it is no lock */
#define FLAGS_MAX 2          /* PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP */

struct lock_function {
    const char *name;
    enum resource_kind kind;
    bool is_threads_own;
};

/* glibc's, without underscores, version, suffix and the "64" of a function with 64-bit times. */
static const struct lock_function functions_of_glibc[] = {
    {"pthread_mutex_lock", RESOURCE_MUTEX, false},
    {"pthread_mutex_lock_full", RESOURCE_MUTEX, false},
    {"pthread_mutex_timedlock", RESOURCE_MUTEX, false},
    {"pthread_mutex_clocklock", RESOURCE_MUTEX, false},
    {"pthread_mutex_clocklock_common", RESOURCE_MUTEX, false},
    {"pthread_mutex_cond_lock", RESOURCE_MUTEX, false},
    {"pthread_mutex_cond_lock_full", RESOURCE_MUTEX, false},
    {"mtx_lock", RESOURCE_MUTEX, false},
    {"mtx_timedlock", RESOURCE_MUTEX, false},
    {"pthread_rwlock_rdlock", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_rdlock_full", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_timedrdlock", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_clockrdlock", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_wrlock", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_wrlock_full", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_timedwrlock", RESOURCE_RWLOCK, false},
    {"pthread_rwlock_clockwrlock", RESOURCE_RWLOCK, false},
    {"pthread_cond_wait", RESOURCE_CONDITION, false},
    {"pthread_cond_wait_common", RESOURCE_CONDITION, false},
    {"pthread_cond_timedwait", RESOURCE_CONDITION, false},
    {"pthread_cond_clockwait", RESOURCE_CONDITION, false},
    {"cnd_wait", RESOURCE_CONDITION, false},
    {"cnd_timedwait", RESOURCE_CONDITION, false},
    {"sem_wait", RESOURCE_SEMAPHORE, false},
    {"sem_timedwait", RESOURCE_SEMAPHORE, false},
    {"sem_clockwait", RESOURCE_SEMAPHORE, false},
    {"new_sem_wait", RESOURCE_SEMAPHORE, false},
    {"new_sem_wait_slow", RESOURCE_SEMAPHORE, false},
    {"pthread_barrier_wait", RESOURCE_BARRIER, false},
    {"pthread_once", RESOURCE_ONCE, false},
    {"pthread_once_slow", RESOURCE_ONCE, false},
    {"call_once", RESOURCE_ONCE, false},
    {"pthread_join", RESOURCE_THREAD, false},
    {"pthread_clockjoin_ex", RESOURCE_THREAD, false},
    {"pthread_timedjoin_ex", RESOURCE_THREAD, false},
    {"pthread_clockjoin_np", RESOURCE_THREAD, false},
    {"pthread_timedjoin_np", RESOURCE_THREAD, false},
    {"thrd_join", RESOURCE_THREAD, false},
};

/* Parts of the symbols of other libraries' functions: of Rust (both manglings have the last names
 * of a path in this form), C++ (after versioned namespaces) and Go. */
static const struct lock_function functions_of_others[] = {
    /* Rust's std::sys, library/std/src/sys/sync */
    {"5Mutex14lock_contended", RESOURCE_MUTEX, false},
    {"6RwLock14read_contended", RESOURCE_RWLOCK, false},
    {"6RwLock15write_contended", RESOURCE_RWLOCK, false},
    {"7Condvar21wait_optional_timeout", RESOURCE_CONDITION, false},
    {"7Condvar4wait", RESOURCE_CONDITION, false},
    {"7Condvar12wait_timeout", RESOURCE_CONDITION, false},
    {"4Once4call", RESOURCE_ONCE, false},
    {"4Once4wait", RESOURCE_ONCE, false},
    {"6Parker4park", RESOURCE_PARKING, true},
    {"6Parker12park_timeout", RESOURCE_PARKING, true},
    /* Rust's parking_lot */
    {"8RawMutex9lock_slow", RESOURCE_MUTEX, true},
    {"9RawRwLock16lock_shared_slow", RESOURCE_RWLOCK, true},
    {"9RawRwLock19lock_exclusive_slow", RESOURCE_RWLOCK, true},
    {"9RawRwLock12upgrade_slow", RESOURCE_RWLOCK, true},
    {"7Condvar19wait_until_internal", RESOURCE_CONDITION, true},
    /* absl/synchronization/mutex.cc */
    {"5Mutex8LockSlow", RESOURCE_MUTEX, true},
    {"5Mutex12LockSlowLoop", RESOURCE_MUTEX, true},
    {"5Mutex20LockSlowWithDeadline", RESOURCE_MUTEX, true},
    {"7CondVar10WaitCommon", RESOURCE_CONDITION, true},
    /* folly */
    {"5folly15SharedMutexImpl", RESOURCE_RWLOCK, false},
    {"5folly13MicroLockCore", RESOURCE_MUTEX, false},
    {"5folly5Baton", RESOURCE_PARKING, false},
    {"5folly11LifoSemImpl", RESOURCE_SEMAPHORE, true},
    /* libstdc++ and libc++ */
    {"__cxa_guard_acquire", RESOURCE_ONCE, false},
    {"28__atomic_futex_unsigned_base", RESOURCE_CONDITION, false},
    /* Go's runtime/lock_futex.go: a lock whose waiters sleep on its word, or each on its own */
    {"runtime.semasleep", RESOURCE_PARKING, true},
    {"runtime.notesleep", RESOURCE_PARKING, true},
    {"runtime.notetsleep_internal", RESOURCE_PARKING, true},
    {"runtime.lock2", RESOURCE_MUTEX, false},
};

/* Takes off the underscores, version and suffix of its symbol:
 * "___pthread_mutex_lock@@GLIBC_2.2.5", "__pthread_rwlock_rdlock_full64.constprop.0". */
static const struct lock_function *function_of_glibc(const char *name)
{
    name += strspn(name, "_");
    size_t length = strcspn(name, "@.");
    if (length > 2 && strncmp(&name[length - 2], "64", 2) == 0)
        length -= 2;
    for (size_t i = 0; i < COUNT_OF(functions_of_glibc); i++) {
        const char *known = functions_of_glibc[i].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return &functions_of_glibc[i];
    }
    return NULL;
}

static const struct lock_function *function_of_others(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(functions_of_others); i++) {
        if (strstr(name, functions_of_others[i].name))
            return &functions_of_others[i];
    }
    return NULL;
}

bool lock_is_glibc_file(const char *path)
{
    const char *file = basename(path);
    return strncmp(file, "libc.so.6", 9) == 0 || strncmp(file, "libc-2.", 7) == 0 ||
           strncmp(file, "libpthread-2.", 13) == 0 || strncmp(file, "libpthread.so.0", 15) == 0;
}

/* Functions of glibc that musl lacks, which also identify a static program. */
static bool proves_glibc(const char *name)
{
    return strncmp(name, "__lll_lock_wait", 15) == 0 || strncmp(name, "___pthread_", 11) == 0 ||
           strncmp(name, "__futex_abstimed_wait", 21) == 0;
}

struct lock_site lock_site_of(const struct lock_frame *frames, size_t frame_count)
{
    struct lock_site site = {.kind = RESOURCE_FUTEX};
    bool is_low_level = false;
    for (size_t i = 0; i < frame_count; i++) {
        const struct lock_function *function = function_of_glibc(frames[i].function);
        site.is_glibc = site.is_glibc || proves_glibc(frames[i].function) ||
                        (function && lock_is_glibc_file(frames[i].file));
        /* glibc's own locks, such as those of malloc and stdio: a word, without the owner's id. */
        is_low_level = is_low_level || strcmp(frames[i].function, "__lll_lock_wait_private") == 0;
        if (function) {
            site.kind = function->kind;
            return site;
        }
        function = function_of_others(frames[i].function);
        if (function)
            return (struct lock_site){.kind = function->kind,
                                      .is_threads_own = function->is_threads_own};
    }
    site.is_glibc = false;
    if (is_low_level)
        site.kind = RESOURCE_MUTEX;
    return site;
}

/* The words of a futex: how many there are before it and, with it, behind. */
struct words {
    const uint32_t *futex;
    unsigned before, behind;
};

static struct words words_of(const struct call_target *target, const struct call_memory *memory)
{
    return (struct words){
        .futex = &memory->words[FUTEX_WORDS_BEFORE],
        .before = (unsigned)call_futex_words_before(target, memory),
        .behind = memory->got[0] / sizeof *memory->words,
    };
}

static void read_mutex(const struct words *words, const struct call_target *target,
                       struct lock *lock)
{
    const uint32_t *mutex = words->futex;
    if (words->behind < MUTEX_WORDS)
        return;
    uint32_t kind = mutex[MUTEX_KIND], word = mutex[MUTEX_LOCK], waited = LOCKED_WITH_WAITERS;
    if ((kind & ~KIND_KNOWN) || !mutex[MUTEX_USERS])
        return;
    lock->is_shared = kind & KIND_SHARED;
    /* The word itself holds the owner; a dead owner counts as none (futex(2),
     * get_robust_list(2)). */
    if (kind & KIND_ROBUST) {
        lock->owner =
            word & FUTEX_WAITERS && !(word & FUTEX_OWNER_DIED) ? word & FUTEX_TID_MASK : 0;
        return;
    }
    if (kind & KIND_PROTECT) {
        waited |= word >> CEILING_SHIFT << CEILING_SHIFT;
        if (waited == LOCKED_WITH_WAITERS) /* no priority is 0 */
            return;
    }
    if (word == waited && target->value == waited)
        lock->owner = mutex[MUTEX_OWNER];
}

/* Whether the words can be those of a lock that is held, and its owner. */
static bool read_rwlock_at(const uint32_t *rwlock, struct lock *lock)
{
    uint32_t readers = rwlock[RWLOCK_READERS] >> READERS_SHIFT;
    bool is_write_locked = (rwlock[RWLOCK_READERS] & READERS_WRITE_LOCKED) != 0;
    bool is_write_phase = (rwlock[RWLOCK_READERS] & READERS_WRITE_PHASE) != 0;
    /* At most 1, plus 2 if it is waited for (PTHREAD_RWLOCK_FUTEX_USED). */
    if (rwlock[RWLOCK_PHASE] > 3 || rwlock[RWLOCK_WRITERS] > 3 || rwlock[RWLOCK_SHARED] > 1 ||
        rwlock[RWLOCK_PAD] || rwlock[RWLOCK_PAD + 1] || rwlock[RWLOCK_FLAGS] > FLAGS_MAX ||
        readers > READERS_MAX)
        return false;
    if (is_write_phase && is_write_locked && rwlock[RWLOCK_OWNER])
        lock->owner = rwlock[RWLOCK_OWNER];
    else if (!is_write_phase && readers && !rwlock[RWLOCK_OWNER])
        lock->readers = readers;
    else
        return false;
    lock->is_shared = rwlock[RWLOCK_SHARED];
    return true;
}

/* The futex is one of three words of the lock. The function's argument would show which, but is not
 * known. So the lock is accepted only if its words make sense for exactly one of them. */
static void read_rwlock(const struct words *words, struct lock *lock)
{
    static const unsigned places[] = {RWLOCK_READERS, RWLOCK_PHASE, RWLOCK_WRITERS};
    unsigned matches = 0;
    struct lock found = *lock;
    for (unsigned i = 0; i < COUNT_OF(places); i++) {
        struct lock read = *lock;
        if (words->before < places[i] || words->behind < RWLOCK_WORDS - places[i] ||
            !read_rwlock_at(words->futex - places[i], &read))
            continue;
        found = read;
        found.address -= places[i] * sizeof *words->futex;
        matches++;
    }
    if (matches == 1)
        *lock = found;
}

/* Locks without an owner, of which the futex is not the first word. */
static void find_address(struct lock *lock)
{
    /* A condition variable has a word for each of two groups of waiters, one after the other. The
     * fields before them differ between versions, so the first of the two stands for the lock
     * (sysdeps/nptl/bits/thread-shared-types.h). Threads wait for a barrier at its second word, or
     * at its first if too many enter (struct pthread_barrier of sysdeps/nptl/internaltypes.h). */
    if (lock->kind == RESOURCE_CONDITION || lock->kind == RESOURCE_BARRIER)
        lock->address &= ~(uint64_t)7;
}

struct lock lock_of(const struct lock_site *site, const struct call_target *target,
                    const struct call_memory *memory)
{
    struct lock lock = {.kind = site->kind, .address = target->address};
    const struct words words = words_of(target, memory);
    /* The kernel itself reads this word, so it is valid for any library's lock (futex(2)). */
    if (target->is_pi) {
        lock.kind = RESOURCE_MUTEX;
        if (words.behind && *words.futex & FUTEX_WAITERS)
            lock.owner = *words.futex & FUTEX_TID_MASK;
        if (words.behind >= MUTEX_WORDS && site->is_glibc &&
            !(words.futex[MUTEX_KIND] & ~KIND_KNOWN))
            lock.is_shared = words.futex[MUTEX_KIND] & KIND_SHARED;
        return lock;
    }
    if (!site->is_glibc)
        return lock;
    if (site->kind == RESOURCE_MUTEX)
        read_mutex(&words, target, &lock);
    else if (site->kind == RESOURCE_RWLOCK)
        read_rwlock(&words, &lock);
    else if (site->kind == RESOURCE_THREAD && words.behind && *words.futex == target->value)
        /* The thread's id, which the kernel clears at its end (set_tid_address(2)). */
        lock.owner = *words.futex;
    else
        find_address(&lock);
    return lock;
}

#define WORD_BYTES 8u
/* Words this close before a glibc lock are in the lock's own allocation: glibc's allocations are at
 * least 32 bytes apart, and other allocators group those of one size, which is at least the 32
 * bytes of a semaphore. */
#define NEAR_BYTES 24u
/* std::make_shared allocates a vtable pointer and two counts, then the object. */
#define SHARED_COUNTS_BYTES 16u
/* An allocation of glibc's malloc (struct malloc_chunk of its malloc.c): its size is the word
 * before it and counts that word, but not the word before that. */
#define CHUNK_ALIGNMENT 16u
#define CHUNK_MIN_BYTES 32u
#define CHUNK_MAX_BYTES (1u << 20) /* objects with locks are no larger; a pointer would be */
#define CHUNK_FLAGS 7u

/* The words before a futex, that is, those next to it. */
struct before {
    const uint32_t *futex;
    uint64_t address; /* of the futex */
    size_t bytes;
};

static bool read_word(const struct before *before, uint64_t address, uint64_t *ret_word)
{
    uint64_t distance = before->address - address;
    if (distance < WORD_BYTES || distance > before->bytes)
        return false;
    memcpy(ret_word, (const char *)before->futex - distance, WORD_BYTES);
    return true;
}

/* Whether an allocation begins at that address in which the lock is, by what malloc says. */
static bool is_allocation_of(const struct before *before, uint64_t address, uint64_t lock)
{
    uint64_t head;
    if (address % CHUNK_ALIGNMENT || !read_word(before, address - WORD_BYTES, &head))
        return false;
    uint64_t size = head & ~(uint64_t)CHUNK_FLAGS;
    return size % CHUNK_ALIGNMENT == 0 && size >= CHUNK_MIN_BYTES && size <= CHUNK_MAX_BYTES &&
           lock - address < size - WORD_BYTES;
}

size_t object_pointers(const struct lock *lock, const struct lock_site *site,
                       const struct call_target *target, const struct call_memory *memory,
                       uint64_t ret_pointers[OBJECT_POINTERS_MAX])
{
    const struct before before = {
        .futex = &memory->words[FUTEX_WORDS_BEFORE],
        .address = target->address,
        .bytes = call_futex_words_before(target, memory) * sizeof *memory->words,
    };
    uint64_t start = lock->address & ~(uint64_t)(WORD_BYTES - 1), word;
    size_t count = 0;
    for (uint64_t distance = WORD_BYTES; distance <= OBJECT_POINTERS_MAX * WORD_BYTES;
         distance += WORD_BYTES) {
        uint64_t at = start - distance;
        if (!read_word(&before, at, &word))
            break;
        if (!word || word % WORD_BYTES)
            continue;
        if ((site->is_glibc && distance <= NEAR_BYTES) || is_allocation_of(&before, at, start) ||
            is_allocation_of(&before, at - SHARED_COUNTS_BYTES, start))
            ret_pointers[count++] = word;
    }
    return count;
}

#include "base/random.h"
#include "wait/lock.h"
#include "waiter.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <threads.h>

#define AT FUTEX_WORDS_BEFORE
#define GLIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define MUSL "/lib/ld-musl-x86_64.so.1"

static struct lock_site site_in(const char *leaf, const char *function, const char *file)
{
    const struct lock_frame frames[] = {{leaf, file}, {function, file}, {"main", "/opt/app"}};
    return lock_site_of(frames, 3);
}

/* The lock that is found if a thread waits in a function of glibc for a word of this process. */
static struct lock lock_waited_for(const struct call_target *target, const char *function)
{
    struct call_memory memory;
    const struct call_reading reading = {target, &memory};
    assert_int_equal(target->kind, CALL_FUTEX);
    assert_int_equal(call_read_many(getpid(), &reading, 1), 0);
    struct lock_site site = site_in("futex_wait", function, GLIBC);
    return lock_of(&site, target, &memory);
}

static uint64_t address_of(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* ---- Real locks: another thread waits for what this one holds. ---- */

static void *take_mutex(void *mutex)
{
    assert_int_equal(pthread_mutex_lock(mutex), 0);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void check_mutex(int type, int protocol, int robust, int shared)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    struct waiter waiter;
    pthread_mutexattr_init(&attributes);
    assert_int_equal(pthread_mutexattr_settype(&attributes, type), 0);
    assert_int_equal(pthread_mutexattr_setprotocol(&attributes, protocol), 0);
    assert_int_equal(pthread_mutexattr_setrobust(&attributes, robust), 0);
    assert_int_equal(pthread_mutexattr_setpshared(&attributes, shared), 0);
    assert_int_equal(pthread_mutex_init(&mutex, &attributes), 0);
    assert_int_equal(pthread_mutex_lock(&mutex), 0);
    struct call_target target = waiter_start(&waiter, CALL_FUTEX, take_mutex, &mutex);
    struct lock lock = lock_waited_for(&target, "___pthread_mutex_lock@@GLIBC_2.2.5");
    assert_int_equal(lock.kind, RESOURCE_MUTEX);
    assert_int_equal(lock.owner, gettid());
    assert_int_equal(lock.address, address_of(&mutex));
    assert_int_equal(lock.is_shared, shared || robust); /* see nptl/pthread_mutex_init.c */
    assert_int_equal(target.is_pi, protocol == PTHREAD_PRIO_INHERIT);
    pthread_mutex_unlock(&mutex);
    pthread_join(waiter.thread, NULL);
    pthread_mutex_destroy(&mutex);
}

static void test_real_mutexes(void **state)
{
    (void)state;
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};
    for (unsigned i = 0; i < 32; i++)
        check_mutex(types[i % 4], protocols[i / 4 % 2],
                    i / 8 % 2 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED,
                    i / 16 % 2 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
}

static void *take_with_timeout(void *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1000;
    assert_int_equal(pthread_mutex_timedlock(mutex, &until), 0);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void *take_c11_mutex(void *mutex)
{
    assert_int_equal(mtx_lock(mutex), thrd_success);
    mtx_unlock(mutex);
    return NULL;
}

static void test_other_functions_of_mutexes(void **state)
{
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    mtx_t c11_mutex;
    struct waiter waiter;
    pthread_mutex_lock(&mutex);
    struct call_target target = waiter_start(&waiter, CALL_FUTEX, take_with_timeout, &mutex);
    assert_true(target.has_timeout);
    struct lock lock = lock_waited_for(&target, "__pthread_mutex_clocklock_common");
    assert_int_equal(lock.owner, gettid());
    pthread_mutex_unlock(&mutex);
    pthread_join(waiter.thread, NULL);
    mtx_init(&c11_mutex, mtx_recursive);
    mtx_lock(&c11_mutex);
    target = waiter_start(&waiter, CALL_FUTEX, take_c11_mutex, &c11_mutex);
    assert_int_equal(lock_waited_for(&target, "mtx_lock@@GLIBC_2.34").owner, gettid());
    mtx_unlock(&c11_mutex);
    pthread_join(waiter.thread, NULL);
}

static void *lock_and_die(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

/* A dead owner is not reported: nobody waits long for such a mutex. */
static void test_a_robust_mutex_of_a_dead_thread(void **state)
{
    (void)state;
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_t owner;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&owner, NULL, lock_and_die, &mutex);
    pthread_join(owner, NULL);
    const struct call_target target = {.kind = CALL_FUTEX, .address = address_of(&mutex)};
    assert_int_equal(lock_waited_for(&target, "__pthread_mutex_lock_full").owner, 0);
}

static void *take_to_read(void *rwlock)
{
    assert_int_equal(pthread_rwlock_rdlock(rwlock), 0);
    pthread_rwlock_unlock(rwlock);
    return NULL;
}

static void *take_to_write(void *rwlock)
{
    assert_int_equal(pthread_rwlock_wrlock(rwlock), 0);
    pthread_rwlock_unlock(rwlock);
    return NULL;
}

static void check_rwlock(int preference, int shared)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t rwlock;
    struct waiter reader, writer;
    pthread_rwlockattr_init(&attributes);
    assert_int_equal(pthread_rwlockattr_setkind_np(&attributes, preference), 0);
    assert_int_equal(pthread_rwlockattr_setpshared(&attributes, shared), 0);
    assert_int_equal(pthread_rwlock_init(&rwlock, &attributes), 0);
    pthread_rwlock_wrlock(&rwlock);
    struct call_target target = waiter_start(&reader, CALL_FUTEX, take_to_read, &rwlock);
    struct lock lock = lock_waited_for(&target, "__pthread_rwlock_rdlock_full64.constprop.0");
    assert_int_equal(lock.kind, RESOURCE_RWLOCK);
    assert_int_equal(lock.owner, gettid());
    assert_int_equal(lock.address, address_of(&rwlock));
    assert_int_equal(lock.is_shared, shared);
    target = waiter_start(&writer, CALL_FUTEX, take_to_write, &rwlock);
    lock = lock_waited_for(&target, "pthread_rwlock_wrlock");
    assert_int_equal(lock.owner, gettid());
    assert_int_equal(lock.address, address_of(&rwlock));
    pthread_rwlock_unlock(&rwlock);
    pthread_join(reader.thread, NULL);
    pthread_join(writer.thread, NULL);
    pthread_rwlock_rdlock(&rwlock);
    target = waiter_start(&writer, CALL_FUTEX, take_to_write, &rwlock);
    lock = lock_waited_for(&target, "___pthread_rwlock_wrlock");
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.readers, 1);
    if (preference == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) {
        target = waiter_start(&reader, CALL_FUTEX, take_to_read, &rwlock);
        assert_int_equal(lock_waited_for(&target, "pthread_rwlock_rdlock").owner, 0);
    }
    pthread_rwlock_unlock(&rwlock);
    pthread_join(writer.thread, NULL);
    if (preference == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        pthread_join(reader.thread, NULL);
    pthread_rwlock_destroy(&rwlock);
}

static void test_real_rwlocks(void **state)
{
    (void)state;
    static const int preferences[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
                                      PTHREAD_RWLOCK_PREFER_WRITER_NP,
                                      PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    for (size_t i = 0; i < 6; i++)
        check_rwlock(preferences[i % 3], i / 3 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
}

struct signalled {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool is_done;
};

static void *wait_for_signal(void *argument)
{
    struct signalled *signalled = argument;
    pthread_mutex_lock(&signalled->mutex);
    while (!signalled->is_done)
        pthread_cond_wait(&signalled->condition, &signalled->mutex);
    pthread_mutex_unlock(&signalled->mutex);
    return NULL;
}

/* Waiters of different groups use different futexes of the same lock. */
static void test_a_real_condition_variable(void **state)
{
    (void)state;
    struct signalled signalled = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct waiter waiters[3];
    struct call_target targets[3];
    for (size_t i = 0; i < 3; i++) {
        targets[i] = waiter_start(&waiters[i], CALL_FUTEX, wait_for_signal, &signalled);
        struct lock lock = lock_waited_for(&targets[i], "___pthread_cond_wait");
        assert_int_equal(lock.kind, RESOURCE_CONDITION);
        assert_int_equal(lock.owner, 0);
        assert_in_range(lock.address, address_of(&signalled.condition),
                        address_of(&signalled.condition + 1) - 8);
        assert_int_equal(lock.address, lock_waited_for(&targets[0], "pthread_cond_wait").address);
        pthread_cond_signal(&signalled.condition); /* not done yet: only makes the groups change
                                                      places */
    }
    signalled.is_done = true;
    pthread_cond_broadcast(&signalled.condition);
    for (size_t i = 0; i < 3; i++)
        pthread_join(waiters[i].thread, NULL);
}

static void *take_semaphore(void *semaphore)
{
    sem_wait(semaphore);
    return NULL;
}

static void *enter_barrier(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

static pthread_barrier_t in_once;

static void wait_in_once(void)
{
    pthread_barrier_wait(&in_once);
}

static void *do_once(void *once)
{
    pthread_once(once, wait_in_once);
    return NULL;
}

static void test_real_locks_without_an_owner(void **state)
{
    (void)state;
    sem_t semaphore;
    pthread_barrier_t barrier;
    struct waiter waiter, second;
    sem_init(&semaphore, 0, 0);
    struct call_target target = waiter_start(&waiter, CALL_FUTEX, take_semaphore, &semaphore);
    struct lock lock = lock_waited_for(&target, "__new_sem_wait_slow64.constprop.0");
    assert_int_equal(lock.kind, RESOURCE_SEMAPHORE);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.address, address_of(&semaphore));
    sem_post(&semaphore);
    pthread_join(waiter.thread, NULL);

    pthread_barrier_init(&barrier, NULL, 2);
    target = waiter_start(&waiter, CALL_FUTEX, enter_barrier, &barrier);
    lock = lock_waited_for(&target, "___pthread_barrier_wait");
    assert_int_equal(lock.kind, RESOURCE_BARRIER);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.address, address_of(&barrier));
    pthread_barrier_wait(&barrier);
    pthread_join(waiter.thread, NULL);

    pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_barrier_init(&in_once, NULL, 2);
    waiter_start(&waiter, CALL_FUTEX, do_once, &once);
    target = waiter_start(&second, CALL_FUTEX, do_once, &once);
    lock = lock_waited_for(&target, "__pthread_once_slow");
    assert_int_equal(lock.kind, RESOURCE_ONCE);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.address, address_of(&once));
    pthread_barrier_wait(&in_once);
    pthread_join(waiter.thread, NULL);
    pthread_join(second.thread, NULL);
}

static void *join(void *thread)
{
    pthread_join(*(pthread_t *)thread, NULL);
    return NULL;
}

static void test_a_real_join(void **state)
{
    (void)state;
    sem_t semaphore;
    struct waiter joined, joiner;
    sem_init(&semaphore, 0, 0);
    waiter_start(&joined, CALL_FUTEX, take_semaphore, &semaphore);
    struct call_target target = waiter_start(&joiner, CALL_FUTEX, join, &joined.thread);
    struct lock lock = lock_waited_for(&target, "__pthread_clockjoin_ex");
    assert_int_equal(lock.kind, RESOURCE_THREAD);
    assert_int_equal(lock.owner, joined.tid);
    assert_int_equal(lock_waited_for(&target, "___pthread_join@@GLIBC_2.34").owner, joined.tid);
    sem_post(&semaphore);
    pthread_join(joiner.thread, NULL);
}

/* ---- Made-up words ---- */

struct made {
    struct call_target target;
    struct call_memory memory;
};

static struct made words_of(uint32_t waited, const uint32_t *words, size_t count)
{
    struct made made = {
        .target = {.kind = CALL_FUTEX, .address = 0x1000, .value = waited},
        .memory.got = {(FUTEX_WORDS - AT) * sizeof *words, AT * sizeof *words},
    };
    memcpy(&made.memory.words[AT], words, count * sizeof *words);
    return made;
}

static struct made mutex(uint32_t word, uint32_t owner, uint32_t users, uint32_t kind)
{
    return words_of(word, (const uint32_t[]){word, 0, owner, users, kind}, 5);
}

static struct lock lock_in(const struct made *made, const char *leaf, const char *function,
                           const char *file)
{
    struct lock_site site = site_in(leaf, function, file);
    return lock_of(&site, &made->target, &made->memory);
}

static void test_an_owner_takes_proof(void **state)
{
    (void)state;
    const struct made good = mutex(2, 1235, 1, 0), unlocked = mutex(0, 1235, 1, 0),
                      no_waiters = mutex(1, 1235, 1, 0), no_users = mutex(2, 1235, 0, 0),
                      odd_kind = mutex(2, 1235, 1, 0xdead0000),
                      protecting = mutex(2, 1235, 1, 0x40);
    struct made unread = good, short_read = good, changed = good;
    unread.memory.got[0] = 0;
    short_read.memory.got[0] = 16;
    changed.target.value = 1;
    const struct made *const wrong[] = {&unlocked,   &no_waiters, &no_users,   &odd_kind,
                                        &protecting, &unread,     &short_read, &changed};
    assert_int_equal(lock_in(&good, "", "pthread_mutex_lock", GLIBC).owner, 1235);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lock_in(wrong[i], "", "pthread_mutex_lock", GLIBC).owner, 0);
    /* With a priority ceiling of 1. */
    struct made ceiling = mutex(1u << 19 | 2, 1235, 1, 0x40);
    assert_int_equal(lock_in(&ceiling, "", "pthread_mutex_lock", GLIBC).owner, 1235);
    /* A mutex at the very end or start of its mapping. */
    struct made last = good, first = good;
    last.memory.got[0] = 40;
    first.memory.got[1] = 0;
    assert_int_equal(lock_in(&last, "", "pthread_mutex_lock", GLIBC).owner, 1235);
    assert_int_equal(lock_in(&first, "", "pthread_mutex_lock", GLIBC).owner, 1235);
    /* musl's function with that name, whose mutex is another struct. */
    struct lock of_musl = lock_in(&good, "__timedwait_cp", "pthread_mutex_lock", MUSL);
    assert_int_equal(of_musl.kind, RESOURCE_MUTEX);
    assert_int_equal(of_musl.owner, 0);
    /* A static program with glibc's names. */
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "pthread_mutex_lock", MUSL).owner, 1235);
    /* Another kind of lock, or one of the program's own. */
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "fwrite", GLIBC).owner, 0);
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "my_pthread_mutex_lock", GLIBC).kind,
                     RESOURCE_FUTEX);
}

static void test_owner_in_the_word(void **state)
{
    (void)state;
    struct made made = mutex(0x80000000 | 1235, 1, 1, 0x10);
    assert_int_equal(lock_in(&made, "", "__pthread_mutex_lock_full", GLIBC).owner, 1235);
    made = mutex(0xc0000000 | 1235, 1, 1, 0x10); /* the owner has died */
    assert_int_equal(lock_in(&made, "", "__pthread_mutex_lock_full", GLIBC).owner, 0);
    made = mutex(0x80000000 | 1236, 0, 0, 0);
    made.target.is_pi = true; /* whatever the functions are */
    struct lock lock = lock_in(&made, "", "f", MUSL);
    assert_int_equal(lock.kind, RESOURCE_MUTEX);
    assert_int_equal(lock.owner, 1236);
    made.memory.words[AT] = 1236; /* without waiters */
    assert_int_equal(lock_in(&made, "", "f", MUSL).owner, 0);
}

static void test_made_rwlocks(void **state)
{
    (void)state;
    /* Held by a writer; a reader waits on the third word. */
    struct made made = words_of(3, (const uint32_t[]){3, 0, 0, 0, 1235}, 5);
    uint32_t *words = &made.memory.words[AT - 2];
    words[0] = 1 | 2 | 1 << 3;
    struct lock lock = lock_in(&made, "", "__pthread_rwlock_rdlock_full64.constprop.0", GLIBC);
    assert_int_equal(lock.owner, 1235);
    assert_int_equal(lock.address, 0x1000 - 8);
    words[12] = 3; /* invalid flags */
    assert_int_equal(lock_in(&made, "", "pthread_rwlock_rdlock", GLIBC).owner, 0);
    words[12] = 2;
    made.memory.got[1] = 0;
    assert_int_equal(lock_in(&made, "", "pthread_rwlock_rdlock", GLIBC).owner, 0);
    assert_int_equal(lock_in(&made, "", "pthread_rwlock_rdlock", GLIBC).readers, 0);
}

/* Memory that was freed, or was never a lock. */
static void test_hostile_words(void **state)
{
    (void)state;
    static const char *const functions[] = {
        "pthread_mutex_lock",
        "__pthread_mutex_lock_full",
        "pthread_rwlock_rdlock",
        "pthread_cond_wait",
        "sem_wait",
        "pthread_barrier_wait",
        "pthread_rwlock_wrlock",
        "pthread_once",
        "f",
    };
    for (unsigned round = 0; round < 20000; round++) {
        struct made made = {.target = {.kind = CALL_FUTEX, .address = 0x1000}};
        made.memory.got[0] = (FUTEX_WORDS - AT) * sizeof(uint32_t);
        made.memory.got[1] = AT * sizeof(uint32_t);
        for (size_t i = 0; i < FUTEX_WORDS; i++)
            made.memory.words[i] = round == 0   ? 0
                                   : round == 1 ? UINT32_MAX
                                                : (uint32_t)random_number(round, i);
        made.target.value = made.memory.words[AT];
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            struct lock lock = lock_in(&made, "futex_wait", functions[i], GLIBC);
            assert_int_equal(lock.owner, 0);
            assert_true(lock.readers <= 0x10000);
        }
    }
}

/* ---- Functions ---- */

static void test_functions_of_glibc(void **state)
{
    (void)state;
    assert_int_equal(site_in("__new_sem_timedwait64", "f", GLIBC).kind, RESOURCE_FUTEX);
    assert_int_equal(site_in("___sem_timedwait64", "f", GLIBC).kind, RESOURCE_SEMAPHORE);
    assert_int_equal(site_in("syscall", "f", GLIBC).kind, RESOURCE_FUTEX);
    assert_int_equal(site_in("__lll_lock_wait_private", "malloc", GLIBC).kind, RESOURCE_MUTEX);
    assert_false(site_in("__lll_lock_wait_private", "malloc", GLIBC).is_glibc);
    /* After being woken from a condition variable, it waits for the mutex. */
    assert_int_equal(site_in("__pthread_mutex_cond_lock", "pthread_cond_wait", GLIBC).kind,
                     RESOURCE_MUTEX);
}

static void test_functions_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum resource_kind kind;
        bool is_threads_own;
    } rows[] = {
        {"_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE", RESOURCE_MUTEX,
         false},
        {"_RNvMNtNtNtNtCs1_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended", RESOURCE_MUTEX,
         false},
        {"_ZN3std3sys4sync6rwlock5futex6RwLock14read_contended17h0E", RESOURCE_RWLOCK, false},
        {"_ZN3std3sys4sync14thread_parking5futex6Parker4park17h0E", RESOURCE_PARKING, true},
        {"_ZN11parking_lot9raw_mutex8RawMutex9lock_slow17h0E", RESOURCE_MUTEX, true},
        {"_ZN4absl12lts_202206235Mutex12LockSlowLoopEPNS0_13SynchWaitParamsEi", RESOURCE_MUTEX,
         true},
        {"_ZN4absl7CondVar10WaitCommonEPNS_5MutexENS_24synchronization_internal13KernelTimeoutE",
         RESOURCE_CONDITION, true},
        {"_ZN5folly15SharedMutexImplILb0EvSt6atomicE17lockExclusiveImplE", RESOURCE_RWLOCK, false},
        {"runtime.lock2", RESOURCE_MUTEX, false},
        {"runtime.notesleep", RESOURCE_PARKING, true},
        {"__cxa_guard_acquire", RESOURCE_ONCE, false},
        {"std::mutex::lock()", RESOURCE_FUTEX, false},
    };
    const struct made good = mutex(2, 1235, 1, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lock_site site = site_in("syscall", rows[i].name, "/opt/app");
        assert_int_equal(site.kind, rows[i].kind);
        assert_int_equal(site.is_threads_own, rows[i].is_threads_own);
        assert_int_equal(lock_of(&site, &good.target, &good.memory).owner, 0);
    }
}

/* A function with the same name in another library is not glibc's. */
static void test_files_of_glibc(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool is_glibc;
    } rows[] = {
        {GLIBC, true},
        {"/usr/lib64/libc-2.28.so", true},
        {"/lib/libpthread-2.28.so", true},
        {"/lib/libpthread.so.0", true},
        {"/lib/libc.so.6 (deleted)", true},
        {MUSL, false},
        {"/lib/libc.so.6/libc.so", false},
        {"/opt/mylibc.so.6", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct lock_frame frame = {"pthread_mutex_lock", rows[i].file};
        assert_int_equal(lock_site_of(&frame, 1).is_glibc, rows[i].is_glibc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_mutexes),
        cmocka_unit_test(test_other_functions_of_mutexes),
        cmocka_unit_test(test_a_robust_mutex_of_a_dead_thread),
        cmocka_unit_test(test_real_rwlocks),
        cmocka_unit_test(test_a_real_condition_variable),
        cmocka_unit_test(test_real_locks_without_an_owner),
        cmocka_unit_test(test_a_real_join),
        cmocka_unit_test(test_an_owner_takes_proof),
        cmocka_unit_test(test_owner_in_the_word),
        cmocka_unit_test(test_made_rwlocks),
        cmocka_unit_test(test_hostile_words),
        cmocka_unit_test(test_functions_of_glibc),
        cmocka_unit_test(test_functions_of_others),
        cmocka_unit_test(test_files_of_glibc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

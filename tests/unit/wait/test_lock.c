#include "unit.h"
#include "wait/lock.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define AT LOCK_WORDS_BEFORE

static struct lock lock_in(const struct lock_words *words, const char *leaf, const char *function,
                           bool is_glibc)
{
    const char *const functions[] = {leaf, function, "main"};
    const bool are_glibc[] = {is_glibc, is_glibc, false};
    return lock_of(words, functions, are_glibc, 3);
}

static struct lock_words mutex(uint32_t word, uint32_t owner, uint32_t users, uint32_t kind)
{
    return (struct lock_words){
        .words = {[AT] = word, [AT + 2] = owner, [AT + 3] = users, [AT + 4] = kind},
        .has_before = true,
        .has_rest = true,
    };
}

static void test_mutex(void **state)
{
    (void)state;
    struct lock_words words = mutex(2, 1235, 1, 0);
    struct lock lock = lock_in(&words, "futex_wait", "___pthread_mutex_lock@@GLIBC_2.2.5", true);
    assert_int_equal(lock.kind, LOCK_MUTEX);
    assert_int_equal(lock.owner, 1235);
    assert_false(lock.is_shared);
    words = mutex(2, 1235, 1, 0x80);
    assert_true(lock_in(&words, "", "pthread_mutex_lock", true).is_shared);
}

/* The struct of this machine's own glibc. */
static void test_a_real_mutex(void **state)
{
    (void)state;
    pthread_mutex_t real = PTHREAD_MUTEX_INITIALIZER;
    struct lock_words words = {.has_rest = true};
    pthread_mutex_lock(&real);
    memcpy(&words.words[AT], &real, sizeof real);
    words.words[AT] = 2;
    assert_int_equal(lock_in(&words, "", "pthread_mutex_lock", true).owner, gettid());
    pthread_mutex_unlock(&real);
}

static void test_an_owner_takes_proof(void **state)
{
    (void)state;
    const struct lock_words good = mutex(2, 1235, 1, 0), unlocked = mutex(0, 1235, 1, 0),
                            no_waiters = mutex(1, 1235, 1, 0), no_users = mutex(2, 1235, 0, 0),
                            odd_kind = mutex(2, 1235, 1, 0xdead0000),
                            protecting = mutex(2, 1235, 1, 0x40);
    struct lock_words unread = good;
    unread.has_rest = false;
    const struct lock_words *const wrong[] = {&unlocked, &no_waiters, &no_users,
                                              &odd_kind, &protecting, &unread};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lock_in(wrong[i], "", "pthread_mutex_lock", true).owner, 0);
    /* musl's function of that name, whose mutex is another struct. */
    struct lock of_musl = lock_in(&good, "__timedwait_cp", "pthread_mutex_lock", false);
    assert_int_equal(of_musl.kind, LOCK_MUTEX);
    assert_int_equal(of_musl.owner, 0);
    /* A static program with glibc's names. */
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "pthread_mutex_lock", false).owner, 1235);
    /* A lock of another kind, or of the program's own. */
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "fwrite", true).owner, 0);
    assert_int_equal(lock_in(&good, "__lll_lock_wait", "my_pthread_mutex_lock", true).kind, 0);
}

static void test_owner_in_the_word(void **state)
{
    (void)state;
    struct lock_words words = mutex(0x80000000 | 1235, 1, 1, 0x10);
    assert_int_equal(lock_in(&words, "", "__pthread_mutex_lock_full", true).owner, 1235);
    words = mutex(0xc0000000 | 1235, 1, 1, 0x10); /* which has died */
    assert_int_equal(lock_in(&words, "", "__pthread_mutex_lock_full", true).owner, 0);
    words = mutex(0x80000000 | 1236, 0, 0, 0);
    words.is_pi = true; /* whatever the functions are */
    struct lock lock = lock_in(&words, "", "f", false);
    assert_int_equal(lock.kind, LOCK_MUTEX);
    assert_int_equal(lock.owner, 1236);
}

static struct lock_words rwlock(unsigned place, uint32_t readers, uint32_t owner)
{
    struct lock_words words = {.has_before = true, .has_rest = true};
    uint32_t *at = &words.words[AT - place];
    at[0] = readers;
    at[2] = 3;
    at[6] = owner;
    return words;
}

static void test_rwlock(void **state)
{
    (void)state;
    /* Held by a writer, waited for by a reader; held by two readers, waited for by a writer. */
    struct lock_words words = rwlock(2, 1 | 2 | 1 << 3, 1235);
    struct lock lock = lock_in(&words, "", "__pthread_rwlock_rdlock_full64.constprop.0", true);
    assert_int_equal(lock.kind, LOCK_RWLOCK);
    assert_int_equal(lock.owner, 1235);
    words = rwlock(3, 2 << 3 | 2, 0);
    lock = lock_in(&words, "", "pthread_rwlock_wrlock", true);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.readers, 2);
    words.has_before = false;
    assert_int_equal(lock_in(&words, "", "pthread_rwlock_wrlock", true).readers, 0);
    memset(words.words, 0xff, sizeof words.words);
    words.has_before = true;
    lock = lock_in(&words, "", "pthread_rwlock_wrlock", true);
    assert_int_equal(lock.owner, 0);
    assert_int_equal(lock.readers, 0);
}

static void test_others(void **state)
{
    (void)state;
    struct lock_words words = mutex(1235, 0, 0, 0);
    assert_int_equal(lock_in(&words, "", "pthread_cond_wait", true).kind, LOCK_CONDITION);
    assert_int_equal(lock_in(&words, "", "pthread_cond_wait", true).owner, 0);
    assert_int_equal(lock_in(&words, "", "__new_sem_wait_slow64", true).kind, LOCK_SEMAPHORE);
    assert_int_equal(lock_in(&words, "", "__pthread_clockjoin_ex", true).owner, 1235);
    assert_int_equal(lock_in(&words, "", "__pthread_clockjoin_ex", false).owner, 0);
    assert_int_equal(lock_in(&words, "syscall", "f", true).kind, LOCK_NOT_KNOWN);
    /* Woken from a condition variable, it waits for the mutex. */
    assert_int_equal(lock_in(&words, "__pthread_mutex_cond_lock", "pthread_cond_wait", true).kind,
                     LOCK_MUTEX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutex),
        cmocka_unit_test(test_a_real_mutex),
        cmocka_unit_test(test_an_owner_takes_proof),
        cmocka_unit_test(test_owner_in_the_word),
        cmocka_unit_test(test_rwlock),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

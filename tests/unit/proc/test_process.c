/* Listing threads while some of them exit. */
#include "proc/process.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 300
#define OLDER 64
#define YOUNGER 8

static atomic_bool may_exit;
static pthread_barrier_t begun;

static void *exit_soon(void *tid)
{
    *(pid_t *)tid = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&begun);
    return NULL;
}

static void *stay(void *tid)
{
    *(pid_t *)tid = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&begun);
    while (!may_exit)
        usleep(100);
    return NULL;
}

static bool has(const struct thread_list *list, pid_t tid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->tids[i] == tid)
            return true;
    }
    return false;
}

/* The kernel ends a listing at a thread that exits during it, and omits the younger threads after
 * it. */
static void test_threads_that_stay_are_always_listed(void **state)
{
    int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct thread_list list = {0};
    size_t missing = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[OLDER + YOUNGER];
        pid_t tids[OLDER + YOUNGER];
        may_exit = false;
        pthread_barrier_init(&begun, NULL, OLDER + YOUNGER + 1);
        for (size_t i = 0; i < OLDER + YOUNGER; i++)
            assert_int_equal(
                pthread_create(&threads[i], NULL, i < OLDER ? exit_soon : stay, &tids[i]), 0);
        pthread_barrier_wait(&begun);
        do {
            assert_int_equal(process_list_threads_of(proc_fd, &list, SIZE_MAX), 0);
            for (size_t i = OLDER; i < OLDER + YOUNGER; i++)
                missing += !has(&list, tids[i]);
        } while (list.count > 1 + YOUNGER);
        may_exit = true;
        for (size_t i = 0; i < OLDER + YOUNGER; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&begun);
    }
    close(proc_fd);
    thread_list_free(&list);
    /* With so many exits at once, every list of an attempt may be cut short, but that is very rare.
     */
    assert_in_range(missing, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_that_stay_are_always_listed),
    };
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}

/* A round with several looks yields to threads that wait for the sampler's CPU. */
#include "unit.h"
#include "recorder/recorder.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define THREADS 8
#define LIMIT_NS UINT64_C(30000000000)

int __wrap_sched_yield(void);

static fgprof_recorder *recorder;
static unsigned times_given_way;

int __wrap_sched_yield(void)
{
    if (++times_given_way == 2)
        fgprof_recorder_stop(recorder);
    return 0;
}

static void *sleep_on(void *begun)
{
    atomic_fetch_add((atomic_uint *)begun, 1);
    for (;;)
        pause();
    return NULL;
}

static _Noreturn void be_child(atomic_uint *begun)
{
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, sleep_on, begun);
    sleep_on(begun);
    _exit(0);
}

static void test_a_round_gives_way(void **state)
{
    (void)state;
    atomic_uint *begun =
        mmap(NULL, sizeof *begun, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(begun != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        be_child(begun);
    while (*begun < THREADS + 1)
        usleep(1000);
    fgprof_options *options;
    fgprof_profile *profile;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_duration_ns(options, LIMIT_NS), 0);
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    assert_int_equal(fgprof_recorder_attach(recorder, pid), 0);
    assert_int_equal(fgprof_recorder_run(recorder, &profile), 0);
    assert_true(times_given_way >= 2);
    fgprof_profile_free(profile);
    fgprof_recorder_free(recorder);
    fgprof_options_free(options);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    munmap(begun, sizeof *begun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_round_gives_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A signal that arrives just as the session ends by itself. The test replaces the session. */
#include "unit.h"
#include "cli/serve/signals.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_in, may_go_on;
static unsigned stops;

/* Waits while it holds its lock, as the real function may. */
void session_stop(struct session *session)
{
    (void)session;
    pthread_mutex_lock(&lock);
    sem_post(&is_in);
    while (sem_wait(&may_go_on))
        ;
    stops++;
    pthread_mutex_unlock(&lock);
}

static void *end_signals(void *thread)
{
    signals_end(*(pthread_t *)thread);
    return NULL;
}

static void test_a_signal_at_the_end(void **state)
{
    pthread_t signals, ending;
    (void)state;
    sem_init(&is_in, 0, 0);
    sem_init(&may_go_on, 0, 0);
    signals_block();
    assert_int_equal(signals_begin(NULL, &signals), 0);
    kill(getpid(), SIGTERM);
    while (sem_wait(&is_in))
        ;
    /* The session has ended: its thread waits for the lock, and for the end of the signal thread.
     */
    assert_int_equal(pthread_create(&ending, NULL, end_signals, &signals), 0);
    usleep(100000); /* long enough to end the signal thread under its lock, if that is possible */
    sem_post(&may_go_on);
    pthread_join(ending, NULL);
    assert_int_equal(stops, 1);
    assert_int_equal(pthread_mutex_trylock(&lock), 0);
    pthread_mutex_unlock(&lock);
}

static void test_no_signal(void **state)
{
    pthread_t signals;
    (void)state;
    stops = 0;
    assert_int_equal(signals_begin(NULL, &signals), 0);
    signals_end(signals);
    assert_int_equal(stops, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_at_the_end),
        cmocka_unit_test(test_no_signal),
    };
    return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}

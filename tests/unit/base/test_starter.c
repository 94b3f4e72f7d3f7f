/* Helpers answer whatever else is signalled, and whatever was late before. */
#include "unit.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/packet.h"
#include "base/starter.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define LONG_NS 60000000000u

/* Sends each packet back. */
static void echo(int socket)
{
    struct packet packet = {0};
    while (packet_receive(socket, 0, &packet) == 0)
        packet_send(socket, packet.kind, &packet.body, -1);
    buffer_free(&packet.body);
}

static const struct helper_role role = {
    .name = READER_NAME, .serve = echo, .memory_bytes_max = 1u << 30, .use = SANDBOX_READS};

static void assert_answers(int socket, unsigned kind)
{
    const struct buffer nothing = {0};
    struct packet packet = {0};
    assert_true(socket >= 0);
    assert_int_equal(packet_send(socket, kind, &nothing, -1), 0);
    assert_int_equal(packet_receive(socket, monotonic_ns() + LONG_NS, &packet), 0);
    assert_int_equal(packet.kind, kind);
    buffer_free(&packet.body);
}

static void test_a_new_helper_takes_the_place_of_the_old_one(void **state)
{
    (void)state;
    struct starter starter;
    assert_int_equal(starter_fork(&starter, &role), 0);
    for (unsigned i = 0; i < 3; i++) {
        int socket = starter_start(&starter);
        assert_answers(socket, i);
        close(socket);
    }
    starter_end(&starter);
}

#ifndef __SANITIZE_ADDRESS__ /* under AddressSanitizer, helpers are threads */

/* systemctl(1) signals all processes of a service. */
static void test_signals_for_the_profiler_end_no_helper(void **state)
{
    (void)state;
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    struct starter starter;
    assert_int_equal(starter_fork(&starter, &role), 0);
    int socket = starter_start(&starter);
    assert_answers(socket, 0);
    for (unsigned i = 0; i < COUNT_OF(signals); i++) {
        assert_int_equal(kill(-starter.pid, signals[i]), 0); /* both processes */
        assert_answers(socket, 1 + i);
    }
    close(socket);
    socket = starter_start(&starter);
    assert_answers(socket, 0);
    close(socket);
    starter_end(&starter);
}

static void test_the_answer_to_a_start_that_was_given_up_is_not_taken_for_the_next(void **state)
{
    (void)state;
    struct starter starter;
    assert_int_equal(starter_fork(&starter, &role), 0);
    uint64_t usual_ns = starter.start_ns_max;
    for (unsigned i = 0; i < 3; i++) {
        starter.start_ns_max = 10000000;
        assert_int_equal(kill(starter.pid, SIGSTOP), 0);
        assert_int_equal(starter_start(&starter), -ETIMEDOUT);
        assert_int_equal(kill(starter.pid, SIGCONT), 0);
        starter.start_ns_max = usual_ns;
        int socket = starter_start(&starter);
        /* Nothing more may come, which would end this helper. */
        usleep(20000);
        assert_answers(socket, i);
        close(socket);
    }
    starter_end(&starter);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_helper_takes_the_place_of_the_old_one),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(test_signals_for_the_profiler_end_no_helper),
        cmocka_unit_test(test_the_answer_to_a_start_that_was_given_up_is_not_taken_for_the_next),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

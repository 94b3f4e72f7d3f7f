/* Messages between the sampling thread and the worker arrive, and wake the receiver. */
#include "unit.h"
#include "base/clock.h"
#include "sampler/channel.h"

#include <pthread.h>
#include <sched.h>

static struct channel *channel;

static int set_up(void **state)
{
    (void)state;
    return channel_new(&channel);
}

static int tear_down(void **state)
{
    (void)state;
    channel_free(channel);
    return 0;
}

static void send_observation(uint32_t thread)
{
    struct message message = {.kind = MESSAGE_OBSERVATION};
    message.observation.thread = thread;
    assert_int_equal(channel_send(channel, &message), 0);
}

static void test_messages_come_in_order(void **state)
{
    (void)state;
    struct message message;
    assert_false(channel_receive(channel, false, &message));
    for (uint32_t i = 0; i < 1000; i++)
        send_observation(i);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(channel_receive(channel, false, &message));
        assert_int_equal(message.kind, MESSAGE_OBSERVATION);
        assert_int_equal(message.observation.thread, i);
        channel_done(channel);
    }
    assert_false(channel_receive(channel, false, &message));
}

static void put_news(uint64_t key, uint64_t after)
{
    const struct news_message message = {
        .kind = NEWS_OBJECT, .after = after, .object = {.key = key}};
    assert_int_equal(news_queue_put(channel_news(channel), &message), 0);
}

static void expect(enum message_kind kind, uint64_t number)
{
    struct message message;
    assert_true(channel_receive(channel, false, &message));
    assert_int_equal(message.kind, kind);
    if (kind == MESSAGE_OBSERVATION)
        assert_int_equal(message.observation.thread, number);
    if (kind == MESSAGE_OBJECT)
        assert_int_equal(message.object.key, number);
    channel_release(channel, &message);
    channel_done(channel);
}

/* Neither of the two senders to the worker delays the other. */
static void test_both_queues_are_taken_from_by_turns(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        send_observation(i);
        put_news(i, 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        expect(MESSAGE_OBJECT, i);
        expect(MESSAGE_OBSERVATION, i);
    }
    assert_true(channel_is_settled(channel));
}

static void test_news_come_after_what_they_say(void **state)
{
    (void)state;
    struct message message;
    put_news(1, 2);
    assert_false(channel_receive(channel, false, &message));
    send_observation(1);
    send_observation(2);
    send_observation(3);
    expect(MESSAGE_OBSERVATION, 1);
    expect(MESSAGE_OBSERVATION, 2);
    expect(MESSAGE_OBJECT, 1);
    expect(MESSAGE_OBSERVATION, 3);
}

static void test_a_copy_comes_after_the_news_that_it_is_to_have(void **state)
{
    (void)state;
    struct message message = {.kind = MESSAGE_COPY, .after = 2, .state = calloc(1, 1)};
    assert_int_equal(channel_send(channel, &message), 0);
    send_observation(1);
    put_news(1, 0);
    expect(MESSAGE_OBJECT, 1);
    assert_false(channel_receive(channel, false, &message));
    put_news(2, 0);
    expect(MESSAGE_OBJECT, 2);
    expect(MESSAGE_COPY, 0);
    expect(MESSAGE_OBSERVATION, 1);
}

/* A process without messages in the queue finds room, however many processes there are. */
static void test_the_share_of_a_process(void **state)
{
    (void)state;
    atomic_size_t queued = 0;
    struct message message;
    const struct news_message news = {.kind = NEWS_OBJECT, .queued = &queued};
    assert_true(news_queue_has_room(&queued, NEWS_BYTES_MAX, 1000000));
    size_t put = 0;
    for (; news_queue_has_room(&queued, 0, 4); put++)
        assert_int_equal(news_queue_put(channel_news(channel), &news), 0);
    assert_in_range(put * sizeof news, NEWS_BYTES_MAX / 4 - 2 * sizeof news, NEWS_BYTES_MAX / 4);
    assert_true(news_queue_has_room(&queued, 0, 3));
    assert_true(channel_receive(channel, false, &message));
    assert_false(news_queue_has_room(&queued, 0, 4));
    channel_done(channel); /* only now is it taken */
    assert_true(news_queue_has_room(&queued, 0, 4));
}

static void test_requests_come_back_and_can_be_waited_for(void **state)
{
    (void)state;
    struct request request = {.kind = REQUEST_STACK, .thread = 3, .tid = 33, .stack_limit = 4096};
    assert_false(channel_next_request(channel, &request));
    uint32_t heard = channel_heard(channel);
    channel_await(channel, heard, monotonic_ns() + 1000000);
    assert_int_equal(channel_request(channel, &request), 0);
    channel_await(channel, heard, UINT64_MAX);
    request.thread = 4;
    heard = channel_heard(channel);
    assert_int_equal(channel_request(channel, &request), 0);
    channel_await(channel, heard, UINT64_MAX);
    heard = channel_heard(channel);
    channel_end_wait(channel);
    channel_await(channel, heard, UINT64_MAX);
    for (uint32_t i = 3; i < 5; i++) {
        assert_true(channel_next_request(channel, &request));
        assert_int_equal(request.thread, i);
        assert_int_equal(request.stack_limit, 4096);
    }
    assert_false(channel_next_request(channel, &request));
}

static void test_it_is_settled_when_all_is_dealt_with(void **state)
{
    (void)state;
    struct message message;
    struct request request = {.kind = REQUEST_ANEW};
    assert_true(channel_is_settled(channel));
    send_observation(1);
    assert_false(channel_is_settled(channel));
    assert_true(channel_receive(channel, false, &message));
    assert_false(channel_is_settled(channel));
    assert_int_equal(channel_request(channel, &request), 0);
    channel_done(channel);
    assert_false(channel_is_settled(channel));
    assert_true(channel_next_request(channel, &request));
    assert_true(channel_is_settled(channel));
}

/* Messages that were not taken are released with the channel. */
static void test_what_is_under_way_is_freed(void **state)
{
    (void)state;
    const struct stack_place none = {0};
    struct program *program = calloc(1, sizeof *program);
    struct message message = {.kind = MESSAGE_OBSERVATION};
    struct request request = {.kind = REQUEST_AREAS};
    assert_non_null(program);
    atomic_init(&program->references, 3);
    program->proc_fd = program->mem_fd = program->maps_fd = -1;
    message.observation.program = program;
    message.observation.snapshot = snapshot_pool_take(channel_snapshots(channel), 4096, &none);
    assert_non_null(message.observation.snapshot);
    assert_int_equal(channel_send(channel, &message), 0);
    message = (struct message){.kind = MESSAGE_PROGRAM_ENDED, .program = program};
    assert_int_equal(channel_send(channel, &message), 0);
    request.areas.items = calloc(4, sizeof *request.areas.items);
    request.areas.count = request.areas.capacity = 4;
    assert_int_equal(channel_request(channel, &request), 0);
    channel_free(channel);
    assert_int_equal(atomic_load(&program->references), 1);
    program_release(program);
    assert_int_equal(channel_new(&channel), 0);
    channel_free(NULL);
}

/* Answers each observation with a request, until the end. */
static void *answer(void *context)
{
    struct message message;
    (void)context;
    for (;;) {
        channel_receive(channel, true, &message);
        struct request request = {.kind = REQUEST_ANEW, .thread = message.observation.thread};
        if (message.kind == MESSAGE_OBSERVATION && channel_request(channel, &request))
            return channel;
        channel_done(channel);
        if (message.kind == MESSAGE_END)
            return NULL;
    }
}

static void test_two_threads_wake_each_other(void **state)
{
    (void)state;
    const struct message end = {.kind = MESSAGE_END};
    pthread_t thread;
    void *result;
    uint32_t answered = 0, heard = channel_heard(channel);
    assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
    for (uint32_t sent = 0; sent < 20000;) {
        for (uint32_t burst = sent % 7 + 1; burst; burst--)
            send_observation(sent++);
        channel_ring(channel);
        struct request request;
        channel_await(channel, heard, sent % 50 ? 0 : UINT64_MAX);
        heard = channel_heard(channel);
        while (channel_next_request(channel, &request))
            assert_int_equal(request.thread, answered++);
    }
    assert_int_equal(channel_send(channel, &end), 0);
    channel_ring(channel);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    struct request request;
    while (channel_next_request(channel, &request))
        assert_int_equal(request.thread, answered++);
    assert_true(answered >= 20000);
    assert_true(channel_is_settled(channel));
}

static void *receive_one(void *context)
{
    (void)context;
    struct message message = {.kind = MESSAGE_COPY};
    channel_receive(channel, true, &message);
    channel_done(channel);
    return message.kind == MESSAGE_OBSERVATION ? NULL : channel;
}

/* A waiting worker is not woken by messages, but by the bell; then it gets all of them. */
static void test_a_bell_wakes(void **state)
{
    (void)state;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, receive_one, NULL), 0);
    send_observation(1);
    channel_ring(channel);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_true(channel_is_settled(channel));
    channel_ring(channel); /* without a message */
}

/* A few messages wait for more, unless one is urgent. */
static void test_few_messages_wait_for_more(void **state)
{
    (void)state;
    uint64_t before_ns = monotonic_ns();
    assert_false(channel_ring_if_due(channel, UINT64_MAX)); /* there is no message */
    send_observation(1);
    assert_true(channel_ring_if_due(channel, monotonic_ns())); /* the first one */
    send_observation(2);
    assert_false(channel_ring_if_due(channel, before_ns));
    assert_true(channel_ring_if_due(channel, UINT64_MAX)); /* it is old */
    send_observation(3);
    channel_hurry(channel);
    assert_true(channel_ring_if_due(channel, before_ns));
    uint32_t count = 0;
    do
        send_observation(4);
    while (!channel_ring_if_due(channel, before_ns) && ++count < 10000);
    assert_true(count > 10 && count < 10000);
    send_observation(5);
    channel_ring(channel);
    assert_false(channel_ring_if_due(channel, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_come_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_both_queues_are_taken_from_by_turns, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_news_come_after_what_they_say, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_copy_comes_after_the_news_that_it_is_to_have, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_the_share_of_a_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests_come_back_and_can_be_waited_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_it_is_settled_when_all_is_dealt_with, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_under_way_is_freed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_threads_wake_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_bell_wakes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_few_messages_wait_for_more, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}

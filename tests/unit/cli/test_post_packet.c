/* Answers from the process that sends requests may come from the server, and are not trusted. */
#include "packets.h"
#include "cli/push/post_packet.h"

#include <errno.h>

static struct post found;

static void send_request(void)
{
    static const struct credentials credentials = {
        .header = "Authorization: Bearer secret",
        .others = "X-Scope-OrgID: one\0X-Key: two\0",
    };
    const struct post post = {
        .url = "https://localhost:4040/push",
        .type = "application/json",
        .is_gzip = true,
        .body = "body",
        .body_bytes = 4,
        .credentials = &credentials,
    };
    assert_int_equal(post_send(ends[0], &post), 0);
    receive();
}

static void test_a_request_arrives(void **state)
{
    (void)state;
    send_request();
    assert_int_equal(post_read(&packet, &found), 0);
    assert_string_equal(found.url, "https://localhost:4040/push");
    assert_string_equal(found.type, "application/json");
    assert_true(found.is_gzip);
    assert_false(found.is_connect);
    assert_null(found.ca_file);
    assert_string_equal(found.credentials->header, "Authorization: Bearer secret");
    assert_string_equal(found.credentials->password, "");
    assert_memory_equal(found.credentials->others, "X-Scope-OrgID: one\0X-Key: two\0", 31);
    char *body = contents_of(packet.fd, NULL);
    assert_string_equal(body, "body");
    free(body);
}

static void test_a_request_that_is_cut(void **state)
{
    (void)state;
    send_request();
    while (packet.body.length--)
        assert_int_equal(post_read(&packet, &found), -EPROTO);
    packet.body.length = 0;
}

static void test_a_request_without_a_body(void **state)
{
    (void)state;
    send_request();
    close(packet.fd);
    packet.fd = -1;
    assert_int_equal(post_read(&packet, &found), -EPROTO);
}

static int read_answer(const struct post_answer *sent, struct post_answer *ret_answer)
{
    assert_int_equal(post_answer_send(ends[0], sent), 0);
    receive();
    return post_answer_read(&packet, ret_answer);
}

static void test_an_answer_arrives(void **state)
{
    (void)state;
    const struct post_answer sent = {.status = 503,
                                     .retry_after_ns = 7000000000u,
                                     .why = "busy",
                                     .body = "text",
                                     .body_bytes = 4};
    struct post_answer answer;
    assert_int_equal(read_answer(&sent, &answer), 0);
    assert_int_equal(answer.status, 503);
    assert_true(answer.retry_after_ns == 7000000000u);
    assert_string_equal(answer.why, "busy");
    assert_int_equal(answer.body_bytes, 4);
    assert_memory_equal(answer.body, "text", 4);
}

static void test_answers_that_lie(void **state)
{
    (void)state;
    struct post_answer sent = {.body_bytes = sizeof sent.body + 1}, answer;
    assert_int_equal(read_answer(&sent, &answer), -EPROTO);
    sent = (struct post_answer){.retry_after_ns = UINT64_MAX};
    assert_int_equal(read_answer(&sent, &answer), -EPROTO);
    sent = (struct post_answer){.body_bytes = sizeof sent.body};
    memset(sent.why, 'x', sizeof sent.why); /* without a NUL */
    assert_int_equal(read_answer(&sent, &answer), 0);
    assert_int_equal(strlen(answer.why), sizeof answer.why - 1);
    packet.body.length--;
    assert_int_equal(post_answer_read(&packet, &answer), -EPROTO);
    packet.body.length += 1;
    packet.kind++;
    assert_int_equal(post_answer_read(&packet, &answer), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_request_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_request_that_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_request_without_a_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_answer_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_that_lie, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

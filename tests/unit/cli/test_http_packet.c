/* Nothing from the process that speaks HTTP is trusted. */
#include "packets.h"
#include "cli/serve/http_packet.h"

#include <errno.h>

static void test_a_question_arrives(void **state)
{
    (void)state;
    const struct question sent = {
        .method = METHOD_HEAD,
        .path = "/debug/fgprof",
        .host = "localhost:6060",
        .site = "cross-site",
        .destination = "iframe",
        .parameters = {.items = {{"seconds", "10"}, {"debug", NULL}, {"", ""}}, .count = 3},
    };
    struct question found;
    assert_int_equal(question_send(ends[0], &sent, ends[1]), 0);
    receive();
    assert_int_equal(question_read(&packet, &found), 0);
    assert_true(packet.fd >= 0);
    assert_int_equal(found.method, METHOD_HEAD);
    assert_string_equal(found.path, "/debug/fgprof");
    assert_string_equal(found.host, "localhost:6060");
    assert_string_equal(found.site, "cross-site");
    assert_string_equal(found.destination, "iframe");
    assert_null(found.authorization);
    assert_null(found.mode);
    assert_int_equal(found.parameters.count, 3);
    assert_string_equal(found.parameters.items[0].name, "seconds");
    assert_string_equal(found.parameters.items[0].value, "10");
    assert_string_equal(found.parameters.items[1].name, "debug");
    assert_null(found.parameters.items[1].value);
    assert_string_equal(found.parameters.items[2].name, "");
}

/* `method`, the path, five headers, then the count of parameters, of which only one follows. */
static void send_question(uint64_t method, const char *path, uint64_t count, const char *name)
{
    struct buffer body = {0};
    packet_put_number(&body, method);
    packet_put_text(&body, path);
    for (int i = 0; i < 5; i++)
        packet_put_text(&body, NULL);
    packet_put_number(&body, count);
    packet_put_text(&body, name);
    packet_put_text(&body, "value");
    assert_int_equal(packet_send(ends[0], HTTP_QUESTION, &body, -1), 0);
    buffer_free(&body);
    receive();
}

static void test_questions_without_sense(void **state)
{
    (void)state;
    struct question found;
    send_question(METHOD_GET, "/", 1, "name");
    assert_int_equal(question_read(&packet, &found), 0);
    send_question(1000, "/", 1, "name");
    assert_int_equal(question_read(&packet, &found), 0);
    assert_int_equal(found.method, METHOD_OTHER);
    send_question(METHOD_GET, NULL, 1, "name");
    assert_int_equal(question_read(&packet, &found), -EPROTO);
    send_question(METHOD_GET, "/", 1, NULL);
    assert_int_equal(question_read(&packet, &found), -EPROTO);
    send_question(METHOD_GET, "/", 2, "name"); /* more than follow */
    assert_int_equal(question_read(&packet, &found), -EPROTO);
    send_question(METHOD_GET, "/", PARAMETERS_MAX + 1, "name");
    assert_int_equal(question_read(&packet, &found), -EPROTO);
    send_question(METHOD_GET, "/", UINT64_MAX, "name");
    assert_int_equal(question_read(&packet, &found), -EPROTO);
    send_question(METHOD_GET, "/", 1, "name");
    packet.kind = HTTP_ANSWER;
    assert_int_equal(question_read(&packet, &found), -EPROTO);
}

static void test_a_question_that_is_cut(void **state)
{
    (void)state;
    struct question found;
    send_question(METHOD_GET, "/debug/pprof/", 1, "name");
    while (packet.body.length--)
        assert_int_equal(question_read(&packet, &found), -EPROTO);
    packet.body.length = 0;
}

static void test_an_answer_arrives_with_its_body(void **state)
{
    (void)state;
    const struct answer sent = {
        .status = 403,
        .type = "text/plain",
        .disposition = "attachment; filename=a.pb.gz",
        .is_failure = true,
        .body_fd = file_of_text("body"),
    };
    struct answer found;
    assert_int_equal(answer_send(ends[0], &sent), 0);
    close(sent.body_fd);
    receive();
    assert_int_equal(answer_read(&packet, &found), 0);
    assert_int_equal(found.status, 403);
    assert_string_equal(found.type, "text/plain");
    assert_string_equal(found.disposition, sent.disposition);
    assert_true(found.is_failure);
    char *body = contents_of(found.body_fd, NULL);
    assert_string_equal(body, "body");
    free(body);
}

static void test_answers_that_lack_something(void **state)
{
    (void)state;
    struct answer found;
    assert_int_equal(answer_send(ends[0], &(struct answer){.type = "text", .body_fd = -1}), 0);
    receive();
    assert_int_equal(answer_read(&packet, &found), -EPROTO);
    assert_int_equal(answer_send(ends[0], &(struct answer){.body_fd = ends[1]}), 0);
    receive();
    assert_int_equal(answer_read(&packet, &found), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_question_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_questions_without_sense, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_question_that_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_answer_arrives_with_its_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_that_lack_something, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

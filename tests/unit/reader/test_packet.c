/* What the other end of a socket says is not to be believed. */
#include "unit.h"
#include "reader/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENCE_MS 50

static int ends[2];

static int set_up(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void send_numbers(uint32_t kind, uint32_t bytes)
{
    const uint32_t head[] = {kind, bytes};
    assert_int_equal(write(ends[0], head, sizeof head), sizeof head);
}

static void test_numbers_texts_and_a_file_arrive(void **state)
{
    (void)state;
    struct buffer body = {0};
    struct packet packet = {0};
    char found[8];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    packet_put_number(&body, UINT64_MAX);
    packet_put_text(&body, "text");
    packet_put_text(&body, "");
    packet_put_text(&body, NULL);
    assert_int_equal(packet_send(ends[0], PACKET_WANTED, &body, fd), 0);
    close(fd);
    assert_int_equal(packet_receive(ends[1], SILENCE_MS, &packet), 0);
    struct bytes bytes = packet_bytes(&packet);
    assert_int_equal(packet.kind, PACKET_WANTED);
    assert_true(packet_number(&bytes) == UINT64_MAX);
    assert_string_equal(packet_text(&bytes), "text");
    assert_string_equal(packet_text(&bytes), "");
    assert_null(packet_text(&bytes));
    assert_false(bytes.failed);
    assert_int_equal(bytes_left(&bytes), 0);
    assert_int_equal(pread(packet.fd, found, 4, 0), 4);
    assert_memory_equal(found, "\177ELF", 4);
    close(packet.fd);
    buffer_free(&packet.body);
    buffer_free(&body);
}

static void test_a_packet_of_many_parts_arrives_whole(void **state)
{
    (void)state;
    struct buffer body = {0};
    struct packet packet = {0};
    size_t count = 1 << 20;
    for (size_t i = 0; i < count / 8; i++)
        packet_put_number(&body, i);
    pid_t pid = fork();
    if (!pid)
        _exit(packet_send(ends[0], PACKET_SYMBOLS, &body, -1) != 0);
    assert_int_equal(packet_receive(ends[1], -1, &packet), 0);
    assert_int_equal(packet.body.length, count);
    assert_memory_equal(packet.body.bytes, body.bytes, count);
    assert_int_equal(packet.fd, -1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    buffer_free(&packet.body);
    buffer_free(&body);
}

static void test_an_end_and_silence_are_told_apart(void **state)
{
    (void)state;
    struct packet packet = {0};
    assert_int_equal(packet_receive(ends[1], SILENCE_MS, &packet), -ETIMEDOUT);
    send_numbers(PACKET_SYMBOLS, 100);
    assert_int_equal(packet_receive(ends[1], SILENCE_MS, &packet), -ETIMEDOUT);
    shutdown(ends[0], SHUT_WR);
    assert_int_equal(packet_receive(ends[1], SILENCE_MS, &packet), -EPIPE);
    buffer_free(&packet.body);
}

static void test_a_length_beyond_the_most_takes_no_memory(void **state)
{
    (void)state;
    struct packet packet = {0};
    send_numbers(PACKET_SYMBOLS, UINT32_MAX);
    assert_int_equal(packet_receive(ends[1], SILENCE_MS, &packet), -EPROTO);
    assert_int_equal(packet.body.capacity, 0);
}

static void check_no_text(uint64_t length, const char *text, size_t bytes)
{
    struct packet packet = {0};
    packet_put_number(&packet.body, length);
    buffer_write(&packet.body, text, bytes);
    struct bytes body = packet_bytes(&packet);
    assert_null(packet_text(&body));
    assert_true(body.failed);
    buffer_free(&packet.body);
}

static void test_text_that_is_none(void **state)
{
    (void)state;
    check_no_text(5, "text!", 5);  /* no end */
    check_no_text(6, "te\0xt", 6); /* two ends */
    check_no_text(100, "text", 5); /* longer than the packet */
    check_no_text(UINT64_MAX, "text", 5);
}

#define WITH_SOCKETS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SOCKETS(test_numbers_texts_and_a_file_arrive),
        WITH_SOCKETS(test_a_packet_of_many_parts_arrives_whole),
        WITH_SOCKETS(test_an_end_and_silence_are_told_apart),
        WITH_SOCKETS(test_a_length_beyond_the_most_takes_no_memory),
        cmocka_unit_test(test_text_that_is_none),
    };
    return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}

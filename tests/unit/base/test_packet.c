/* Nothing from the other end of a socket is trusted. */
#include "unit.h"
#include "base/clock.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIND = 7, OTHER_KIND };

static uint64_t soon_ns(void)
{
    return monotonic_ns() + 50000000;
}

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
    assert_int_equal(packet_send(ends[0], KIND, &body, fd), 0);
    close(fd);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), 0);
    struct bytes bytes = packet_bytes(&packet);
    assert_int_equal(packet.kind, KIND);
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
        _exit(packet_send(ends[0], OTHER_KIND, &body, -1) != 0);
    assert_int_equal(packet_receive(ends[1], 0, &packet), 0);
    assert_int_equal(packet.body.length, count);
    assert_memory_equal(packet.body.bytes, body.bytes, count);
    assert_int_equal(packet.fd, -1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    buffer_free(&packet.body);
    buffer_free(&body);
}

static void test_an_end_and_a_late_packet_are_told_apart(void **state)
{
    (void)state;
    struct packet packet = {0};
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), -ETIMEDOUT);
    send_numbers(OTHER_KIND, 100);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), -ETIMEDOUT);
    shutdown(ends[0], SHUT_WR);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), -EPIPE);
    buffer_free(&packet.body);
}

/* Otherwise an end that never stops sending would be read for ever. */
static void test_what_is_there_too_late_is_not_taken(void **state)
{
    (void)state;
    struct buffer body = {0};
    struct packet packet = {0};
    packet_put_number(&body, 7);
    assert_int_equal(packet_send(ends[0], KIND, &body, -1), 0);
    assert_int_equal(packet_receive(ends[1], 1, &packet), -ETIMEDOUT);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), 0);
    buffer_free(&packet.body);
    buffer_free(&body);
}

static void test_a_length_beyond_the_most_takes_no_memory(void **state)
{
    (void)state;
    struct packet packet = {0};
    send_numbers(OTHER_KIND, UINT32_MAX);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), -EPROTO);
    assert_int_equal(packet.body.capacity, 0);
}

static bool lacks_memory;

int __real_buffer_reserve(struct buffer *buffer, size_t length);
int __wrap_buffer_reserve(struct buffer *buffer, size_t length);

int __wrap_buffer_reserve(struct buffer *buffer, size_t length)
{
    if (!lacks_memory)
        return __real_buffer_reserve(buffer, length);
    return buffer->error = -ENOMEM;
}

static void test_a_packet_without_memory_is_lost_and_no_other(void **state)
{
    (void)state;
    struct buffer long_body = {0}, body = {0};
    struct packet packet = {0};
    for (uint64_t number = 0; number < 200; number++)
        packet_put_number(&long_body, number);
    packet_put_text(&body, "text");
    int next = dup(ends[0]);
    close(next);
    assert_int_equal(packet_send(ends[0], KIND, &long_body, ends[0]), 0);
    assert_int_equal(packet_send(ends[0], OTHER_KIND, &body, -1), 0);
    lacks_memory = true;
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), -ENOMEM);
    lacks_memory = false;
    assert_int_equal(packet.fd, -1);
    assert_int_equal(dup(ends[0]), next); /* the packet's file is closed */
    close(next);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), 0);
    struct bytes bytes = packet_bytes(&packet);
    assert_int_equal(packet.kind, OTHER_KIND);
    assert_string_equal(packet_text(&bytes), "text");
    buffer_free(&long_body);
    buffer_free(&body);
    buffer_free(&packet.body);
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

/* Only one file is accepted: any other is closed. */
static void test_more_files_than_one(void **state)
{
    (void)state;
    const uint32_t head[] = {KIND, 0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
    struct iovec part = {(void *)head, sizeof head};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct packet packet = {0};
    int next = dup(ends[0]);
    close(next);
    memcpy(CMSG_DATA(&control.header), ends, 2 * sizeof(int));
    assert_int_equal(sendmsg(ends[0], &message, 0), sizeof head);
    assert_int_equal(packet_receive(ends[1], soon_ns(), &packet), 0);
    assert_int_equal(packet.fd, next);
    close(packet.fd);
    assert_int_equal(dup(ends[0]), next);
    close(next);
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
        WITH_SOCKETS(test_an_end_and_a_late_packet_are_told_apart),
        WITH_SOCKETS(test_what_is_there_too_late_is_not_taken),
        WITH_SOCKETS(test_a_length_beyond_the_most_takes_no_memory),
        WITH_SOCKETS(test_more_files_than_one),
        WITH_SOCKETS(test_a_packet_without_memory_is_lost_and_no_other),
        cmocka_unit_test(test_text_that_is_none),
    };
    return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}

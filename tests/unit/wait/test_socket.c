#include "unit.h"
#include "wait/socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void assert_inet(enum socket_protocol protocol, const char *line, uint64_t inode,
                        const char *expected)
{
    struct socket found;
    char text[SOCKET_TEXT_BYTES];
    assert_true(socket_parse_inet(protocol, line, &found));
    assert_int_equal(found.inode, inode);
    socket_text(&found, text);
    assert_string_equal(text, expected);
}

static void test_inet(void **state)
{
    (void)state;
    assert_inet(SOCKET_TCP,
                "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 "
                "       0 27423 1 0000000000000000 100 0 0 10 0",
                27423, "tcp 127.0.0.1:8080 listening");
    assert_inet(SOCKET_TCP,
                "  11: 0100007F:9D7E 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0 "
                "       0 99 1 0000000000000000 20 4 30 10 -1",
                99, "tcp 127.0.0.1:40318 -> 10.0.0.2:443");
    assert_inet(SOCKET_UDP,
                " 9123: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     "
                "0        0 1 2 0000000000000000 0",
                1, "udp 0.0.0.0:68");
    assert_inet(SOCKET_TCP6,
                "   1: 00000000000000000000000001000000:0050 B80D0120000000000000000002000000:C350 "
                "01 00000000:00000000 00:00000000 00000000     0        0 7 1 0",
                7, "tcp6 [::1]:80 -> [2001:db8::2]:50000");
}

static void test_no_inet(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
        "",
        "   0: 0100007F:1F90",
        "   0: 0100:1F90 0000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 27423 1",
        "   0: xyz:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 27423 1",
    };
    struct socket found;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(socket_parse_inet(SOCKET_TCP, lines[i], &found));
}

static void assert_unix(const char *line, const char *expected)
{
    struct sockets sockets = {0};
    struct socket found;
    char text[SOCKET_TEXT_BYTES];
    const char *path;
    assert_true(socket_parse_unix(line, &found, &path));
    assert_int_equal(found.inode, 27423);
    assert_int_equal(sockets_add(&sockets, &found, path), 0);
    socket_text(&sockets.items[0], text);
    assert_string_equal(text, expected);
    sockets_free(&sockets);
}

static void test_unix(void **state)
{
    (void)state;
    struct socket found;
    const char *path;
    assert_unix("0000000000000000: 00000002 00000000 00010000 0001 01 27423 /run/a b",
                "unix stream /run/a b");
    assert_unix("ffff888100000000: 00000003 00000000 00000000 0002 03 27423", "unix datagram");
    assert_false(socket_parse_unix("Num       RefCount Protocol Flags    Type St Inode Path",
                                   &found, &path));
    char line[1024] = "0: 2 0 0 0001 01 27423 /", expected[SOCKET_TEXT_BYTES] = "unix stream /";
    memset(line + strlen(line), 'x', 900);
    memset(expected + strlen(expected), 'x', sizeof expected - 1 - strlen(expected));
    expected[sizeof expected - 1] = '\0';
    assert_unix(line, expected);
}

static struct sockets tcp_sockets(void)
{
    static const char *const lines[] = {
        "0: 0100007F:1F90 0100007F:9D7E 01 0:0 00:0 0 0 0 27 1",
        "1: 0100007F:9D7E 0100007F:1F90 01 0:0 00:0 0 0 0 11 1",
        "2: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 12 1",
        "3: 0100007F:1F90 0100007F:9D7F 01 0:0 00:0 0 0 0 13 1", /* the other end is elsewhere */
        "4: 0100007F:9D80 0100007F:1F90 06 0:0 00:0 0 0 0 0 1",  /* a socket without an inode */
        "5: 0100007F:1F90 0100007F:9D80 01 0:0 00:0 0 0 0 14 1",
    };
    struct sockets sockets = {0};
    struct socket found;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_true(socket_parse_inet(SOCKET_TCP, lines[i], &found));
        assert_int_equal(sockets_add(&sockets, &found, NULL), 0);
    }
    /* An IPv4 connection with one end in the IPv6 table. */
    assert_true(socket_parse_inet(SOCKET_TCP6,
                                  "0: 0000000000000000FFFF00000100007F:0050 "
                                  "0000000000000000FFFF00000100007F:C350 01 0:0 00:0 0 "
                                  "0 0 31 1",
                                  &found));
    assert_int_equal(sockets_add(&sockets, &found, NULL), 0);
    assert_true(socket_parse_inet(SOCKET_TCP,
                                  "9: 0100007F:C350 0100007F:0050 01 0:0 00:0 0 0 0 32 1", &found));
    assert_int_equal(sockets_add(&sockets, &found, NULL), 0);
    assert_int_equal(sockets_finish(&sockets), 0);
    return sockets;
}

static uint64_t peer_of(const struct sockets *sockets, uint64_t inode)
{
    const struct socket *socket = sockets_find(sockets, inode);
    assert_non_null(socket);
    const struct socket *peer = sockets_peer(sockets, socket);
    return peer ? peer->inode : 0;
}

static void test_peers_of_tcp_sockets(void **state)
{
    (void)state;
    struct sockets sockets = tcp_sockets();
    assert_int_equal(peer_of(&sockets, 27), 11);
    assert_int_equal(peer_of(&sockets, 11), 27);
    assert_int_equal(peer_of(&sockets, 12), 0);
    assert_int_equal(peer_of(&sockets, 13), 0);
    assert_int_equal(peer_of(&sockets, 14), 0);
    assert_int_equal(peer_of(&sockets, 31), 32);
    assert_int_equal(peer_of(&sockets, 32), 31);
    assert_null(sockets_find(&sockets, 0));
    assert_null(sockets_find(&sockets, 15));
    sockets_free(&sockets);
}

static void assert_service(const struct sockets *sockets, uint64_t inode, const char *expected)
{
    char text[SOCKET_TEXT_BYTES];
    sockets_service(sockets, sockets_find(sockets, inode), text);
    assert_string_equal(text, expected);
}

/* Both ends are named by the listening port if it is known, otherwise by the other end. */
static void test_services(void **state)
{
    (void)state;
    struct sockets sockets = {0};
    struct socket found;
    static const struct {
        enum socket_protocol protocol;
        const char *line;
    } lines[] = {
        {SOCKET_TCP, "0: 00000000:1F90 00000000:0000 0A 0:0 00:0 0 0 0 1 1"},
        {SOCKET_TCP, "1: 0100007F:1F90 0100007F:9D7E 01 0:0 00:0 0 0 0 2 1"},
        {SOCKET_TCP, "2: 0100007F:9D7E 0100007F:1F90 01 0:0 00:0 0 0 0 3 1"},
        {SOCKET_TCP, "3: 0100007F:9D80 0200000A:01BB 01 0:0 00:0 0 0 0 4 1"},
        {SOCKET_TCP6, "4: 0000000000000000FFFF00000100007F:1F90 "
                      "0000000000000000FFFF00000100007F:C350 01 0:0 00:0 0 0 0 5 1"},
        {SOCKET_UDP, "5: 0100007F:0044 00000000:0000 07 0:0 00:0 0 0 0 6 1"},
        {SOCKET_UDP, "6: 0100007F:9D80 0200000A:0035 01 0:0 00:0 0 0 0 7 1"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_true(socket_parse_inet(lines[i].protocol, lines[i].line, &found));
        assert_int_equal(sockets_add(&sockets, &found, NULL), 0);
    }
    struct socket client = {.inode = 8, .protocol = SOCKET_UNIX, .type = SOCK_STREAM, .peer = 9};
    struct socket server = {.inode = 9, .protocol = SOCKET_UNIX, .type = SOCK_STREAM, .peer = 8};
    assert_int_equal(sockets_add(&sockets, &client, NULL), 0);
    assert_int_equal(sockets_add(&sockets, &server, "/run/name"), 0);
    assert_int_equal(sockets_finish(&sockets), 0);
    assert_service(&sockets, 1, "tcp 0.0.0.0:8080 listening");
    assert_service(&sockets, 2, "tcp 127.0.0.1:8080");
    assert_service(&sockets, 3, "tcp 127.0.0.1:8080");
    assert_service(&sockets, 4, "tcp 10.0.0.2:443");
    assert_service(&sockets, 5, "tcp 127.0.0.1:8080");
    assert_service(&sockets, 6, "udp 127.0.0.1:68");
    assert_service(&sockets, 7, "udp 10.0.0.2:53");
    assert_service(&sockets, 8, "unix stream /run/name");
    assert_service(&sockets, 9, "unix stream /run/name");
    sockets_free(&sockets);
}

/* A message about Unix sockets: a socket and its peer. */
struct message {
    struct nlmsghdr header;
    struct unix_diag_msg socket;
    struct rtattr attribute;
    uint32_t peer;
};

static struct message message_of(uint32_t inode, uint32_t peer)
{
    return (struct message){
        .header = {.nlmsg_len = sizeof(struct message), .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .socket = {.udiag_ino = inode},
        .attribute = {.rta_len = RTA_LENGTH(sizeof peer), .rta_type = UNIX_DIAG_PEER},
        .peer = peer,
    };
}

static void test_peers_of_unix_sockets(void **state)
{
    (void)state;
    struct sockets sockets = {0};
    for (uint64_t inode = 1; inode <= 4; inode++) {
        const struct socket socket = {.inode = inode, .protocol = SOCKET_UNIX};
        assert_int_equal(sockets_add(&sockets, &socket, NULL), 0);
    }
    assert_int_equal(sockets_finish(&sockets), 0);
    struct message messages[] = {message_of(1, 2), message_of(99, 1), message_of(3, 98),
                                 message_of(4, 1)};
    messages[3].attribute.rta_len = 200; /* longer than its message */
    assert_true(sockets_take_answer(&sockets, messages, sizeof messages));
    assert_int_equal(peer_of(&sockets, 1), 2);
    assert_int_equal(peer_of(&sockets, 2), 0);
    assert_int_equal(peer_of(&sockets, 3), 0); /* its peer is not in the table */
    assert_int_equal(peer_of(&sockets, 4), 0);
    /* Cut anywhere, with a message that ends within another one. */
    messages[3] = message_of(4, 1);
    for (size_t length = 0; length < sizeof *messages; length++)
        assert_true(sockets_take_answer(&sockets, &messages[3], length));
    assert_int_equal(peer_of(&sockets, 4), 0);
    messages[3].header.nlmsg_len = sizeof(struct nlmsghdr) + 3;
    assert_true(sockets_take_answer(&sockets, &messages[3], sizeof *messages));
    assert_int_equal(peer_of(&sockets, 4), 0);
    messages[3].header = (struct nlmsghdr){.nlmsg_len = 16, .nlmsg_type = NLMSG_DONE};
    assert_false(sockets_take_answer(&sockets, &messages[3], sizeof *messages));
    sockets_free(&sockets);
}

static void add_socket(struct sockets *sockets, enum socket_protocol protocol, const char *path)
{
    const struct socket socket = {
        .inode = 5, .protocol = protocol, .type = SOCK_STREAM, .local = {.port = 80}};
    assert_int_equal(sockets_add(sockets, &socket, path), 0);
}

/* One of them is genuine: it is not known which, unless its table contains no names. */
static void test_several_of_one_inode(void **state)
{
    (void)state;
    struct sockets sockets = {0};
    const struct socket other = {.inode = 6, .protocol = SOCKET_UNIX};
    const struct socket without = {.protocol = SOCKET_UNIX};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sockets_add(&sockets, &without, "/run/without"), 0);
        add_socket(&sockets, SOCKET_UNIX, i ? "/run/forged" : NULL);
    }
    add_socket(&sockets, SOCKET_UNIX, "/run/genuine");
    assert_int_equal(sockets_add(&sockets, &other, "/run/other"), 0);
    assert_int_equal(sockets_finish(&sockets), 0);
    assert_null(sockets_find(&sockets, 5)->path);
    assert_string_equal(sockets_find(&sockets, 6)->path, "/run/other");
    assert_int_equal(sockets.count, 4); /* those without an inode stay */
    sockets_free(&sockets);
    add_socket(&sockets, SOCKET_UNIX, "/run/forged");
    add_socket(&sockets, SOCKET_TCP, NULL);
    add_socket(&sockets, SOCKET_UNIX, "/run/forged too");
    assert_int_equal(sockets_finish(&sockets), 0);
    assert_int_equal(sockets_find(&sockets, 5)->protocol, SOCKET_TCP);
    assert_null(sockets_find(&sockets, 5)->path);
    assert_int_equal(sockets_find(&sockets, 5)->local.port, 80);
    sockets_free(&sockets);
}

static uint64_t inode_of(int fd)
{
    struct stat stat;
    assert_int_equal(fstat(fd, &stat), 0);
    return stat.st_ino;
}

/* A socket whose name, in the kernel's table, looks like a line for that inode. */
static int forge(uint64_t inode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                 "%d\n0: 2 0 0 0001 01 %llu /run/forged", getpid(), (unsigned long long)inode);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, bytes), 0);
    return fd;
}

static void test_forged_lines(void **state)
{
    (void)state;
    struct sockets sockets = {0};
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pair[2];
    int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(tcp >= 0 && proc_fd >= 0);
    assert_int_equal(listen(tcp, 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int forged[] = {forge(inode_of(tcp)), forge(inode_of(pair[0]))};
    assert_int_equal(sockets_read(&sockets, proc_fd), 0);
    const struct socket *found = sockets_find(&sockets, inode_of(tcp));
    assert_non_null(found);
    assert_int_equal(found->protocol, SOCKET_TCP);
    found = sockets_find(&sockets, inode_of(pair[0]));
    assert_non_null(found);
    assert_null(found->path);
    sockets_free(&sockets);
    close(tcp);
    close(proc_fd);
    for (int i = 0; i < 2; i++) {
        close(pair[i]);
        close(forged[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inet),
        cmocka_unit_test(test_no_inet),
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_peers_of_tcp_sockets),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_peers_of_unix_sockets),
        cmocka_unit_test(test_several_of_one_inode),
        cmocka_unit_test(test_forged_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

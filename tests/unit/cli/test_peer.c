#include "unit.h"
#include "cli/serve/address.h"
#include "cli/serve/peer.h"
#include "cli/serve/tcp_owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- Connections of our own ---- */

struct connection {
    int client, server;
};

static struct in6_addr address_named(const char *text)
{
    struct in_addr v4;
    struct in6_addr address;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return address_of_v4(v4);
    assert_int_equal(inet_pton(AF_INET6, text, &address), 1);
    return address;
}

static socklen_t name_of(const char *text, int family, in_port_t port,
                         struct sockaddr_storage *ret_name)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
    if (family == AF_INET) {
        inet_pton(AF_INET, text, &v4.sin_addr);
        memcpy(ret_name, &v4, sizeof v4);
        return sizeof v4;
    }
    v6.sin6_addr = address_named(text);
    memcpy(ret_name, &v6, sizeof v6);
    return sizeof v6;
}

/* Skips the test if this machine lacks the address. */
static struct connection connect_to(const char *text, int listener_family, int client_family)
{
    struct connection connection;
    struct sockaddr_storage name = {0};
    int listener = socket(listener_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = name_of(text, listener_family, 0, &name);
    if (listener < 0 || bind(listener, (struct sockaddr *)&name, bytes))
        skip();
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &bytes), 0);
    in_port_t port;
    address_of((struct sockaddr *)&name, &port);
    connection.client = socket(client_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bytes = name_of(text, client_family, htons(port), &name);
    assert_int_equal(connect(connection.client, (struct sockaddr *)&name, bytes), 0);
    connection.server = accept(listener, NULL, NULL);
    assert_true(connection.server >= 0);
    close(listener);
    return connection;
}

static void hang_up(struct connection *connection)
{
    if (connection->client >= 0)
        close(connection->client);
    close(connection->server);
}

static struct tcp_ends client_ends(const struct connection *connection)
{
    struct sockaddr_storage name = {0};
    socklen_t bytes = sizeof name;
    struct tcp_ends ends;
    getpeername(connection->server, (struct sockaddr *)&name, &bytes);
    ends.local = address_of((struct sockaddr *)&name, &ends.local_port);
    bytes = sizeof name;
    getsockname(connection->server, (struct sockaddr *)&name, &bytes);
    ends.remote = address_of((struct sockaddr *)&name, &ends.remote_port);
    return ends;
}

/* The kernel may lack its module for sock_diag(7), and then has only the tables. */
static bool can_ask_kernel(void)
{
    struct connection connection = connect_to("127.0.0.1", AF_INET, AF_INET);
    struct tcp_ends ends = client_ends(&connection);
    uid_t uid;
    bool can = tcp_owner_ask_kernel(&ends, &uid) == 0;
    hang_up(&connection);
    return can;
}

typedef int find_fn(const struct tcp_ends *ends, uid_t *ret_uid);

static void check_by(find_fn *find, const char *text, int listener_family, int client_family)
{
    struct connection connection = connect_to(text, listener_family, client_family);
    struct tcp_ends ends = client_ends(&connection), wrong = ends;
    uid_t uid = 12345;
    assert_int_equal(find(&ends, &uid), 0);
    assert_int_equal(uid, geteuid());
    /* A half-closed connection still belongs to its user. */
    assert_int_equal(shutdown(connection.client, SHUT_WR), 0);
    assert_int_equal(find(&ends, &uid), 0);
    wrong.local_port ^= 1;
    assert_int_equal(find(&wrong, &uid), -ENOENT);
    wrong = ends;
    wrong.remote_port ^= 1;
    assert_int_equal(find(&wrong, &uid), -ENOENT);
    wrong = ends;
    wrong.remote.s6_addr[15] ^= 2;
    assert_int_equal(find(&wrong, &uid), -ENOENT);
    /* A closed one is listed with root as its owner. */
    uid = 12345;
    close(connection.client);
    connection.client = -1;
    assert_int_equal(find(&ends, &uid), -ENOENT);
    close(connection.server);
    assert_int_equal(find(&ends, &uid), -ENOENT);
    assert_int_equal(uid, 12345);
}

static void check_all(find_fn *find)
{
    check_by(find, "127.0.0.1", AF_INET, AF_INET);
    check_by(find, "127.1.2.3", AF_INET, AF_INET);
    check_by(find, "::ffff:127.0.0.1", AF_INET6, AF_INET6);
    check_by(find, "::1", AF_INET6, AF_INET6);
}

static void test_the_kernel_is_asked(void **state)
{
    (void)state;
    if (!can_ask_kernel())
        skip();
    check_all(tcp_owner_ask_kernel);
}

static void test_the_tables_are_read(void **state)
{
    (void)state;
    check_all(tcp_owner_read_tables);
}

static void test_a_listening_socket_owns_no_connection(void **state)
{
    (void)state;
    struct sockaddr_storage name = {0};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = name_of("127.0.0.1", AF_INET, 0, &name);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, bytes), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &bytes), 0);
    struct tcp_ends ends = {.remote = address_named("127.0.0.1"), .remote_port = 1};
    ends.local = address_of((struct sockaddr *)&name, &ends.local_port);
    uid_t uid;
    assert_int_equal(tcp_owner_find(&ends, &uid), -ENOENT);
    close(listener);
}

static void test_peers_of_real_connections(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        int listener_family, client_family;
    } cases[] = {
        {"127.0.0.1", AF_INET, AF_INET},
        {"::ffff:127.0.0.1", AF_INET6, AF_INET6},
        {"::1", AF_INET6, AF_INET6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct connection connection =
            connect_to(cases[i].address, cases[i].listener_family, cases[i].client_family);
        struct peer peer;
        peer_find(connection.server, &peer);
        assert_true(peer.is_local && peer.has_uid);
        assert_int_equal(peer.uid, geteuid());
        struct in6_addr address = address_named(cases[i].address);
        assert_memory_equal(&peer.address, &address, sizeof address);
        close(connection.client);
        connection.client = -1;
        peer_find(connection.server, &peer);
        assert_true(peer.is_local && !peer.has_uid);
        hang_up(&connection);
    }
}

static void test_a_unix_socket(void **state)
{
    (void)state;
    int pair[2];
    struct peer peer;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    peer_find(pair[0], &peer);
    assert_true(peer.is_local && peer.has_uid);
    assert_int_equal(peer.uid, geteuid());
    close(pair[0]);
    close(pair[1]);
    peer_find(-1, &peer);
    assert_false(peer.is_local || peer.has_uid);
}

/* ---- Lines and answers ---- */

static const struct tcp_ends *ends_v4(void)
{
    static struct tcp_ends ends = {.local_port = 41668, .remote_port = 6060};
    ends.local = ends.remote = address_named("127.0.0.1");
    return &ends;
}

static const struct tcp_ends *ends_v6(void)
{
    static struct tcp_ends ends = {.local_port = 41668, .remote_port = 6060};
    ends.local = ends.remote = address_named("::1");
    return &ends;
}

#define REST " 00000000:00000000 00:00000000 00000000 "
#define ONE_V6 "00000000000000000000000001000000"
#define MAPPED "0000000000000000FFFF00000100007F"

static void test_lines_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int expected, expected_v6;
    } cases[] = {
        {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
         "timeout "
         "inode",
         -EBADMSG, -EBADMSG},
        {"", -EBADMSG, -EBADMSG},
        {"   0: 0100007F:A2C4 0100007F:17AC 01" REST " 1000        0 52211 1 0000000000000000 20",
         0, -ENOENT},
        {"  10: " MAPPED ":A2C4 " MAPPED ":17AC 01" REST " 1000        0 52211 1 0000", 0, -ENOENT},
        {"   0: " ONE_V6 ":A2C4 " ONE_V6 ":17AC 01" REST " 1000        0 52211 1 0000", -ENOENT, 0},
        /* This process's own end. */
        {"   0: 0100007F:17AC 0100007F:A2C4 01" REST " 1000        0 52211", -ENOENT, -ENOENT},
        /* Another address, another port. */
        {"   0: 0200007F:A2C4 0100007F:17AC 01" REST " 1000        0 52211", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AD 01" REST " 1000        0 52211", -ENOENT, -ENOENT},
        /* FIN_WAIT2, held by a process; TIME_WAIT, SYN_SENT, CLOSE, LISTEN; held by no process. */
        {"   0: 0100007F:A2C4 0100007F:17AC 05" REST " 1000        0 52211", 0, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 06" REST " 1000        0 52211", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 02" REST " 1000        0 52211", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 07" REST " 1000        0 52211", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 0A" REST " 1000        0 52211", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 01" REST "    0        0 0", -ENOENT, -ENOENT},
        {"   0: 0100007F:A2C4 0100007F:17AC 05" REST "    0        0 0", -ENOENT, -ENOENT},
        /* Cut short, and addresses of the wrong length. */
        {"   0: 0100007F:A2C4 0100007F:17AC 01" REST " 1000        0", -EBADMSG, -EBADMSG},
        {"   0: 100007F:A2C4 0100007F:17AC 01" REST " 1000        0 52211", -EBADMSG, -EBADMSG},
        {"   0: 0100007F00:A2C4 0100007F:17AC 01" REST " 1000        0 52211", -EBADMSG, -EBADMSG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uid_t uid = 1000;
        assert_int_equal(tcp_owner_in_line(cases[i].line, ends_v4(), &uid), cases[i].expected);
        assert_int_equal(tcp_owner_in_line(cases[i].line, ends_v6(), &uid), cases[i].expected_v6);
        assert_int_equal(uid, 1000);
    }
}

struct answer {
    struct nlmsghdr header;
    struct inet_diag_msg socket;
};

static struct answer answer_for(const struct tcp_ends *ends)
{
    struct answer answer = {
        .header = {.nlmsg_len = sizeof answer, .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .socket = {.idiag_family = AF_INET6,
                   .idiag_state = TCP_ESTABLISHED,
                   .idiag_uid = 1000,
                   .idiag_inode = 52211,
                   .id = {.idiag_sport = htons(ends->local_port),
                          .idiag_dport = htons(ends->remote_port)}},
    };
    memcpy(answer.socket.id.idiag_src, &ends->local, sizeof ends->local);
    memcpy(answer.socket.id.idiag_dst, &ends->remote, sizeof ends->remote);
    return answer;
}

static int find_in(const struct answer *answer)
{
    uid_t uid = 1000;
    int err = tcp_owner_in_answer(answer, sizeof *answer, ends_v4(), &uid);
    assert_int_equal(uid, 1000);
    return err;
}

static void test_answers_of_the_kernel(void **state)
{
    (void)state;
    struct answer answer = answer_for(ends_v4()), v4 = answer;
    assert_int_equal(find_in(&answer), 0);
    v4.socket.idiag_family = AF_INET;
    v4.socket.id.idiag_src[0] = v4.socket.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    assert_int_equal(find_in(&v4), 0);
    v4.socket.id.idiag_src[0] = htonl(INADDR_LOOPBACK + 1);
    assert_int_equal(find_in(&v4), -ENOENT);
    answer.socket.idiag_state = TCP_TIME_WAIT;
    assert_int_equal(find_in(&answer), -ENOENT);
    answer.socket.idiag_state = TCP_LISTEN;
    assert_int_equal(find_in(&answer), -ENOENT);
    answer = answer_for(ends_v4());
    answer.socket.idiag_inode = answer.socket.idiag_uid = 0;
    assert_int_equal(find_in(&answer), -ENOENT);
    answer = answer_for(ends_v4());
    answer.socket.id.idiag_dport = htons(6061);
    assert_int_equal(find_in(&answer), -ENOENT);
    answer = answer_for(ends_v6());
    assert_int_equal(find_in(&answer), -ENOENT);
}

static void test_damaged_answers(void **state)
{
    (void)state;
    struct answer answer = answer_for(ends_v4());
    struct {
        struct nlmsghdr header;
        struct nlmsgerr failure;
    } refusal = {{.nlmsg_len = sizeof refusal, .nlmsg_type = NLMSG_ERROR}, {.error = -EPERM}};
    uid_t uid;
    for (size_t bytes = 0; bytes < sizeof answer; bytes++)
        assert_int_equal(tcp_owner_in_answer(&answer, bytes, ends_v4(), &uid), -EBADMSG);
    answer.header.nlmsg_len--;
    assert_int_equal(find_in(&answer), -EBADMSG);
    answer = answer_for(ends_v4());
    answer.header.nlmsg_type = NLMSG_DONE;
    assert_int_equal(find_in(&answer), -EBADMSG);
    assert_int_equal(tcp_owner_in_answer(&refusal, sizeof refusal, ends_v4(), &uid), -EPERM);
    refusal.failure.error = 0;
    assert_int_equal(tcp_owner_in_answer(&refusal, sizeof refusal, ends_v4(), &uid), -EBADMSG);
}

static void test_maps_of_user_namespaces(void **state)
{
    (void)state;
    assert_true(peer_map_is_whole("         0          0 4294967295\n"));
    assert_false(peer_map_is_whole("         0       1000          1\n"));
    assert_false(peer_map_is_whole("         0     100000      65536\n"));
    assert_false(
        peer_map_is_whole("         0          0       1000\n      1000 100000 4294866295\n"));
    assert_false(peer_map_is_whole(""));
}

static void test_which_peers_are_the_same(void **state)
{
    (void)state;
    const struct peer one = {
        .is_local = true, .has_uid = true, .uid = 1, .address = address_named("127.0.0.1")};
    struct peer other = one;
    other.address = address_named("::1");
    assert_true(peer_is_same(&one, &other));
    other.uid = 2;
    assert_false(peer_is_same(&one, &other));
    other = one;
    other.has_uid = false;
    assert_false(peer_is_same(&one, &other));
    const struct peer remote = {.address = address_named("192.0.2.1")};
    other = remote;
    assert_true(peer_is_same(&remote, &other));
    other.address = address_named("192.0.2.2");
    assert_false(peer_is_same(&remote, &other));
    assert_false(peer_is_same(&remote, &one));
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    static const char *const loopback[] = {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {
        "128.0.0.1", "0.0.0.0", "::", "::2", "::127.0.0.1", "fe80::1", "::ffff:10.0.0.127"};
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
        struct in6_addr address = address_named(loopback[i]);
        assert_true(address_is_loopback(&address));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct in6_addr address = address_named(others[i]);
        assert_false(address_is_loopback(&address));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_kernel_is_asked),
        cmocka_unit_test(test_the_tables_are_read),
        cmocka_unit_test(test_a_listening_socket_owns_no_connection),
        cmocka_unit_test(test_peers_of_real_connections),
        cmocka_unit_test(test_a_unix_socket),
        cmocka_unit_test(test_lines_of_the_tables),
        cmocka_unit_test(test_answers_of_the_kernel),
        cmocka_unit_test(test_damaged_answers),
        cmocka_unit_test(test_maps_of_user_namespaces),
        cmocka_unit_test(test_which_peers_are_the_same),
        cmocka_unit_test(test_loopback_addresses),
    };
    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}

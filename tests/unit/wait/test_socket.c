#include "unit.h"
#include "wait/socket.h"

#include <string.h>

static void assert_inet(const char *protocol, const char *line, uint64_t inode, const char *text)
{
    struct socket_text found;
    assert_true(socket_parse_inet(protocol, line, &found));
    assert_int_equal(found.inode, inode);
    assert_string_equal(found.text, text);
}

static void test_inet(void **state)
{
    (void)state;
    assert_inet("tcp",
                "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 "
                "       0 27423 1 0000000000000000 100 0 0 10 0",
                27423, "tcp 127.0.0.1:8080 listening");
    assert_inet("tcp",
                "  11: 0100007F:9D7E 0200000A:01BB 01 00000000:00000000 00:00000000 00000000     0 "
                "       0 99 1 0000000000000000 20 4 30 10 -1",
                99, "tcp 127.0.0.1:40318 -> 10.0.0.2:443");
    assert_inet("udp",
                " 9123: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000     "
                "0        0 1 2 0000000000000000 0",
                1, "udp 0.0.0.0:68");
    assert_inet("tcp6",
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
    struct socket_text found;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(socket_parse_inet("tcp", lines[i], &found));
}

static void test_unix(void **state)
{
    (void)state;
    struct socket_text found;
    assert_true(socket_parse_unix(
        "0000000000000000: 00000002 00000000 00010000 0001 01 27423 /run/a b", &found));
    assert_int_equal(found.inode, 27423);
    assert_string_equal(found.text, "unix stream /run/a b");
    assert_true(
        socket_parse_unix("ffff888100000000: 00000003 00000000 00000000 0002 03 5", &found));
    assert_string_equal(found.text, "unix datagram");
    assert_false(
        socket_parse_unix("Num       RefCount Protocol Flags    Type St Inode Path", &found));
    char line[1024] = "0: 2 0 0 0001 01 9 /";
    memset(line + strlen(line), 'x', 900);
    assert_true(socket_parse_unix(line, &found));
    assert_int_equal(strlen(found.text), sizeof found.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inet),
        cmocka_unit_test(test_no_inet),
        cmocka_unit_test(test_unix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

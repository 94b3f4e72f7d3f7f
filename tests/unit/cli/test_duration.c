#include "unit.h"
#include "cli/options/values.h"

#define SECOND 1000000000ull

static void assert_duration(const char *text, uint64_t expected_ns)
{
    uint64_t ns = 1;
    if (!duration_parse(text, &ns))
        fail_msg("\"%s\" was refused", text);
    assert_int_equal(ns, expected_ns);
}

static void assert_no_duration(const char *text)
{
    uint64_t ns = 42;
    if (duration_parse(text, &ns))
        fail_msg("\"%s\" was taken", text);
    assert_int_equal(ns, 42);
}

static void test_units(void **state)
{
    (void)state;
    assert_duration("30s", 30 * SECOND);
    assert_duration("1.5m", 90 * SECOND);
    assert_duration("2h", 7200 * SECOND);
    assert_duration("500ms", SECOND / 2);
    assert_duration("7", 7 * SECOND);
    assert_duration("0.25", SECOND / 4);
    assert_duration("007s", 7 * SECOND);
}

static void test_fractions_are_exact(void **state)
{
    (void)state;
    assert_duration("0.29s", 290000000);
    assert_duration("1.001s", 1001000000);
    assert_duration("0.1ms", 100000);
    assert_duration("33.3ms", 33300000);
}

static void test_what_is_no_duration(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    ".",     "s",      "ms",    "-1",  "-1s",  "+1",    "+1s",  "12abc",
        "1e3", "1e3s",  "inf",    "nan",   "INF", "0x10", "0x10s", "1 s",  " 1s",
        "1s ", "1.2.3", "1.2.3s", "..1",   "1..", "1,5s", "1S",    "1us",  "1ns",
        "1d",  "1min",  "1sm",    "1m30s", "s1",  ".s",   "1s\n",  "1mss", "1_000"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_no_duration(texts[i]);
}

static void test_range(void **state)
{
    (void)state;
    assert_no_duration("0");
    assert_no_duration("0s");
    assert_no_duration("0.0m");
    assert_no_duration("0.0000000001s");
    assert_duration("0.000000001s", 1);
    assert_duration("8784h", 366 * 24 * 3600 * SECOND);
    assert_no_duration("8784.1h");
    assert_no_duration("99999999999999999999h");
    /* So large that a conversion would overflow. */
    assert_no_duration("999999999999999999999999999999999999999999999999s");
}

static void assert_number(const char *text, uint64_t min, uint64_t max, uint64_t expected)
{
    uint64_t number = 42;
    if (!number_parse(text, min, max, &number))
        fail_msg("\"%s\" was refused", text);
    assert_true(number == expected);
}

static void assert_no_number(const char *text, uint64_t min, uint64_t max)
{
    uint64_t number = 42;
    if (number_parse(text, min, max, &number))
        fail_msg("\"%s\" was taken", text);
    assert_int_equal(number, 42);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_number("7", 0, 10, 7);
    assert_number("0", 0, 10, 0);
    assert_number("010", 0, 10, 10); /* not octal */
    assert_number("18446744073709551615", 0, UINT64_MAX, UINT64_MAX);
    assert_number("00000000000000000000000000007", 0, 10, 7);
}

static void test_what_is_no_number(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    ".",  "12abc", "-1",  "-0",  "+1",  "1e3", "0x1",
                                        "1.0", " 1", "1 ",    "1\n", "inf", "nan", "1s",  "a"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_no_number(texts[i], 0, UINT64_MAX);
}

static void test_number_range(void **state)
{
    (void)state;
    assert_number("1", 1, 1000, 1);
    assert_number("1000", 1, 1000, 1000);
    assert_no_number("0", 1, 1000);
    assert_no_number("1001", 1, 1000);
    /* 2^64, and a number that is 1 modulo 2^64. */
    assert_no_number("18446744073709551616", 0, UINT64_MAX);
    assert_no_number("18446744073709551617", 0, UINT64_MAX);
    assert_no_number("99999999999999999999999999999", 0, UINT64_MAX);
}

static void assert_bytes(const char *text, uint64_t max, uint64_t expected)
{
    uint64_t bytes = 77;
    assert_true(bytes_parse(text, max, &bytes));
    assert_int_equal(bytes, expected);
}

static void test_bytes(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "K", "0", "0K", "1k", "1KB", "1T", "1.5M", "-1", " 1"};
    assert_bytes("1", 1, 1);
    assert_bytes("4096", 4096, 4096);
    assert_bytes("512K", 1u << 30, 512u << 10);
    assert_bytes("3M", 1u << 30, 3u << 20);
    assert_bytes("1G", 1u << 30, 1u << 30);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t bytes = 77;
        assert_false(bytes_parse(texts[i], UINT64_MAX, &bytes));
        assert_int_equal(bytes, 77);
    }
}

static void test_bytes_range(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_false(bytes_parse("2G", 1u << 30, &bytes));
    assert_false(bytes_parse("1073741825", 1u << 30, &bytes));
    /* 2^64, in several ways. */
    assert_false(bytes_parse("18446744073709551616", UINT64_MAX, &bytes));
    assert_false(bytes_parse("17179869184G", UINT64_MAX, &bytes));
    assert_bytes("17179869183G", UINT64_MAX, 17179869183u << 30);
}

static void test_percents(void **state)
{
    (void)state;
    static const char *const texts[] = {"",   "0",  "101", "nan", "0x10",  "1e1",
                                        " 1", "+1", "-1",  "1%",  "1.2.3", "."};
    double percent;
    assert_true(percent_parse("0.5", &percent));
    assert_true(percent >= 0.5 && percent <= 0.5);
    assert_true(percent_parse("100", &percent));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(percent_parse(texts[i], &percent));
}

static void test_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port;
    } rows[] = {
        {"localhost", "localhost", NULL},
        {"127.0.0.1:6060", "127.0.0.1", "6060"},
        {"[::1]:6060", "::1", "6060"},
        {"[::1]", "::1", NULL},
        {"host:", "host", ""},
        {"fe80::1:6060", "fe80", ":1:6060"}, /* no brackets: callers refuse such a port */
    };
    static const char *const wrong[] = {"",     ":6060",     "::1:6060",          "[::1",
                                        "[]:1", "[::1]6060", "a-host-of-16-byt:1"};
    char host[16];
    const char *port;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(host_parse(rows[i].text, host, sizeof host, &port));
        assert_string_equal(host, rows[i].host);
        assert_true(!port == !rows[i].port);
        if (port)
            assert_string_equal(port, rows[i].port);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(host_parse(wrong[i], host, sizeof host, &port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_fractions_are_exact),
        cmocka_unit_test(test_what_is_no_duration),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_what_is_no_number),
        cmocka_unit_test(test_number_range),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_range),
        cmocka_unit_test(test_percents),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}

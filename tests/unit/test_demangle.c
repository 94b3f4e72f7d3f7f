#include "unit.h"
#include "symbol/demangle.h"

static void assert_demangles(const char *symbol, const char *expected)
{
    char *name = demangle(symbol);
    if (!name)
        fail_msg("%s has no source name", symbol);
    assert_string_equal(name, expected);
    free(name);
}

static void assert_stays(const char *symbol)
{
    char *name = demangle(symbol);
    if (name)
        fail_msg("%s became %s", symbol, name);
}

static void test_cpp(void **state)
{
    (void)state;
    assert_demangles("_Z3foov", "foo");
    assert_demangles("_ZN3foo3barEv", "foo::bar");
    assert_demangles("_ZN3foo3barEiPKc", "foo::bar");
    assert_demangles("_ZNK3foo3barEv", "foo::bar");
    assert_demangles("_ZN3fooC2Ev", "foo::foo");
    assert_demangles("_ZN3fooD1Ev", "foo::~foo");
    assert_demangles("_ZNSt6vectorIiSaIiEE9push_backERKi",
                     "std::vector<int, std::allocator<int> >::push_back");
    assert_demangles("_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work");
    assert_demangles("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
    assert_demangles("_ZlsRSoRK3foo", "operator<<");
}

static void test_rust_legacy(void **state)
{
    (void)state;
    /* The hash at the end says nothing to a reader. */
    assert_demangles("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                     "core::fmt::Write::write_fmt");
    assert_demangles("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
                     "3bar17h930b740aa94f1d3aE",
                     "<Test + 'static as foo::Bar<Test>>::bar");
}

static void test_rust_v0(void **state)
{
    (void)state;
    assert_demangles("_RNvC6_123foo3bar", "123foo::bar");
    assert_demangles("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
    assert_demangles("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}");
    assert_demangles("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
}

static void test_d(void **state)
{
    (void)state;
    assert_demangles("_Dmain", "D main");
    char *name = demangle("_D8demangle4testFaZv");
    assert_non_null(name);
    assert_memory_equal(name, "demangle.test", 13);
    free(name);
}

static void test_plain_names_stay(void **state)
{
    (void)state;
    /* Some of these are mangled types: "i" is int, "f" float, "Pv" void*. */
    static const char *const symbols[] = {"",
                                          "i",
                                          "f",
                                          "Pv",
                                          "St",
                                          "main",
                                          "_",
                                          "_start",
                                          "__libc_start_main",
                                          "_init",
                                          "_DYNAMIC",
                                          "Z3foov",
                                          "RNvC6_123foo3bar",
                                          "printf",
                                          "_IO_puts",
                                          "x"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_stays(symbols[i]);
}

static void test_broken_names_stay(void **state)
{
    (void)state;
    assert_stays("_Z");
    assert_stays("_R");
    assert_stays("_D");
    assert_stays("_ZN3fo");
    assert_stays("_ZN99999999999999999999foo3barEv");
    assert_stays("_Zgarbage!");
    assert_stays("_RNvC6_123foo");
}

/* A symbol is data of the target: one that nests without end must not end us. */
static void test_endless_nesting(void **state)
{
    (void)state;
    size_t length = 200000;
    char *symbol = malloc(length + 1);
    assert_non_null(symbol);
    static const char nested[] = "PIJX";
    for (size_t i = 0; i < sizeof nested - 1; i++) {
        memset(symbol, nested[i], length);
        memcpy(symbol, "_Z1f", 4);
        symbol[length] = '\0';
        char *name = demangle(symbol);
        assert_true(!name || *name);
        free(name);
    }
    free(symbol);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpp),
        cmocka_unit_test(test_rust_legacy),
        cmocka_unit_test(test_rust_v0),
        cmocka_unit_test(test_d),
        cmocka_unit_test(test_plain_names_stay),
        cmocka_unit_test(test_broken_names_stay),
        cmocka_unit_test(test_endless_nesting),
    };
    return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}

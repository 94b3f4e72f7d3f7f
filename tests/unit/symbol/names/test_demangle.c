#include "unit.h"
#include "symbol/names/demangle.h"

#include <stdio.h>
#include <time.h>

static void assert_named(const char *symbol, enum fgprof_names names, const char *expected)
{
    char *name = demangle(symbol, names);
    if (!name)
        fail_msg("%s has no source name", symbol);
    assert_string_equal(name, expected);
    free(name);
}

static void assert_demangles(const char *symbol, const char *expected)
{
    assert_named(symbol, FGPROF_NAMES_SHORT, expected);
}

static void assert_stays(const char *symbol)
{
    static const enum fgprof_names all[] = {FGPROF_NAMES_SHORT, FGPROF_NAMES_FULL,
                                            FGPROF_NAMES_RAW};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *name = demangle(symbol, all[i]);
        if (name)
            fail_msg("%s became %s", symbol, name);
    }
}

static void test_cpp(void **state)
{
    (void)state;
    assert_demangles("_Z3foov", "foo");
    assert_demangles("_ZN3foo3barEiPKc", "foo::bar");
    assert_demangles("_ZNK3foo3barEv", "foo::bar");
    assert_demangles("_ZN3fooC2Ev", "foo::foo");
    assert_demangles("_ZN3fooD1Ev", "foo::~foo");
    assert_demangles("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back");
    assert_demangles("_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work");
    assert_demangles("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
    assert_demangles("_ZlsRSoRK3foo", "operator<<");
    assert_demangles("_ZlsIiERSoS0_T_", "operator<<");
    assert_demangles("_ZltRK1aRK1b", "operator<");
    assert_demangles("_ZNK1acvbEv", "a::operator bool");
    assert_demangles("_ZN1acvSt6vectorIiSaIiEEEv", "a::operator std::vector");
    assert_demangles("_ZN1aclEi", "a::operator()");
    assert_demangles("_ZN1aptEv", "a::operator->");
    assert_demangles("_Z1fIPFivEEvT_", "f");
    assert_demangles("_Z1fIiEDTcl1gfp_EET_", "f");
    assert_demangles("_Z3fooB5cxx11v", "foo[abi:cxx11]");
    /* The parameters of the enclosing function tell which function the lambda belongs to. */
    assert_demangles("_ZZN3foo3barEiENKUlvE_clEv", "foo::bar(int)::{lambda()#1}::operator()");
}

/* To a reader, a part of a function that the compiler split off is that function. */
static void test_clones(void **state)
{
    (void)state;
    static const char *const clones[][2] = {
        {"_Z3foov.cold", "foo() [clone .cold]"},
        {"_Z3foov.part.12", "foo() [clone .part.12]"},
        {"_Z3foov.isra.0", "foo() [clone .isra.0]"},
        {"_Z3foov.constprop.0.isra.0", "foo() [clone .constprop.0] [clone .isra.0]"},
    };
    for (size_t i = 0; i < sizeof clones / sizeof *clones; i++) {
        assert_demangles(clones[i][0], "foo");
        assert_named(clones[i][0], FGPROF_NAMES_FULL, clones[i][1]);
    }
    assert_stays("foo.cold");
}

static void test_cpp_in_full(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZNK3foo3barEv", "foo::bar() const"},
        {"_ZlsIiERSoS0_T_", "std::ostream& operator<< <int>(std::ostream&, int)"},
        {"_Z1fPFivE", "f(int (*)())"},
        {"_Z1fIiEDTcl1gfp_EET_", "decltype (g({parm#1})) f<int>(int)"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_named(names[i][0], FGPROF_NAMES_FULL, names[i][1]);
}

/* Functions without a linkage name have their name in the source. */
static void test_names_of_the_debug_information(void **state)
{
    (void)state;
    assert_demangles("max<int>", "max");
    assert_demangles("operator<< <int>", "operator<<");
    assert_null(demangle("max<int>", FGPROF_NAMES_FULL));
}

static void test_rust(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        /* The hash at the end is left out. */
        {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
         "3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
        {"_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_demangles(names[i][0], names[i][1]);
        assert_named(names[i][0], FGPROF_NAMES_FULL, names[i][1]);
    }
}

static void test_d(void **state)
{
    (void)state;
    assert_demangles("_Dmain", "D main");
    assert_demangles("_D8demangle4testFaZv", "demangle.test(char)");
}

static void test_not_at_all(void **state)
{
    (void)state;
    static const char *const symbols[] = {"_Z3foov", "_RNvC6_123foo3bar", "_Dmain", "max<int>"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_null(demangle(symbols[i], FGPROF_NAMES_RAW));
}

static void test_plain_names_stay(void **state)
{
    (void)state;
    /* Some of these are valid mangled types: "i" is int, "f" float, "Pv" void*. */
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

static char *repeated(const char *begin, const char *part, size_t times, const char *end)
{
    size_t part_bytes = strlen(part);
    char *text = malloc(strlen(begin) + part_bytes * times + strlen(end) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, begin);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, part);
    strcpy(at, end);
    return text;
}

/* Demangling takes almost no time in either style, by this thread's clock. */
static void assert_takes_no_time(const char *symbol)
{
    for (enum fgprof_names names = FGPROF_NAMES_SHORT; names <= FGPROF_NAMES_FULL; names++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        char *name = demangle(symbol, names);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        assert_true(end.tv_sec - begin.tv_sec < 3);
        assert_true(!name || *name);
        free(name);
    }
}

/* The target chooses its symbols: endless nesting must not crash us. */
static void test_endless_nesting(void **state)
{
    (void)state;
    static const char *const parts[][2] = {
        {"_Z1f", "P"},      {"_Z1f", "I"},  {"_Z1f", "J"},  {"_Z1f", "X"},  {"_Z1fI", "J"},
        {"_Z1fIX", "ps"},   {"_Z1f", "F"},  {"_Z1f", "M"},  {"_Z1f", "Dp"}, {"_Z1f", "A_"},
        {"_Z", "Z"},        {"_Z1f", "PF"}, {"_ZN", "1aI"}, {"_ZN", "1a"},  {"_R", "N"},
        {"_RI", "NvC1a1b"}, {"_RIC0", "T"}, {"_D", "Q"},    {"_D1a", "FF"}, {"_D", "1a"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        /* The maximum length that is read, and much more. */
        size_t fitting = 4000 / strlen(parts[i][1]);
        for (size_t times = fitting; times <= 1000000; times *= 200) {
            char *symbol = repeated(parts[i][0], parts[i][1], times, "");
            assert_takes_no_time(symbol);
            free(symbol);
        }
    }
}

/* Types that each contain the one before twice: b, a0<b, b>, a1<a0<...>, a0<...>>, ... `first` is
 * the number of b's substitution. */
static void append_doubling(char *symbol, int first)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strcat(symbol, "1b");
    for (int level = 0, last = first - 1; level < 40; level++, last += 2) {
        char reference[16], type[64];
        snprintf(reference, sizeof reference, last < 36 ? "S%.0d%c_" : "S%d%c_", last / 36,
                 digits[last % 36]);
        snprintf(type, sizeof type, "3a%c%cI%s%sE", 'a' + level % 26, 'a' + level / 26, reference,
                 reference);
        strcat(symbol, type);
    }
}

/* A symbol whose expansion doubles at each level would take for ever, or all memory. */
static void test_doubling(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *end;
        int first;
    } frames[] = {
        {"_Z1fI", "EvT_", 1},       /* expanded */
        {"_Z1f1c", "", 1},          /* as parameters */
        {"_Z1fIDp1xI", "EEvT_", 2}, /* searched for packs */
        {"_Z1fIDpO1xI", "EEvT_", 2},
    };
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        char symbol[2048];
        strcpy(symbol, frames[i].begin);
        append_doubling(symbol, frames[i].first);
        strcat(symbol, frames[i].end);
        assert_takes_no_time(symbol);
    }
    /* Arguments in the type of a conversion operator. */
    char *symbol = repeated("_ZN1acv", "T_I", 60, "i");
    char *closed = repeated(symbol, "E", 60, "Ev");
    assert_takes_no_time(closed);
    free(closed);
    free(symbol);
}

/* Names like those from C++ template libraries. */
static void test_long_names(void **state)
{
    (void)state;
    char *symbol = repeated("_Z1fI", "St6vectorIiSaIiEE", 200, "EvT_");
    assert_demangles(symbol, "f");
    free(symbol);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpp),
        cmocka_unit_test(test_clones),
        cmocka_unit_test(test_cpp_in_full),
        cmocka_unit_test(test_names_of_the_debug_information),
        cmocka_unit_test(test_rust),
        cmocka_unit_test(test_d),
        cmocka_unit_test(test_not_at_all),
        cmocka_unit_test(test_plain_names_stay),
        cmocka_unit_test(test_broken_names_stay),
        cmocka_unit_test(test_endless_nesting),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}

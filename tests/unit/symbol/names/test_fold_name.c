#include "unit.h"
#include "symbol/names/demangle.h"

#include <stdio.h>

static void assert_folds(const char *name, const char *expected)
{
    char *folded = strdup(name);
    assert_non_null(folded);
    assert_int_equal(fold_name(folded), 0);
    assert_string_equal(folded, expected);
    free(folded);
}

static void assert_stays(const char *name)
{
    assert_folds(name, name);
}

static void test_template_arguments_go(void **state)
{
    (void)state;
    assert_folds("std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back");
    assert_folds("a<b>", "a");
    assert_folds("a<b>::c<d>", "a::c");
    assert_folds("a<b<c<d>>>::~a", "a::~a");
    assert_folds("a[abi:cxx11]<b>", "a[abi:cxx11]");
    assert_folds("a{unnamed type#1}<b>", "a{unnamed type#1}");
    assert_folds("(anonymous namespace)::f<int>", "(anonymous namespace)::f");
    assert_folds("f(std::vector<int>)::{lambda(std::set<int>)#1}::operator()",
                 "f(std::vector)::{lambda(std::set)#1}::operator()");
    assert_folds("f<int (*)(a<b>)>", "f");
    assert_folds("f<decltype (a->b)>", "f");
    assert_folds("f<a->b>", "f");
    assert_folds("f<((1)>(2))>::g", "f::g");
    assert_folds("f<(sizeof (int))<(4)>::g", "f::g");
    assert_folds("f<((1)<<(2)), ((1)>>(2))>::g", "f::g");
    assert_folds("f<&a::operator< >::g", "f::g");
    assert_folds("f<&a::operator->>::g", "f::g");
    assert_folds("f<a::operator()<b>, c>::g", "f::g");
    /* As GCC writes names into debug information. */
    assert_folds("wait<serve()::<lambda()> >", "wait");
    assert_folds("__invoke_impl<void, main()::<lambda(std::set<int>)> >", "__invoke_impl");
    assert_folds("f<<unnamed struct>, <unnamed>::a<int> >::g", "f::g");
    assert_stays("main()::<lambda()>");
}

static void test_operators_stay(void **state)
{
    (void)state;
    static const char *const signs[] = {
        "<",   "<<", "<=", "<=>", "<<=", ">", ">>", ">=", ">>=", "->",
        "->*", "()", "[]", "==",  "!=",  "+", "-=", "~",  ",",   "&&"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        char plain[64], with_arguments[64];
        snprintf(plain, sizeof plain, "a::operator%s", signs[i]);
        assert_stays(plain);
        /* libiberty puts a space before them only after '<'. */
        snprintf(with_arguments, sizeof with_arguments, "a<b>::operator%s%s<int>", signs[i],
                 signs[i][strlen(signs[i]) - 1] == '<' ? " " : "");
        assert_folds(with_arguments, plain);
    }
    assert_stays("a::operator bool");
    assert_stays("operator new[]");
    assert_stays("operator\"\" _s");
    assert_folds("a::operator std::vector<int, b>", "a::operator std::vector");
    assert_folds("my_operator<int>", "my_operator");
    assert_folds("operators<int>", "operators");
}

static void test_what_is_no_template_stays(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",   "a",   "main",  "<init>", "Foo::<init>", "<T as a::B<T>>::c",  "<",     ">",    "<>",
        "a<", "a<b", "a<b(>", "a)b<c>", "a<b>>c)",     "main.F[<-chan int]", "a<b>(", "a(<b>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_stays(names[i]);
}

/* Any text is accepted: the result is no longer, and folding it again changes nothing. */
static void test_any_text(void **state)
{
    (void)state;
    static const char *const words[] = {
        "a", "<", ">", "(", ")", "operator", "::", " ", "-", "[", "]", "{", "}"};
    unsigned seed = 1;
    for (int round = 0; round < 200000; round++) {
        char name[128] = "", once[128];
        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            strcat(name, words[(seed >> 16) % (sizeof words / sizeof *words)]);
        }
        size_t length = strlen(name);
        assert_int_equal(fold_name(name), 0);
        assert_true(strlen(name) <= length && *name);
        strcpy(once, name);
        assert_int_equal(fold_name(once), 0);
        assert_true(strlen(once) <= strlen(name));
    }
}

static void test_depth_has_no_bound(void **state)
{
    (void)state;
    size_t depth = 1000000;
    char *name = malloc(3 * depth + 1);
    assert_non_null(name);
    for (size_t i = 0; i < depth; i++) {
        memcpy(name + 2 * i, "a<", 2);
        name[2 * depth + i] = '>';
    }
    name[3 * depth] = '\0';
    assert_int_equal(fold_name(name), 0);
    assert_string_equal(name, "a");
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_arguments_go),     cmocka_unit_test(test_operators_stay),
        cmocka_unit_test(test_what_is_no_template_stays), cmocka_unit_test(test_any_text),
        cmocka_unit_test(test_depth_has_no_bound),
    };
    return cmocka_run_group_tests_name("fold_name", tests, NULL, NULL);
}

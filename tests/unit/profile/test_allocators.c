/* Frames that only allocate for their callers are recognized by name. */
#include "unit.h"
#include "make_profile.h"
#include "profile/allocators.h"

static struct fgprof_profile *profile;
static uint32_t mapping;
static uint64_t next_address;

static int set_up(void **state)
{
    (void)state;
    profile = make_profile();
    mapping = make_mapping(profile, 0x400000, "/usr/bin/app", "");
    next_address = 0x401000;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    profile_free(profile);
    return 0;
}

static uint32_t function(const char *name)
{
    next_address += 0x10;
    return make_function(profile, next_address, mapping, name, "", 0);
}

static uint32_t stack_of(const uint32_t *locations, size_t depth)
{
    uint32_t stack;
    assert_int_equal(profile_add_stack(profile, locations, depth, &stack), 0);
    return stack;
}

static uint32_t leading_of(const char *name)
{
    uint32_t locations[] = {function(name), function("main")};
    return allocators_count_leading(profile, stack_of(locations, 2));
}

static void test_names(void **state)
{
    static const char *const allocators[] = {
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "posix_memalign",
        "aligned_alloc",
        "memalign",
        "valloc",
        "pvalloc",
        "mmap",
        "mmap64",
        "__libc_malloc",
        "__libc_memalign",
        "_Znwm",
        "_Znam",
        "_ZnwmRKSt9nothrow_t",
        "_ZnamSt11align_val_tRKSt9nothrow_t",
        "je_malloc",
        "je_aligned_alloc",
        "tc_malloc",
        "tc_newarray_nothrow",
        "mi_calloc",
        "__rust_alloc",
        "__rdl_realloc",
    };
    static const char *const others[] = {
        "main", "strdup",        "mallocate", "my_malloc",
        "je_",  "je_main",       "new",       "_Znw",
        "free", "_ZN3app3newEv", "g_malloc",  "_ZNSt6vectorIiSaIiEE7reserveEm",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
        assert_int_equal(leading_of(allocators[i]), 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(leading_of(others[i]), 0);
}

static void test_only_those_before_the_first_other_one(void **state)
{
    (void)state;
    uint32_t locations[] = {function("malloc"), function("_Znwm"), function("load"),
                            function("malloc"), function("main")};
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 5)), 2);
    assert_int_equal(allocators_count_leading(profile, stack_of(locations + 2, 3)), 0);
}

static void test_the_last_one_stays(void **state)
{
    (void)state;
    uint32_t locations[] = {function("malloc"), function("calloc")};
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 2)), 1);
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 1)), 0);
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 0)), 0);
}

static void test_a_caller_that_has_it_inlined(void **state)
{
    const struct made_line in_caller[] = {{"_Znwm", "", 0, true}, {"load", "", 0, false}, {0}};
    const struct made_line in_another[] = {{"malloc", "", 0, true}, {"_Znwm", "", 0, false}, {0}};
    (void)state;
    uint32_t locations[] = {make_location(profile, 0x402000, mapping, 0, in_another),
                            make_location(profile, 0x403000, mapping, 0, in_caller),
                            function("main")};
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 3)), 1);
    uint32_t stack = stack_of(&locations[1], 2);
    for (unsigned i = 0; i < 2; i++) {
        allocators_trim_first(profile, stack);
        const struct profile_location *first = &profile->locations[locations[1]];
        assert_int_equal(first->line_count, 1);
        uint32_t name = profile->functions[profile->lines[first->first_line].function].name;
        assert_string_equal(strings_get(&profile->strings, name), "load");
    }
    allocators_trim_first(profile, stack_of(locations, 1)); /* it would be left empty */
    assert_int_equal(profile->locations[locations[0]].line_count, 2);
}

static void test_without_a_name(void **state)
{
    (void)state;
    uint32_t note;
    assert_int_equal(profile_add_note(profile, "malloc", &note), 0);
    uint32_t locations[] = {make_location(profile, 0x402000, mapping, 0, NULL), note};
    assert_int_equal(allocators_count_leading(profile, stack_of(locations, 2)), 0);
    assert_int_equal(allocators_count_leading(profile, stack_of(&locations[1], 1)), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names),
        TEST(only_those_before_the_first_other_one),
        TEST(the_last_one_stays),
        TEST(a_caller_that_has_it_inlined),
        TEST(without_a_name),
    };
    return cmocka_run_group_tests_name("allocators", tests, NULL, NULL);
}

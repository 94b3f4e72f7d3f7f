/* Naming code in files, here in the test's own program. */
#include "own_module.h"
#include "unit.h"
#include "profile/name_locations.h"

int a_function_with_a_name(int number);

int a_function_with_a_name(int number)
{
    return number + 1;
}

static int open_program(void **state)
{
    int err = open_own_module(state);
    module.path = strdup("/bin/app");
    module.serial = 1;
    module.is_readable = true;
    return err;
}

static uint64_t own_address(const void *code)
{
    extern const char __executable_start[];
    return (uintptr_t)code - (uintptr_t)__executable_start + module.segments[0].address;
}

static void assert_named(const struct fgprof_profile *profile, uint32_t number, uint64_t offset)
{
    const struct profile_location *location = &profile->locations[number];
    assert_int_equal(location->line_count, 1);
    const struct profile_line *line = &profile->lines[location->first_line];
    assert_string_equal(strings_get(&profile->strings, profile->functions[line->function].name),
                        "a_function_with_a_name");
    assert_int_equal(location->function_offset, offset);
}

/* Names come from the reader, and for the next profile from the cache. */
static void test_functions_are_named(void **state)
{
    (void)state;
    struct name_cache cache;
    struct name_sources sources = {.names = FGPROF_NAMES_SHORT, .cache = &cache};
    uint64_t start = own_address((const void *)a_function_with_a_name);
    assert_int_equal(name_cache_init(&cache), 0);
    assert_int_equal(reader_new(READER_LIMIT_MS, &sources.reader), 0);
    for (unsigned round = 0; round < 2; round++) {
        struct fgprof_profile *profile;
        struct unnamed unnamed = {0};
        uint32_t locations[2];
        bool is_new;
        assert_int_equal(profile_new(&profile), 0);
        for (uint64_t offset = 0; offset < 2; offset++) {
            assert_int_equal(profile_add_location(profile, start + offset, PROFILE_NO_MAPPING,
                                                  &locations[offset], &is_new),
                             0);
            assert_int_equal(unnamed_add(&unnamed, &module, start + offset, locations[offset]), 0);
        }
        assert_int_equal(name_locations(profile, &unnamed, &sources), 0);
        assert_named(profile, locations[0], 0);
        assert_named(profile, locations[1], 1);
        assert_int_equal(cache.address_count, 2);
        unnamed_free(&unnamed);
        fgprof_profile_free(profile);
    }
    reader_free(sources.reader);
    name_cache_free(&cache);
}

/* Only the names from the unreadable file are missing, and the profile says so. */
static void test_a_file_that_can_not_be_read(void **state)
{
    (void)state;
    struct name_sources sources = {.names = FGPROF_NAMES_SHORT};
    struct module other = {.serial = 2, .path = strdup("/bin/other"), .is_readable = true};
    struct fgprof_profile *profile;
    struct unnamed unnamed = {0};
    uint32_t locations[2];
    bool is_new;
    uint64_t address = own_address((const void *)a_function_with_a_name);
    assert_int_equal(image_open_fd(&other.image, file_of_text("no ELF file")), 0);
    assert_int_equal(reader_new(READER_LIMIT_MS, &sources.reader), 0);
    assert_int_equal(profile_new(&profile), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            profile_add_location(profile, address + i, PROFILE_NO_MAPPING, &locations[i], &is_new),
            0);
        assert_int_equal(unnamed_add(&unnamed, i ? &module : &other, address, locations[i]), 0);
    }
    assert_int_equal(name_locations(profile, &unnamed, &sources), 0);
    assert_int_equal(profile->locations[locations[0]].line_count, 0);
    assert_named(profile, locations[1], 0);
    assert_int_equal(profile->unreadable_count, 1);
    assert_string_equal(strings_get(&profile->strings, profile->unreadable[0]),
                        "/bin/other (not a valid ELF file)");
    unnamed_free(&unnamed);
    fgprof_profile_free(profile);
    reader_free(sources.reader);
    module_clear(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_functions_are_named, open_program, close_own_module),
        cmocka_unit_test_setup_teardown(test_a_file_that_can_not_be_read, open_program,
                                        close_own_module),
    };
    return cmocka_run_group_tests_name("name_locations", tests, NULL, NULL);
}

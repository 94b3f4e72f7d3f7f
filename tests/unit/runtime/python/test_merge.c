#include "runtime/python/merge.h"
#include "unit.h"

/* Native and Python frames, leaf first. Native: an upper-case letter is a call of the evaluation
 * loop, a lower-case letter another function of the interpreter, and a digit a function of a
 * library. Python: letters, upper case for entry frames. */
static struct python_frames frames;
static bool is_cut, keeps_interpreter;

static enum native_kind kind_of(char c)
{
    return c >= '0' && c <= '9' ? NATIVE_OTHER : c == 'E' ? NATIVE_EVALUATION : NATIVE_INTERPRETER;
}

static void assert_merged(const char *native, const char *python, const char *wanted)
{
    uint64_t addresses[32], named[32], merged[64];
    enum native_kind kinds[32];
    char text[65];
    size_t depth = strlen(native);
    for (size_t i = 0; i < depth; i++) {
        addresses[i] = (unsigned char)native[i];
        kinds[i] = kind_of(native[i]);
    }
    frames.count = strlen(python);
    for (size_t i = 0; i < frames.count; i++) {
        named[i] = (unsigned char)python[i];
        frames.items[i].is_entry = python[i] >= 'A' && python[i] <= 'Z';
    }
    const struct native_stack stack = {addresses, kinds, depth, is_cut, keeps_interpreter};
    size_t got = python_merge(&stack, &frames, named, merged);
    for (size_t i = 0; i < got; i++)
        text[i] = (char)merged[i];
    text[got] = '\0';
    assert_string_equal(text, wanted);
}

static int reset(void **state)
{
    (void)state;
    is_cut = keeps_interpreter = frames.is_cut = false;
    return 0;
}

static void test_frames_take_the_place_of_the_loop(void **state)
{
    (void)state;
    assert_merged("1cE23", "fG", "1fG23");
    assert_merged("1abE4cEd5", "fGhI", "1fG4hI5"); /* a library calls Python again */
    assert_merged("aEb", "F", "F");
}

static void test_the_interpreters_frames_stay_if_wanted(void **state)
{
    (void)state;
    keeps_interpreter = true;
    assert_merged("1cEb2", "fG", "1cfGEb2");
}

static void test_a_call_without_a_frame_yet(void **state)
{
    (void)state;
    assert_merged("1E2E3", "fG", "12fG3");
    assert_merged("1E3", "", "13");
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    assert_merged("1E2", "FG", "");
    assert_merged("EEE", "F", "");
    assert_merged("12", "F", "");
}

static void test_native_stacks_that_are_cut(void **state)
{
    (void)state;
    is_cut = true;
    assert_merged("1E2", "fGhI", "1fG2hI"); /* known frames stay */
    assert_merged("1E2E", "fG", "");
}

static void test_python_frames_that_are_cut(void **state)
{
    (void)state;
    frames.is_cut = true;
    assert_merged("1E2E3E4", "fGh", "1fG2h34");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_frames_take_the_place_of_the_loop, reset),
        cmocka_unit_test_setup(test_the_interpreters_frames_stay_if_wanted, reset),
        cmocka_unit_test_setup(test_a_call_without_a_frame_yet, reset),
        cmocka_unit_test_setup(test_what_does_not_fit, reset),
        cmocka_unit_test_setup(test_native_stacks_that_are_cut, reset),
        cmocka_unit_test_setup(test_python_frames_that_are_cut, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

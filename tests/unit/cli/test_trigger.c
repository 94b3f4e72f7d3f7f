/* Parsing triggers as users type them. */
#include "unit.h"
#include "cli/record/trigger.h"

#include <errno.h>
#include <string.h>

#define MS 1000000ull

static struct trigger parsed(const char *text)
{
    struct trigger trigger;
    struct trigger_error error;
    int err = trigger_parse(text, &trigger, &error);
    if (err)
        print_message("%s: character %zu: %s\n", text, error.character, error.wanted);
    assert_int_equal(err, 0);
    assert_string_equal(trigger.text, text);
    return trigger;
}

static void assert_text(const char *text, const char *expected)
{
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
}

static void test_one_condition(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct {
            enum condition_kind kind;
            const char *thread_name, *function, *command;
            uint64_t least_ns;
            double percent;
        } expected;
    } cases[] = {
        {"thread io in read_all for 300ms",
         {.thread_name = "io", .function = "read_all", .least_ns = 300 * MS}},
        {"thread ^io-[0-9] blocked 2s", {.thread_name = "^io-[0-9]", .least_ns = 2000 * MS}},
        {"any in f for 1.5", {.function = "f", .least_ns = 1500 * MS}},
        {"any blocked 2s", {.least_ns = 2000 * MS}},
        {"  any\tblocked  for 1m ", {.least_ns = 60000 * MS}},
        {"any in operator new for 1ms", {.function = "operator new", .least_ns = MS}},
        {"any in \"wait for it\" for 1ms", {.function = "wait for it", .least_ns = MS}},
        {"thread \"all in\" in f for 1s",
         {.thread_name = "all in", .function = "f", .least_ns = 1000 * MS}},
        {"thread my pool 1 blocked 1s", {.thread_name = "my pool 1", .least_ns = 1000 * MS}},
        {"thread in in in for 1s", {.thread_name = "in", .function = "in", .least_ns = 1000 * MS}},
        {"any in read_[i] for 1s", {.function = "read", .least_ns = 1000 * MS}},
        {"any in _[i] for 1s", {.function = "_[i]", .least_ns = 1000 * MS}},
        {"any in [libc.so.6] for 1s", {.function = "[libc.so.6]", .least_ns = 1000 * MS}},
        {"runnable 20%", {.kind = CONDITION_RUNNABLE, .percent = 20}},
        {"runnable 100", {.kind = CONDITION_RUNNABLE, .percent = 100}},
        {"cpu above 180%", {.kind = CONDITION_CPU_ABOVE, .percent = 180}},
        {"cpu below 2.5%", {.kind = CONDITION_CPU_BELOW, .percent = 2.5}},
        {"deadlock", {.kind = CONDITION_DEADLOCK}},
        {"exit", {.kind = CONDITION_EXIT}},
        {"command test -e x and any blocked 2s",
         {.kind = CONDITION_COMMAND, .command = "test -e x and any blocked 2s"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trigger trigger = parsed(cases[i].text);
        assert_int_equal(trigger.count, 1);
        const struct condition *condition = trigger.conditions;
        assert_int_equal(condition->kind, cases[i].expected.kind);
        assert_text(condition->thread_name, cases[i].expected.thread_name);
        assert_text(condition->function, cases[i].expected.function);
        assert_text(condition->command, cases[i].expected.command);
        assert_int_equal(condition->least_ns, cases[i].expected.least_ns);
        assert_true(condition->percent == cases[i].expected.percent);
        assert_int_equal(trigger_needs_ns(&trigger), cases[i].expected.least_ns);
        trigger_free(&trigger);
    }
}

static void test_several_conditions(void **state)
{
    (void)state;
    struct trigger trigger = parsed("any blocked 2s and thread and in and for 3s and cpu below 5% "
                                    "and command true and false");
    assert_int_equal(trigger.count, 4);
    assert_int_equal(trigger.conditions[0].kind, CONDITION_SPAN);
    assert_string_equal(trigger.conditions[1].thread_name, "and");
    assert_string_equal(trigger.conditions[1].function, "and");
    assert_int_equal(trigger.conditions[2].kind, CONDITION_CPU_BELOW);
    assert_string_equal(trigger.conditions[3].command, "true and false");
    assert_int_equal(trigger_needs_ns(&trigger), 3000 * MS);
    trigger_free(&trigger);
    trigger_free(&trigger);
}

static void test_errors(void **state)
{
    (void)state;
#define CONDITION "give thread NAME, any, runnable, cpu, deadlock, exit or command CMD"
#define ACT "give 'in FUNCTION for TIME' or 'blocked TIME'"
#define FOR "give 'for TIME' after the function"
#define TIME "give a time such as 300ms or 2s"
#define PERCENT "give a percentage"
    static const struct {
        const char *text;
        size_t character;
        const char *wanted; /* how the message begins */
    } cases[] = {
        {"", 1, CONDITION},
        {"   ", 4, CONDITION},
        {"anyone blocked 2s", 1, CONDITION},
        {"any", 4, ACT},
        {"any blokked 2s", 5, ACT},
        {"any blocked", 12, TIME},
        {"any blocked soon", 13, TIME},
        {"any blocked 0s", 13, TIME},
        {"any blocked 2sec", 13, TIME},
        {"any blocked 1000000000000000000000000000000000000000000000s", 13, TIME},
        {"any in", 7, "give a name"},
        {"any in f", 9, FOR},
        {"any in f 300ms", 15, FOR},
        {"any in \"f\" 300ms", 12, FOR},
        {"any in f for", 13, TIME},
        {"any in f for 300 ms", 18, "give 'and' and another condition"},
        {"any in \"f for 1s", 8, "this quote has no end"},
        {"any in \"\" for 1s", 8, "give a name"},
        {"thread", 7, "give a name"},
        {"thread io", 10, ACT " after the name"},
        {"thread io- b( blocked 1s", 8, "Unmatched ("},
        {"runnable", 9, PERCENT},
        {"runnable much", 10, PERCENT},
        {"runnable 0%", 10, PERCENT},
        {"runnable 101%", 10, PERCENT},
        {"runnable -5%", 10, PERCENT},
        {"runnable 5%%", 10, PERCENT},
        {"runnable 1.2.3%", 10, PERCENT},
        {"cpu", 4, "give 'above N%' or 'below N%'"},
        {"cpu over 5%", 5, "give 'above N%' or 'below N%'"},
        {"cpu above 5 %", 13, "give 'and' and another condition"},
        {"cpu above 1e9%", 11, PERCENT},
        {"command", 8, "give a command for sh"},
        {"deadlock now", 10, "give 'and' and another condition"},
        {"deadlock or exit", 10, "give 'and' and another condition"},
        {"deadlock and", 13, CONDITION},
        {"deadlock and and exit", 14, CONDITION},
        {"thread \xc3\xa9t\xc3\xa9 blocked tard", 20, TIME}, /* characters are counted, not bytes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trigger trigger;
        struct trigger_error error = {0};
        assert_int_equal(trigger_parse(cases[i].text, &trigger, &error), -EINVAL);
        if (error.character != cases[i].character ||
            strncmp(error.wanted, cases[i].wanted, strlen(cases[i].wanted)) != 0)
            fail_msg("'%s': at %zu: %s", cases[i].text, error.character, error.wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_condition),
        cmocka_unit_test(test_several_conditions),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("trigger", tests, NULL, NULL);
}

/* Rules of Go's code, of functions made by hand. */
#include "make_pclntab.h"
#include "unwind/go_rule.h"

#ifdef __x86_64__

enum { RBP = 6, RSP = 7 };

/* Each function's code is nops, but for what is put there. */
#define CODE_BYTES 0x40

static struct made_go made;
static struct pclntab table;

static void make_function(const char *name, uint32_t frame_bytes, bool sets_stack_pointer)
{
    const struct made_function functions[] = {
        {name, CODE_BYTES, frame_bytes, {1, 2}, false, false, sets_stack_pointer, 0},
        {"next", CODE_BYTES, 8, {1, 2}, false, false, false, 0},
        {"foreign", CODE_BYTES, 0, {0, 0}, false, true, false, 0},
    };
    make_go(&made, PCLNTAB_1_18, functions, 3);
    memset(made.bytes + 0x1000, 0x90, 3 * CODE_BYTES);
    assert_true(pclntab_open(&table, &made.module));
}

static void put_code(uint64_t at, const char *code, size_t bytes)
{
    put_go(&made, MADE_GO_CODE + at, code, bytes);
}

static struct rule rule_at(uint64_t at)
{
    struct rule rule;
    assert_true(go_rule_make(&table, MADE_GO_CODE + at, &rule));
    return rule;
}

static void assert_place(const struct rule_place *place, uint8_t number, bool is_in_memory,
                         int32_t offset)
{
    assert_int_equal(place->register_number, number);
    assert_int_equal(place->is_in_memory, is_in_memory);
    assert_int_equal(place->offset, offset);
}

static void assert_frame(const struct rule *rule, int32_t frame_bytes)
{
    assert_int_equal(rule->kind, RULE_CALLER);
    assert_false(rule->may_leave_stack);
    assert_place(&rule->cfa, RSP, false, frame_bytes + 8);
    assert_int_equal(rule->cfa_offset, 0);
    assert_place(&rule->return_address, RULE_CFA, true, -8);
    assert_true(rule->has_frame_pointer);
    if (frame_bytes)
        assert_place(&rule->frame_pointer, RULE_CFA, true, -16);
    else
        assert_place(&rule->frame_pointer, RBP, false, 0);
}

static void test_frames(void **state)
{
    (void)state;
    make_function("main.main", 24, false);
    put_code(0x10, "\xe8\1\2\3\4", 5);
    struct rule rule = rule_at(0);
    assert_frame(&rule, 0);
    rule = rule_at(0x20);
    assert_frame(&rule, 24);
    /* There the register may not have been set yet, or not any more; at a call it is. */
    assert_true(rule.may_not_be_saved);
    rule = rule_at(0x14);
    assert_frame(&rule, 24);
    assert_false(rule.may_not_be_saved);
    assert_false(rule.is_no_call);
    assert_false(rule.caller_is_exact);
    made_go_free(&made);
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    struct rule rule;
    make_function("main.main", 24, false);
    assert_false(go_rule_make(&table, MADE_GO_CODE - 1, &rule));
    assert_false(go_rule_make(&table, MADE_GO_CODE + 3 * CODE_BYTES, &rule));
    assert_false(go_rule_make(&table, MADE_GO_CODE + 2 * CODE_BYTES, &rule));
    made_go_free(&made);
}

/* A frame that returns to the start of a function was not called by the one before. */
static void test_what_lies_before_a_function(void **state)
{
    (void)state;
    make_function("main.main", 24, false);
    assert_true(rule_at(CODE_BYTES - 1).is_no_call);
    assert_false(rule_at(CODE_BYTES - 2).is_no_call);
    assert_false(rule_at(CODE_BYTES).is_no_call);
    /* But one may end with a call that does not return. */
    put_code(CODE_BYTES - 5, "\xe8\1\2\3\4", 5);
    assert_false(rule_at(CODE_BYTES - 1).is_no_call);
    /* Of foreign code nothing else is known. */
    struct rule rule = rule_at(3 * CODE_BYTES - 1);
    assert_true(rule.is_no_call);
    assert_int_equal(rule.kind, RULE_NONE);
    made_go_free(&made);
}

static void test_functions_with_a_role(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum rule_kind kind;
        bool caller_is_exact;
    } functions[] = {
        {"runtime.goexit", RULE_FIRST_FRAME, false},
        {"runtime.mstart", RULE_FIRST_FRAME, false},
        {"runtime.rt0_go", RULE_FIRST_FRAME, false},
        {"runtime.sigreturn", RULE_SIGNAL_FRAME, false},
        {"runtime.sigreturn__sigaction", RULE_SIGNAL_FRAME, false},
        {"runtime.clone", RULE_NEW_STACK, false},
        {"runtime.asyncPreempt", RULE_CALLER, true},
        {"runtime.sigpanic", RULE_CALLER, true},
        {"runtime.sigpanic0", RULE_CALLER, true},
        {"runtime.goexit0", RULE_CALLER, false},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        make_function(functions[i].name, 0x100, false);
        struct rule rule = rule_at(0x20);
        assert_int_equal(rule.kind, functions[i].kind);
        assert_int_equal(rule.caller_is_exact, functions[i].caller_is_exact);
        made_go_free(&made);
    }
}

/* As systemstack, which may be on either stack. */
static void test_another_stack_without_a_frame(void **state)
{
    (void)state;
    make_function("runtime.systemstack", 0, true);
    put_code(0x10, "\xff\xd7", 2);
    struct rule rule = rule_at(0x11);
    assert_int_equal(rule.kind, RULE_LEFT_STACK);
    assert_place(&rule.cfa, RSP, false, 8);
    assert_place(&rule.frame_pointer, RBP, false, 0);
    made_go_free(&made);
}

/* As nanotime1, whose frame is where the register points, from when that is set until it is
 * restored. */
static void test_another_stack_with_a_frame(void **state)
{
    (void)state;
    static const char *const starts[] = {"\x48\x83\xec\x18", "\x55\x48\x89\xe5"};
    for (size_t i = 0; i < 2; i++) {
        make_function("runtime.nanotime1", 24, true);
        put_code(0, starts[i], 4);
        put_code(0x20, "\xff\xd0", 2);
        put_code(0x30, "\x48\x83\xc4\x18", 4);
        for (uint64_t at = 0x18; at < 0x30; at++) {
            struct rule rule = rule_at(at);
            assert_int_equal(rule.kind, RULE_CALLER);
            assert_true(rule.may_leave_stack);
            assert_place(&rule.cfa, RBP, false, 16);
            assert_place(&rule.frame_pointer, RULE_CFA, true, -16);
            assert_false(rule.may_not_be_saved);
        }
        struct rule first = rule_at(4), last = rule_at(0x30);
        assert_place(&first.cfa, RSP, false, 32);
        assert_true(first.may_not_be_saved);
        assert_place(&last.cfa, RSP, false, 32);
        made_go_free(&made);
    }
}

/* Once on the thread's stack, they are its first frame. */
static void test_no_way_back(void **state)
{
    (void)state;
    make_function("runtime.mcall", 0, true);
    put_code(0x20, "\x41\xff\xd4", 3);
    assert_int_equal(rule_at(0x10).kind, RULE_LEFT_STACK);
    assert_int_equal(rule_at(0x22).kind, RULE_FIRST_FRAME);
    made_go_free(&made);
    make_function("runtime.morestack", 0, true);
    put_code(0x19, "\x48\xc7\xc5\0\0\0\0\xe8\1\2\3\4", 12);
    struct rule before = rule_at(0x10);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(0x19).kind, RULE_FIRST_FRAME);
    assert_int_equal(rule_at(0x20).kind, RULE_FIRST_FRAME);
    assert_int_equal(rule_at(0x24).kind, RULE_FIRST_FRAME);
    made_go_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_what_lies_before_a_function),
        cmocka_unit_test(test_functions_with_a_role),
        cmocka_unit_test(test_another_stack_without_a_frame),
        cmocka_unit_test(test_another_stack_with_a_frame),
        cmocka_unit_test(test_no_way_back),
    };
    return cmocka_run_group_tests_name("go_rule", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif

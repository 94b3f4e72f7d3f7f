/* Rules of Go code, for handmade functions. The first function is tested; it calls the second. */
#include "make_go_code.h"
#include "unwind/go_rule.h"

static struct made_go made;
static struct pclntab table;

static void put_code(uint64_t at, const void *code, size_t bytes)
{
    put_go(&made, go_code_at(0, at), code, bytes);
}

static struct rule rule_at(uint64_t at)
{
    struct rule rule;
    assert_true(go_rule_make(&table, go_code_at(0, at), &rule));
    return rule;
}

static void assert_place(const struct rule_place *place, uint8_t number, bool is_in_memory,
                         int32_t offset)
{
    assert_int_equal(place->register_number, number);
    assert_int_equal(place->is_in_memory, is_in_memory);
    assert_int_equal(place->offset, offset);
}

/* ---- By architecture ---- */

#ifdef __aarch64__

enum { X29 = 29, X30 = 30, SP = 31 };

#define FRAME_BYTES 48u
#define CLONE_KIND RULE_CALLER /* it has not entered the kernel yet */

static void put_instruction(uint64_t at, uint32_t instruction)
{
    put_code(at, &instruction, sizeof instruction);
}

/* str x30, [sp, #-bytes]! */
static void put_prologue(uint32_t frame_bytes)
{
    if (frame_bytes)
        put_instruction(0, 0xf8000ffeu | ((0u - frame_bytes) & 0x1ffu) << 12);
}

static void assert_frame(const struct rule *rule, int32_t frame_bytes)
{
    assert_int_equal(rule->kind, RULE_CALLER);
    assert_false(rule->may_leave_stack);
    assert_place(&rule->cfa, SP, false, frame_bytes);
    assert_true(rule->has_frame_pointer);
    if (frame_bytes) {
        assert_place(&rule->return_address, SP, true, 0);
        assert_place(&rule->frame_pointer, SP, true, -8);
    } else {
        assert_place(&rule->return_address, X30, false, 0);
        assert_place(&rule->frame_pointer, X29, false, 0);
    }
}

#else

enum { RBP = 6, RSP = 7 };

#define FRAME_BYTES 24u
#define CLONE_KIND RULE_NEW_STACK

static void put_prologue(uint32_t frame_bytes)
{
    (void)frame_bytes; /* the function table is enough */
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

#endif

static void make(struct made_function function)
{
    const struct made_function functions[] = {
        function,
        {.name = "next", .frame_bytes = 8},
        {.name = "foreign", .is_foreign = true},
    };
    make_go_code(&made, functions, 3);
    put_prologue(function.frame_bytes);
    assert_true(pclntab_open(&table, &made.module));
}

static void make_function(const char *name, uint32_t frame_bytes, bool sets_stack_pointer)
{
    make((struct made_function){
        .name = name, .frame_bytes = frame_bytes, .sets_stack_pointer = sets_stack_pointer});
}

/* ---- On both ---- */

static void test_frames(void **state)
{
    (void)state;
    make_function("main.main", FRAME_BYTES, false);
    put_go_call(&made, 0, 0x14, 1);
    struct rule rule = rule_at(0);
    assert_frame(&rule, 0);
    rule = rule_at(0x20);
    assert_frame(&rule, FRAME_BYTES);
    /* Here the register may not be set yet, or already restored; at a call it is set. */
    assert_true(rule.may_not_be_saved);
    rule = rule_at(0x13);
    assert_frame(&rule, FRAME_BYTES);
    assert_false(rule.may_not_be_saved);
    assert_false(rule.is_no_call);
    assert_false(rule.caller_is_exact);
    made_go_free(&made);
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    struct rule rule;
    make_function("main.main", FRAME_BYTES, false);
    assert_false(go_rule_make(&table, MADE_GO_CODE - 1, &rule));
    assert_false(go_rule_make(&table, go_code_at(3, 0), &rule));
    assert_false(go_rule_make(&table, go_code_at(2, 0), &rule));
    made_go_free(&made);
}

/* A frame that returns to the start of a function was not called by the function before. */
static void test_what_lies_before_a_function(void **state)
{
    (void)state;
    make_function("main.main", FRAME_BYTES, false);
    assert_true(rule_at(GO_CODE_BYTES - 1).is_no_call);
    assert_false(rule_at(GO_CODE_BYTES - 2).is_no_call);
    assert_false(rule_at(GO_CODE_BYTES).is_no_call);
    /* But that function may end with a call that does not return. */
    put_go_call(&made, 0, GO_CODE_BYTES, 1);
    assert_false(rule_at(GO_CODE_BYTES - 1).is_no_call);
    /* Nothing else is known about foreign code. */
    struct rule rule = rule_at(3 * GO_CODE_BYTES - 1);
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
        {"runtime.clone", CLONE_KIND, false},
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

#ifdef __aarch64__

/* Four bytes of two instructions that look like a call. */
static void test_calls_are_aligned(void **state)
{
    (void)state;
    make_function("main.main", FRAME_BYTES, false);
    put_instruction(0x10, 0);
    put_instruction(0x14, 0x97);
    assert_true(rule_at(0x14).may_not_be_saved);
    made_go_free(&made);
}

/* While the frame pointer is set, systemstack's frame is where it points. */
static void test_another_stack(void **state)
{
    (void)state;
    make_function("runtime.systemstack", 16, true);
    put_instruction(0x30, 0xa97ffbfdu); /* ldp x29, x30, [sp, #-8] */
    put_instruction(0x38, 0xf85f83fdu); /* ldur x29, [sp, #-8] */
    for (uint64_t at = 12; at <= 0x30; at += 4) {
        struct rule rule = rule_at(at);
        assert_int_equal(rule.kind, RULE_CALLER);
        assert_true(rule.may_leave_stack);
        assert_true(rule.is_from_code);
        assert_false(rule.may_not_be_saved);
        assert_place(&rule.cfa, X29, false, 16 + 8);
        assert_place(&rule.return_address, RULE_CFA, true, -16);
        assert_place(&rule.frame_pointer, RULE_CFA, true, -16 - 8);
    }
    static const uint64_t edges[] = {4, 8, 0x34, 0x3c};
    for (unsigned i = 0; i < 4; i++) {
        struct rule rule = rule_at(edges[i]);
        assert_frame(&rule, 16);
        assert_true(rule.may_not_be_saved);
    }
    made_go_free(&made);
}

/* asmcgocall calls C from the thread's stack through a register; its earlier calls are direct. */
static void test_a_call_of_c(void **state)
{
    (void)state;
    make_function("runtime.asmcgocall", 16, true);
    put_go_call(&made, 0, 0x18, 1);
    put_go_indirect_call(&made, 0, 0x28);
    struct rule before = rule_at(0x17), at_call = rule_at(0x27), after = rule_at(0x28);
    assert_int_equal(before.kind, RULE_CALLER);
    assert_place(&before.cfa, X29, false, 16 + 8);
    assert_int_equal(at_call.kind, RULE_RUNS_C);
    at_call.kind = RULE_CALLER;
    assert_frame(&at_call, 16);
    assert_false(at_call.may_not_be_saved);
    assert_place(&after.cfa, X29, false, 16 + 8);
    made_go_free(&made);
    /* Other functions call Go. */
    make_function("runtime.systemstack", 16, true);
    put_go_indirect_call(&made, 0, 0x28);
    assert_int_equal(rule_at(0x27).kind, RULE_CALLER);
    made_go_free(&made);
}

/* systemstack was called on the thread's stack, and continues as if it had not been called. */
static void test_no_other_stack(void **state)
{
    (void)state;
    make_function("runtime.systemstack", 16, true);
    put_instruction(0x30, 0xf84107feu); /* ldr x30, [sp], #16 */
    assert_int_equal(rule_at(0x34).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x38).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x3c).kind, RULE_CALLER);
    /* A function that the compiler did not make may use the register for anything. */
    put_instruction(0, 0xd10043ffu); /* sub sp, sp, #16 */
    assert_int_equal(rule_at(0x20).kind, RULE_ON_THE_MOVE);
    made_go_free(&made);
}

/* Its code shows where it saved the registers: stp x29, x30, [sp, #16], and at the end ldp from the
 * same place. */
static void test_a_frame_made_by_hand(void **state)
{
    (void)state;
    make_function("crosscall2", 32, false);
    put_instruction(0, 0xd10083ffu);    /* sub sp, sp, #32 */
    put_instruction(4, 0xa9017bfdu);    /* stp x29, x30, [sp, #16] */
    put_instruction(0x34, 0xa9417bfdu); /* ldp x29, x30, [sp, #16] */
    put_instruction(0x38, 0x910083ffu); /* add sp, sp, #32 */
    put_instruction(0x3c, 0xd65f03c0u); /* ret */
    struct rule rule = rule_at(0x10);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_true(rule.is_from_code);
    assert_place(&rule.cfa, SP, false, 32);
    assert_place(&rule.return_address, SP, true, 24);
    assert_place(&rule.frame_pointer, SP, true, 16);
    made_go_free(&made);
}

/* Space for a call, below the frame. */
static void test_room_below_a_frame(void **state)
{
    (void)state;
    make((struct made_function){.name = "main.main", .frame_bytes = FRAME_BYTES, .more_bytes = 16});
    struct rule rule = rule_at(0x20), before = rule_at(0x1c);
    assert_frame(&before, FRAME_BYTES);
    assert_place(&rule.cfa, SP, false, FRAME_BYTES + 16);
    assert_place(&rule.return_address, SP, true, 16);
    assert_place(&rule.frame_pointer, SP, true, 8);
    made_go_free(&made);
}

/* A large frame is released in two steps, of which the table has one. */
static void test_the_end_of_a_large_frame(void **state)
{
    (void)state;
    make_function("main.main", FRAME_BYTES, false);
    put_instruction(0x30, 0x914007ffu); /* add sp, sp, #1, lsl #12 */
    put_instruction(0x34, 0x9100c3ffu); /* add sp, sp, #48 */
    assert_int_equal(rule_at(0x30).kind, RULE_CALLER);
    assert_int_equal(rule_at(0x34).kind, RULE_ON_THE_MOVE);
    made_go_free(&made);
}

/* Like gogo: after a call, the link register no longer holds its return address. */
static void test_a_function_without_a_frame_calls(void **state)
{
    (void)state;
    make_function("runtime.gogo", 0, false);
    put_go_indirect_call(&made, 0, 0x14);
    struct rule before = rule_at(0x10);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(0x14).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x13).kind, RULE_ON_THE_MOVE);
    made_go_free(&made);
}

/* Before the call of clone, and after it, when the calling and the new thread have the same
 * registers. */
static void test_a_new_thread(void **state)
{
    (void)state;
    make_function("runtime.clone", 0, false);
    put_instruction(0x20, 0xd4000001u); /* svc #0 */
    struct rule before = rule_at(0x20);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(0x24).kind, RULE_ON_THE_MOVE);
    made_go_free(&made);
}

/* mcall calls an unrelated function, sets the stack pointer, and makes a frame by hand. */
static void test_no_way_back(void **state)
{
    (void)state;
    make((struct made_function){
        .name = "runtime.mcall", .more_bytes = 16, .sets_stack_pointer = true});
    put_go_call(&made, 0, 0x14, 1);
    put_instruction(0x18, 0x9100001fu); /* mov sp, x0 */
    put_instruction(0x1c, 0xd10043ffu); /* sub sp, sp, #16 */
    struct rule before = rule_at(0x10);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(0x13).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x14).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x18).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(0x1c).kind, RULE_FIRST_FRAME);
    assert_int_equal(rule_at(0x20).kind, RULE_FIRST_FRAME);
    made_go_free(&made);
}

static void test_where_a_call_was_injected(void **state)
{
    (void)state;
    make_function("runtime.asyncPreempt", 64, false);
    put_instruction(0, 0xd10103ffu); /* sub sp, sp, #64 */
    struct rule at_start = rule_at(0), inside = rule_at(0x20);
    assert_true(at_start.caller_is_exact);
    assert_place(&at_start.cfa, SP, false, 16);
    assert_place(&at_start.return_address, X30, false, 0);
    assert_true(inside.caller_is_exact);
    assert_place(&inside.cfa, SP, false, 64 + 16);
    assert_place(&inside.return_address, SP, true, 0);
    made_go_free(&made);
}

#else

/* Like systemstack, which may be on either stack. */
static void test_another_stack_without_a_frame(void **state)
{
    (void)state;
    make_function("runtime.systemstack", 0, true);
    put_go_indirect_call(&made, 0, 0x12);
    struct rule rule = rule_at(0x11);
    assert_int_equal(rule.kind, RULE_LEFT_STACK);
    assert_place(&rule.cfa, RSP, false, 8);
    assert_place(&rule.frame_pointer, RBP, false, 0);
    made_go_free(&made);
}

/* Like nanotime1, whose frame is where the frame pointer points while that is set. */
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

/* Once on the thread's stack, these functions are its first frame. */
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

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_what_lies_before_a_function),
        cmocka_unit_test(test_functions_with_a_role),
        cmocka_unit_test(test_no_way_back),
#ifdef __aarch64__
        cmocka_unit_test(test_calls_are_aligned),
        cmocka_unit_test(test_another_stack),
        cmocka_unit_test(test_a_call_of_c),
        cmocka_unit_test(test_no_other_stack),
        cmocka_unit_test(test_a_frame_made_by_hand),
        cmocka_unit_test(test_room_below_a_frame),
        cmocka_unit_test(test_the_end_of_a_large_frame),
        cmocka_unit_test(test_a_function_without_a_frame_calls),
        cmocka_unit_test(test_a_new_thread),
        cmocka_unit_test(test_where_a_call_was_injected),
#else
        cmocka_unit_test(test_another_stack_without_a_frame),
        cmocka_unit_test(test_another_stack_with_a_frame),
#endif
    };
    return cmocka_run_group_tests_name("go_rule", tests, NULL, NULL);
}

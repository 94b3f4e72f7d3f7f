/* Go's frames where calls leave the return address in a register: AArch64. */
#include "unit.h"

#ifdef __aarch64__

#include "make_pclntab.h"
#include "make_walk.h"
#include "unwind/go_rule.h"

enum { X29 = 29, X30 = 30, SP = 31 };

#define GOROUTINE 0xc000000000u /* below the thread's stack, as it is */
#define GOROUTINE_WORDS 1024u
#define CODE_BYTES 0x40u
#define WORK_BYTES 48
#define COLLECT_BYTES 32
#define PREEMPT_BYTES 64
#define SYSTEMSTACK_BYTES 16

enum { SYSTEMSTACK, WORK, LEAF, GOEXIT, COLLECT, MCALL, CLONE, PREEMPT, BY_HAND, COUNT };

/* str x30, [sp, #-n]! */
#define PUSH_LINK(bytes) (0xf8000ffeu | ((0u - (bytes)) & 0x1ffu) << 12)
#define POP_LINK 0xf84107feu /* ldr x30, [sp], #16 */
#define SET_SP 0x9100001fu   /* mov sp, x0 */

static const struct made_function functions[COUNT] = {
    [SYSTEMSTACK] = {.name = "runtime.systemstack",
                     .frame_bytes = SYSTEMSTACK_BYTES,
                     .sets_stack_pointer = true},
    [WORK] = {.name = "main.work", .frame_bytes = WORK_BYTES},
    [LEAF] = {.name = "main.leaf"},
    [GOEXIT] = {.name = "runtime.goexit"},
    [COLLECT] = {.name = "runtime.collect", .frame_bytes = COLLECT_BYTES},
    [MCALL] = {.name = "runtime.mcall", .sets_stack_pointer = true},
    [CLONE] = {.name = "runtime.clone"},
    [PREEMPT] = {.name = "runtime.asyncPreempt", .frame_bytes = PREEMPT_BYTES},
    [BY_HAND] = {.name = "crosscall2", .frame_bytes = 32},
};

static struct made_go go;
static struct pclntab table;
static struct made_walk made;
static uint64_t goroutine[GOROUTINE_WORDS];

/* In the process. */
static uint64_t code_of(unsigned function, uint64_t at)
{
    return MADE_BIAS + MADE_GO_CODE + function * CODE_BYTES + at;
}

static uint64_t goroutine_at(uint64_t word)
{
    return GOROUTINE + 8 * word;
}

static void put_instruction(unsigned function, uint64_t at, uint32_t instruction)
{
    put_go32(&go, code_of(function, at) - MADE_BIAS, instruction);
}

/* A call that returns to `at`. Returns the return address. */
static uint64_t put_go_call(unsigned function, uint64_t at, unsigned target)
{
    uint64_t distance = code_of(target, 0) - code_of(function, at - 4);
    put_instruction(function, at - 4, 0x94000000u | (distance >> 2 & 0x3ffffff)); /* bl */
    return code_of(function, at);
}

static uint64_t put_indirect_call(unsigned function, uint64_t at)
{
    put_instruction(function, at - 4, 0xd63f0060u); /* blr x3 */
    return code_of(function, at);
}

static void begin_with(const struct made_function *made_functions)
{
    struct made_function sized[COUNT];
    memcpy(sized, made_functions, sizeof sized);
    for (unsigned i = 0; i < COUNT; i++)
        sized[i].code_bytes = CODE_BYTES;
    make_go(&go, PCLNTAB_1_18, sized, COUNT);
    for (unsigned i = 0; i < COUNT * CODE_BYTES; i += 4)
        put_instruction(0, i, 0xd503201fu); /* nop */
    put_instruction(SYSTEMSTACK, 0, PUSH_LINK(SYSTEMSTACK_BYTES));
    put_instruction(WORK, 0, PUSH_LINK(WORK_BYTES));
    put_instruction(COLLECT, 0, PUSH_LINK(COLLECT_BYTES));
    put_instruction(PREEMPT, 0, 0xd10103ffu); /* sub sp, sp, #64 */
    assert_true(pclntab_open(&table, &go.module));
    memset(&made, 0, sizeof made);
    memset(goroutine, 0, sizeof goroutine);
    made.mappings[0] = (struct mapping){
        .start = code_of(0, 0),
        .end = code_of(0, 0x1000),
        .module = &go.module,
        .bias = MADE_BIAS,
        .has_bias = true,
    };
    made.space = (struct space){.mappings = made.mappings, .mapping_count = 1};
    made.snapshot.stack = (struct stack_copy){.address = MADE_STACK,
                                              .memory = (unsigned char *)made.words,
                                              .bytes = sizeof made.words,
                                              .end = MADE_STACK + sizeof made.words,
                                              .end_is_known = true};
    made.snapshot.other_stack = (struct stack_copy){.address = GOROUTINE,
                                                    .memory = (unsigned char *)goroutine,
                                                    .bytes = sizeof goroutine,
                                                    .end = GOROUTINE + sizeof goroutine,
                                                    .end_is_known = true};
    made.max_depth = 100;
}

static int set_up(void **state)
{
    (void)state;
    begin_with(functions);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rule_tables_free(&made.tables);
    free(made.stack.addresses);
    made_go_free(&go);
    return 0;
}

/* ---- Rules ---- */

static struct rule rule_at(unsigned function, uint64_t at)
{
    struct rule rule;
    assert_true(go_rule_make(&table, code_of(function, at) - MADE_BIAS, &rule));
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

static void test_frames(void **state)
{
    (void)state;
    put_go_call(WORK, 0x14, LEAF);
    struct rule at_start = rule_at(WORK, 0), inside = rule_at(WORK, 0x20);
    struct rule at_call = rule_at(WORK, 0x13);
    assert_frame(&at_start, 0);
    /* There the register may not have been set yet, or not any more; at a call it is. */
    assert_frame(&inside, WORK_BYTES);
    assert_true(inside.may_not_be_saved);
    assert_frame(&at_call, WORK_BYTES);
    assert_false(at_call.may_not_be_saved);
}

/* Four bytes of two instructions that look like a call. */
static void test_calls_are_aligned(void **state)
{
    (void)state;
    put_instruction(WORK, 0x10, 0);
    put_instruction(WORK, 0x14, 0x97);
    assert_true(rule_at(WORK, 0x14).may_not_be_saved);
}

/* systemstack's frame is where the register points, from when that is set until it is restored. */
static void test_another_stack(void **state)
{
    (void)state;
    put_instruction(SYSTEMSTACK, 0x30, 0xa97ffbfdu); /* ldp x29, x30, [sp, #-8] */
    put_instruction(SYSTEMSTACK, 0x38, 0xf85f83fdu); /* ldur x29, [sp, #-8] */
    for (uint64_t at = 12; at <= 0x30; at += 4) {
        struct rule rule = rule_at(SYSTEMSTACK, at);
        assert_int_equal(rule.kind, RULE_CALLER);
        assert_true(rule.may_leave_stack);
        assert_true(rule.is_from_code);
        assert_false(rule.may_not_be_saved);
        assert_place(&rule.cfa, X29, false, SYSTEMSTACK_BYTES + 8);
        assert_place(&rule.return_address, RULE_CFA, true, -SYSTEMSTACK_BYTES);
        assert_place(&rule.frame_pointer, RULE_CFA, true, -SYSTEMSTACK_BYTES - 8);
    }
    static const uint64_t edges[] = {4, 8, 0x34, 0x3c};
    for (unsigned i = 0; i < 4; i++) {
        struct rule rule = rule_at(SYSTEMSTACK, edges[i]);
        assert_frame(&rule, SYSTEMSTACK_BYTES);
        assert_true(rule.may_not_be_saved);
    }
}

/* It was there already, and goes on as if it had not been called. */
static void test_no_other_stack(void **state)
{
    (void)state;
    put_instruction(SYSTEMSTACK, 0x30, POP_LINK);
    assert_int_equal(rule_at(SYSTEMSTACK, 0x34).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(SYSTEMSTACK, 0x38).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(SYSTEMSTACK, 0x3c).kind, RULE_CALLER);
    /* One that is not made by the compiler does with the register what it likes. */
    put_instruction(SYSTEMSTACK, 0, 0xd10043ffu); /* sub sp, sp, #16 */
    assert_int_equal(rule_at(SYSTEMSTACK, 0x20).kind, RULE_ON_THE_MOVE);
}

/* Its code says where it saved the registers: stp x29, x30, [sp, #16] before, and at the end the
 * same back. */
static void test_a_frame_made_by_hand(void **state)
{
    (void)state;
    put_instruction(BY_HAND, 0, 0xd10083ffu);    /* sub sp, sp, #32 */
    put_instruction(BY_HAND, 4, 0xa9017bfdu);    /* stp x29, x30, [sp, #16] */
    put_instruction(BY_HAND, 0x34, 0xa9417bfdu); /* ldp x29, x30, [sp, #16] */
    put_instruction(BY_HAND, 0x38, 0x910083ffu); /* add sp, sp, #32 */
    put_instruction(BY_HAND, 0x3c, 0xd65f03c0u); /* ret */
    struct rule rule = rule_at(BY_HAND, 0x10);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_true(rule.is_from_code);
    assert_place(&rule.cfa, SP, false, 32);
    assert_place(&rule.return_address, SP, true, 24);
    assert_place(&rule.frame_pointer, SP, true, 16);
}

/* Room for a call, below the frame. */
static void test_room_below_a_frame(void **state)
{
    struct made_function more[COUNT];
    tear_down(state);
    memcpy(more, functions, sizeof more);
    more[WORK].more_bytes = 16;
    begin_with(more);
    struct rule rule = rule_at(WORK, 0x20), before = rule_at(WORK, 0x1c);
    assert_frame(&before, WORK_BYTES);
    assert_place(&rule.cfa, SP, false, WORK_BYTES + 16);
    assert_place(&rule.return_address, SP, true, 16);
    assert_place(&rule.frame_pointer, SP, true, 8);
}

/* A large frame is given back in two steps, of which the table knows one. */
static void test_the_end_of_a_large_frame(void **state)
{
    (void)state;
    put_instruction(WORK, 0x30, 0x914007ffu); /* add sp, sp, #1, lsl #12 */
    put_instruction(WORK, 0x34, 0x9100c3ffu); /* add sp, sp, #48 */
    assert_int_equal(rule_at(WORK, 0x30).kind, RULE_CALLER);
    assert_int_equal(rule_at(WORK, 0x34).kind, RULE_ON_THE_MOVE);
}

/* As gogo: once it has called, its register is no longer its caller's. */
static void test_a_function_without_a_frame_calls(void **state)
{
    (void)state;
    put_indirect_call(LEAF, 0x14);
    struct rule before = rule_at(LEAF, 0x10);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(LEAF, 0x14).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(LEAF, 0x13).kind, RULE_ON_THE_MOVE);
}

/* The thread that calls clone, before it has; then it and the new one have the same registers. */
static void test_a_new_thread(void **state)
{
    (void)state;
    put_instruction(CLONE, 0x20, 0xd4000001u); /* svc #0 */
    struct rule before = rule_at(CLONE, 0x20);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(CLONE, 0x24).kind, RULE_ON_THE_MOVE);
}

/* mcall calls a function of no account, sets the stack pointer, and makes a frame by hand. */
static void test_no_way_back(void **state)
{
    struct made_function with_frame[COUNT];
    tear_down(state);
    memcpy(with_frame, functions, sizeof with_frame);
    with_frame[MCALL].more_bytes = 16;
    begin_with(with_frame);
    put_go_call(MCALL, 0x14, LEAF);
    put_instruction(MCALL, 0x1c, 0xd10043ffu); /* sub sp, sp, #16 */
    put_instruction(MCALL, 0x18, SET_SP);
    struct rule before = rule_at(MCALL, 0x10);
    assert_frame(&before, 0);
    assert_int_equal(rule_at(MCALL, 0x13).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(MCALL, 0x14).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(MCALL, 0x18).kind, RULE_ON_THE_MOVE);
    assert_int_equal(rule_at(MCALL, 0x1c).kind, RULE_FIRST_FRAME);
    assert_int_equal(rule_at(MCALL, 0x20).kind, RULE_FIRST_FRAME);
}

static void test_where_a_call_was_injected(void **state)
{
    (void)state;
    struct rule at_start = rule_at(PREEMPT, 0), inside = rule_at(PREEMPT, 0x20);
    assert_true(at_start.caller_is_exact);
    assert_place(&at_start.cfa, SP, false, 16);
    assert_place(&at_start.return_address, X30, false, 0);
    assert_true(inside.caller_is_exact);
    assert_place(&inside.cfa, SP, false, PREEMPT_BYTES + 16);
    assert_place(&inside.return_address, SP, true, 0);
}

/* ---- Stacks ---- */

/* main.work on the goroutine's stack, from this word of it. */
static void put_work(uint64_t word)
{
    goroutine[word] = code_of(GOEXIT, 4);
}

static void test_a_leaf(void **state)
{
    (void)state;
    made.words[4] = code_of(GOEXIT, 4);
    set_register(&made, X30, put_go_call(WORK, 0x20, LEAF));
    set_register(&made, X29, word_at(3));
    assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(LEAF, 0x10), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 3));
}

/* A thread that sleeps in a call does not show the register. What its caller returns to says which
 * function that is. */
static void test_a_leaf_that_sleeps(void **state)
{
    (void)state;
    made.words[4] = put_go_call(COLLECT, 0x20, WORK);
    made.words[4 + WORK_BYTES / 8] = code_of(GOEXIT, 4);
    put_go_call(WORK, 0x18, COLLECT);
    put_go_call(WORK, 0x20, LEAF);
    put_go_call(WORK, 0x30, LEAF);
    assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(LEAF, 0x10), code_of(WORK, 0x1f),
                 code_of(COLLECT, 0x1f), code_of(GOEXIT, 3));
    assert_int_equal(made.stack.depth, 4);
}

static void test_a_leaf_whose_caller_is_not_known(void **state)
{
    (void)state;
    const uint64_t saved[] = {
        put_go_call(COLLECT, 0x20, PREEMPT), /* of a function that does not call it */
        put_indirect_call(COLLECT, 0x30),    /* of any function */
        code_of(COLLECT, 0x10),              /* not after a call */
        0,
    };
    put_go_call(WORK, 0x20, LEAF);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        made.words[4] = saved[i];
        assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_of(LEAF, 0x10));
    }
}

/* runtime.collect runs on the thread's stack, called by systemstack for main.work. What is below
 * the stack pointer is in the copy, as where collect has called another function. */
static void put_collect(void)
{
    put_work(502);
    goroutine[500] = put_go_call(WORK, 0x20, SYSTEMSTACK);
    made.words[4] = put_indirect_call(SYSTEMSTACK, 0x20);
    made.words[3] = goroutine_at(499);
    set_register(&made, X29, word_at(3));
}

static void test_from_the_threads_stack_to_the_goroutines(void **state)
{
    (void)state;
    put_collect();
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SYSTEMSTACK, 0x1f),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 3));
    assert_true(made.hints.used_other_stack);
    /* Just before it is saved. */
    made.words[3] = 0xbad;
    set_register(&made, X29, goroutine_at(499));
    assert_int_equal(walk_from(&made, code_of(COLLECT, 8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 8), code_of(SYSTEMSTACK, 0x1f),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 3));
}

/* Before Go 1.21 the register has what the thread's own stack had: nothing, anything, or another
 * function's frame, of which systemstack was not called. */
static void test_the_goroutines_stack_is_not_known(void **state)
{
    (void)state;
    static const uint64_t others[] = {0, MADE_STACK + 8 * 20, MADE_STACK + 8 * 30};
    put_collect();
    made.words[21] = code_of(WORK, 8);
    made.words[31] = put_go_call(WORK, 0x30, LEAF);
    for (unsigned i = 0; i < 3; i++) {
        made.words[3] = others[i];
        assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 4), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(COLLECT, 0x10),
                     code_of(SYSTEMSTACK, 0x1f));
    }
}

/* systemstack has not left its caller's stack yet: of its frame pointer there is no copy. */
static void test_before_the_stack_is_left(void **state)
{
    (void)state;
    made.snapshot.stack.address += 32;
    made.snapshot.stack.memory += 32;
    made.snapshot.stack.bytes -= 32;
    made.words[4] = put_go_call(WORK, 0x20, SYSTEMSTACK);
    made.words[6] = code_of(GOEXIT, 4);
    set_register(&made, X29, word_at(3));
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(SYSTEMSTACK, 0x20), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 3));
    assert_int_equal(made.hints.missing_address, 0);
}

/* A signal handler made it look as if main.work had called. */
static void test_from_an_injected_call(void **state)
{
    (void)state;
    uint64_t frame = 4, interrupted = frame + (PREEMPT_BYTES + 16) / 8;
    made.words[frame] = code_of(WORK, 0x18);
    made.words[interrupted] = code_of(GOEXIT, 4);
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x20), frame), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x20), code_of(WORK, 0x18),
                 code_of(GOEXIT, 3));
    /* A leaf's return address was in the register that the handler put on the stack. */
    made.words[frame] = code_of(LEAF, 0x18);
    made.words[interrupted - 2] = put_go_call(WORK, 0x30, LEAF);
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x20), frame), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x20), code_of(LEAF, 0x18),
                 code_of(WORK, 0x2f), code_of(GOEXIT, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_calls_are_aligned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_other_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_frame_made_by_hand, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_room_below_a_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_large_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_without_a_frame_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_new_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_way_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_a_call_was_injected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_leaf, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_leaf_that_sleeps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_leaf_whose_caller_is_not_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_from_the_threads_stack_to_the_goroutines, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_the_goroutines_stack_is_not_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_before_the_stack_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_from_an_injected_call, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("walk_go_link", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif

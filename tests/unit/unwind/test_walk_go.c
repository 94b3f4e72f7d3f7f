/* From the stack of a thread of Go to the goroutine's that it left, and other ways that Go's
 * runtime goes. */
#include "make_walk.h"
#include "make_pclntab.h"

#ifdef __x86_64__

#define GOROUTINE 0xc000000000u /* below the thread's stack, as it is */
#define GOROUTINE_WORDS 1024u
#define CODE_BYTES 0x40u

enum { SYSTEMSTACK, WORK, GOEXIT, COLLECT, OTHER, NANOTIME, CLONE, PREEMPT, SWITCH, COUNT };

static const struct made_function functions[COUNT] = {
    [SYSTEMSTACK] = {.name = "runtime.systemstack", .sets_stack_pointer = true},
    [WORK] = {.name = "main.work", .frame_bytes = 40},
    [GOEXIT] = {.name = "runtime.goexit"},
    [COLLECT] = {.name = "runtime.collect", .frame_bytes = 24},
    [OTHER] = {.name = "main.other", .frame_bytes = 72},
    [NANOTIME] = {.name = "runtime.nanotime1", .frame_bytes = 24, .sets_stack_pointer = true},
    [CLONE] = {.name = "runtime.clone"},
    [PREEMPT] = {.name = "runtime.asyncPreempt", .frame_bytes = 32},
    [SWITCH] = {.name = "runtime.systemstack_switch"},
};

static struct made_go go;
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

/* A call that returns to `at`. Returns the return address. */
static uint64_t put_go_call(unsigned function, uint64_t at, unsigned target)
{
    uint64_t next = code_of(function, at);
    int32_t distance = (int32_t)(code_of(target, 0) - next);
    put_go(&go, next - MADE_BIAS - 5, "\xe8", 1);
    put_go(&go, next - MADE_BIAS - 4, &distance, sizeof distance);
    return next;
}

static uint64_t put_indirect_call(unsigned function, uint64_t at)
{
    put_go(&go, code_of(function, at) - MADE_BIAS - 2, "\xff\xd7", 2);
    return code_of(function, at);
}

static void begin(void)
{
    struct made_function sized[COUNT];
    memcpy(sized, functions, sizeof sized);
    for (unsigned i = 0; i < COUNT; i++)
        sized[i].code_bytes = CODE_BYTES;
    make_go(&go, PCLNTAB_1_18, sized, COUNT);
    memset(go.bytes + 0x1000, 0x90, COUNT * CODE_BYTES);
    put_go(&go, code_of(NANOTIME, 0) - MADE_BIAS, "\x48\x83\xec\x18", 4);
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

static void end(void)
{
    rule_tables_free(&made.tables);
    free(made.stack.addresses);
    made_go_free(&go);
}

/* main.work's frame, the goroutine's first but goexit: the frame pointer is at the word 500, so
 * that what it called returns to it 40 bytes below. */
static void put_goroutine(unsigned called)
{
    goroutine[500 - 5] = put_go_call(WORK, 0x20, called);
    goroutine[501] = code_of(GOEXIT, 1);
}

/* runtime.collect runs on the thread's stack, called by systemstack for main.work. */
static void put_collect(void)
{
    set_register(&made, RBP, word_at(2));
    made.words[2] = goroutine_at(500);
    made.words[3] = put_indirect_call(SYSTEMSTACK, 0x20);
    /* Where a frame of systemstack on this stack would return to, something is left. */
    made.words[4] = put_go_call(OTHER, 0x30, SYSTEMSTACK);
}

#define ASSERT_COLLECT_FOR_WORK()                                                                  \
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SYSTEMSTACK, 0x1f),     \
                 code_of(WORK, 0x1f), code_of(GOEXIT, 0))

static void test_from_the_threads_stack_to_the_goroutines(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_COLLECT_FOR_WORK();
    assert_true(made.hints.used_other_stack);
    end();
}

/* Every stack of Go ends in a function that is known to be the first. */
static void test_a_return_address_of_0_is_no_end(void **state)
{
    (void)state;
    begin();
    assert_int_equal(walk_from(&made, code_of(WORK, 0x20), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(WORK, 0x20));
    end();
}

static void test_the_goroutines_stack_is_not_copied_yet(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    made.snapshot.other_stack.bytes = 0;
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_of(COLLECT, 0x10),
                 code_of(SYSTEMSTACK, 0x1f));
    assert_int_equal(made.hints.missing_address, goroutine_at(500));
    end();
}

/* The runtime takes all its stacks from one mapping: a longer copy would not do. */
static void test_both_stacks_in_one_mapping(void **state)
{
    (void)state;
    begin();
    uint64_t copy_end = MADE_STACK + sizeof made.words;
    put_goroutine(SYSTEMSTACK);
    put_collect();
    made.snapshot.other_stack.bytes = 0;
    made.snapshot.stack.end = MADE_STACK + (64u << 20);
    made.words[2] = copy_end + WALK_FAR_BYTES + 8;
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    assert_false(made.hints.needs_more_stack);
    assert_int_equal(made.hints.missing_address, made.words[2]);
    /* So near it may be the rest of it. */
    made.words[2] = copy_end + WALK_FAR_BYTES;
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    assert_true(made.hints.needs_more_stack);
    assert_int_equal(made.hints.missing_address, 0);
    end();
}

static void test_without_the_frame_pointer(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    forget_register(&made, RBP);
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_of(SYSTEMSTACK, 0x20));
    end();
}

/* An earlier call of another function, whose frame ended at the same place, is still there: the
 * function that called both says which it called last. */
static void test_what_an_earlier_call_left_behind(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    goroutine[500 - 9] = put_go_call(OTHER, 0x30, SYSTEMSTACK);
    goroutine[501] = put_go_call(COLLECT, 0x30, WORK);
    goroutine[502 + 3] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SYSTEMSTACK, 0x1f),
                 code_of(WORK, 0x1f), code_of(COLLECT, 0x2f), code_of(GOEXIT, 0));
    goroutine[501] = put_go_call(COLLECT, 0x30, OTHER);
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    assert_int_equal(made.stack.addresses[2], code_of(OTHER, 0x2f));
    /* Where nothing says it, neither is believed. */
    goroutine[501] = put_indirect_call(COLLECT, 0x3a);
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(COLLECT, 0x10),
                 code_of(SYSTEMSTACK, 0x1f));
    end();
}

/* What called another function, or whose frame does not end at the frame pointer. */
static void test_what_did_not_call(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    goroutine[500 - 5] = put_go_call(WORK, 0x30, COLLECT);
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(COLLECT, 0x10),
                 code_of(SYSTEMSTACK, 0x1f));
    goroutine[500 - 4] = code_of(WORK, 0x20);
    goroutine[500 - 5] = 0;
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(COLLECT, 0x10),
                 code_of(SYSTEMSTACK, 0x1f));
    end();
}

/* systemstack is still on the goroutine's stack. */
static void test_before_the_stack_is_left(void **state)
{
    (void)state;
    begin();
    set_register(&made, RBP, word_at(9));
    made.words[4] = put_go_call(WORK, 0x20, SYSTEMSTACK);
    made.words[10] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(SYSTEMSTACK, 8), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 0));
    end();
}

/* The clock is read on the thread's stack; the function's own frame is on the goroutine's. */
static void test_a_frame_on_the_stack_that_was_left(void **state)
{
    (void)state;
    begin();
    set_register(&made, RBP, goroutine_at(490));
    goroutine[490] = goroutine_at(497);
    goroutine[491] = put_go_call(SYSTEMSTACK, 0x10, NANOTIME);
    goroutine[492] = put_go_call(WORK, 0x20, SYSTEMSTACK);
    goroutine[498] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(NANOTIME, 0x18), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(NANOTIME, 0x18), code_of(SYSTEMSTACK, 0xf),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 0));
    /* Cleared: there is nothing there. */
    set_register(&made, RBP, 0);
    assert_int_equal(walk_from(&made, code_of(NANOTIME, 0x18), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(NANOTIME, 0x18));
    end();
}

/* Frames that lead round in a circle. */
static void test_stacks_in_a_circle(void **state)
{
    (void)state;
    begin();
    set_register(&made, RBP, goroutine_at(490));
    goroutine[490] = goroutine_at(490);
    goroutine[491] = put_go_call(NANOTIME, 0x30, NANOTIME);
    assert_int_equal(walk_from(&made, code_of(NANOTIME, 0x18), 0), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_true(made.stack.depth < 20);
    end();
}

/* The registers are those of the thread that made it, and lead to where that is. */
static void test_a_thread_that_has_just_begun(void **state)
{
    (void)state;
    begin();
    put_goroutine(CLONE);
    set_register(&made, RBP, goroutine_at(500));
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x20));
    /* In the one that made it. */
    set_register(&made, RBP, word_at(9));
    made.words[4] = put_go_call(WORK, 0x20, CLONE);
    made.words[10] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x20), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 0));
    end();
}

/* A signal handler made it look as if main.work had called, where it just made its frame. */
static void test_where_a_call_was_injected(void **state)
{
    (void)state;
    begin();
    made.words[4] = code_of(WORK, 1);
    made.words[10] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x10), code_of(WORK, 1),
                 code_of(GOEXIT, 0));
    end();
}

/* A callback from C returns to the start of a function that only marks where the stack was left. */
static void test_a_return_to_what_was_not_called(void **state)
{
    (void)state;
    begin();
    made.words[3] = code_of(SWITCH, 0);
    made.words[4] = put_go_call(WORK, 0x20, SWITCH);
    made.words[10] = code_of(GOEXIT, 1);
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SWITCH, 0),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 0));
    end();
}

/* The register is saved a little after the frame has been made. */
static void test_a_frame_whose_frame_pointer_is_not_saved_yet(void **state)
{
    (void)state;
    begin();
    put_goroutine(SYSTEMSTACK);
    put_collect();
    set_register(&made, RBP, goroutine_at(500));
    made.words[2] = 0xbad;
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), 0), 0);
    ASSERT_COLLECT_FOR_WORK();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_the_threads_stack_to_the_goroutines),
        cmocka_unit_test(test_a_return_address_of_0_is_no_end),
        cmocka_unit_test(test_the_goroutines_stack_is_not_copied_yet),
        cmocka_unit_test(test_both_stacks_in_one_mapping),
        cmocka_unit_test(test_without_the_frame_pointer),
        cmocka_unit_test(test_what_an_earlier_call_left_behind),
        cmocka_unit_test(test_what_did_not_call),
        cmocka_unit_test(test_before_the_stack_is_left),
        cmocka_unit_test(test_a_frame_on_the_stack_that_was_left),
        cmocka_unit_test(test_stacks_in_a_circle),
        cmocka_unit_test(test_a_thread_that_has_just_begun),
        cmocka_unit_test(test_where_a_call_was_injected),
        cmocka_unit_test(test_a_return_to_what_was_not_called),
        cmocka_unit_test(test_a_frame_whose_frame_pointer_is_not_saved_yet),
    };
    return cmocka_run_group_tests_name("walk_go", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif

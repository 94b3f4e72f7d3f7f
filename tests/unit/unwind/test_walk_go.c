/* Unwinding from the stack of a Go thread to the goroutine's stack that it left, and other stack
 * switches of Go's runtime. */
#include "make_go_code.h"
#include "make_walk.h"

#define GOROUTINE 0xc000000000u /* below the thread's stack, as it is */
#define GOROUTINE_WORDS 1024u

static struct made_go go;
static struct made_walk made;
static uint64_t goroutine[GOROUTINE_WORDS];

/* In the process. */
static uint64_t code_of(unsigned function, uint64_t at)
{
    return MADE_BIAS + go_code_at(function, at);
}

static uint64_t goroutine_at(uint64_t word)
{
    return GOROUTINE + 8 * word;
}

static void put_instruction(unsigned function, uint64_t at, const void *code, size_t bytes)
{
    put_go(&go, go_code_at(function, at), code, bytes);
}

/* A call that returns to `at`. Returns the return address. */
static uint64_t call(unsigned function, uint64_t at, unsigned target)
{
    put_go_call(&go, function, at, target);
    return code_of(function, at);
}

static uint64_t call_indirectly(unsigned function, uint64_t at)
{
    put_go_indirect_call(&go, function, at);
    return code_of(function, at);
}

/* ---- By architecture ---- */

#ifdef __aarch64__

#define FRAME_POINTER X29
enum { X29 = 29, X30 = 30 };

#define WORK_BYTES 48u
#define PREEMPT_BYTES 64u

enum { SYSTEMSTACK, WORK, GOEXIT, COLLECT, CLONE, PREEMPT, LEAF, ASMCGOCALL, COUNT };
#define LEAVING SYSTEMSTACK

static const struct made_function functions[COUNT] = {
    [SYSTEMSTACK] = {.name = "runtime.systemstack", .frame_bytes = 16, .sets_stack_pointer = true},
    [WORK] = {.name = "main.work", .frame_bytes = WORK_BYTES},
    [GOEXIT] = {.name = "runtime.goexit"},
    [COLLECT] = {.name = "runtime.collect", .frame_bytes = 32},
    [CLONE] = {.name = "runtime.clone"},
    [PREEMPT] = {.name = "runtime.asyncPreempt", .frame_bytes = PREEMPT_BYTES},
    [LEAF] = {.name = "main.leaf"},
    [ASMCGOCALL] = {.name = "runtime.asmcgocall", .frame_bytes = 16, .sets_stack_pointer = true},
};

/* str x30, [sp, #-bytes]! where there is a frame */
static void put_prologues(void)
{
    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t bytes = functions[i].frame_bytes;
        uint32_t instruction = 0xf8000ffeu | ((0u - bytes) & 0x1ffu) << 12;
        if (bytes)
            put_instruction(i, 0, &instruction, sizeof instruction);
    }
}

/* On the goroutine's stack: the return address of main.work, that of the function which it called,
 * and where the frame pointer of that function leads. */
enum { ROOT_WORD = 502, RETURN_WORD = 500, LEFT_WORD = 499 };
/* On the thread's stack: runtime.collect's stack pointer, and where it saves the frame pointer; and
 * up to which offset in its code it may not have done so. */
enum { COLLECT_WORD = 4, SAVED_WORD = 3, UNSAVED = 8 };
/* The offset of the first word that is read of a frame to which a frame pointer leads. */
#define READ_FIRST 8

#else

#define FRAME_POINTER RBP

enum { SYSTEMSTACK, WORK, GOEXIT, COLLECT, CLONE, PREEMPT, OTHER, NANOTIME, SWITCH, COUNT };
#define LEAVING NANOTIME

static const struct made_function functions[COUNT] = {
    [SYSTEMSTACK] = {.name = "runtime.systemstack", .sets_stack_pointer = true},
    [WORK] = {.name = "main.work", .frame_bytes = 40},
    [GOEXIT] = {.name = "runtime.goexit"},
    [COLLECT] = {.name = "runtime.collect", .frame_bytes = 24},
    [CLONE] = {.name = "runtime.clone"},
    [PREEMPT] = {.name = "runtime.asyncPreempt", .frame_bytes = 32},
    [OTHER] = {.name = "main.other", .frame_bytes = 72},
    [NANOTIME] = {.name = "runtime.nanotime1", .frame_bytes = 24, .sets_stack_pointer = true},
    [SWITCH] = {.name = "runtime.systemstack_switch"},
};

static void put_prologues(void)
{
    put_instruction(NANOTIME, 0, "\x48\x83\xec\x18", 4);
}

enum { ROOT_WORD = 501, RETURN_WORD = 495, LEFT_WORD = 500 };
enum { COLLECT_WORD = 0, SAVED_WORD = 2, UNSAVED = 0x10 };
#define READ_FIRST 0

#endif

/* The address by which goexit is looked up, as if it had made a call. */
#define IN_GOEXIT (MADE_GO_QUANTUM - 1)

static uint64_t root(void)
{
    return code_of(GOEXIT, IN_GOEXIT + 1);
}

static int set_up(void **state)
{
    (void)state;
    make_go_code(&go, functions, COUNT);
    put_prologues();
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

/* main.work has called a function; it is the goroutine's first function after goexit. */
static void put_goroutine(unsigned called)
{
    goroutine[RETURN_WORD] = call(WORK, 0x20, called);
    goroutine[ROOT_WORD] = root();
}

/* runtime.collect runs on the thread's stack, called by systemstack for main.work. On aarch64 its
 * saved frame pointer is below its stack pointer, and so in the copy only if it has made a call. */
static void put_collect(void)
{
    put_goroutine(SYSTEMSTACK);
    set_register(&made, FRAME_POINTER, word_at(SAVED_WORD));
    made.words[SAVED_WORD] = goroutine_at(LEFT_WORD);
    made.words[SAVED_WORD + 1] = call_indirectly(SYSTEMSTACK, 0x20);
    /* A leftover value, where a frame of systemstack on this stack would have its return address.
     */
    made.words[SAVED_WORD + 2] = call(COLLECT, 0x30, SYSTEMSTACK);
}

static void walk_collect(void)
{
    assert_int_equal(walk_from(&made, code_of(COLLECT, 0x10), COLLECT_WORD), 0);
}

#define ASSERT_COLLECT_FOR_WORK(at)                                                                \
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, at), code_of(SYSTEMSTACK, 0x1f),       \
                 code_of(WORK, 0x1f), code_of(GOEXIT, IN_GOEXIT))
#define ASSERT_NO_WAY_BACK(how)                                                                    \
    ASSERT_STACK(&made.stack, how, code_of(COLLECT, 0x10), code_of(SYSTEMSTACK, 0x1f))

/* ---- On both ---- */

static void test_from_the_threads_stack_to_the_goroutines(void **state)
{
    (void)state;
    put_collect();
    walk_collect();
    ASSERT_COLLECT_FOR_WORK(0x10);
    assert_true(made.hints.used_other_stack);
}

/* Every Go stack ends in a function that is known to be the first. */
static void test_a_return_address_of_0_is_no_end(void **state)
{
    (void)state;
    assert_int_equal(walk_from(&made, code_of(WORK, 0x20), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(WORK, 0x20));
}

static void test_the_goroutines_stack_is_not_copied_yet(void **state)
{
    (void)state;
    put_collect();
    made.snapshot.other_stack.bytes = 0;
    walk_collect();
    ASSERT_NO_WAY_BACK(STACK_CUT_UNREADABLE);
    assert_int_equal(made.hints.missing_address, goroutine_at(LEFT_WORD) + READ_FIRST);
}

/* The runtime allocates all stacks in one mapping, so a longer copy would not help. */
static void test_both_stacks_in_one_mapping(void **state)
{
    (void)state;
    uint64_t far = MADE_STACK + sizeof made.words + WALK_FAR_BYTES + 8;
    put_collect();
    made.snapshot.other_stack.bytes = 0;
    made.snapshot.stack.end = MADE_STACK + (64u << 20);
    made.words[SAVED_WORD] = far - READ_FIRST;
    walk_collect();
    assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
    assert_false(made.hints.needs_more_stack);
    assert_int_equal(made.hints.missing_address, far);
    /* This near, it may be the rest of the same stack. */
    made.words[SAVED_WORD] -= 8;
    walk_collect();
    assert_true(made.hints.needs_more_stack);
    assert_int_equal(made.hints.missing_address, 0);
}

static void test_without_the_frame_pointer(void **state)
{
    (void)state;
    put_collect();
    forget_register(&made, FRAME_POINTER);
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_of(SYSTEMSTACK, 0x20));
}

static void test_what_did_not_call(void **state)
{
    (void)state;
    put_collect();
    goroutine[RETURN_WORD] = call(WORK, 0x30, COLLECT);
    walk_collect();
    ASSERT_NO_WAY_BACK(STACK_CUT_NO_UNWIND_INFO);
}

/* Frames that lead in a circle. */
static void test_stacks_in_a_circle(void **state)
{
    (void)state;
    set_register(&made, FRAME_POINTER, goroutine_at(490));
    goroutine[490] = goroutine_at(490);
    goroutine[491] = call(LEAVING, 0x30, LEAVING);
    assert_int_equal(walk_from(&made, code_of(LEAVING, 0x18), 0), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_in_range(made.stack.depth, 2, 20);
}

/* The register is saved shortly after the frame is made. */
static void test_a_frame_whose_frame_pointer_is_not_saved_yet(void **state)
{
    (void)state;
    put_collect();
    set_register(&made, FRAME_POINTER, made.words[SAVED_WORD]);
    made.words[SAVED_WORD] = 0xbad;
    assert_int_equal(walk_from(&made, code_of(COLLECT, UNSAVED), COLLECT_WORD), 0);
    ASSERT_COLLECT_FOR_WORK(UNSAVED);
}

#ifdef __aarch64__

static void test_a_leaf(void **state)
{
    (void)state;
    made.words[4] = root();
    set_register(&made, X30, call(WORK, 0x20, LEAF));
    set_register(&made, X29, word_at(3));
    assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(LEAF, 0x10), code_of(WORK, 0x1f),
                 code_of(GOEXIT, IN_GOEXIT));
}

/* For a thread that sleeps in a call, the register is not known. The return address of its caller
 * shows which function that is. */
static void test_a_leaf_that_sleeps(void **state)
{
    (void)state;
    made.words[4] = call(COLLECT, 0x20, WORK);
    made.words[4 + WORK_BYTES / 8] = root();
    call(WORK, 0x18, COLLECT);
    call(WORK, 0x20, LEAF);
    call(WORK, 0x30, LEAF);
    assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(LEAF, 0x10), code_of(WORK, 0x1f),
                 code_of(COLLECT, 0x1f), code_of(GOEXIT, IN_GOEXIT));
}

static void test_a_leaf_whose_caller_is_not_known(void **state)
{
    (void)state;
    const uint64_t saved[] = {
        call(COLLECT, 0x20, PREEMPT),   /* of a function that does not call it */
        call_indirectly(COLLECT, 0x30), /* of any function */
        code_of(COLLECT, 0x10),         /* not after a call */
        0,
    };
    call(WORK, 0x20, LEAF);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        made.words[4] = saved[i];
        assert_int_equal(walk_from(&made, code_of(LEAF, 0x10), 4), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_of(LEAF, 0x10));
    }
}

/* Before Go 1.21 the register has the value from the thread's own stack: 0, anything, or the frame
 * of another function, which did not call systemstack. */
static void test_the_goroutines_stack_is_not_known(void **state)
{
    (void)state;
    static const uint64_t others[] = {0, MADE_STACK + 8 * 20, MADE_STACK + 8 * 30};
    put_collect();
    made.words[21] = code_of(WORK, 8);
    made.words[31] = call(WORK, 0x30, LEAF);
    for (unsigned i = 0; i < 3; i++) {
        made.words[SAVED_WORD] = others[i];
        walk_collect();
        ASSERT_NO_WAY_BACK(STACK_CUT_NO_UNWIND_INFO);
    }
}

#define STRUCT_G (GOROUTINE + 0x100000u)
#define STACK_END (GOROUTINE + sizeof goroutine)

/* Code that stands for C runs on the thread's stack, called by asmcgocall for main.work, which
 * stands for cgocall. The frame pointer is that of the thread's stack, and leads nowhere. */
static void put_c(void)
{
    put_goroutine(ASMCGOCALL);
    set_register(&made, X29, word_at(3));
    made.words[3] = 0;
    made.words[4] = call_indirectly(ASMCGOCALL, 0x28);
    made.words[8] = STRUCT_G;
    made.words[9] = STACK_END - goroutine_at(RETURN_WORD);
    made.snapshot.other_word = (struct other_word){STRUCT_G + 8, STACK_END};
}

#define ASSERT_C_FOR_WORK()                                                                        \
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(ASMCGOCALL, 0x27),      \
                 code_of(WORK, 0x1f), code_of(GOEXIT, IN_GOEXIT))
#define ASSERT_C_CUT(how)                                                                          \
    ASSERT_STACK(&made.stack, how, code_of(COLLECT, 0x10), code_of(ASMCGOCALL, 0x27))

static void test_from_c_to_the_goroutine(void **state)
{
    (void)state;
    put_c();
    walk_collect();
    ASSERT_C_FOR_WORK();
    assert_true(made.hints.used_other_stack);
    /* Called on the thread's stack. */
    made.words[8] = 0;
    made.words[9] = word_at(20);
    made.words[20] = goroutine[RETURN_WORD];
    made.words[22] = root();
    walk_collect();
    ASSERT_C_FOR_WORK();
    assert_false(made.hints.used_other_stack);
}

/* The end of the goroutine's stack is requested first, then that stack. */
static void test_what_is_missing_from_c_to_the_goroutine(void **state)
{
    (void)state;
    put_c();
    made.snapshot.other_stack.bytes = 0;
    made.snapshot.other_word.address = STRUCT_G;
    walk_collect();
    ASSERT_C_CUT(STACK_CUT_UNREADABLE);
    assert_int_equal(made.hints.missing_word, STRUCT_G + 8);
    assert_int_equal(made.hints.missing_address, 0);
    made.snapshot.other_word.address = STRUCT_G + 8;
    walk_collect();
    ASSERT_C_CUT(STACK_CUT_UNREADABLE);
    assert_int_equal(made.hints.missing_word, 0);
    assert_int_equal(made.hints.missing_address, goroutine_at(RETURN_WORD));
}

/* When it was read, the struct already belonged to another goroutine; or the stack is damaged. */
static void test_what_c_was_not_called_by(void **state)
{
    (void)state;
    put_c();
    made.snapshot.other_word.value -= 8;
    walk_collect();
    ASSERT_C_CUT(STACK_CUT_NO_UNWIND_INFO);
    put_c();
    goroutine[RETURN_WORD] = call(WORK, 0x30, COLLECT);
    walk_collect();
    ASSERT_C_CUT(STACK_CUT_NO_UNWIND_INFO);
    put_c();
    made.words[8] = UINT64_MAX - 7;
    made.snapshot.other_word.address = 0;
    walk_collect();
    ASSERT_C_CUT(STACK_CUT_UNREADABLE);
}

/* The caller of asmcgocall is also its callee. */
static void test_calls_of_c_in_a_circle(void **state)
{
    (void)state;
    put_c();
    made.words[8] = made.words[28] = 0;
    made.words[9] = made.words[29] = word_at(20);
    made.words[20] = goroutine[RETURN_WORD];
    made.words[22] = made.words[4];
    walk_collect();
    assert_int_equal(made.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_in_range(made.stack.depth, 6, 20);
}

/* systemstack has not left its caller's stack yet, so there is no copy where its frame pointer
 * leads. */
static void test_before_the_stack_is_left(void **state)
{
    (void)state;
    made.snapshot.stack.address += 32;
    made.snapshot.stack.memory += 32;
    made.snapshot.stack.bytes -= 32;
    made.words[4] = call(WORK, 0x20, SYSTEMSTACK);
    made.words[6] = root();
    set_register(&made, X29, word_at(3));
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(SYSTEMSTACK, 0x20), code_of(WORK, 0x1f),
                 code_of(GOEXIT, IN_GOEXIT));
    assert_int_equal(made.hints.missing_address, 0);
}

/* The registers are those of the thread that made it, and lead to where that is. */
static void test_a_thread_that_has_just_begun(void **state)
{
    (void)state;
    put_instruction(CLONE, 0x1c, "\x01\0\0\xd4", 4); /* svc #0 */
    set_register(&made, X30, call(WORK, 0x20, CLONE));
    set_register(&made, X29, word_at(3));
    made.words[4] = root();
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x1c), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x1c), code_of(WORK, 0x1f),
                 code_of(GOEXIT, IN_GOEXIT));
    /* It may be either thread. */
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_of(CLONE, 0x20));
    made.snapshot.registers.is_new_thread = true;
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x20));
}

/* A signal handler made it look as if main.work had called. */
static void test_where_a_call_was_injected(void **state)
{
    (void)state;
    uint64_t frame = 4, interrupted = frame + (PREEMPT_BYTES + 16) / 8;
    put_instruction(PREEMPT, 0, "\xff\x03\x01\xd1", 4); /* sub sp, sp, #64 */
    made.words[frame] = code_of(WORK, 0x18);
    made.words[interrupted] = root();
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x20), frame), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x20), code_of(WORK, 0x18),
                 code_of(GOEXIT, IN_GOEXIT));
    /* A leaf's return address was in the register that the handler pushed. */
    made.words[frame] = code_of(LEAF, 0x18);
    made.words[interrupted - 2] = call(WORK, 0x30, LEAF);
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x20), frame), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x20), code_of(LEAF, 0x18),
                 code_of(WORK, 0x2f), code_of(GOEXIT, IN_GOEXIT));
}

#else

/* The leftover of an earlier call of another function, whose frame ended at the same place: the
 * return address in the caller of both shows which one it called last. */
static void test_what_an_earlier_call_left_behind(void **state)
{
    (void)state;
    put_collect();
    goroutine[500 - 9] = call(OTHER, 0x30, SYSTEMSTACK);
    goroutine[501] = call(COLLECT, 0x30, WORK);
    goroutine[502 + 3] = root();
    walk_collect();
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SYSTEMSTACK, 0x1f),
                 code_of(WORK, 0x1f), code_of(COLLECT, 0x2f), code_of(GOEXIT, 0));
    goroutine[501] = call(COLLECT, 0x30, OTHER);
    walk_collect();
    assert_int_equal(made.stack.addresses[2], code_of(OTHER, 0x2f));
    /* If nothing shows that, neither is believed. */
    goroutine[501] = call_indirectly(COLLECT, 0x3a);
    walk_collect();
    ASSERT_NO_WAY_BACK(STACK_CUT_NO_UNWIND_INFO);
}

static void test_a_frame_that_does_not_end_at_the_frame_pointer(void **state)
{
    (void)state;
    put_collect();
    goroutine[500 - 4] = goroutine[RETURN_WORD];
    goroutine[RETURN_WORD] = 0;
    walk_collect();
    ASSERT_NO_WAY_BACK(STACK_CUT_NO_UNWIND_INFO);
}

/* systemstack is still on the goroutine's stack. */
static void test_before_the_stack_is_left(void **state)
{
    (void)state;
    set_register(&made, RBP, word_at(9));
    made.words[4] = call(WORK, 0x20, SYSTEMSTACK);
    made.words[10] = root();
    assert_int_equal(walk_from(&made, code_of(SYSTEMSTACK, 8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(SYSTEMSTACK, 8), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 0));
}

/* The clock is read on the thread's stack; the function's own frame is on the goroutine's. */
static void test_a_frame_on_the_stack_that_was_left(void **state)
{
    (void)state;
    set_register(&made, RBP, goroutine_at(490));
    goroutine[490] = goroutine_at(497);
    goroutine[491] = call(SYSTEMSTACK, 0x10, NANOTIME);
    goroutine[492] = call(WORK, 0x20, SYSTEMSTACK);
    goroutine[498] = root();
    assert_int_equal(walk_from(&made, code_of(NANOTIME, 0x18), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(NANOTIME, 0x18), code_of(SYSTEMSTACK, 0xf),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 0));
    /* The register is cleared, so it leads nowhere. */
    set_register(&made, RBP, 0);
    assert_int_equal(walk_from(&made, code_of(NANOTIME, 0x18), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(NANOTIME, 0x18));
}

/* The registers are those of the thread that made it, and lead to where that is. */
static void test_a_thread_that_has_just_begun(void **state)
{
    (void)state;
    put_goroutine(CLONE);
    set_register(&made, RBP, goroutine_at(500));
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x20));
    /* In the creating thread. */
    set_register(&made, RBP, word_at(9));
    made.words[4] = call(WORK, 0x20, CLONE);
    made.words[10] = root();
    assert_int_equal(walk_from(&made, code_of(CLONE, 0x20), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(CLONE, 0x20), code_of(WORK, 0x1f),
                 code_of(GOEXIT, 0));
}

/* A signal handler made it look as if main.work had called, where it just made its frame. */
static void test_where_a_call_was_injected(void **state)
{
    (void)state;
    made.words[4] = code_of(WORK, 1);
    made.words[10] = root();
    assert_int_equal(walk_from(&made, code_of(PREEMPT, 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(PREEMPT, 0x10), code_of(WORK, 1),
                 code_of(GOEXIT, 0));
}

/* A callback from C returns to the start of a function that only marks where the stack was left. */
static void test_a_return_to_what_was_not_called(void **state)
{
    (void)state;
    made.words[3] = code_of(SWITCH, 0);
    made.words[4] = call(WORK, 0x20, SWITCH);
    made.words[10] = root();
    walk_collect();
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_of(COLLECT, 0x10), code_of(SWITCH, 0),
                 code_of(WORK, 0x1f), code_of(GOEXIT, 0));
}

#endif

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_from_the_threads_stack_to_the_goroutines),
        TEST(test_a_return_address_of_0_is_no_end),
        TEST(test_the_goroutines_stack_is_not_copied_yet),
        TEST(test_both_stacks_in_one_mapping),
        TEST(test_without_the_frame_pointer),
        TEST(test_what_did_not_call),
        TEST(test_stacks_in_a_circle),
        TEST(test_a_frame_whose_frame_pointer_is_not_saved_yet),
        TEST(test_before_the_stack_is_left),
        TEST(test_a_thread_that_has_just_begun),
        TEST(test_where_a_call_was_injected),
#ifdef __aarch64__
        TEST(test_a_leaf),
        TEST(test_a_leaf_that_sleeps),
        TEST(test_a_leaf_whose_caller_is_not_known),
        TEST(test_the_goroutines_stack_is_not_known),
        TEST(test_from_c_to_the_goroutine),
        TEST(test_what_is_missing_from_c_to_the_goroutine),
        TEST(test_what_c_was_not_called_by),
        TEST(test_calls_of_c_in_a_circle),
#else
        TEST(test_what_an_earlier_call_left_behind),
        TEST(test_a_frame_that_does_not_end_at_the_frame_pointer),
        TEST(test_a_frame_on_the_stack_that_was_left),
        TEST(test_a_return_to_what_was_not_called),
#endif
    };
    return cmocka_run_group_tests_name("walk_go", tests, NULL, NULL);
}

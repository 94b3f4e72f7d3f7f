/* Code without call frame information: the frame pointer is followed if it is plausible. */
#include "unit.h"

#include "make_walk.h"

/* Code without information, except FIRST, which has no caller. Calls return to byte 8 of it, and to
 * byte 0x10 of each of the others. */
enum { FIRST = 0x100, LEAF = 0x1000, MIDDLE = 0x1100, OUTER = 0x1200, KNOWN = 0x1300 };

/* KNOWN is described up to a system call, like glibc's clone, and does not use the frame pointer;
 * RECORDED has saved it below its return address. */
enum { CLONE_CALL = KNOWN + 0x80, RECORDED = 0x1400 };

/* The code of glibc to which a context's function returns. */
static const uint8_t context_end[] = {
#ifdef __aarch64__
    0xe0, 0x03, 0x13, 0xaa /* mov x0, x19 */
#else
    0x48, 0x89, 0xdc /* mov %rbx,%rsp */
#endif
};

/* Calls clone3. */
#ifdef __aarch64__
enum { SYSTEM_CALL_BYTES = 4 };
static const uint8_t clone_call[] = {0x68, 0x36, 0x80, 0xd2,  /* mov x8, #435 */
                                     0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
#else
enum { SYSTEM_CALL_BYTES = 2 };
static const uint8_t clone_call[] = {0xb8, 0xb3, 1, 0, 0, /* mov $435,%eax */
                                     0x0f, 0x05};         /* syscall */
#endif

static struct made_walk made;

static int set_up(void **state)
{
    (void)state;
    static const uint64_t callers[] = {LEAF, MIDDLE, OUTER, KNOWN, RECORDED};
    begin_module(&made);
    put_function(&made, FIRST, 0x80, BYTES(DW_CFA_undefined, RA));
    put_function(&made, KNOWN, 0x80, BYTES(DW_CFA_def_cfa_offset, 32));
    put_function(&made, RECORDED, 0x80, BYTES(DW_CFA_def_cfa_offset, 32, DW_CFA_offset | FP, 2));
    put_call(&made, FIRST + 8, OUTER);
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        put_call(&made, callers[i] + 0x10, LEAF);
    put_code(&made, KNOWN, context_end, sizeof context_end);
    put_code(&made, OUTER + 0x10, made_thread_end, sizeof made_thread_end);
    put_code(&made, CLONE_CALL + SYSTEM_CALL_BYTES - sizeof clone_call, clone_call,
             sizeof clone_call);
    end_module(&made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made.module.functions = (struct functions){0};
    made_walk_free(&made);
    return 0;
}

/* Puts a frame to which the frame pointer may point. */
static void put_frame(uint64_t word, uint64_t saved, uint64_t return_address)
{
    made.words[word] = saved;
    made.words[word + 1] = return_address;
}

/* Sets the frame pointer of a leaf. On AArch64 the leaf has set up its frame, and so saved its link
 * register, and has made no call since: the return address is in both. */
static void lead_to(uint64_t frame)
{
    uint64_t return_address = 7, at = frame + 8 - MADE_STACK;
    if (at < sizeof made.words - 8)
        memcpy(&return_address, (char *)made.words + at, sizeof return_address);
    set_register(&made, FP, frame);
    set_link(&made, return_address);
}

static void test_a_chain(void **state)
{
    (void)state;
    put_frame(10, word_at(20), code_at(MIDDLE + 0x10));
    put_frame(20, word_at(30), code_at(OUTER + 0x10));
    put_frame(30, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF + 4), code_at(MIDDLE + 0xf),
                 code_at(OUTER + 0xf), code_at(FIRST + 7));
    assert_int_equal(made.hints.stack_bytes_used, 32 * 8);
}

/* The first frame of a stack has a frame pointer of 0, by the psABI, and does not return. */
static void test_the_ends_of_a_chain(void **state)
{
    (void)state;
    put_frame(10, 0, code_at(OUTER + 0x10));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF + 4), code_at(OUTER + 0xf));
    /* Code that continues after the return was itself called: the register is 0 by chance. */
    put_frame(10, 0, code_at(MIDDLE + 0x10));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4), code_at(MIDDLE + 0xf));
    /* The same holds for a value of 0 in place of the return address. */
    put_frame(10, word_at(20), 0);
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4));
    lead_to(0);
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4));
}

/* On AArch64 the link register shows whether the leaf has made a call, if the start of its function
 * is known. */
static void test_a_leaf_without_a_caller(void **state)
{
    (void)state;
#ifdef __aarch64__
    static struct function_range outer = {MADE_ADDRESS + OUTER, MADE_ADDRESS + OUTER + 0x80};
    made.module.functions = (struct functions){.items = &outer, .count = 1, .were_read = true};
#endif
    lead_to(0);
    set_link(&made, code_at(OUTER + 0x10));
    assert_int_equal(walk_from(&made, code_at(OUTER + 0x10), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(OUTER + 0x10));
}

static bool lacks_mapping(uint64_t saved, uint64_t return_address)
{
    made.hints = (struct unwind_hints){0};
    put_frame(10, saved, return_address);
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4));
    return made.hints.has_unknown_address;
}

/* For example, code that a JIT compiler has made since the mappings were read. */
static void test_a_caller_in_no_known_mapping(void **state)
{
    const uint64_t nowhere = 0x123456789000;
    (void)state;
    assert_true(lacks_mapping(word_at(20), nowhere));
    assert_false(lacks_mapping(word_at(20), 0));
    assert_false(lacks_mapping(word_at(20), code_at(LEAF))); /* no call is before it */
    assert_false(lacks_mapping(word_at(10), nowhere));       /* no frame is there */
    assert_false(lacks_mapping(word_at(20) + 1, nowhere));
    assert_false(lacks_mapping(0, nowhere));
    assert_false(lacks_mapping(nowhere, nowhere));
}

/* A frame that returns to a function's first instruction was not called by it: makecontext(3) put
 * that address there. */
static void test_a_first_frame_that_did_not_call(void **state)
{
    (void)state;
    put_frame(10, 0, code_at(KNOWN));
    made.words[5] = code_at(KNOWN);
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4));
    assert_int_equal(walk_from(&made, code_at(KNOWN + 3), 2), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KNOWN + 3), code_at(KNOWN));
    /* A return to the first instruction of another function is not plausible. */
    made.words[5] = code_at(FIRST);
    assert_int_equal(walk_from(&made, code_at(KNOWN + 3), 2), 0);
    assert_int_not_equal(made.stack.cut, STACK_WHOLE);
}

static void test_behind_the_call_that_makes_threads(void **state)
{
    (void)state;
    uint64_t behind = code_at(CLONE_CALL + SYSTEM_CALL_BYTES);
    made.words[8] = code_at(MIDDLE + 0x10); /* KNOWN's return address */
    put_frame(10, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, behind, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, behind, code_at(MIDDLE + 0xf), code_at(FIRST + 7));
    /* Another instruction is not right behind the call. */
    lead_to(0);
    assert_int_equal(walk_from(&made, behind + 4, 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, behind + 4);
    made.snapshot.registers.is_new_thread = true;
    assert_int_equal(walk_from(&made, behind, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, behind);
    /* A sample does not show the system call, but the code does. */
    made.snapshot.registers.is_new_thread = false;
    made.snapshot.registers.may_be_new_thread = true;
    assert_int_equal(walk_from(&made, behind, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, behind);
    assert_int_equal(walk_from(&made, behind + 4, 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, behind + 4);
    /* A new process has a copy of the stack, and so all frames of its creator. */
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(KNOWN + 2), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KNOWN + 2), code_at(MIDDLE + 0xf),
                 code_at(FIRST + 7));
}

/* Code with information and code without in one stack: each frame provides what the next one
 * needs. */
static void test_code_of_both_kinds(void **state)
{
    (void)state;
    made.words[3] = code_at(MIDDLE + 0x10);
    put_frame(10, word_at(14), code_at(RECORDED + 0x10));
    put_frame(14, word_at(40), code_at(OUTER + 0x10));
    put_frame(40, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(KNOWN + 2), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KNOWN + 2), code_at(MIDDLE + 0xf),
                 code_at(RECORDED + 0xf), code_at(OUTER + 0xf), code_at(FIRST + 7));
    /* On AArch64, nothing shows where a frame without a record begins. */
    put_frame(10, word_at(40), code_at(KNOWN + 0x10));
    assert_int_equal(walk_from(&made, code_at(KNOWN + 2), 0), 0);
#ifdef __aarch64__
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(KNOWN + 2), code_at(MIDDLE + 0xf),
                 code_at(KNOWN + 0xf));
#else
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KNOWN + 2), code_at(MIDDLE + 0xf),
                 code_at(KNOWN + 0xf), code_at(OUTER + 0xf), code_at(FIRST + 7));
#endif
}

static void assert_not_believed(uint64_t frame)
{
    lead_to(frame);
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4));
    assert_false(made.hints.needs_more_stack);
}

static void test_places_that_are_not_believed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 60; i += 2)
        put_frame(i, word_at(i + 2), code_at(MIDDLE + 0x10));
    assert_not_believed(word_at(4));      /* below the stack pointer */
    assert_not_believed(word_at(10) + 4); /* not aligned */
    assert_not_believed(word_at(10) + 1);
    assert_not_believed(0x1000); /* a number, not a place */
    assert_not_believed(5);
    const uint64_t whole[2] = {0, code_at(FIRST + 8)};
    memcpy((char *)&made.words[40] + 4, whole, sizeof whole); /* valid except for its alignment */
    assert_not_believed(word_at(40) + 4);
    /* It may be at the stack pointer: nothing else is on the stack. */
    put_frame(5, 0, code_at(FIRST + 8));
    lead_to(word_at(5));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF + 4), code_at(FIRST + 7));
}

static void test_return_addresses_that_are_not_believed(void **state)
{
    (void)state;
    static const uint64_t wrong[] = {MIDDLE + 0xf, MIDDLE + 0x11, MIDDLE, OUTER + 0x20};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_frame(10, 0, code_at(wrong[i])); /* no call before it */
        assert_not_believed(word_at(10));
    }
    put_frame(10, 0, word_at(20)); /* no code at all */
    assert_not_believed(word_at(10));
    put_frame(10, 0, code_at(MADE_CODE_BYTES + 0x100));
    assert_not_believed(word_at(10));
    put_frame(10, 0, 1);
    assert_not_believed(word_at(10));
}

/* A chain that leads back, or to itself, ends, and no frame is shown twice. */
static void test_chains_that_do_not_grow(void **state)
{
    (void)state;
    static const uint64_t back[] = {10, 11, 8, 0};
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
        put_frame(10, word_at(back[i]), code_at(MIDDLE + 0x10));
        if (back[i] == 0)
            put_frame(0, word_at(10), code_at(MIDDLE + 0x10));
        lead_to(word_at(10));
        assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(LEAF + 4),
                     code_at(MIDDLE + 0xf));
    }
}

static void test_a_chain_that_leaves_the_copy(void **state)
{
    (void)state;
    put_frame(10, word_at(50), code_at(MIDDLE + 0x10));
    made.snapshot.stack.bytes = 50 * 8;
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(LEAF + 4), code_at(MIDDLE + 0xf));
    assert_true(made.hints.needs_more_stack);
    made.snapshot.stack.bytes = 51 * 8; /* half of a frame */
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(LEAF + 4), code_at(MIDDLE + 0xf));
    assert_true(made.hints.needs_more_stack);
    /* Off the stack: a longer copy would not have it. */
    put_frame(10, made.snapshot.stack.end + 64, code_at(MIDDLE + 0x10));
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(LEAF + 4), code_at(MIDDLE + 0xf));
    assert_false(made.hints.needs_more_stack);
}

static void test_a_frame_pointer_that_is_not_known(void **state)
{
    (void)state;
    forget_register(&made, FP);
    assert_int_equal(walk_from(&made, code_at(LEAF + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(LEAF + 4));
    /* The start of that function is not known. */
    assert_int_equal(made.hints.function, 0);
    assert_int_equal(walk_from(&made, MADE_JIT + 5, 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, MADE_JIT + 5);
    assert_int_equal(made.hints.function, 0);
}

/* Generated code: it is in no file, so the code before a return address can't be read. */
static void test_code_of_no_file(void **state)
{
    (void)state;
    put_frame(10, word_at(20), MADE_JIT + 0x123);
    put_frame(20, word_at(30), code_at(OUTER + 0x10));
    put_frame(30, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, MADE_JIT + 0x55, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, MADE_JIT + 0x55, MADE_JIT + 0x122, code_at(OUTER + 0xf),
                 code_at(FIRST + 7));
    /* Code in a file is still checked. */
    put_frame(20, word_at(30), code_at(OUTER + 0x11));
    assert_int_equal(walk_from(&made, MADE_JIT + 0x55, 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + 0x55, MADE_JIT + 0x122);
}

/* Learns the rule of an address in a function of generated code. */
static void learn(uint32_t space, uint64_t address, uint64_t function, const uint8_t *code,
                  size_t bytes)
{
    assert_int_equal(
        rule_tables_learn_generated(&made.tables, space, address, function, code, bytes), 0);
}

/* Sets up a frame record and the frame pointer. */
static const uint8_t prologue[] = {
#ifdef __aarch64__
    0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
    0xfd, 0x03, 0x00, 0x91  /* mov x29, sp */
#else
    0x55, 0x48, 0x89, 0xe5 /* push %rbp; mov %rsp,%rbp */
#endif
};

/* Its rule is requested until it is learnt, even if the result is that nothing could be read. The
 * frame pointer is followed meanwhile. */
static void test_code_of_no_file_that_is_to_be_learnt(void **state)
{
    (void)state;
    uint8_t code[0x30];
    const uint64_t function = MADE_JIT + 0x100, inside = function + 0x20;
    const uint64_t places[] = {inside, function + 0x38};
    put_nops(code, sizeof code);
    memcpy(code, prologue, sizeof prologue);
    made.space.id = 3;
    put_frame(10, word_at(20), code_at(OUTER + 0x10));
    put_frame(20, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    for (unsigned i = 0; i < 3 * 2; i++) {
        const uint64_t at = places[i / 3];
        bool is_learnt = i % 3 == 2;
        if (i % 3)
            learn(is_learnt ? 3 : 4, at, function, code, sizeof code);
        assert_int_equal(walk_from(&made, at, 5), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, at, code_at(OUTER + 0xf), code_at(FIRST + 7));
        assert_int_equal(made.hints.unlearnt_address, is_learnt ? 0 : at);
    }
    /* A caller's rule is also requested, at its call. */
    put_frame(10, word_at(20), inside + 8);
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, inside, 5), 0);
    assert_int_equal(made.hints.unlearnt_address, inside + 7);
    /* When more function starts become known, all rules are requested again. */
    rule_tables_forget_generated(&made.tables, 3);
    rule_tables_forget_generated(&made.tables, 99);
    assert_int_equal(walk_from(&made, inside, 5), 0);
    assert_int_equal(made.hints.unlearnt_address, inside);
}

#ifdef __x86_64__

/* Its instructions show where it has its return address: at the first one, the frame pointer is
 * still its caller's. Of AArch64, test_walk_link.c has this. */
static void test_code_of_no_file_that_was_learnt(void **state)
{
    (void)state;
    const uint64_t function = MADE_JIT + 0x100;
    made.words[5] = code_at(MIDDLE + 0x10);
    put_frame(10, word_at(20), code_at(OUTER + 0x10));
    put_frame(20, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    assert_int_equal(walk_from(&made, function, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, function, code_at(OUTER + 0xf), code_at(FIRST + 7));
    learn(0, function, function, prologue, sizeof prologue);
    assert_int_equal(walk_from(&made, function, 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, function, code_at(MIDDLE + 0xf), code_at(OUTER + 0xf),
                 code_at(FIRST + 7));
    assert_int_equal(made.hints.unlearnt_address, 0);
}

/* Where the caller's frame pointer was saved is below the stack pointer at the end: it is back in
 * the register, and nothing keeps what is there. */
static void test_generated_code_that_has_restored_the_frame_pointer(void **state)
{
    (void)state;
    static const uint8_t code[] = {
        0x50,                   /* push %rax */
        0x55,                   /* push %rbp */
        0x48, 0x8b, 0x2c, 0x24, /* mov (%rsp),%rbp */
        0x48, 0x83, 0xc4, 0x10, /* add $16,%rsp */
        0xc3                    /* ret */
    };
    const uint64_t function = MADE_JIT + 0x100, end = function + sizeof code - 1;
    made.words[0] = code_at(MIDDLE + 0x10);
    put_frame(10, word_at(20), code_at(OUTER + 0x10));
    put_frame(20, 0, code_at(FIRST + 8));
    lead_to(word_at(10));
    learn(0, end, function, code, sizeof code);
    assert_int_equal(walk_from(&made, end, 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, end, code_at(MIDDLE + 0xf), code_at(OUTER + 0xf),
                 code_at(FIRST + 7));
}

#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_chain),
        TEST(test_the_ends_of_a_chain),
        TEST(test_a_leaf_without_a_caller),
        TEST(test_a_caller_in_no_known_mapping),
        TEST(test_a_first_frame_that_did_not_call),
        TEST(test_behind_the_call_that_makes_threads),
        TEST(test_code_of_both_kinds),
        TEST(test_places_that_are_not_believed),
        TEST(test_return_addresses_that_are_not_believed),
        TEST(test_chains_that_do_not_grow),
        TEST(test_a_chain_that_leaves_the_copy),
        TEST(test_a_frame_pointer_that_is_not_known),
        TEST(test_code_of_no_file),
        TEST(test_code_of_no_file_that_is_to_be_learnt),
#ifdef __x86_64__
        TEST(test_code_of_no_file_that_was_learnt),
        TEST(test_generated_code_that_has_restored_the_frame_pointer),
#endif
    };
    return cmocka_run_group_tests_name("walk_frame_pointers", tests, NULL, NULL);
}

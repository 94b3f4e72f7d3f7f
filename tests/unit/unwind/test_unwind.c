#include "own_stack.h"

#include <signal.h>

/* Snapshots of this thread, compared with what the compiler knows about its stack. */

#define FRAMES_MAX 512

/* The snapshot taken in the innermost function, and the address of the call in each function around
 * it. */
struct take {
    struct snapshot snapshot;
    uint64_t calls[8];
    size_t call_count;
    uint64_t interrupted_pc; /* where a signal came */
};

static struct take *signal_take;

/* Notes the call in the caller of the function that uses this: one before its return address. */
#define NOTE_CALL(take)                                                                            \
    ((take)->calls[(take)->call_count++] = (uintptr_t)__builtin_return_address(0) - 1)

/* Keeps a call from becoming a tail call, which leaves no frame. */
#define STAY() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void take_leaf(struct take *take)
{
    ucontext_t context;
    NOTE_CALL(take);
    assert_int_equal(getcontext(&context), 0);
    set_registers(&take->snapshot.registers, &context);
    copy_stack(&take->snapshot);
    STAY();
}

__attribute__((noinline)) static void take_middle(struct take *take)
{
    /* Large, so that the frames around this one are far away. */
    volatile char room[5000];
    room[0] = 1;
    NOTE_CALL(take);
    take_leaf(take);
    room[4999] = room[0];
    STAY();
}

__attribute__((noinline)) static void take_outer(struct take *take)
{
    NOTE_CALL(take);
    take_middle(take);
    STAY();
}

/* This frame is found by the frame pointer, because its size is unknown to the compiler. Its
 * NOTE_CALL comes first, because it is the innermost frame. */
__attribute__((noinline)) static void take_with_frame_pointer(struct take *take, size_t bytes)
{
    ucontext_t context;
    volatile char *room = __builtin_alloca(bytes);
    room[0] = 1;
    NOTE_CALL(take);
    assert_int_equal(getcontext(&context), 0);
    set_registers(&take->snapshot.registers, &context);
    copy_stack(&take->snapshot);
    room[bytes - 1] = room[0];
    STAY();
}

static void on_signal(int number, siginfo_t *info, void *context_of_signal)
{
    (void)number, (void)info;
    const ucontext_t *interrupted = context_of_signal;
    struct registers registers;
    set_registers(&registers, interrupted);
    signal_take->interrupted_pc = registers_pc(&registers);
    take_leaf(signal_take);
    STAY();
}

__attribute__((noinline)) static void take_in_signal(struct take *take)
{
    signal_take = take;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    NOTE_CALL(take);
    STAY();
}

struct unwound {
    struct stack stack;
    struct unwind_hints hints;
};

static struct unwound unwind(const struct snapshot *snapshot, size_t max_depth)
{
    struct unwound unwound = {0};
    assert_int_equal(unwind_snapshot(&self.rules, self.space, snapshot, max_depth, &unwound.stack,
                                     &unwound.hints),
                     0);
    return unwound;
}

static void assert_same_stack(const struct stack *got, const struct stack *expected, size_t depth)
{
    assert_int_equal(got->depth, depth);
    for (size_t i = 0; i < depth; i++)
        assert_int_equal(got->addresses[i], expected->addresses[i]);
}

static struct take take_here(void)
{
    struct take take = {0};
    take_outer(&take);
    assert_int_equal(take.call_count, 3);
    return take;
}

static void test_whole_stack_leaf_first(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(whole.stack.cut, STACK_WHOLE);
    assert_in_range(whole.stack.depth, 6, 100); /* cmocka, main and what calls it too */
    /* The leaf is at its exact address, all other frames at their calls, innermost first. */
    assert_int_equal(whole.stack.addresses[0], registers_pc(&take.snapshot.registers));
    assert_int_equal(whole.stack.addresses[1], take.calls[2]);
    assert_int_equal(whole.stack.addresses[2], take.calls[1]);
    assert_int_equal(whole.stack.addresses[3], take.calls[0]);
    assert_false(whole.hints.needs_more_stack);
    assert_false(whole.hints.has_unknown_address);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_every_frame_is_in_code(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    for (size_t i = 0; i < whole.stack.depth; i++)
        assert_non_null(space_find(self.space, whole.stack.addresses[i]));
    assert_true(space_find(self.space, whole.stack.addresses[0])->is_main);
    /* The first frame of a program is its own _start. */
    assert_true(space_find(self.space, whole.stack.addresses[whole.stack.depth - 1])->is_main);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_the_same_again(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound first = unwind(&take.snapshot, FRAMES_MAX);
    struct stack stack = {0};
    struct unwind_hints hints;
    for (size_t i = 0; i < 100; i++) {
        /* The memory of the last stack is reused. */
        assert_int_equal(
            unwind_snapshot(&self.rules, self.space, &take.snapshot, FRAMES_MAX, &stack, &hints),
            0);
        assert_same_stack(&stack, &first.stack, first.stack.depth);
        assert_int_equal(stack.cut, STACK_WHOLE);
        assert_int_equal(hints.stack_bytes_used, first.hints.stack_bytes_used);
    }
    free(stack.addresses);
    free(first.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_max_depth(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    for (size_t depth = 1; depth <= whole.stack.depth + 1; depth++) {
        struct unwound cut = unwind(&take.snapshot, depth);
        bool is_cut = depth < whole.stack.depth;
        assert_int_equal(cut.stack.cut, is_cut ? STACK_CUT_AT_MAX_DEPTH : STACK_WHOLE);
        assert_same_stack(&cut.stack, &whole.stack, is_cut ? depth : whole.stack.depth);
        assert_false(cut.hints.needs_more_stack);
        free(cut.stack.addresses);
    }
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_no_more_stack_is_needed_than_was_used(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    assert_in_range(whole.hints.stack_bytes_used, 5000, take.snapshot.stack.bytes);
    take.snapshot.stack.bytes = whole.hints.stack_bytes_used;
    struct unwound again = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(again.stack.cut, STACK_WHOLE);
    assert_same_stack(&again.stack, &whole.stack, whole.stack.depth);
    take.snapshot.stack.bytes -= 8;
    struct unwound less = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(less.stack.cut, STACK_CUT_UNREADABLE);
    assert_true(less.stack.depth < whole.stack.depth);
    assert_same_stack(&less.stack, &whole.stack, less.stack.depth);
    free(less.stack.addresses);
    free(again.stack.addresses);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_stack_cut_to_64_bytes(void **state)
{
    (void)state;
    struct take take = take_here();
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    take.snapshot.stack.bytes = 64;

    /* The mapping continues, so a longer copy would help. */
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_UNREADABLE);
    assert_true(cut.hints.needs_more_stack);
    assert_in_range(cut.stack.depth, 1, 3);
    assert_same_stack(&cut.stack, &whole.stack, cut.stack.depth);
    assert_in_range(cut.hints.stack_bytes_used, 0, 64);
    free(cut.stack.addresses);

    /* The mapping ends there, so there is no more. */
    take.snapshot.stack.end = take.snapshot.stack.address + 64;
    cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_UNREADABLE);
    assert_false(cut.hints.needs_more_stack);
    free(cut.stack.addresses);

    /* The end of the mapping is not known. */
    take.snapshot.stack.end_is_known = false;
    cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_UNREADABLE);
    assert_true(cut.hints.needs_more_stack);
    free(cut.stack.addresses);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_no_stack_at_all(void **state)
{
    (void)state;
    struct take take = take_here();
    take.snapshot.stack.bytes = 0;
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_UNREADABLE);
    assert_int_equal(cut.stack.depth, 1);
    assert_int_equal(cut.stack.addresses[0], registers_pc(&take.snapshot.registers));
    assert_true(cut.hints.needs_more_stack);
    free(cut.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_frame_pointer(void **state)
{
    (void)state;
    struct take take = {0};
    take_with_frame_pointer(&take, 3000);
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(whole.stack.cut, STACK_WHOLE);
    assert_int_equal(whole.stack.addresses[1], take.calls[0]);

    /* As for a thread that is read while it sleeps. */
    uint64_t place = 1ull << architecture.sp | 1ull << architecture.pc;
    take.snapshot.registers.known = place;
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_NO_REGISTER);
    assert_int_equal(cut.stack.depth, 1);
    assert_false(cut.hints.needs_more_stack);

    /* With it, the stack is whole: callers keep theirs on the stack. */
    take.snapshot.registers.known = place | 1ull << architecture.frame_pointer;
    struct unwound again = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(again.stack.cut, STACK_WHOLE);
    assert_same_stack(&again.stack, &whole.stack, whole.stack.depth);
    free(again.stack.addresses);
    free(cut.stack.addresses);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_wrong_frame_pointer(void **state)
{
    (void)state;
    struct take take = {0};
    static const uint64_t wrong[] = {0, 8, 0x1000, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15};
    take_with_frame_pointer(&take, 3000);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        take.snapshot.registers.values[architecture.frame_pointer] = wrong[i];
        struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
        assert_int_not_equal(cut.stack.cut, STACK_WHOLE);
        assert_int_equal(cut.stack.depth, 1);
        free(cut.stack.addresses);
    }
    snapshot_clear(&take.snapshot);
}

/* The trampoline and the interrupted code are at their exact addresses, not one before. */
static void test_signal_frames(void **state)
{
    (void)state;
    struct take take = {0};
    take_in_signal(&take);
    struct unwound whole = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(whole.stack.cut, STACK_WHOLE);
    assert_true(whole.stack.depth > 4);
    assert_int_equal(whole.stack.addresses[1], take.calls[0]); /* the handler */
    size_t interrupted = 0, caller = 0;
    for (size_t i = 0; i < whole.stack.depth; i++) {
        if (whole.stack.addresses[i] == take.interrupted_pc)
            interrupted = i;
        if (whole.stack.addresses[i] == take.calls[1])
            caller = i;
    }
    assert_int_equal(interrupted, 3);
    assert_true(caller > interrupted);
    free(whole.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* The thread has jumped, without a call, to a place without code. */
static void set_lost(struct snapshot *snapshot, uint64_t pc)
{
    snapshot->registers.values[architecture.pc] = pc;
    if (architecture.link != REGISTERS_MAX)
        snapshot->registers.values[architecture.link] = 0;
}

static void test_leaf_in_no_code(void **state)
{
    (void)state;
    struct take take = take_here();
    set_lost(&take.snapshot, 0x10);
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_equal(cut.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_int_equal(cut.stack.depth, 1);
    assert_int_equal(cut.stack.addresses[0], 0x10);
    assert_true(cut.hints.has_unknown_address);
    assert_false(cut.hints.needs_more_stack);
    free(cut.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_leaf_at_0(void **state)
{
    (void)state;
    struct take take = take_here();
    set_lost(&take.snapshot, 0);
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_not_equal(cut.stack.cut, STACK_WHOLE);
    free(cut.stack.addresses);
    snapshot_clear(&take.snapshot);
}

static void test_registers_without_a_place(void **state)
{
    (void)state;
    struct take take = take_here();
    take.snapshot.registers.known = 0;
    struct unwound cut = unwind(&take.snapshot, FRAMES_MAX);
    assert_int_not_equal(cut.stack.cut, STACK_WHOLE);
    assert_in_range(cut.stack.depth, 0, 1);
    free(cut.stack.addresses);
    snapshot_clear(&take.snapshot);
}

/* Stacks are untrusted data: whatever is on them, unwinding ends within the maximum depth. */
static void test_damaged_stacks(void **state)
{
    (void)state;
    struct take take = take_here();
    uint64_t random = 1;
    unsigned char *original = malloc(take.snapshot.stack.bytes);
    assert_non_null(original);
    memcpy(original, take.snapshot.stack.memory, take.snapshot.stack.bytes);
    for (size_t i = 0; i < 2000; i++) {
        memcpy(take.snapshot.stack.memory, original, take.snapshot.stack.bytes);
        size_t words = take.snapshot.stack.bytes / 8;
        for (size_t j = 0; j < words; j++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            if (random >> 61)
                continue; /* about one in eight is changed: */
            uint64_t word = random >> 60 & 1
                                ? random
                                : registers_sp(&take.snapshot.registers) + (random >> 40) % 8192;
            memcpy(take.snapshot.stack.memory + 8 * j, &word, sizeof word);
        }
        struct unwound any = unwind(&take.snapshot, 64);
        assert_in_range(any.stack.depth, 1, 64);
        assert_int_equal(any.stack.addresses[0], registers_pc(&take.snapshot.registers));
        assert_in_range(any.hints.stack_bytes_used, 0, take.snapshot.stack.bytes);
        free(any.stack.addresses);
    }
    free(original);
    snapshot_clear(&take.snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_stack_leaf_first),
        cmocka_unit_test(test_every_frame_is_in_code),
        cmocka_unit_test(test_the_same_again),
        cmocka_unit_test(test_max_depth),
        cmocka_unit_test(test_no_more_stack_is_needed_than_was_used),
        cmocka_unit_test(test_stack_cut_to_64_bytes),
        cmocka_unit_test(test_no_stack_at_all),
        cmocka_unit_test(test_frame_pointer),
        cmocka_unit_test(test_wrong_frame_pointer),
        cmocka_unit_test(test_signal_frames),
        cmocka_unit_test(test_leaf_in_no_code),
        cmocka_unit_test(test_leaf_at_0),
        cmocka_unit_test(test_registers_without_a_place),
        cmocka_unit_test(test_damaged_stacks),
    };
    return cmocka_run_group_tests_name("unwind", tests, set_up_group, tear_down_group);
}

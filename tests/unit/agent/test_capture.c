/* The stack that a thread copies of itself: where it ends, and that nothing is read past its end.
 */
#include "own_stack.h"
#include "agent/capture.h"
#include "agent/this_thread.h"
#include "observe/refuse_events.h"

#include <signal.h>

#define SP_AT (AGENT_REGISTER_COUNT - (AGENT_REGISTER_COUNT == 8 ? 6 : 2))

struct taken {
    struct capture capture;
    uint64_t buffer[AGENT_REGISTER_COUNT + AGENT_STACK_BYTES_MAX / 8];
    uint32_t stack_bytes;
    bool is_cut;
};

/* Static, so that taking a stack does not use more of it. */
static struct taken taken;

__attribute__((noinline, no_sanitize("address"))) static void take(void)
{
    capture_begin(&taken.capture);
    memset(taken.buffer, 0, sizeof taken.buffer);
    taken.stack_bytes = capture_copy(&taken.capture, taken.buffer, &taken.is_cut);
}

/* Whether the value is in the copied stack. */
static bool has(uint64_t value)
{
    for (size_t i = 0; i < taken.stack_bytes / 8; i++) {
        if (taken.buffer[AGENT_REGISTER_COUNT + i] == value)
            return true;
    }
    return false;
}

__attribute__((noinline, no_sanitize("address"))) static void take_below(size_t bytes)
{
    volatile uint64_t filled[bytes / 8];
    for (size_t i = 0; i < bytes / 8; i++)
        filled[i] = i;
    take();
    (void)filled[0];
}

/* The copy reaches the end of the stack, or has the maximum size. A sanitizer may have used much of
 * the stack. */
static void assert_to_end(void)
{
    uint64_t all = this_thread.stack_limit - taken.capture.stack;
    assert_true(taken.capture.is_joined);
    assert_true(taken.is_cut == (all > AGENT_STACK_BYTES_MAX));
    assert_int_equal(taken.stack_bytes, taken.is_cut ? AGENT_STACK_BYTES_MAX : all);
}

static void test_registers(void **state)
{
    (void)state;
    take();
    assert_memory_equal(taken.buffer, taken.capture.registers, sizeof taken.capture.registers);
    uint64_t pc = taken.capture.registers[AGENT_REGISTER_COUNT - 1];
    assert_true(pc >= (uintptr_t)take && pc < (uintptr_t)take + 1000);
    assert_true(taken.capture.registers[SP_AT] < (uintptr_t)__builtin_frame_address(0));
    assert_true(taken.capture.stack == taken.capture.registers[SP_AT]);
}

static void test_main_thread(void **state)
{
    (void)state;
    volatile uint64_t mark = 0x1234567890abcdefu;
    take_below(64);
    assert_true(taken.capture.is_joined);
    assert_true(has(mark));
    take_below(20000);
    assert_true(taken.capture.is_joined);
    assert_true(taken.is_cut);
    assert_int_equal(taken.stack_bytes, AGENT_STACK_BYTES_MAX);
    assert_false(has(mark));
}

static void *take_in_thread(void *context)
{
    volatile uint64_t mark = 0x234567890abcdef1u;
    size_t depth = *(size_t *)context;
    take_below(depth);
    assert_to_end();
    assert_true(has(mark) == (depth < AGENT_STACK_BYTES_MAX));
    return NULL;
}

static void in_thread(void *(*run)(void *), void *context)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_threads(void **state)
{
    (void)state;
    size_t depths[] = {64, 4000, 200000};
    for (unsigned i = 0; i < 3; i++)
        in_thread(take_in_thread, &depths[i]);
}

/* A stack that the program allocated, with an inaccessible page behind it, as coroutine libraries
 * make them. */
static ucontext_t back;

static void *stack_before_gap(size_t bytes)
{
    char *memory =
        mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + bytes, 4096, PROT_NONE), 0);
    return memory;
}

static void on_coroutine(void)
{
    take();
}

static void on_deep_coroutine(void)
{
    take_below(20000);
}

/* Returns the end of the stack that the function ran on. */
static uint64_t run_on_coroutine(void (*function)(void))
{
    ucontext_t there;
    char *memory = stack_before_gap(65536);
    assert_int_equal(getcontext(&there), 0);
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = 65536;
    there.uc_link = &back;
    makecontext(&there, function, 0);
    assert_int_equal(swapcontext(&back, &there), 0);
    assert_false(taken.capture.is_joined);
    assert_true(taken.is_cut);
    munmap(memory, 65536 + 4096);
    return (uintptr_t)memory + 65536;
}

static void run_coroutine(void)
{
    uint64_t end = run_on_coroutine(on_coroutine);
    assert_true(taken.stack_bytes > 0 && taken.stack_bytes < AGENT_STACK_BYTES_MAX);
    assert_true(taken.capture.stack + taken.stack_bytes == end);
}

static void *coroutine_in_thread(void *context)
{
    run_coroutine();
    take();
    assert_to_end();
    run_coroutine();
    return context;
}

static void test_coroutines(void **state)
{
    (void)state;
    run_coroutine();
    take();
    assert_true(taken.capture.is_joined);
    run_coroutine();
    in_thread(coroutine_in_thread, NULL);
}

/* A thread's own stack without a guard page, on top of coroutine stacks without any. */
#define PART_BYTES (256u << 10)

static char *parts;

/* The first copy finds that everything up to the thread's own stack can be read. Then the stack
 * above this one is unmapped. */
static void on_lowest_part(void)
{
    take_below(30000);
    assert_true(taken.capture.is_joined);
    assert_int_equal(munmap(parts + PART_BYTES, PART_BYTES), 0);
    take();
}

static void *run_on_lowest_part(void *context)
{
    ucontext_t there;
    assert_int_equal(getcontext(&there), 0);
    there.uc_stack.ss_sp = parts;
    there.uc_stack.ss_size = PART_BYTES;
    there.uc_link = &back;
    makecontext(&there, on_lowest_part, 0);
    assert_int_equal(swapcontext(&back, &there), 0);
    assert_true(taken.capture.stack + taken.stack_bytes == (uintptr_t)parts + PART_BYTES);
    assert_true(taken.is_cut);
    /* The thread's own stack is copied as before. */
    take_in_thread(&(size_t){4000});
    take_in_thread(&(size_t){40000});
    return context;
}

static void test_stacks_next_to_each_other(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    parts = mmap(NULL, 3 * PART_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(parts != MAP_FAILED);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, parts + 2 * PART_BYTES, PART_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_on_lowest_part, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    munmap(parts, PART_BYTES);
    munmap(parts + 2 * PART_BYTES, PART_BYTES);
}

static void on_signal(int number)
{
    (void)number;
    take();
}

static void test_signal_stack(void **state)
{
    (void)state;
    stack_t stack = {.ss_sp = stack_before_gap(65536), .ss_size = 65536}, old;
    assert_int_equal(sigaltstack(&stack, &old), 0);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    assert_false(taken.capture.is_joined);
    assert_true(taken.capture.stack + taken.stack_bytes == (uintptr_t)stack.ss_sp + 65536);
    assert_int_equal(sigaltstack(&old, NULL), 0);
    munmap(stack.ss_sp, 65536 + 4096);
}

/* As in a container that refuses the call: only the page that the thread is on is known to be
 * mapped. This test must come last. */
static void test_a_copy_by_the_kernel_that_is_refused(void **state)
{
    (void)state;
    run_on_coroutine(on_deep_coroutine);
    assert_int_equal(taken.stack_bytes, AGENT_STACK_BYTES_MAX);
    refuse_call(SYS_process_vm_readv, EPERM);
    run_on_coroutine(on_deep_coroutine);
    assert_true(taken.stack_bytes > 0 && taken.stack_bytes <= 4096);
    assert_int_equal((taken.capture.stack + taken.stack_bytes) % 4096, 0);
    run_coroutine();
}

/* A snapshot from the captured data alone, which is all that unwinding needs. */
static struct snapshot snapshot_of_taken(void)
{
    static const unsigned numbers[] = AGENT_REGISTERS;
    struct snapshot snapshot = {0};
    for (unsigned i = 0; i < AGENT_REGISTER_COUNT; i++)
        registers_set(&snapshot.registers, numbers[i], taken.buffer[i]);
    snapshot.stack = (struct stack_copy){.address = taken.capture.stack,
                                         .memory = (void *)&taken.buffer[AGENT_REGISTER_COUNT],
                                         .bytes = taken.stack_bytes,
                                         .capacity = taken.stack_bytes,
                                         .end = taken.capture.stack + taken.stack_bytes,
                                         .end_is_known = !taken.is_cut};
    return snapshot;
}

static uint64_t caller;

__attribute__((noinline)) static void take_inner(void)
{
    caller = (uintptr_t)__builtin_return_address(0) - 1;
    take();
    __asm__ volatile("" ::: "memory");
}

static void *unwind_taken(void *context)
{
    struct stack stack = {0};
    struct unwind_hints hints;
    take_inner();
    const struct snapshot snapshot = snapshot_of_taken();
    assert_int_equal(unwind_snapshot(&self.rules, self.space, &snapshot, 100, &stack, &hints), 0);
    assert_int_equal(stack.cut, STACK_WHOLE);
    assert_true(stack.depth >= 4);
    assert_true(stack.addresses[0] == taken.capture.registers[AGENT_REGISTER_COUNT - 1]);
    assert_true(stack.addresses[1] >= (uintptr_t)take_inner &&
                stack.addresses[1] < (uintptr_t)take_inner + 1000);
    assert_true(stack.addresses[2] == caller);
    free(stack.addresses);
    return context;
}

static void test_unwinding(void **state)
{
    (void)state;
    unwind_taken(NULL);
    in_thread(unwind_taken, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_main_thread),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_coroutines),
        cmocka_unit_test(test_stacks_next_to_each_other),
        cmocka_unit_test(test_signal_stack),
        cmocka_unit_test(test_unwinding),
        cmocka_unit_test(test_a_copy_by_the_kernel_that_is_refused),
    };
    return cmocka_run_group_tests_name("capture", tests, set_up_group, tear_down_group);
}

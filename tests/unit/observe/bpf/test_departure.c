#include "unit.h"
#include "observe/bpf/departure.h"

#include <sys/syscall.h>

static const struct clock_offsets none;

static void test_times_are_ours(void **state)
{
    (void)state;
    const struct clock_offsets offsets = {.monotonic_ns = (uint64_t)-50, .boot_ns = 7};
    struct switch_departure raw = {
        .number = 3, .out_ns = 100, .start_ns = 10, .tid = 5, .process_id = 4, .state = 1};
    struct departure departure;
    departure_translate(&raw, &offsets, &departure);
    assert_int_equal(departure.number, 3);
    assert_int_equal(departure.tid, 5);
    assert_int_equal(departure.process_id, 4);
    assert_int_equal(departure.out_ns, 50);
    assert_int_equal(departure.start_ns, 17);
    assert_int_equal(departure.runnable_ns, 0);
    assert_int_equal(departure.in_ns, 0);
    raw.runnable_ns = 120;
    raw.moved_ns = 130;
    raw.in_ns = 130;
    departure_translate(&raw, &offsets, &departure);
    assert_int_equal(departure.runnable_ns, 70);
    assert_int_equal(departure.moved_ns, 80);
    assert_int_equal(departure.in_ns, 80);
}

static enum thread_state state_of(uint32_t bits)
{
    const struct switch_departure raw = {.state = bits};
    struct departure departure;
    departure_translate(&raw, &none, &departure);
    return departure.state;
}

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(state_of(0), THREAD_RUNNABLE);
    assert_int_equal(state_of(0x1), THREAD_SLEEPING);
    assert_int_equal(state_of(0x2001), THREAD_SLEEPING); /* and may be frozen */
    assert_int_equal(state_of(0x2), THREAD_UNINTERRUPTIBLE);
    assert_int_equal(state_of(0x102), THREAD_UNINTERRUPTIBLE); /* but can be killed */
    assert_int_equal(state_of(0x104), THREAD_STOPPED);
    assert_int_equal(state_of(0x108), THREAD_STOPPED);  /* by a debugger */
    assert_int_equal(state_of(0x200), THREAD_SLEEPING); /* just being woken */
}

#ifdef __x86_64__
/* struct pt_regs: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs flags
 * rsp. Each holds its DWARF number, plus 100. */
static const __u64 words[SWITCH_WORDS] = {115, 114, 113, 112, 106, 103,       111, 110,  109, 108,
                                          100, 102, 101, 104, 105, (__u64)-1, 116, 0x33, 0,   107};
#define CALL 15
#define RESULT 10
#define RESULT_NUMBER 0
#define SEGMENT 17
#define MODE_32_BIT 0x23

static void check_arguments(const uint64_t *arguments)
{
    static const uint64_t expected[6] = {105, 104, 101, 110, 108, 109};
    assert_memory_equal(arguments, expected, sizeof expected);
}
#else
/* x0 to x30, sp, pc, pstate, orig_x0, the call. */
static const __u64 words[SWITCH_WORDS] = {
    100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117,
    118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 0,   200, (__u64)-1};
#define CALL 35
#define RESULT 0
#define SEGMENT 33
#define MODE_32_BIT 0x10

static void check_arguments(const uint64_t *arguments)
{
    static const uint64_t expected[6] = {200, 101, 102, 103, 104, 105};
    assert_memory_equal(arguments, expected, sizeof expected);
}
#endif

static void test_registers(void **state)
{
    (void)state;
    struct registers registers;
    long number;
    departure_registers(words, &registers, &number);
    assert_int_equal(number, -1);
    assert_int_equal(registers.known, (1ull << architecture.register_count) - 1);
    for (unsigned i = 0; i < architecture.register_count; i++)
        assert_int_equal(registers.values[i], 100 + i);
    assert_int_equal(registers.interrupted_call, -1);
    assert_false(registers.is_new_thread);
}

static void test_registers_in_a_call(void **state)
{
    (void)state;
    struct registers registers;
    __u64 in_call[SWITCH_WORDS];
    long number;
    memcpy(in_call, words, sizeof words);
    in_call[CALL] = SYS_read;
    departure_registers(in_call, &registers, &number);
    assert_int_equal(number, SYS_read);
    check_arguments(registers.call_arguments);
#ifdef RESULT_NUMBER
    assert_false(registers_has(&registers, RESULT_NUMBER));
#endif
    assert_true(registers_has(&registers, architecture.frame_pointer));
    in_call[CALL] = SYS_clone;
    in_call[RESULT] = 0;
    departure_registers(in_call, &registers, &number);
    assert_true(registers.is_new_thread);
    assert_true(registers_has(&registers, 0));
    assert_int_equal(registers.values[0], 0);
}

static void test_32_bit_code_has_no_registers(void **state)
{
    (void)state;
    struct registers registers;
    __u64 other[SWITCH_WORDS];
    long number;
    memcpy(other, words, sizeof words);
    other[SEGMENT] = MODE_32_BIT;
    departure_registers(other, &registers, &number);
    assert_int_equal(registers.known, 0);
}

static void test_messages(void **state)
{
    (void)state;
    struct past_departure past;
    struct {
        struct switch_message message;
        unsigned char stack[16];
    } sent = {.message = {.last_tick = 6,
                          .slot = 2,
                          .generation = 9,
                          .stack_bytes = 16,
                          .departure = {.tid = 77}}};
    assert_true(past_departure_read(&sent, sizeof sent, &none, &past));
    assert_int_equal(past.last_tick, 6);
    assert_int_equal(past.slot, 2);
    assert_int_equal(past.generation, 9);
    assert_int_equal(past.departure.tid, 77);
    assert_ptr_equal(past.stack, sent.stack);
    assert_int_equal(past.stack_bytes, 16);
    assert_false(past_departure_read(&sent, sizeof sent - 1, &none, &past));
    assert_false(past_departure_read(&sent, sizeof sent.message - 1, &none, &past));
    assert_false(past_departure_read(&sent, 0, &none, &past));
    sent.message.stack_bytes = UINT32_MAX;
    assert_false(past_departure_read(&sent, sizeof sent, &none, &past));
    sent.message.stack_bytes = 0;
    assert_true(past_departure_read(&sent, sizeof sent.message, &none, &past));
}

static void test_which_thread_had_a_cpu(void **state)
{
    (void)state;
    struct switch_stay sent = {.tid = 77, .process_id = 70, .kind = SWITCH_WAKER_KERNEL_THREAD};
    struct cpu_user user;
    memset(sent.name, 'x', sizeof sent.name); /* not terminated */
    memset(sent.process_name, 'y', sizeof sent.process_name);
    cpu_user_read(&sent, &user);
    assert_true(user.is_known && !user.is_sampled);
    assert_int_equal(user.tid, 77);
    assert_int_equal(user.process_id, 70);
    assert_int_equal(user.kind, WAKE_BY_KERNEL_THREAD);
    assert_string_equal(user.name, "xxxxxxxxxxxxxxx");
    assert_string_equal(user.process_name, "yyyyyyyyyyyyyyy");
    sent.kind = SWITCH_WAKER_IDLE;
    cpu_user_read(&sent, &user);
    assert_int_equal(user.kind, WAKE_BY_IDLE);
}

static void test_wakes(void **state)
{
    (void)state;
    const struct clock_offsets ahead = {.monotonic_ns = 1000};
    const uint64_t first = 0xffffffff81000010;
    struct past_departure past;
    struct switch_message sent = {
        .kind = SWITCH_MESSAGE_WAKE,
        .departure = {.tid = 77, .process_id = 70},
        .chain = {.first = first, .depth = UINT32_MAX},
        .wake = {.out_ns = 5, .tid = 88, .process_id = 80, .waker = SWITCH_WAKER_KERNEL_THREAD},
    };
    memset(sent.wake.name, 'x', sizeof sent.wake.name); /* not terminated */
    sent.chain.addresses[0] = (uint32_t)first;
    sent.chain.addresses[1] = (uint32_t)first - 0x20;
    sent.chain.addresses[2] = 0x20; /* of a module beyond the next 4 GiB */
    assert_true(past_departure_read(&sent, sizeof sent, &ahead, &past));
    assert_int_equal(past.kind, SWITCH_MESSAGE_WAKE);
    assert_int_equal(past.woken_tid, 88);
    assert_int_equal(past.woken_process_id, 80);
    assert_int_equal(past.wake.departed_ns, 1005);
    assert_int_equal(past.wake.thread, WAKE_BY_KERNEL_THREAD);
    assert_int_equal(past.wake.tid, 77);
    assert_int_equal(past.wake.process_id, 70);
    assert_string_equal(past.wake.name, "xxxxxxxxxxxxxxx");
    assert_int_equal(past.wake.chain_depth, WAKE_CHAIN_MAX);
    assert_true(past.wake.chain[0] == first && past.wake.chain[1] == first - 0x20);
    assert_int_equal(past.chain_depth, 0);
    assert_null(past.futex);
    /* Its wait began before its process was followed. */
    sent.wake.out_ns = 0;
    sent.wake.waker = 1000;
    assert_true(past_departure_read(&sent, sizeof sent, &ahead, &past));
    assert_int_equal(past.wake.departed_ns, 0);
    assert_int_equal(past.wake.thread, WAKE_BY_IDLE);
    sent.kind = SWITCH_MESSAGE_PAST;
    assert_true(past_departure_read(&sent, sizeof sent, &ahead, &past));
    assert_int_equal(past.kind, SWITCH_MESSAGE_PAST);
    assert_int_equal(past.chain_depth, WAKE_CHAIN_MAX);
    assert_true(past.chain[0] == first && past.chain[1] == first - 0x20);
}

static void test_frames_of_python(void **state)
{
    (void)state;
    static struct {
        struct switch_message message;
        unsigned char stack[SWITCH_OTHER_OFFSET];
        struct switch_frame frames[2];
    } sent = {.message = {.frames_state = SWITCH_FRAMES_WHOLE, .frame_count = 2}};
    struct past_departure past;
    assert_true(past_departure_read(&sent, sizeof sent, &none, &past));
    assert_int_equal(past.frames_state, SWITCH_FRAMES_WHOLE);
    assert_int_equal(past.frame_count, 2);
    assert_ptr_equal(past.frames, sent.frames);
    assert_false(past_departure_read(&sent, sizeof sent - 1, &none, &past));
    sent.message.frame_count = UINT32_MAX;
    assert_false(past_departure_read(&sent, sizeof sent, &none, &past));
    sent.message.frame_count = 0;
    assert_true(past_departure_read(&sent, sizeof sent.message, &none, &past));
    assert_int_equal(past.frame_count, 0);
}

static void test_generations(void **state)
{
    (void)state;
    assert_int_equal(switch_generation_after(0), 1);
    assert_int_equal(switch_generation_after(UINT32_MAX), 1);
}

static void test_returns_that_no_switch_told_of(void **state)
{
    (void)state;
    struct switch_departure departure = {.out_ns = 1000};
    assert_int_equal(switch_unseen_return_ns(&departure, 300, 5000), 4700);
    assert_int_equal(switch_unseen_return_ns(&departure, 3999, 5000), 1001);
    assert_int_equal(switch_unseen_return_ns(&departure, 4001, 5000), 1000);
    departure.runnable_ns = 4000;
    assert_int_equal(switch_unseen_return_ns(&departure, 300, 5000), 4700);
    assert_int_equal(switch_unseen_return_ns(&departure, 1500, 5000), 4000);
    /* The running time was not counted, belongs to another thread, or the clocks differ. */
    assert_int_equal(switch_unseen_return_ns(&departure, 0, 5000), 4000);
    assert_int_equal(switch_unseen_return_ns(&departure, (uint64_t)-300, 5000), 4000);
    assert_int_equal(switch_unseen_return_ns(&departure, 6000, 5000), 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_ours),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_registers_in_a_call),
        cmocka_unit_test(test_32_bit_code_has_no_registers),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_which_thread_had_a_cpu),
        cmocka_unit_test(test_frames_of_python),
        cmocka_unit_test(test_generations),
        cmocka_unit_test(test_returns_that_no_switch_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

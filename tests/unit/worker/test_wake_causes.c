/* What ended a wait, from the kernel's functions, with made-up symbols. */
#include "kallsyms_text.h"
#include "base/clock.h"
#include "worker/wake_causes.h"

#include <stdio.h>
#include <string.h>

/* In the order of enum function, 0x100 bytes each. */
static const char symbols[] = "1000 T bpf_trace_run1\n"
                              "1100 T __traceiter_sched_waking\n"
                              "1200 T try_to_wake_up\n"
                              "1300 T hrtimer_wakeup\n"
                              "1400 T __sysvec_apic_timer_interrupt\n"
                              "1500 T asm_sysvec_apic_timer_interrupt\n"
                              "1600 T blk_complete_reqs\n"
                              "1700 T asm_common_interrupt\n"
                              "1800 T pipe_write\n"
                              "1900 T entry_SYSCALL_64_after_hwframe\n"
                              "1a00 T end\n";

enum function {
    TRACE,
    ITERATE,
    WAKE,
    TIMER,
    TIMER_ENTRY,
    TIMER_ASM,
    DISK,
    OTHER_ASM,
    PIPE,
    SYSCALL,
};

struct world {
    struct results results;
    struct kernel_names names;
    struct wake_causes causes;
};

static void set_up(struct world *world)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(results_init(&world->results), 0);
    assert_int_equal(kallsyms_read_text(symbols, &world->names.kallsyms), 0);
    world->names.reading.done_ns = monotonic_ns(); /* this machine's symbols are not read */
}

static void tear_down(struct world *world)
{
    kernel_names_free(&world->names);
    results_free(&world->results);
}

/* The functions of this chain that are kept, leaf first. */
static const char *functions_of(struct world *world, const enum function *chain, unsigned depth,
                                enum waker_kind kind)
{
    struct wake_seen seen = {.process_id = 7, .tid = 8, .name = "writer", .chain_depth = depth};
    struct waker waker;
    for (unsigned i = 0; i < depth; i++)
        seen.chain[i] = 0x1010 + 0x100 * chain[i];
    assert_int_equal(wake_find_waker(&world->results, &world->names, &world->causes, &seen,
                                     PROCESS_NONE, &waker),
                     0);
    assert_int_equal(waker.kind, kind);
    assert_int_equal(wake_find_functions(&world->results, &world->names, &seen, &waker), 0);
    return strings_get(&world->results.strings, waker.kernel_stack);
}

#define FUNCTIONS(world, kind, ...)                                                                \
    functions_of(world, (const enum function[]){__VA_ARGS__},                                      \
                 sizeof(enum function[]){__VA_ARGS__} / sizeof(enum function), kind)

static void test_a_thread_has_all_functions_but_ours(void **state)
{
    (void)state;
    struct world world;
    set_up(&world);
    assert_string_equal(FUNCTIONS(&world, WAKER_OTHER_THREAD, TRACE, ITERATE, WAKE, PIPE, SYSCALL),
                        "try_to_wake_up\npipe_write\nentry_SYSCALL_64_after_hwframe\n");
    tear_down(&world);
}

static void test_an_interrupt_ends_with_its_entry(void **state)
{
    (void)state;
    static const char timer[] = "try_to_wake_up\nhrtimer_wakeup\n__sysvec_apic_timer_interrupt\n"
                                "asm_sysvec_apic_timer_interrupt\n";
    struct world world;
    set_up(&world);
    assert_string_equal(
        FUNCTIONS(&world, WAKER_TIMER, TRACE, WAKE, TIMER, TIMER_ENTRY, TIMER_ASM, PIPE, SYSCALL),
        timer);
    assert_string_equal(FUNCTIONS(&world, WAKER_TIMER, WAKE, TIMER, TIMER_ENTRY, TIMER_ASM), timer);
    /* An interrupt within another one. */
    assert_string_equal(FUNCTIONS(&world, WAKER_TIMER, WAKE, TIMER, TIMER_ENTRY, TIMER_ASM, DISK,
                                  OTHER_ASM, PIPE, SYSCALL),
                        timer);
    assert_string_equal(FUNCTIONS(&world, WAKER_DISK, WAKE, DISK, OTHER_ASM, PIPE, SYSCALL),
                        "try_to_wake_up\nblk_complete_reqs\nasm_common_interrupt\n");
    tear_down(&world);
}

static void test_nothing_is_kept_of_an_unknown_waker(void **state)
{
    (void)state;
    struct world world;
    set_up(&world);
    assert_string_equal(FUNCTIONS(&world, WAKER_UNKNOWN, PIPE, SYSCALL), "");
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_has_all_functions_but_ours),
        cmocka_unit_test(test_an_interrupt_ends_with_its_entry),
        cmocka_unit_test(test_nothing_is_kept_of_an_unknown_waker),
    };
    return cmocka_run_group_tests_name("wake_causes", tests, NULL, NULL);
}

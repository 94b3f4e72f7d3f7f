/* The worker's requests, and how the sampler serves them. */
#include "fake/fake.h"

#define PID 100
#define TID 101

static struct fake_thread *begin_with(enum fake_doing doing)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = fake_thread(process, TID, doing);
    fake->options.max_pause_percent = 100;
    fake_begin();
    fake_ticks(3);
    fake_wake(); /* a tick may leave requests to be served */
    return thread;
}

static void test_a_sleeper_is_copied_anew_at_once(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    unsigned looks = thread->looks;
    uint64_t now_ns = fake->now_ns;
    fake_request_of(
        TID, (struct request){.kind = REQUEST_STACK_ANEW, .stack_limit = 50000, .serial = 7});
    fake_wake();
    assert_int_equal(fake->now_ns, now_ns);
    assert_int_equal(thread->looks, looks + 1);
    assert_int_equal(thread->look.stack_limit, 50000);
    assert_true(thread->look.wants_copy);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->served, 7);
    assert_true(fake->told[fake->told_next - 1].stack_capacity >= 50000);
    assert_int_equal(thread->stops, 0);
    fake_ticks(2);
    assert_false(thread->look.wants_copy); /* once */
    assert_int_equal(thread->look.stack_limit, 50000);
}

static void test_a_runner_is_stopped_anew_at_once(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    unsigned stops = thread->stops;
    fake_request_of(TID, (struct request){.kind = REQUEST_ANEW, .serial = 1});
    fake_wake();
    assert_int_equal(thread->stops, stops + 1);
    fake_forget_told();
    /* Not if it has exited meanwhile. */
    thread->doing = FAKE_GONE;
    fake_ticks(1);
    fake_request_of(TID, (struct request){.kind = REQUEST_ANEW, .serial = 2});
    fake_wake();
    assert_int_equal(thread->stops, stops + 1);
}

static void test_a_larger_stack_from_the_next_copy_on(void **state)
{
    (void)state;
    const struct stack_place other = {0x1000, 8192};
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    fake_request_of(
        TID, (struct request){.kind = REQUEST_STACK, .stack_limit = 40000, .other_stack = other});
    fake_wake();
    assert_null(fake_next_of(TID));
    thread->activity.switches++;
    fake_ticks(1);
    assert_non_null(fake_next_of(TID));
    assert_int_equal(thread->look.stack_limit, 40000);
    assert_int_equal(thread->look.other_stack.address, 0x1000);
    assert_int_equal(thread->look.other_stack.bytes, 8192);
}

static void test_a_later_copy(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_ticks(60); /* looks are rare by now */
    fake_forget_told();
    fake_request_of(TID, (struct request){.kind = REQUEST_LATER, .serial = 3});
    fake_wake();
    assert_null(fake_next_of(TID));
    fake_ticks(1);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
    assert_true(thread->looks > 0);
}

static void test_the_registers_of_a_sleeper(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    const struct sleep_place place = {
        .pc = thread->pc, .sp = thread->sp, .state = THREAD_SLEEPING, .syscall_number = 202};
    fake_forget_told();
    fake_request_of(TID, (struct request){.kind = REQUEST_FRAME_POINTER, .asleep = place});
    fake_wake();
    assert_int_equal(thread->stops, 1);
    assert_int_equal(thread->stop.asleep.pc, place.pc);
    assert_int_equal(thread->stop.look.at_ns, 0); /* it was not found running */
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_STOPPED);
    assert_int_equal(told->stop.asked.sp, place.sp);
    assert_int_equal(fake->sampler.counts.pauses.count, 0); /* no running thread was paused */
    fake_ticks(5);
    assert_int_equal(thread->stops, 1); /* once */
}

/* Being woken for a stop does not count as a move. */
static void test_a_stop_in_its_sleep_is_no_move(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_request_of(TID, (struct request){.kind = REQUEST_FRAME_POINTER,
                                          .asleep = {.pc = thread->pc, .sp = thread->sp}});
    fake_wake();
    thread->activity.switches++;
    fake_ticks(3);
    fake_forget_told();
    fake_end();
    const struct observation *told = fake_next_of(TID);
    while (told->evidence != EVIDENCE_GONE)
        told = fake_next_of(TID);
    assert_true(told->end.never_moved);
}

static void test_requests_for_another_thread_are_dropped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    unsigned looks = thread->looks;
    /* Its number was another thread's. */
    const struct request stale = {.kind = REQUEST_STACK_ANEW,
                                  .thread =
                                      fake->told[fake->told_count - 1].message.observation.thread,
                                  .tid = TID + 100,
                                  .stack_limit = 60000};
    const struct request unknown = {.kind = REQUEST_ANEW, .thread = 12345, .tid = TID};
    fake_request(&stale);
    fake_request(&unknown);
    fake_wake();
    assert_int_equal(thread->looks, looks);
    fake_ticks(1);
    assert_true(thread->look.stack_limit < 60000);
}

static void test_areas_are_of_one_program(void **state)
{
    (void)state;
    begin_with(FAKE_SLEEPS);
    struct request request = {.kind = REQUEST_AREAS, .program = 0};
    request.areas.items = calloc(1, sizeof *request.areas.items);
    assert_non_null(request.areas.items);
    request.areas.count = request.areas.capacity = 1;
    request.areas.items[0] = (struct stack_area){.start = 0x1000, .end = 0x2000};
    fake_request(&request);
    fake_wake();
    fake_ticks(1);
    const struct fake_thread *thread = fake_find(TID);
    assert_int_equal(stack_areas_end(thread->look.stack_areas, 0x1800), 0x2000);
    /* If the program has ended, they are freed, which a sanitizer checks. */
    request.program = 9;
    request.areas.items = calloc(1, sizeof *request.areas.items);
    fake_request(&request);
    fake_wake();
    assert_int_equal(stack_areas_end(thread->look.stack_areas, 0x1800), 0x2000);
}

static void test_contexts_are_read_from_then_on(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    assert_null(thread->look.context);
    const struct request request = {
        .kind = REQUEST_CONTEXT, .program = 0, .context = {.kind = CONTEXT_STATIC, .offset = -8}};
    fake_request(&request);
    fake_wake();
    fake_ticks(1);
    assert_non_null(thread->look.context);
    assert_int_equal(thread->look.context->offset, -8);
    /* Threads that are still asleep are copied again. */
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
    assert_int_equal(fake_count(PID, EVIDENCE_ASLEEP), 1);
}

static void test_registers_by_switches(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    assert_false(thread->is_armed);
    fake_request_of(TID, (struct request){.kind = REQUEST_REGISTERS});
    fake_wake();
    assert_true(thread->is_armed);
    assert_int_equal(thread->stops, 0);
    fake_thread_leaves(thread);
    fake_ticks(2);
    assert_false(thread->is_armed);
}

/* What the thread's program needed, the one that it executes may not need. */
static void test_registers_of_another_program(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_request_of(TID, (struct request){.kind = REQUEST_REGISTERS});
    fake_wake();
    assert_true(thread->is_armed);
    fake_find_process(PID)->programs++;
    for (unsigned tick = 0; tick < 50; tick++) {
        thread->activity.switches++;
        fake_ticks(1);
    }
    assert_false(thread->is_armed);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_sleeper_is_copied_anew_at_once),
        IN_WORLD(test_a_runner_is_stopped_anew_at_once),
        IN_WORLD(test_a_larger_stack_from_the_next_copy_on),
        IN_WORLD(test_a_later_copy),
        IN_WORLD(test_the_registers_of_a_sleeper),
        IN_WORLD(test_a_stop_in_its_sleep_is_no_move),
        IN_WORLD(test_requests_for_another_thread_are_dropped),
        IN_WORLD(test_areas_are_of_one_program),
        IN_WORLD(test_contexts_are_read_from_then_on),
        IN_WORLD(test_registers_by_switches),
        IN_WORLD(test_registers_of_another_program),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}

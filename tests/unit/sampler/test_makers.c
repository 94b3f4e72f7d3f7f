/* Which thread created which: births that the kernel reports, and threads whose birth was not
 * seen. */
#include "fake/fake.h"

#include <errno.h>

#define PID 100
#define TID 101

static struct fake_process *begin(void)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake_thread(process, TID, FAKE_SLEEPS)->start = 0x4242;
    fake->options.objects.kinds[OBJECT_THREAD] = true;
    fake_begin();
    fake_ticks(1);
    return process;
}

static struct birth *add_birth(enum birth_change change, pid_t tid)
{
    struct birth *birth = &fake->births[fake->birth_count++];
    *birth = (struct birth){
        .change = change,
        .process_id = PID,
        .tid = tid,
        .at_ns = fake->now_ns,
        .maker_process_id = PID,
        .maker_tid = PID,
        .has_stack = !fake->stack_error,
    };
    return birth;
}

static const struct fake_told *next_news(enum object_change change, pid_t tid)
{
    const struct fake_told *told;
    while ((told = fake_next(MESSAGE_OBJECT))) {
        const struct object_news *news = &told->message.object;
        if (news->kind == OBJECT_THREAD && news->change == change && news->key == (uint64_t)tid)
            return told;
    }
    return NULL;
}

static void test_a_birth_is_told_with_its_maker_s_stack(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    fake_forget_told();
    fake_thread(process, TID + 1, FAKE_SLEEPS);
    add_birth(BIRTH_MADE, TID + 1);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE, TID + 1);
    assert_non_null(told);
    assert_int_equal(told->message.object.origin, ORIGIN_SEEN);
    assert_int_equal(told->message.object.weight, 1);
    assert_int_equal(told->message.object.tid, PID);
    assert_true(told->has_snapshot);
    assert_int_equal(told->pc, fake_find(PID)->pc);
    fake_ticks(30);
    assert_null(next_news(OBJECT_THERE, TID + 1)); /* it is known */
}

static void test_names_and_ends_are_told(void **state)
{
    (void)state;
    begin();
    fake_forget_told();
    strcpy(add_birth(BIRTH_NAMED, TID)->name, "named");
    add_birth(BIRTH_ENDED, TID);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_NAMED, TID);
    assert_non_null(told);
    assert_string_equal(told->name, "named");
    assert_non_null(next_news(OBJECT_GONE, TID));
    fake_thread_leaves(fake_find(TID));
    fake_ticks(2);
    assert_null(next_news(OBJECT_GONE, TID)); /* once */
}

static void test_threads_that_were_there_before(void **state)
{
    (void)state;
    begin();
    const struct fake_told *told = next_news(OBJECT_THERE, PID);
    assert_non_null(told);
    assert_int_equal(told->message.object.origin, ORIGIN_MAIN);
    told = next_news(OBJECT_THERE, TID);
    assert_non_null(told);
    assert_int_equal(told->message.object.origin, ORIGIN_BEFORE);
    assert_int_equal(told->message.object.start, 0x4242);
    assert_string_equal(told->name, "thread-101");
    assert_true(told->has_snapshot); /* its own stack */
    assert_int_equal(told->pc, fake_find(TID)->pc);
    fake_ticks(5);
    assert_null(next_news(OBJECT_THERE, TID));
}

static void test_a_thread_that_nobody_saw_being_made(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    fake_forget_told();
    fake_thread(process, TID + 1, FAKE_SLEEPS);
    fake_ticks(5);
    assert_null(next_news(OBJECT_THERE, TID + 1)); /* its birth may still be reported */
    fake_ticks(10);
    const struct fake_told *told = next_news(OBJECT_THERE, TID + 1);
    assert_non_null(told);
    assert_int_equal(told->message.object.origin, ORIGIN_UNSEEN);
}

/* A look for the collector does not affect the thread's reported time. */
static void test_a_look_for_it_costs_no_time(void **state)
{
    (void)state;
    begin();
    fake_ticks(3);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
}

/* Without permission for stack events, the maker is looked at, if it sleeps. */
static void test_without_stacks_the_maker_is_looked_at(void **state)
{
    (void)state;
    fake->stack_error = -EACCES;
    fake->agent_error = -ENOENT; /* the program does not report them either */
    struct fake_process *process = begin();
    fake_forget_told();
    fake_thread(process, TID + 1, FAKE_SLEEPS);
    add_birth(BIRTH_MADE, TID + 1);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE, TID + 1);
    assert_non_null(told);
    assert_int_equal(told->message.object.origin, ORIGIN_LATER);
    assert_int_equal(told->pc, fake_find(PID)->pc);
    fake_end();
    assert_int_equal(fake->object_counts[OBJECT_THREAD].refusal, EACCES);
}

static void test_without_births_threads_are_listed(void **state)
{
    (void)state;
    fake->births_error = -EPERM;
    fake->agent_error = -ENOENT;
    struct fake_process *process = begin();
    fake_forget_told();
    struct fake_thread *thread = fake_thread(process, TID + 1, FAKE_SLEEPS);
    fake_ticks(2);
    assert_non_null(next_news(OBJECT_THERE, TID + 1));
    strcpy(thread->name, "later");
    fake_ticks(2);
    const struct fake_told *told = next_news(OBJECT_NAMED, TID + 1);
    assert_non_null(told);
    assert_string_equal(told->name, "later");
    fake_thread_leaves(thread);
    fake_ticks(2);
    assert_non_null(next_news(OBJECT_GONE, TID + 1));
    fake_end();
    assert_int_equal(fake->object_counts[OBJECT_THREAD].refusal, EPERM);
}

/* The process of the birth is found late, or never. */
static void test_a_birth_in_a_process_that_is_not_known(void **state)
{
    (void)state;
    begin();
    fake_forget_told();
    struct birth *birth = add_birth(BIRTH_MADE, PID + 50);
    birth->process_id = PID + 50;
    add_birth(BIRTH_MADE, TID + 1);
    fake_thread(fake_find_process(PID), TID + 1, FAKE_SLEEPS);
    fake_ticks(5);
    assert_null(next_news(OBJECT_MADE, TID + 1)); /* births are reported in order */
    fake_forget_told();
    fake_ticks(10);
    assert_non_null(next_news(OBJECT_MADE, TID + 1));
    fake->births_lost = 2;
    fake_end();
    assert_int_equal(fake->object_counts[OBJECT_THREAD].made_lost, 3);
}

static void test_without_snapshots_births_wait(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    fake_ticks(2);
    fake_forget_told();
    fake_hoard(0);
    fake_thread(process, TID + 1, FAKE_RUNS);
    add_birth(BIRTH_MADE, TID + 1);
    fake_ticks(3);
    assert_null(next_news(OBJECT_MADE, TID + 1));
    fake_hoard_no_more();
    fake_ticks(1);
    assert_non_null(next_news(OBJECT_MADE, TID + 1));
}

/* A profile that is requested later says why it has no threads. */
static void test_an_error_is_the_reason_that_there_are_no_threads(void **state)
{
    (void)state;
    begin();
    fake->births_read_error = -ENOMEM;
    fake_ticks(1);
    fake->births_read_error = 0;
    atomic_store(&fake->sampler.progress.wants_copy, true);
    fake_ticks(2);
    assert_non_null(fake_next(MESSAGE_COPY));
    assert_int_equal(object_counts_refusal(&fake->object_counts[OBJECT_THREAD]), -ENOMEM);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_birth_is_told_with_its_maker_s_stack),
        IN_WORLD(test_names_and_ends_are_told),
        IN_WORLD(test_threads_that_were_there_before),
        IN_WORLD(test_a_thread_that_nobody_saw_being_made),
        IN_WORLD(test_a_look_for_it_costs_no_time),
        IN_WORLD(test_without_stacks_the_maker_is_looked_at),
        IN_WORLD(test_without_births_threads_are_listed),
        IN_WORLD(test_a_birth_in_a_process_that_is_not_known),
        IN_WORLD(test_without_snapshots_births_wait),
        IN_WORLD(test_an_error_is_the_reason_that_there_are_no_threads),
    };
    return cmocka_run_group_tests_name("makers", tests, NULL, NULL);
}

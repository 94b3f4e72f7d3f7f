/* Pages that became resident: what is reported about each fault, and when. */
#include "fake/fake.h"

#include <errno.h>

#define PID 100
#define ADDRESS 0x7f0000001234u

static struct fake_process *begin(void)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake->options.objects.kinds[OBJECT_PAGE] = true;
    fake->resident = 1000000;
    fake_begin();
    fake_ticks(2);
    fake_forget_told();
    return process;
}

static void add_fault(pid_t process_id, uint64_t at_ns)
{
    fake->faults[fake->fault_count++] = (struct fault){
        .process_id = process_id,
        .tid = process_id,
        .at_ns = at_ns,
        .address = ADDRESS,
        .weight = 4,
        .level = 2,
        .has_stack = true,
    };
}

static const struct fake_told *next_news(enum object_change change)
{
    const struct fake_told *told = fake_next(MESSAGE_OBJECT);
    while (told && told->message.object.change != change)
        told = fake_next(MESSAGE_OBJECT);
    return told;
}

static void test_a_fault_is_told_with_its_stack(void **state)
{
    (void)state;
    begin();
    uint64_t at_ns = fake->now_ns;
    add_fault(PID, at_ns);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE);
    assert_non_null(told);
    const struct object_news *news = &told->message.object;
    assert_int_equal(news->kind, OBJECT_PAGE);
    assert_int_equal(news->key, (ADDRESS & ~(uint64_t)0xfff) | PAGE_SINGLE);
    assert_int_equal(news->bytes, 4096);
    assert_int_equal(news->weight, 4);
    assert_int_equal(news->level, 2);
    assert_true(told->has_snapshot);
    assert_int_equal(told->pc, fake_find(PID)->pc);
    assert_int_equal(told->message.object.tid, PID);
    assert_int_equal(told->message.object.at_ns, at_ns);
    assert_int_equal(told->program, 0);
    assert_null(next_news(OBJECT_MADE));
}

static void test_a_fault_without_a_stack_is_told_all_the_same(void **state)
{
    (void)state;
    begin();
    add_fault(PID, fake->now_ns);
    fake->faults[0].has_stack = false;
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE);
    assert_non_null(told);
    assert_false(told->has_snapshot);
}

static void test_a_huge_page(void **state)
{
    (void)state;
    begin();
    fake->page = (struct page){PAGE_ANONYMOUS, 0x7f0000000000u, 2u << 20};
    add_fault(PID, fake->now_ns);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE);
    assert_int_equal(told->message.object.key, 0x7f0000000000u | PAGE_HUGE);
    assert_int_equal(told->message.object.bytes, 2u << 20);
}

/* The zero page is not memory of the process. */
static void test_a_page_of_zeros_is_told_as_gone(void **state)
{
    (void)state;
    begin();
    fake->page = (struct page){PAGE_ZEROS, ADDRESS & ~(uint64_t)0xfff, 4096};
    add_fault(PID, fake->now_ns);
    fake_ticks(1);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_GONE), 1);
}

/* The kernel reports a fault before it maps the page. */
static void test_a_page_that_is_not_there_yet_is_waited_for(void **state)
{
    (void)state;
    begin();
    fake->page = (struct page){PAGE_ABSENT, ADDRESS & ~(uint64_t)0xfff, 4096};
    add_fault(PID, fake->now_ns);
    fake_ticks(3);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
    fake_ticks(5); /* it may come from a disk, and is checked later */
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 1);
}

static void test_without_snapshots_faults_wait_in_order(void **state)
{
    (void)state;
    begin();
    fake_hoard(0);
    for (unsigned i = 0; i < 3; i++)
        add_fault(PID, fake->now_ns + i);
    fake_ticks(3);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
    fake_hoard_no_more();
    fake_ticks(1);
    uint64_t last_ns = 0;
    for (unsigned i = 0; i < 3; i++) {
        const struct fake_told *told = next_news(OBJECT_MADE);
        assert_non_null(told);
        assert_true(told->message.object.at_ns > last_ns);
        last_ns = told->message.object.at_ns;
    }
}

/* Faults that can't be reported by the end are counted, by their weight. */
static void test_faults_that_are_given_up_are_counted(void **state)
{
    (void)state;
    begin();
    fake_hoard(0);
    add_fault(PID, fake->now_ns);
    add_fault(PID, fake->now_ns);
    fake->faults_lost = 5;
    fake_end();
    struct object_counts counts = {0};
    counts = fake->object_counts[OBJECT_PAGE];
    assert_true(counts.has_source);
    assert_int_equal(counts.made_lost, 2 * 4 + 5);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
}

static void test_faults_of_a_program_that_is_gone_are_not_told(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    add_fault(PID, fake->now_ns);
    process->exec_ns = fake->now_ns + 1000;
    process->programs++;
    fake_ticks(2);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_FORGOTTEN), 1);
    uint64_t at_ns = fake->now_ns;
    add_fault(PID, at_ns);
    fake_ticks(1);
    const struct fake_told *told = next_news(OBJECT_MADE);
    assert_non_null(told);
    assert_int_equal(told->program, 1);
    assert_int_equal(told->message.object.at_ns, at_ns);
    assert_null(next_news(OBJECT_MADE));
}

/* The kernel reports them before the process's new program is known. */
static void test_the_first_faults_of_a_new_program_are_told(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    process->exec_ns = fake->now_ns + 1000;
    process->programs++;
    add_fault(PID, process->exec_ns + 1000);
    fake_ticks(5);
    const struct fake_told *told = next_news(OBJECT_MADE);
    assert_non_null(told);
    assert_int_equal(told->program, 1);
}

/* Faults that find no room in time are lost and counted; faults of other processes are reported. */
static void test_what_finds_no_room_holds_up_others_for_a_while(void **state)
{
    (void)state;
    fake_thread(fake_process(PID + 1), PID + 1, FAKE_SLEEPS);
    begin();
    fake->is_absent = true;
    for (unsigned i = 0; i < 520; i++)
        add_fault(PID, fake->now_ns);
    add_fault(PID + 1, fake->now_ns);
    fake_ticks(200);
    fake->is_absent = false;
    fake_ticks(1);
    unsigned told = 0, others = 0;
    for (const struct fake_told *at; (at = next_news(OBJECT_MADE));) {
        others += at->message.object.process_id == PID + 1;
        told++;
    }
    assert_in_range(told, 450, 512);
    assert_int_equal(others, 1);
    fake_end();
    assert_int_equal(fake->object_counts[OBJECT_PAGE].made_lost, (521 - told) * 4);
}

static void test_a_process_that_is_refused_refuses_no_other(void **state)
{
    (void)state;
    fake->unfaultable = PID + 1;
    fake_thread(fake_process(PID + 1), PID + 1, FAKE_SLEEPS);
    begin();
    fake_end();
    assert_true(fake->object_counts[OBJECT_PAGE].has_source);
    assert_int_equal(fake->object_counts[OBJECT_PAGE].refusal, 0);
}

static void test_if_all_processes_are_refused_that_is_said(void **state)
{
    (void)state;
    fake->unfaultable = PID;
    begin();
    fake_end();
    assert_false(fake->object_counts[OBJECT_PAGE].has_source);
    assert_int_equal(fake->object_counts[OBJECT_PAGE].refusal, E2BIG);
}

static void test_pages_are_checked_each_tenth_of_a_second(void **state)
{
    (void)state;
    begin();
    fake_ticks(50);
    assert_in_range(fake_count_news(OBJECT_PAGE, OBJECT_CHECKED), 4, 6);
    const struct fake_told *told = next_news(OBJECT_CHECKED);
    assert_false(told->message.object.check.is_due);
    assert_int_equal(told->message.object.check.seed, 1);
    assert_int_equal(told->message.object.check.levels.of[0], 1);
    fake_forget_told();
    fake_end();
    unsigned due = 0;
    while ((told = next_news(OBJECT_CHECKED)))
        due += told->message.object.check.is_due;
    assert_true(due >= 1);
}

static void test_fewer_pages_are_chosen_if_the_worker_asks(void **state)
{
    (void)state;
    begin();
    const struct request request = {.kind = REQUEST_FEWER_PAGES};
    fake_request(&request);
    fake_wake();
    assert_int_equal(fake->fewer_pages, 1);
}

static void test_resident_memory(void **state)
{
    (void)state;
    begin();
    fake->resident = 3000000;
    fake_ticks(30);
    fake_end();
    const struct object_counts *counts = &fake->object_counts[OBJECT_PAGE];
    assert_int_equal(counts->resident_before, 1000000);
    assert_int_equal(counts->resident, 3000000);
}

static void test_a_refusal_is_said(void **state)
{
    (void)state;
    fake->faults_error = -EACCES;
    begin();
    add_fault(PID, fake->now_ns);
    fake_ticks(2);
    assert_int_equal(fake_count_news(OBJECT_PAGE, OBJECT_MADE), 0);
    fake_end();
    assert_false(fake->object_counts[OBJECT_PAGE].has_source);
    assert_int_equal(fake->object_counts[OBJECT_PAGE].refusal, EACCES);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_fault_is_told_with_its_stack),
        IN_WORLD(test_a_fault_without_a_stack_is_told_all_the_same),
        IN_WORLD(test_a_huge_page),
        IN_WORLD(test_a_page_of_zeros_is_told_as_gone),
        IN_WORLD(test_a_page_that_is_not_there_yet_is_waited_for),
        IN_WORLD(test_without_snapshots_faults_wait_in_order),
        IN_WORLD(test_faults_that_are_given_up_are_counted),
        IN_WORLD(test_faults_of_a_program_that_is_gone_are_not_told),
        IN_WORLD(test_the_first_faults_of_a_new_program_are_told),
        IN_WORLD(test_what_finds_no_room_holds_up_others_for_a_while),
        IN_WORLD(test_a_process_that_is_refused_refuses_no_other),
        IN_WORLD(test_if_all_processes_are_refused_that_is_said),
        IN_WORLD(test_pages_are_checked_each_tenth_of_a_second),
        IN_WORLD(test_fewer_pages_are_chosen_if_the_worker_asks),
        IN_WORLD(test_resident_memory),
        IN_WORLD(test_a_refusal_is_said),
    };
    return cmocka_run_group_tests_name("page_faults", tests, NULL, NULL);
}

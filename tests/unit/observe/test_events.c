/* Which processes are followed. */
#include "unit.h"
#include "base/clock.h"
#include "observe/events.h"

#define PROCESSES 20000
#define ASKED 2000000u

static int tear_down(void **state)
{
    events_free(*state);
    return 0;
}

static int set_up(void **state)
{
    static struct events events;
    events = (struct events){0};
    *state = &events;
    return 0;
}

/* Ids are added in any order, and removed. */
static void test_processes_are_found_by_their_ids(void **state)
{
    struct events *events = *state;
    static const pid_t ids[] = {500, 7, 900, 8, 4194304, 1};
    size_t count = sizeof ids / sizeof *ids;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(events_follow(events, ids[i]), 0);
    assert_int_equal(events_follow(events, 900), 0); /* once */
    assert_int_equal(events->followed_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(events_are_of(events, ids[i]));
        assert_false(events_are_of(events, ids[i] + 2));
        events_unfollow(events, ids[i]);
        events_unfollow(events, ids[i]);
        assert_false(events_are_of(events, ids[i]));
        assert_int_equal(events->followed_count, count - 1 - i);
    }
}

/* Each record of any process causes a search, and there may be very many records. */
static void test_many_processes_cost_little(void **state)
{
    struct events *events = *state;
    for (pid_t id = 1; id <= PROCESSES; id++)
        assert_int_equal(events_follow(events, 2 * id), 0);
    uint64_t begin_ns = thread_cpu_ns(), found = 0;
    for (unsigned i = 0; i < ASKED; i++)
        found += events_are_of(events, (pid_t)(i % (2 * PROCESSES) + 1));
    uint64_t passed_ns = thread_cpu_ns() - begin_ns;
    assert_int_equal(found, ASKED / 2);
    assert_true(passed_ns < (uint64_t)ASKED * 1000); /* a search from one end takes 10 us */
}

/* The kernel says how many records had no room. */
static void test_lost_records_are_counted(void **state)
{
    struct events *events = *state;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct perf_event_mmap_page *page = calloc(2, page_bytes);
    const struct {
        struct perf_event_header header;
        uint64_t id, lost;
    } written = {{.type = PERF_RECORD_LOST, .size = sizeof written}, 1, 7};
    struct ring ring = {.fd = -1, .page = page, .data_bytes = page_bytes};
    struct record record;
    assert_non_null(page);
    memcpy((char *)page + page_bytes, &written, sizeof written);
    page->data_offset = page_bytes;
    page->data_head = sizeof written;
    assert_true(ring_next(&ring, &record));
    events_note(events, &record);
    events_note(events, &record);
    assert_int_equal(events->lost, 14);
    record.header.type = PERF_RECORD_FORK;
    events_note(events, &record);
    assert_int_equal(events->lost, 14);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_processes_are_found_by_their_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_processes_cost_little, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_records_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}

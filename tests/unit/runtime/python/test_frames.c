#include "runtime/python/frames.h"
#include "unit.h"

#define ID 4321

/* In this process, laid out as in CPython 3.11 and 3.12. */
static struct {
    unsigned char before[4096]; /* each read begins before its object */
    unsigned char thread[0x100], noted[0x40], frames[8][0x80];
} * made;
static struct python_thread thread;
static struct python_frames frames;

static void put(void *at, size_t offset, uint64_t value, size_t bytes)
{
    memcpy((unsigned char *)at + offset, &value, bytes);
}

static void begin(uint32_t version)
{
    const struct python_layout *layout = python_layout_of(version);
    assert_non_null(layout);
    made = calloc(1, sizeof *made);
    assert_non_null(made);
    put(made->thread, layout->thread_native_id, ID, 8);
    put(made->thread, layout->thread_frame, (uintptr_t)made->noted, 8);
    thread = (struct python_thread){layout, (uintptr_t)made->thread, ID};
    memset(&frames, 0xff, sizeof frames);
}

static void set_first(size_t frame)
{
    put(made->noted, thread.layout->noted_frame, (uintptr_t)made->frames[frame], 8);
}

/* `previous`: SIZE_MAX: none. */
static void set_frame(size_t frame, uint64_t code, size_t previous, uint8_t owner, bool is_entry)
{
    const struct python_layout *layout = thread.layout;
    unsigned char *at = made->frames[frame];
    put(at, layout->frame_code, code, 8);
    put(at, layout->frame_instruction, code + 1, 8);
    put(at, layout->frame_previous, previous == SIZE_MAX ? 0 : (uintptr_t)made->frames[previous],
        8);
    put(at, layout->frame_owner, owner, 1);
    if (layout->frame_is_entry != PYTHON_NOWHERE)
        put(at, layout->frame_is_entry, is_entry, 1);
}

static void read_frames(void)
{
    python_frames_read(&thread, getpid(), NULL, &frames);
}

static void end(void)
{
    free(made);
}

static void test_3_11_marks_entries(void **state)
{
    (void)state;
    begin(0x030b02f0);
    set_frame(0, 0x1000, SIZE_MAX, 0, true);
    set_frame(1, 0x2000, 0, 0, false);
    set_frame(2, 0x3000, 1, 1, true);
    set_first(2);
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_READ);
    assert_int_equal(frames.count, 3);
    assert_int_equal(frames.items[0].code, 0x3000);
    assert_int_equal(frames.items[0].instruction, 0x3001);
    assert_true(frames.items[0].is_entry);
    assert_false(frames.items[1].is_entry);
    assert_true(frames.items[2].is_entry);
    assert_false(frames.is_cut);
    end();
}

static void test_3_12_has_a_frame_for_each_call_of_the_loop(void **state)
{
    (void)state;
    begin(0x030c01f0);
    set_frame(0, 0x1000, SIZE_MAX, PYTHON_OWNED_BY_C, false);
    set_frame(1, 0x2000, 0, 0, false);
    set_frame(2, 0x3000, 1, 0, false);
    set_frame(3, 0x4000, 2, PYTHON_OWNED_BY_C, false);
    set_frame(4, 0x5000, 3, 1, false);
    set_first(4);
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_READ);
    assert_int_equal(frames.count, 3);
    assert_int_equal(frames.items[0].code, 0x5000);
    assert_true(frames.items[0].is_entry);
    assert_int_equal(frames.items[1].code, 0x3000);
    assert_false(frames.items[1].is_entry);
    assert_true(frames.items[2].is_entry);
    end();
}

static void test_3_14_refers_to_code_with_tags(void **state)
{
    (void)state;
    begin(0x030c01f0);
    set_frame(0, 0x1000 | 1, SIZE_MAX, 0, false);
    set_first(0);
    read_frames();
    assert_int_equal(frames.count, 1);
    assert_int_equal(frames.items[0].code, 0x1000);
    end();
}

/* Each frame is a call of the evaluation loop; there is no owner to check. */
static void test_3_9_has_objects(void **state)
{
    (void)state;
    begin(0x03090000);
    assert_true(sizeof *made->frames > thread.layout->frame_instruction + 8u);
    put(made->thread, thread.layout->thread_frame, (uintptr_t)made->frames[1], 8);
    set_frame(0, 0x1000, SIZE_MAX, PYTHON_OWNED_BY_C, false);
    set_frame(1, 0x2000, 0, PYTHON_OWNED_BY_C, false);
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_READ);
    assert_int_equal(frames.count, 2);
    assert_int_equal(frames.items[0].code, 0x2000);
    assert_true(frames.items[0].is_entry && frames.items[1].is_entry);
    end();
}

static void test_no_frame(void **state)
{
    (void)state;
    begin(0x030b02f0);
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_READ);
    assert_int_equal(frames.count, 0);
    end();
}

static void test_a_circle(void **state)
{
    (void)state;
    begin(0x030b02f0);
    set_frame(0, 0x1000, 1, 0, true);
    set_frame(1, 0x2000, 0, 0, true);
    set_first(0);
    read_frames();
    assert_true(frames.is_cut);
    assert_int_equal(frames.count, PYTHON_FRAMES_MAX);
    end();
}

/* Hidden frames must not hide a cycle. */
static void test_a_circle_of_the_loops_own_frames(void **state)
{
    (void)state;
    begin(0x030c01f0);
    set_frame(0, 0x1000, 0, PYTHON_OWNED_BY_C, false);
    set_first(0);
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
    end();
}

static void test_wild_pointers(void **state)
{
    (void)state;
    static const uint64_t wild[] = {8, 1ull << 46, UINT64_MAX - 16, 1ull << 63};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        begin(0x030b02f0);
        set_frame(0, 0x1000, SIZE_MAX, 0, true);
        put(made->frames[0], thread.layout->frame_previous, wild[i], 8);
        set_first(0);
        read_frames();
        assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
        put(made->noted, thread.layout->noted_frame, wild[i], 8);
        read_frames();
        assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
        thread.state = wild[i];
        read_frames();
        assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
        end();
    }
}

/* Fields that begin at the last addresses, and would end behind them. */
static void test_fields_across_the_last_address(void **state)
{
    (void)state;
    for (uint64_t before = 0; before < 8; before++) {
        begin(0x030b02f0);
        const struct python_layout *layout = thread.layout;
        uint64_t last = UINT64_MAX - before;
        set_frame(0, 0x1000, SIZE_MAX, 0, true);
        put(made->frames[0], layout->frame_previous, last - layout->frame_owner, 8);
        set_first(0);
        read_frames();
        assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
        put(made->thread, layout->thread_frame, last - layout->noted_frame, 8);
        read_frames();
        assert_int_equal(frames.state, PYTHON_FRAMES_UNREADABLE);
        end();
    }
}

/* The memory now belongs to another thread. */
static void test_another_thread(void **state)
{
    (void)state;
    begin(0x030b02f0);
    thread.id = ID + 1;
    read_frames();
    assert_int_equal(frames.state, PYTHON_FRAMES_OF_ANOTHER);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_3_11_marks_entries),
        cmocka_unit_test(test_3_12_has_a_frame_for_each_call_of_the_loop),
        cmocka_unit_test(test_3_14_refers_to_code_with_tags),
        cmocka_unit_test(test_3_9_has_objects),
        cmocka_unit_test(test_no_frame),
        cmocka_unit_test(test_a_circle),
        cmocka_unit_test(test_a_circle_of_the_loops_own_frames),
        cmocka_unit_test(test_wild_pointers),
        cmocka_unit_test(test_fields_across_the_last_address),
        cmocka_unit_test(test_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

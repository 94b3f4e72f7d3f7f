#include "runtime/go/goroutine.h"
#include "unit.h"

static const struct go_layout *layout;
static unsigned char bytes[GOROUTINE_BYTES_MAX];

static void put(size_t offset, uint64_t value)
{
    memcpy(bytes + offset, &value, sizeof value);
}

/* A waiting goroutine of Go 1.26. */
static void begin(void)
{
    layout = go_layout_of(26);
    memset(bytes, 0, sizeof bytes);
    put(0, 0x10000);
    put(8, 0x12000);
    put(layout->g_sched, 0x11f00);
    put(layout->g_sched + 8u, 0x401234);
    put(layout->g_id, 18);
    bytes[layout->g_status] = 4;
    bytes[layout->g_wait_reason] = 20;
    bytes[layout->g_sequence] = 7;
}

static struct goroutine parse(void)
{
    struct goroutine goroutine;
    goroutine_parse(layout, bytes, &goroutine);
    return goroutine;
}

static enum goroutine_where where(void)
{
    const struct goroutine goroutine = parse();
    return goroutine_where(&goroutine);
}

static void test_members(void **state)
{
    (void)state;
    begin();
    put(layout->g_creator, 0x405678);
    put(layout->g_parent, 1);
    bytes[layout->g_status + 1] = 0x10; /* _Gscan */
    const struct goroutine goroutine = parse();
    assert_int_equal(goroutine.id, 18);
    assert_int_equal(goroutine.sp, 0x11f00);
    assert_int_equal(goroutine.pc, 0x401234);
    assert_int_equal(goroutine.status, 4);
    assert_int_equal(goroutine.reason, 20);
    assert_int_equal(goroutine.creator, 0x405678);
    assert_int_equal(goroutine.parent, 1);
    assert_int_equal(goroutine_where(&goroutine), GOROUTINE_PARKED);
    layout = go_layout_of(19); /* without the parent's id */
    assert_int_equal(parse().parent, 0);
}

static void test_where(void **state)
{
    static const enum goroutine_where wanted[] = {
        GOROUTINE_NOWHERE, GOROUTINE_PARKED,  GOROUTINE_ON_THREAD, GOROUTINE_ON_THREAD,
        GOROUTINE_PARKED,  GOROUTINE_NOWHERE, GOROUTINE_NOWHERE,   GOROUTINE_NOWHERE,
        GOROUTINE_MOVING,  GOROUTINE_PARKED,  GOROUTINE_PARKED,    GOROUTINE_NOWHERE,
    };
    (void)state;
    begin();
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        bytes[layout->g_status] = (unsigned char)i;
        assert_int_equal(where(), wanted[i]);
    }
    /* It waits, but still has its thread, which works for it. */
    begin();
    put(layout->g_m, 0x20000);
    assert_int_equal(where(), GOROUTINE_ON_THREAD);
}

/* Impossible stack bounds are not used. */
static void test_hostile_stacks(void **state)
{
    static const struct {
        uint64_t low, high, sp;
    } stacks[] = {
        {0x10000, 0x12000, 0xfff8},
        {0x10000, 0x12000, 0x12000},
        {0x10000, 0x12000, 0x11f01},
        {0x12000, 0x10000, 0x11f00},
        {0x10000, (uint64_t)1 << 40, 1 << 20},
        {0, UINT64_MAX, 8},
        {0, 0, 0},
    };
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        put(0, stacks[i].low);
        put(8, stacks[i].high);
        put(layout->g_sched, stacks[i].sp);
        assert_int_equal(where(), GOROUTINE_SENSELESS);
    }
}

static bool has_stayed(const struct goroutine_rest *before)
{
    const struct goroutine goroutine = parse();
    const struct goroutine_rest after = goroutine_rest(&goroutine);
    return goroutine_has_stayed(before, &after);
}

static void test_rest(void **state)
{
    (void)state;
    begin();
    const struct goroutine goroutine = parse();
    const struct goroutine_rest rest = goroutine_rest(&goroutine);
    assert_true(has_stayed(&rest));
    bytes[layout->g_status + 1] = 0x10; /* the garbage collector scans its stack */
    put(layout->g_wait_since, 12345);
    assert_true(has_stayed(&rest));
    bytes[layout->g_sequence]++; /* it has run, and waits at the same place again */
    assert_false(has_stayed(&rest));
    bytes[layout->g_sequence]--;
    put(layout->g_id, 19); /* another goroutine in its place */
    assert_false(has_stayed(&rest));
    put(layout->g_id, 18);
    bytes[layout->g_status] = 1;
    assert_false(has_stayed(&rest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_hostile_stacks),
        cmocka_unit_test(test_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

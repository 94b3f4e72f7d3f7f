#include "runtime/go/wait.h"
#include "unit.h"

#include <unistd.h>

/* Replaces the runtime's memory. It must not be on a stack. */
static struct {
    uint64_t goroutine[64], sudog[4][16], poll[64], condition[16], stack[32];
} memory;

static struct goroutine goroutine;
static unsigned version;

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* Uses the reason's number in this version. */
static void begin(unsigned minor, const char *reason)
{
    version = minor;
    memset(&memory, 0, sizeof memory);
    goroutine = (struct goroutine){.status = 4,
                                   .stack_low = address_of(memory.stack),
                                   .stack_high = address_of(memory.stack + 32)};
    while (strcmp(go_wait_reason(minor, goroutine.reason), reason) != 0)
        goroutine.reason++;
}

static struct go_wait read_wait(void)
{
    const struct parked_goroutine parked = {.layout = go_layout_of(version),
                                            .address = address_of(memory.goroutine),
                                            .goroutine = &goroutine,
                                            .stack = (const unsigned char *)memory.stack,
                                            .stack_bytes = sizeof memory.stack,
                                            .tid = getpid()};
    struct go_wait wait;
    go_wait_read(&parked, &wait);
    return wait;
}

static void put(void *structure, uint16_t offset, uint64_t value)
{
    memcpy((unsigned char *)structure + offset, &value, sizeof value);
}

static void put_sudog(size_t number, uint64_t channel, size_t next)
{
    const struct go_layout *layout = go_layout_of(version);
    put(memory.sudog[number], 0, address_of(memory.goroutine));
    put(memory.sudog[number], layout->sudog_channel, channel);
    put(memory.sudog[number], layout->sudog_link, next ? address_of(memory.sudog[next]) : 0);
}

static void test_channels(void **state)
{
    (void)state;
    for (unsigned minor = 18; minor <= 27; minor++) {
        begin(minor, "select");
        goroutine.waiting = address_of(memory.sudog[0]);
        put_sudog(0, 0x1000, 2);
        put_sudog(2, 0x2000, 0);
        struct go_wait wait = read_wait();
        assert_int_equal(wait.kind, GO_WAIT_CHANNEL);
        assert_int_equal(wait.count, 2);
        assert_int_equal(wait.addresses[0], 0x1000);
        assert_int_equal(wait.addresses[1], 0x2000);
        assert_false(wait.is_shared);
        put_sudog(0, 0x1000, 0);
        put(memory.sudog[0], 8, 1); /* another waiter is next in the queue */
        wait = read_wait();
        assert_true(wait.is_shared && wait.count == 1);
    }
}

static void test_channels_that_are_not_believed(void **state)
{
    (void)state;
    begin(26, "chan receive");
    goroutine.waiting = address_of(memory.sudog[0]);
    put_sudog(0, 0x1000, 1);
    put_sudog(1, 0x2000, 1); /* a cycle */
    assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    put_sudog(1, 0x2000, 0);
    assert_int_equal(read_wait().count, 2);
    put(memory.sudog[1], 0, 0x5000); /* another goroutine's */
    assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    static const uint64_t wild[] = {0, 1, 0x7ff0, UINT64_MAX - 7, (uint64_t)1 << 47};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        goroutine.waiting = wild[i];
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    }
}

static void test_semaphores(void **state)
{
    (void)state;
    for (unsigned minor = 18; minor <= 27; minor++) {
        begin(minor, minor < 20 ? "semacquire" : "sync.Mutex.Lock");
        const struct go_layout *layout = go_layout_of(minor);
        memory.stack[3] = address_of(memory.goroutine);
        memory.stack[7] = address_of(memory.sudog[1]);
        put_sudog(1, 0, 0);
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER); /* it is in no queue */
        put(memory.sudog[1], layout->sudog_element, 0x2004);
        assert_int_equal(read_wait().kind, minor < 20 ? GO_WAIT_SEMAPHORE : GO_WAIT_MUTEX);
        assert_int_equal(read_wait().addresses[0], minor < 20 ? 0x2004 : 0x2000);
        put(memory.sudog[1], 0, 0x5000);
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
        goroutine.status = 1; /* it was made ready to run */
        put_sudog(1, 0, 0);
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    }
}

static void test_locks_of_semaphores(void **state)
{
    (void)state;
    struct go_wait wait = {.kind = GO_WAIT_SEMAPHORE, .addresses = {0x200c}};
    go_wait_set_lock(&wait, GO_WAIT_GROUP, 19);
    assert_int_equal(wait.kind, GO_WAIT_SEMAPHORE);
    assert_int_equal(wait.addresses[0], 0x200c);
    go_wait_set_lock(&wait, GO_WAIT_READ_LOCK, 19);
    assert_int_equal(wait.kind, GO_WAIT_READ_LOCK);
    assert_int_equal(wait.addresses[0], 0x2000);
}

static void test_conditions(void **state)
{
    (void)state;
    begin(26, "sync.Cond.Wait");
    memory.stack[9] = address_of(memory.condition);
    memory.condition[2] = 3; /* three have waited, and none was woken */
    memory.condition[4] = address_of(memory.sudog[0]);
    memory.condition[5] = address_of(memory.sudog[2]);
    put(memory.sudog[0], 8, address_of(memory.sudog[1]));
    put(memory.sudog[1], 8, address_of(memory.sudog[2]));
    assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    put(memory.sudog[1], 0, address_of(memory.goroutine));
    assert_int_equal(read_wait().kind, GO_WAIT_CONDITION);
    assert_int_equal(read_wait().addresses[0], address_of(memory.condition));
    put(memory.sudog[1], 0, 0);
    put(memory.sudog[1], 8, address_of(memory.sudog[1])); /* a cycle */
    assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
}

static void test_descriptors(void **state)
{
    (void)state;
    for (unsigned minor = 18; minor <= 27; minor++) {
        begin(minor, "IO wait");
        const struct go_layout *layout = go_layout_of(minor);
        memory.stack[5] = address_of(memory.poll) + layout->poll_writer;
        put(memory.poll, layout->poll_writer, address_of(memory.goroutine));
        put(memory.poll, layout->poll_fd, 12);
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
        put(memory.poll, layout->poll_self, address_of(memory.poll));
        struct go_wait wait = read_wait();
        assert_int_equal(wait.kind, GO_WAIT_FILE);
        assert_true(wait.is_write && wait.fd == 12);
        memory.stack[5] = address_of(memory.poll) + layout->poll_reader;
        put(memory.poll, layout->poll_reader, address_of(memory.goroutine));
        wait = read_wait();
        assert_true(wait.kind == GO_WAIT_FILE && !wait.is_write);
        put(memory.poll, layout->poll_fd, (uint64_t)1 << 40);
        assert_int_equal(read_wait().kind, GO_WAIT_OTHER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels),   cmocka_unit_test(test_channels_that_are_not_believed),
        cmocka_unit_test(test_semaphores), cmocka_unit_test(test_locks_of_semaphores),
        cmocka_unit_test(test_conditions), cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

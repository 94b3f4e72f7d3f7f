#include "unit.h"
#include "observe/call.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/select.h>
#include <sys/syscall.h>

static struct call_target target_of(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t arguments[6] = {a, b, c, d};
    return call_target_of(number, arguments);
}

static void test_futex(void **state)
{
    (void)state;
    struct call_target wait =
        target_of(SYS_futex, 0x7f00, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, 0);
    assert_int_equal(wait.kind, CALL_FUTEX);
    assert_int_equal(wait.address, 0x7f00);
    assert_int_equal(wait.value, 2);
    assert_false(wait.has_timeout);
    assert_false(wait.is_pi);
    assert_true(target_of(SYS_futex, 0x7f00, FUTEX_WAIT, 2, 0x1000).has_timeout);
    assert_true(target_of(SYS_futex, 0x7f00, FUTEX_LOCK_PI_PRIVATE, 0, 0).is_pi);
    assert_int_equal(target_of(SYS_futex, 0x7f00, FUTEX_WAKE, 1, 0).kind, CALL_OTHER);
}

static void test_files(void **state)
{
    (void)state;
    static const struct {
        long number;
        enum file_use use;
    } rows[] = {
        {SYS_read, FILE_USE_READ},     {SYS_recvfrom, FILE_USE_READ}, {SYS_accept, FILE_USE_READ},
        {SYS_write, FILE_USE_WRITE},   {SYS_sendmsg, FILE_USE_WRITE}, {SYS_flock, FILE_USE_FLOCK},
        {SYS_connect, FILE_USE_OTHER}, {SYS_fsync, FILE_USE_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* Only the low half of the register counts. */
        struct call_target target = target_of(rows[i].number, 0xffffffff00000007, 0x1000, 1, 0);
        assert_int_equal(target.kind, CALL_FILE);
        assert_int_equal(target.use, rows[i].use);
        assert_int_equal(target.fd, 7);
    }
    assert_int_equal(target_of(SYS_fcntl, 7, F_SETLKW, 0x1000, 0).use, FILE_USE_POSIX_LOCK);
    assert_int_equal(target_of(SYS_fcntl, 7, F_OFD_SETLKW, 0x1000, 0).use, FILE_USE_OFD_LOCK);
    assert_int_equal(target_of(SYS_fcntl, 7, F_SETFL, 0x1000, 0).use, FILE_USE_OTHER);
    assert_int_equal(target_of(SYS_epoll_pwait, 5, 0x1000, 3, 0).kind, CALL_EPOLL);
    assert_int_equal(target_of(SYS_epoll_pwait, 5, 0x1000, 3, 0).fd, 5);
    struct call_target polled = target_of(SYS_ppoll, 0x1000, 3, 0, 0);
    assert_int_equal(polled.kind, CALL_POLL);
    assert_int_equal(polled.count, 3);
    assert_int_equal(target_of(SYS_pselect6, 0xffffffffffffffff, 1, 2, 3).count, 0);
}

static void test_others(void **state)
{
    (void)state;
    assert_int_equal(target_of(SYS_nanosleep, 0x1000, 0, 0, 0).address, 0x1000);
    assert_int_equal(target_of(SYS_clock_nanosleep, 0, 0, 0x2000, 0).address, 0x2000);
    /* With TIMER_ABSTIME the length is not known. */
    assert_int_equal(target_of(SYS_clock_nanosleep, 0, 1, 0x2000, 0).kind, CALL_SLEEP);
    assert_int_equal(target_of(SYS_clock_nanosleep, 0, 1, 0x2000, 0).address, 0);
    assert_int_equal(target_of(SYS_wait4, 1234, 0, 0, 0).process, 1234);
    assert_int_equal(target_of(SYS_wait4, 0xffffffff, 0, 0, 0).process, -1);
    assert_int_equal(target_of(SYS_wait4, 0, 0, 0, 0).process, -1);
    assert_int_equal(target_of(SYS_wait4, (uint64_t)-1234, 0, 0, 0).process, -1);
    assert_int_equal(target_of(SYS_waitid, 1, 1234, 0, 0).process, 1234);
    assert_int_equal(target_of(SYS_waitid, 1, 1234, 0, 0).fd, -1);
    assert_int_equal(target_of(SYS_waitid, 0, 1234, 0, 0).process, -1);
    assert_int_equal(target_of(SYS_waitid, 3, 6, 0, 0).fd, 6); /* P_PIDFD */
    assert_int_equal(target_of(SYS_waitid, 3, 6, 0, 0).process, -1);
    assert_int_equal(target_of(SYS_rt_sigsuspend, 1, 2, 3, 4).kind, CALL_SIGNAL);
    assert_int_equal(target_of(SYS_semtimedop, 9, 2, 3, 4).kind, CALL_SEMAPHORES);
    assert_int_equal(target_of(SYS_msgrcv, 9, 2, 3, 4).kind, CALL_MESSAGES);
    assert_int_equal(target_of(SYS_msgrcv, 9, 2, 3, 4).fd, 9);
    assert_int_equal(target_of(SYS_getpid, 1, 2, 3, 4).kind, CALL_OTHER);
    assert_int_equal(target_of(-1, 1, 2, 3, 4).kind, CALL_OTHER);
}

static uint64_t address_of(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static struct call_memory read_of(const struct call_target *target)
{
    struct call_memory memory;
    memset(&memory, 0xee, sizeof memory);
    const struct call_reading reading = {target, &memory};
    assert_int_equal(call_read_many(getpid(), &reading, 1), 0);
    return memory;
}

static void test_polled(void **state)
{
    (void)state;
    struct polled first;
    const struct pollfd entries[] = {
        {.fd = -1}, {.fd = 8, .events = POLLOUT}, {.fd = -7}, {.fd = 3, .events = POLLIN}};
    struct call_target target = target_of(SYS_ppoll, address_of(entries), 4, 0, 0);
    struct call_memory memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 2);
    assert_int_equal(first.fd, 8);
    assert_int_equal(first.use, FILE_USE_WRITE);
    target.count = 1;
    memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 0);
    assert_int_equal(first.fd, -1);
    /* An absurd count, and an address that can't be read. */
    target = target_of(SYS_ppoll, 0x10, 0xffffffff, 0, 0);
    memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 0xffffffff);
    assert_int_equal(first.fd, -1);
}

static void test_selected(void **state)
{
    (void)state;
    fd_set to_read, to_write;
    struct polled first;
    FD_ZERO(&to_read);
    FD_ZERO(&to_write);
    FD_SET(70, &to_read);
    FD_SET(5, &to_write);
    FD_SET(70, &to_write); /* the same descriptor counts once */
    FD_SET(71, &to_read);  /* beyond the limit */
    struct call_target target =
        target_of(SYS_pselect6, 71, address_of(&to_read), address_of(&to_write), 0);
    struct call_memory memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 2);
    assert_int_equal(first.fd, 5);
    assert_int_equal(first.use, FILE_USE_WRITE);
    target.sets[1] = 0x10; /* can't be read */
    memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 1);
    assert_int_equal(first.fd, 70);
    assert_int_equal(first.use, FILE_USE_READ);
    target = target_of(SYS_pselect6, 0x7fffffff, 0x10, 0x10, 0x10);
    memory = read_of(&target);
    assert_int_equal(call_polled(&target, &memory, &first), 0);
}

/* A poll of a single descriptor becomes a wait on that descriptor. */
static void test_a_poll_of_one(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
    struct pollfd entries[] = {
        {.fd = -1}, {.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLOUT}};
    struct call_target target = target_of(SYS_ppoll, address_of(entries), 3, 0, 0);
    struct call_memory memory = read_of(&target);
    call_note_polled(&target, &memory);
    assert_int_equal(target.kind, CALL_POLL);
    assert_int_equal(target.count, 2);
    target = target_of(SYS_ppoll, address_of(entries), 2, 0, 0);
    memory = read_of(&target);
    call_note_polled(&target, &memory);
    assert_int_equal(target.kind, CALL_FILE);
    assert_int_equal(target.count, 1);
    assert_int_equal(target.fd, fds[0]);
    assert_int_equal(target.use, FILE_USE_READ);
    call_read_link(&target, own_fd, &memory);
    assert_int_equal(strncmp(memory.link, "pipe:[", 6), 0);
    target.fd = -1;
    call_read_link(&target, own_fd, &memory);
    assert_string_equal(memory.link, "");
    close(own_fd);
    close(fds[0]);
    close(fds[1]);
}

static void test_sleep(void **state)
{
    (void)state;
    struct timespec length = {2, 500000000};
    struct call_target target = target_of(SYS_nanosleep, address_of(&length), 0, 0, 0);
    struct call_memory memory = read_of(&target);
    assert_int_equal(call_sleep_ns(&target, &memory), 2500000000);
    length.tv_nsec = 1000000000;
    memory = read_of(&target);
    assert_int_equal(call_sleep_ns(&target, &memory), 0);
    length = (struct timespec){INT64_MAX, 0};
    memory = read_of(&target);
    assert_int_equal(call_sleep_ns(&target, &memory), 0);
    target = target_of(SYS_clock_nanosleep, 0, 1, address_of(&length), 0);
    memory = read_of(&target);
    assert_int_equal(call_sleep_ns(&target, &memory), 0);
}

/* Calls of all kinds together, more than are read at a time. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    static uint32_t space[1024 + COUNT + FUTEX_WORDS];
    uint32_t *words = &space[1024];
    static struct call_target targets[COUNT];
    static struct call_memory memories[COUNT];
    static struct call_reading readings[COUNT];
    const struct pollfd entry = {.fd = 4};
    for (uint32_t i = 0; i < COUNT + FUTEX_WORDS; i++)
        words[i] = i * 7;
    for (size_t i = 0; i < COUNT; i++) {
        targets[i] = i % 5 == 0   ? target_of(SYS_read, 3, 0, 0, 0)
                     : i % 5 == 1 ? target_of(SYS_ppoll, address_of(&entry), 1, 0, 0)
                     : i % 5 == 2 ? target_of(SYS_futex, 0x10000, FUTEX_WAIT, 0, 0)
                     : i % 5 == 3 ? target_of(SYS_futex, 6, FUTEX_WAIT, 0, 0)
                                  : target_of(SYS_futex, address_of(&words[i]), FUTEX_WAIT, 0, 0);
        readings[i] = (struct call_reading){&targets[i], &memories[i]};
    }
    assert_int_equal(call_read_many(getpid(), readings, COUNT), 0);
    for (size_t i = 0; i < COUNT; i++) {
        struct polled first;
        if (i % 5 == 1) {
            assert_int_equal(call_polled(&targets[i], &memories[i], &first), 1);
            assert_int_equal(first.fd, 4);
        } else if (i % 5 == 4) {
            size_t before = call_futex_words_before(&targets[i], &memories[i]);
            assert_int_equal(memories[i].got[0], 64);
            assert_in_range(before, 4, FUTEX_WORDS_BEFORE);
            assert_memory_equal(&memories[i].words[FUTEX_WORDS_BEFORE - before], &words[i] - before,
                                (before + 16) * sizeof *words);
        } else {
            assert_int_equal(memories[i].got[0], 0);
        }
    }
}

static size_t words_before(const void *futex)
{
    struct call_target target = target_of(SYS_futex, address_of(futex), FUTEX_WAIT, 0, 0);
    struct call_memory memory;
    const struct call_reading reading = {&target, &memory};
    assert_int_equal(call_read_many(getpid(), &reading, 1), 0);
    assert_int_equal(memory.got[0], 64);
    size_t before = call_futex_words_before(&target, &memory);
    assert_memory_equal(&memory.words[FUTEX_WORDS_BEFORE - before],
                        (const uint32_t *)futex - before, before * sizeof(uint32_t));
    return before;
}

/* Words that may belong to a lock are read; words before them only if they are on the same page. */
static void test_before_a_futex(void **state)
{
    enum { PAGE = 4096, PAGES = 3 };
    (void)state;
    char *pages =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < PAGES * PAGE; i++)
        pages[i] = (char)(i * 7 % 251);
    const char *page = pages + PAGE;
    assert_int_equal(words_before(page + 512), FUTEX_WORDS_BEFORE);
    assert_int_equal(words_before(page), FUTEX_WORDS_BEFORE);
    assert_int_equal(words_before(page + 12), FUTEX_WORDS_BEFORE);
    assert_int_equal(words_before(page + 16), 4);
    assert_int_equal(words_before(page + 100), 25);
    /* An unmapped page before them does not prevent reading them. */
    assert_int_equal(munmap(pages, PAGE), 0);
    assert_int_equal(words_before(page + 16), 4);
    assert_int_equal(words_before(page + 100), 25);
    assert_int_equal(words_before(page + 12), 0);
    assert_int_equal(words_before(page), 0);
    munmap(pages + PAGE, (PAGES - 1) * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_futex),          cmocka_unit_test(test_files),
        cmocka_unit_test(test_others),         cmocka_unit_test(test_polled),
        cmocka_unit_test(test_selected),       cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_a_poll_of_one),
        cmocka_unit_test(test_before_a_futex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

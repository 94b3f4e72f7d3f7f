/* A ring that the test fills instead of the kernel, and how many rings there may be. */
#include "unit.h"
#include "refuse_events.h"
#include "observe/ring.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DATA_BYTES 64u

struct fake {
    struct perf_event_mmap_page *page;
    struct ring ring;
};

static void setup(struct fake *fake)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    fake->page = calloc(1, page_bytes + DATA_BYTES);
    assert_non_null(fake->page);
    fake->page->data_offset = page_bytes;
    fake->ring = (struct ring){.fd = -1, .page = fake->page, .data_bytes = DATA_BYTES};
}

static void put(struct fake *fake, const void *bytes, size_t count)
{
    unsigned char *data = (unsigned char *)fake->page + fake->page->data_offset;
    for (size_t i = 0; i < count; i++)
        data[(fake->page->data_head + i) % DATA_BYTES] = ((const unsigned char *)bytes)[i];
    fake->page->data_head += count;
}

static void put_record(struct fake *fake, uint32_t type, const char *body, size_t body_bytes)
{
    const struct perf_event_header header = {.type = type,
                                             .size = (uint16_t)(sizeof header + body_bytes)};
    put(fake, &header, sizeof header);
    put(fake, body, body_bytes);
}

static void test_records_in_order(void **state)
{
    (void)state;
    struct fake fake;
    struct record record;
    char text[8];
    setup(&fake);
    assert_false(ring_next(&fake.ring, &record));
    put_record(&fake, 1, "first...", 8);
    put_record(&fake, 2, "second..", 8);
    assert_true(ring_next(&fake.ring, &record));
    assert_int_equal(record.header.type, 1);
    assert_true(record_read(&record, 0, text, 8));
    assert_memory_equal(text, "first...", 8);
    /* The record stays until it is skipped. */
    assert_true(ring_next(&fake.ring, &record));
    assert_int_equal(record.header.type, 1);
    ring_skip(&fake.ring, &record);
    assert_true(ring_next(&fake.ring, &record));
    assert_int_equal(record.header.type, 2);
    ring_skip(&fake.ring, &record);
    assert_false(ring_next(&fake.ring, &record));
    assert_int_equal(fake.page->data_tail, fake.page->data_head);
    free(fake.page);
}

static void test_record_around_the_end(void **state)
{
    (void)state;
    struct fake fake;
    struct record record;
    char text[24];
    setup(&fake);
    /* The header of the second wraps, and then the body of the third. */
    fake.page->data_head = fake.page->data_tail = DATA_BYTES - 4;
    for (char c = 'a'; c < 'z'; c++) {
        memset(text, c, sizeof text);
        put_record(&fake, (uint32_t)c, text, sizeof text);
        memset(text, 0, sizeof text);
        assert_true(ring_next(&fake.ring, &record));
        assert_int_equal(record.header.type, c);
        assert_true(record_read(&record, 0, text, sizeof text));
        for (size_t i = 0; i < sizeof text; i++)
            assert_int_equal(text[i], c);
        ring_skip(&fake.ring, &record);
    }
    free(fake.page);
}

static void test_reads_nothing_behind_a_record(void **state)
{
    (void)state;
    struct fake fake;
    struct record record;
    char text[32];
    setup(&fake);
    put_record(&fake, 1, "12345678", 8);
    put_record(&fake, 2, "12345678", 8);
    assert_true(ring_next(&fake.ring, &record));
    assert_true(record_read(&record, 0, text, 8));
    assert_true(record_read(&record, 7, text, 1));
    assert_true(record_read(&record, 8, text, 0));
    assert_false(record_read(&record, 0, text, 9));
    assert_false(record_read(&record, 8, text, 1));
    assert_false(record_read(&record, 9, text, 0));
    assert_false(record_read(&record, SIZE_MAX, text, 1));
    assert_false(record_read(&record, 1, text, SIZE_MAX));
    free(fake.page);
}

static void test_damaged_sizes(void **state)
{
    (void)state;
    struct fake fake;
    struct record record;
    struct perf_event_header header = {.type = 1, .size = 4};
    setup(&fake);
    put(&fake, &header, sizeof header); /* smaller than its header */
    assert_false(ring_next(&fake.ring, &record));
    fake.page->data_tail = fake.page->data_head;
    header.size = 40;
    put(&fake, &header, sizeof header); /* larger than the data */
    assert_false(ring_next(&fake.ring, &record));
    free(fake.page);
}

/* The record of a sample whose chain begins at `words[0]`. */
static struct record chain_record(struct fake *fake, const uint64_t *words, size_t count)
{
    struct record record;
    setup(fake);
    put_record(fake, PERF_RECORD_SAMPLE, (const char *)words, count * sizeof *words);
    assert_true(ring_next(&fake->ring, &record));
    return record;
}

static void test_kernel_chains(void **state)
{
    (void)state;
    static const uint64_t in_kernel[] = {3, PERF_CONTEXT_KERNEL, 0x10, 0x11, 77};
    static const uint64_t marked[] = {6,    PERF_CONTEXT_HV,   0x1, PERF_CONTEXT_KERNEL,
                                      0x10, PERF_CONTEXT_USER, 0x2};
    static const uint64_t unmarked[] = {1, 0x10};
    static const uint64_t empty[] = {0, 77};
    uint64_t addresses[KERNEL_CHAIN_MAX];
    struct kernel_chain chain = {.addresses = addresses};
    struct fake fake;
    size_t end = 0;
    struct record record = chain_record(&fake, in_kernel, 5);
    assert_true(record_read_kernel_chain(&record, 0, KERNEL_CHAIN_MAX, &chain, &end));
    assert_int_equal(end, 4 * sizeof(uint64_t));
    assert_int_equal(chain.count, 2);
    assert_int_equal(chain.addresses[0], 0x10);
    assert_int_equal(chain.addresses[1], 0x11);
    assert_false(chain.is_cut);
    assert_true(record_read_kernel_chain(&record, 0, 2, &chain, &end));
    assert_int_equal(chain.count, 2);
    assert_true(chain.is_cut);
    assert_true(record_read_kernel_chain(&record, 0, 1, &chain, &end));
    assert_int_equal(chain.count, 1);
    assert_int_equal(end, 4 * sizeof(uint64_t));
    free(fake.page);
    record = chain_record(&fake, marked, 7);
    assert_true(record_read_kernel_chain(&record, 0, KERNEL_CHAIN_MAX, &chain, &end));
    assert_int_equal(chain.count, 1);
    assert_int_equal(chain.addresses[0], 0x10);
    free(fake.page);
    record = chain_record(&fake, unmarked, 2);
    assert_true(record_read_kernel_chain(&record, 0, KERNEL_CHAIN_MAX, &chain, &end));
    assert_int_equal(chain.count, 0);
    free(fake.page);
    record = chain_record(&fake, empty, 2);
    assert_true(record_read_kernel_chain(&record, 0, KERNEL_CHAIN_MAX, &chain, &end));
    assert_int_equal(chain.count, 0);
    assert_false(chain.is_cut);
    assert_int_equal(end, sizeof(uint64_t));
    free(fake.page);
}

static void test_chains_longer_than_their_record(void **state)
{
    (void)state;
    static const uint64_t counts[] = {
        4, 5, UINT32_MAX, UINT64_MAX, UINT64_MAX / 8, UINT64_MAX / 8 + 1, UINT64_MAX / 8 + 2,
    };
    uint64_t addresses[KERNEL_CHAIN_MAX], words[] = {0, PERF_CONTEXT_KERNEL, 0x10, 0x11};
    struct kernel_chain chain = {.addresses = addresses};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct fake fake;
        size_t end = 7;
        words[0] = counts[i];
        struct record record = chain_record(&fake, words, 4);
        assert_false(record_read_kernel_chain(&record, 0, KERNEL_CHAIN_MAX, &chain, &end));
        assert_int_equal(chain.count, 0);
        assert_int_equal(end, 7);
        /* Nor if the record has no room for the count. */
        assert_false(record_read_kernel_chain(&record, 28, KERNEL_CHAIN_MAX, &chain, &end));
        assert_false(record_read_kernel_chain(&record, 32, KERNEL_CHAIN_MAX, &chain, &end));
        assert_false(record_read_kernel_chain(&record, SIZE_MAX, KERNEL_CHAIN_MAX, &chain, &end));
        free(fake.page);
    }
}

#define FILES_MAX 128u
#define RINGS_MAX (FILES_MAX / 4) /* of threads; as many descriptors stay free */

/* With a limit of FILES_MAX open files, of which all below number `taken` are open. */
struct limited {
    struct rlimit before;
    int fds[FILES_MAX];
    size_t fd_count;
    struct ring rings[FILES_MAX];
    size_t ring_count;
};

static void limit_files(struct limited *limited, int taken)
{
    struct rlimit limit;
    *limited = (struct limited){0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limited->before), 0);
    limit = limited->before;
    limit.rlim_cur = FILES_MAX;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd = 0; fd < taken - 1;) {
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        assert_true(fd >= 0);
        limited->fds[limited->fd_count++] = fd;
    }
}

static void unlimit_files(struct limited *limited)
{
    for (size_t i = 0; i < limited->ring_count; i++)
        ring_close(&limited->rings[i]);
    for (size_t i = 0; i < limited->fd_count; i++)
        close(limited->fds[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited->before), 0);
}

/* An event of our own thread. */
static int open_one(struct limited *limited)
{
    const struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .disabled = 1,
    };
    int err = ring_open(&attributes, 0, -1, 4096, RING_READ, &limited->rings[limited->ring_count]);
    if (event_is_refused(err)) {
        unlimit_files(limited);
        skip();
    }
    limited->ring_count += !err;
    return err;
}

/* Other files have more descriptors than events may have: that refuses no event. */
static void test_events_are_counted(void **state)
{
    (void)state;
    struct limited limited;
    limit_files(&limited, RINGS_MAX + 10);
    for (size_t i = 0; i < RINGS_MAX; i++)
        assert_int_equal(open_one(&limited), 0);
    assert_true(limited.rings[0].fd >= (int)RINGS_MAX + 10);
    assert_int_equal(open_one(&limited), -EMFILE);
    ring_close(&limited.rings[--limited.ring_count]);
    assert_int_equal(open_one(&limited), 0);
    assert_int_equal(open_one(&limited), -EMFILE);
    unlimit_files(&limited);
}

static void test_the_last_descriptors_are_for_other_files(void **state)
{
    (void)state;
    struct limited limited;
    limit_files(&limited, FILES_MAX - RINGS_MAX - 1);
    assert_int_equal(open_one(&limited), 0);
    assert_int_equal(open_one(&limited), -EMFILE);
    unlimit_files(&limited);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_in_order),
        cmocka_unit_test(test_record_around_the_end),
        cmocka_unit_test(test_reads_nothing_behind_a_record),
        cmocka_unit_test(test_damaged_sizes),
        cmocka_unit_test(test_kernel_chains),
        cmocka_unit_test(test_chains_longer_than_their_record),
        cmocka_unit_test(test_events_are_counted),
        cmocka_unit_test(test_the_last_descriptors_are_for_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

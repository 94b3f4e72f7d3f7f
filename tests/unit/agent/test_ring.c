/* The ring: records arrive whole and in order, and those without space are counted. */
#include "unit.h"
#include "reader.h"
#include "agent/process.h"
#include "agent/ring.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define WRITERS 4u
#define RECORDS 100000u

static struct reader reader;

static int set_up(void **state)
{
    (void)state;
    reader.header = mmap(NULL, AGENT_HEADER_BYTES + AGENT_RING_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    reader.rows = calloc(READER_ROWS, sizeof *reader.rows);
    process->full_since_ns = 0;
    return reader.header == MAP_FAILED;
}

static int tear_down(void **state)
{
    (void)state;
    reader_close(&reader);
    return 0;
}

static bool append(enum agent_record_kind kind, uint64_t object, size_t bytes)
{
    struct ring_place place;
    if (!ring_reserve(reader.header, kind, bytes, &place))
        return false;
    place.record->object = object;
    place.record->object_bytes = bytes;
    memset(place.record->registers, (int)object, bytes);
    ring_commit(&place);
    return true;
}

static void assert_filled(const struct agent_record *record)
{
    const unsigned char *bytes = (const unsigned char *)record->registers;
    for (size_t i = 0; i < record->object_bytes; i++)
        assert_int_equal(bytes[i], (unsigned char)record->object);
}

static void test_in_order(void **state)
{
    (void)state;
    struct agent_record *record;
    assert_null(reader_next(&reader));
    /* Records of all lengths, several times around the ring. */
    for (uint64_t i = 2; i < 5000; i++) {
        assert_true(append(AGENT_ALLOCATED, i, i % 3000));
        while ((record = reader_next(&reader)) && record->kind == AGENT_PADDING) {
            assert_int_equal(record->bytes % 16, 0);
            reader_skip(&reader, record);
        }
        assert_non_null(record);
        assert_int_equal(record->kind, AGENT_ALLOCATED);
        assert_int_equal(record->object, i);
        assert_int_equal(record->stack_bytes, 0);
        assert_int_equal(record->tid, 0);
        assert_filled(record);
        reader_skip(&reader, record);
        assert_null(reader_next(&reader));
    }
    assert_true(reader.read > 5 * AGENT_RING_BYTES);
    assert_true(reader.read == reader.header->written);
}

static void test_padding_of_each_length(void **state)
{
    (void)state;
    for (uint64_t left = 16; left <= 96; left += 16) {
        reader.header->written = reader.read = AGENT_RING_BYTES - left;
        reader.header->read = reader.read;
        assert_true(append(AGENT_ALLOCATED, left, 60));
        assert_int_equal(reader_drain(&reader), 2);
        assert_true(reader.read == AGENT_RING_BYTES + 112);
    }
    reader.header->written = reader.read = AGENT_RING_BYTES - 112;
    reader.header->read = reader.read;
    assert_true(append(AGENT_ALLOCATED, 1000, 60));
    assert_int_equal(reader_drain(&reader), 1);
    assert_true(reader.read == AGENT_RING_BYTES);
}

/* The reserve is for frees only; the rest is for all records. */
static void test_full(void **state)
{
    (void)state;
    uint64_t made = 0, gone = 0;
    while (append(AGENT_ALLOCATED, 2 + made, 1000))
        made++;
    uint64_t used = reader.header->written;
    assert_in_range(used, AGENT_RING_BYTES - RING_RESERVE_BYTES - 1048,
                    AGENT_RING_BYTES - RING_RESERVE_BYTES);
    assert_int_equal(reader.header->made_lost, 1);
    assert_false(append(AGENT_THREAD, 1, 1000));
    assert_int_equal(reader.header->threads_lost, 1);
    while (append(AGENT_FREED, 2 + gone, 0))
        gone++;
    assert_true(gone >= RING_RESERVE_BYTES / 48);
    assert_int_equal(reader.header->gone_lost, 1);
    assert_true(reader.header->written <= AGENT_RING_BYTES);
    assert_int_equal(reader_drain(&reader), made + gone);
    assert_true(append(AGENT_ALLOCATED, 1, 1000));
}

/* An impossible read position is not trusted. */
static void test_a_reader_ahead(void **state)
{
    (void)state;
    reader.header->read = 4096;
    assert_false(append(AGENT_FREED, 1, 0));
    assert_int_equal(reader.header->written, 0);
}

static void test_given_up(void **state)
{
    (void)state;
    struct ring_place place;
    assert_true(ring_reserve(reader.header, AGENT_ALLOCATED, 100, &place));
    assert_true(append(AGENT_FREED, 1, 0));
    assert_null(reader_next(&reader));
    ring_give_up(reader.header, &place);
    assert_int_equal(reader.header->made_lost, 1);
    assert_int_equal(reader_drain(&reader), 2);
    assert_int_equal(reader.made, 0);
    assert_int_equal(reader.gone, 1);
}

/* A reader that has taken nothing for a long time is gone: the agent turns itself off. */
static void test_nobody_reads(void **state)
{
    (void)state;
    reader.header->wanted = AGENT_WANTS_HEAP;
    while (append(AGENT_ALLOCATED, 1, 1000)) {
    }
    assert_int_equal(reader.header->wanted, AGENT_WANTS_HEAP);
    assert_true(process->full_since_ns != 0);
    process->full_since_ns -= RING_PATIENCE_NS;
    /* A reader that still takes something is only slow. */
    reader_skip(&reader, reader_next(&reader));
    while (append(AGENT_ALLOCATED, 1, 1000)) {
    }
    assert_int_equal(reader.header->wanted, AGENT_WANTS_HEAP);
    process->full_since_ns -= RING_PATIENCE_NS;
    assert_false(append(AGENT_ALLOCATED, 1, 1000));
    assert_int_equal(reader.header->wanted, 0);
}

/* What two threads share that find the ring full: here they are two processes, and one single-steps
 * the other. */
struct together {
    struct process process;
    atomic_bool has_begun, has_ended;
};

static void find_full(struct together *together)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(77);
    raise(SIGSTOP);
    together->has_begun = true;
    append(AGENT_ALLOCATED, 1, 1000);
    together->has_ended = true;
    _exit(0);
}

static void step(pid_t pid)
{
    int status;
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

/* The ring was last full long ago, and has been read since. */
static pid_t start_where_it_is_full_again(struct together *together)
{
    int status;
    *together = (struct together){.process = {.full_since_ns = 1}};
    reader.header->written = AGENT_RING_BYTES;
    reader.header->read = 16;
    reader.header->wanted = AGENT_WANTS_HEAP;
    pid_t pid = fork();
    if (pid == 0)
        find_full(together);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFSTOPPED(status));
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL), 0);
    return pid;
}

/* Interrupts the other one after this many instructions, and finds the ring full meanwhile. Returns
 * false if it was done by then. */
static bool interrupt_after(unsigned instructions, struct together *together)
{
    int status;
    pid_t pid = start_where_it_is_full_again(together);
    while (!together->has_begun)
        step(pid);
    for (unsigned i = 0; i < instructions && !together->has_ended; i++)
        step(pid);
    bool is_interrupted = !together->has_ended;
    append(AGENT_ALLOCATED, 1, 1000);
    assert_int_equal(reader.header->wanted, AGENT_WANTS_HEAP);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(reader.header->wanted, AGENT_WANTS_HEAP);
    return is_interrupted;
}

/* Neither takes the time of the one for the time since which nothing was read. */
static void test_two_threads_find_it_full(void **state)
{
    struct together *together =
        mmap(NULL, sizeof *together, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct process *before = process;
    unsigned instructions = 0;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its runtime takes too many instructions */
#elif defined(__aarch64__)
    skip(); /* a pair of exclusive instructions never ends if it is single-stepped */
#endif
    assert_true(together != MAP_FAILED);
    process = &together->process;
    while (interrupt_after(instructions, together))
        instructions++;
    process = before;
    munmap(together, sizeof *together);
    assert_true(instructions > 20);
}

static void *write_all(void *context)
{
    uint64_t writer = (uintptr_t)context;
    for (uint64_t i = 0; i < RECORDS; i++) {
        while (!append(AGENT_ALLOCATED, i << 8 | writer, (size_t)(i * 7 % 200)))
            sched_yield();
    }
    return NULL;
}

static void test_many_writers(void **state)
{
    (void)state;
    pthread_t threads[WRITERS];
    uint64_t next[WRITERS] = {0}, taken = 0;
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, (void *)i), 0);
    while (taken < WRITERS * RECORDS) {
        struct agent_record *record = reader_next(&reader);
        if (!record) {
            sched_yield();
            continue;
        }
        if (record->kind == AGENT_ALLOCATED) {
            uint64_t writer = record->object & 0xff;
            assert_true(writer < WRITERS);
            assert_int_equal(record->object >> 8, next[writer]);
            assert_filled(record);
            next[writer]++;
            taken++;
        }
        reader_skip(&reader, record);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_null(reader_next(&reader));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_padding_of_each_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_reader_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_threads_find_it_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_writers, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}

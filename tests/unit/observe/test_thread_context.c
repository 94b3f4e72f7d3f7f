/* Records in this process's own memory, read like those of another process. */
#include "unit.h"
#include "observe/thread_context.h"
#include "proc/thread_pointer.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

struct record {
    unsigned char ids[24];
    unsigned char valid, flags;
    uint16_t bytes;
    unsigned char attributes[1100];
};

static __thread struct {
    const void *volatile variable;
    unsigned char after[32]; /* 0 */
} own;

/* Where this thread has the variable. */
static struct context_place own_place(void)
{
    return (struct context_place){
        CONTEXT_STATIC, (int64_t)((uintptr_t)&own.variable - (uintptr_t)__builtin_thread_pointer()),
        0};
}

static enum context_state read_own(struct thread_context *context)
{
    uint64_t pointer = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    const struct context_thread thread = {gettid(), NULL, &pointer};
    const struct context_place place = own_place();
    thread_context_read(&thread, &place, context);
    return context->state;
}

static void test_a_record_is_read_as_long_as_it_says(void **state)
{
    (void)state;
    struct thread_context context;
    struct record record = {.valid = 1, .bytes = 5, .attributes = "\1\3abcNOT"};
    own.variable = NULL;
    assert_int_equal(read_own(&context), CONTEXT_NONE);
    own.variable = &record;
    assert_int_equal(read_own(&context), CONTEXT_READ);
    assert_int_equal(context.bytes, CONTEXT_HEAD_BYTES + 5);
    assert_memory_equal(context.record, &record, context.bytes);
    for (unsigned valid = 0; valid < 256; valid++) {
        record.valid = (unsigned char)valid;
        assert_int_equal(read_own(&context), valid == 1 ? CONTEXT_READ : CONTEXT_NONE);
    }
    record.valid = 1;
    record.bytes = UINT16_MAX; /* longer than there is room for: it is cut */
    assert_int_equal(read_own(&context), CONTEXT_READ);
    assert_int_equal(context.bytes, CONTEXT_BYTES_MAX);
    own.variable = NULL;
}

static void test_a_record_at_the_end_of_memory(void **state)
{
    (void)state;
    struct thread_context context;
    unsigned char *pages =
        mmap(NULL, 3 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 2 * PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
    struct record record = {.valid = 1, .bytes = 20, .attributes = "\1\022over the page's end"};
    /* Across a page's end, and up to the end of the mapping. */
    for (size_t before = 0; before <= CONTEXT_HEAD_BYTES + 20; before += 2) {
        unsigned char *at = pages + PAGE_BYTES - before;
        memcpy(at, &record, CONTEXT_HEAD_BYTES + 20);
        own.variable = at;
        assert_int_equal(read_own(&context), CONTEXT_READ);
        assert_int_equal(context.bytes, CONTEXT_HEAD_BYTES + 20);
        assert_memory_equal(context.record, &record, context.bytes);
    }
    for (size_t there = 0; there <= CONTEXT_HEAD_BYTES + 20; there += 2) {
        unsigned char *at = pages + 2 * PAGE_BYTES - there;
        memcpy(at, &record, there);
        own.variable = at;
        bool has_head = there >= CONTEXT_HEAD_BYTES;
        assert_int_equal(read_own(&context), has_head ? CONTEXT_READ : CONTEXT_UNREADABLE);
        assert_int_equal(context.bytes, has_head ? there : 0);
    }
    own.variable = (void *)1;
    assert_int_equal(read_own(&context), CONTEXT_UNREADABLE);
    own.variable = (const void *)UINTPTR_MAX;
    assert_int_equal(read_own(&context), CONTEXT_UNREADABLE);
    own.variable = (const void *)&own.variable; /* to itself, where there is no valid record */
    assert_int_not_equal(read_own(&context), CONTEXT_READ);
    own.variable = NULL;
    munmap(pages, 3 * PAGE_BYTES);
}

static void test_a_thread_that_has_no_block_yet(void **state)
{
    (void)state;
    uint64_t pointer = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    const struct context_thread thread = {gettid(), NULL, &pointer};
    struct context_place place = {CONTEXT_DYNAMIC, 0, 60000};
    struct thread_context context;
    thread_context_read(&thread, &place, &context);
    assert_int_equal(context.state, CONTEXT_NONE);
    place.module = UINT64_MAX;
    thread_context_read(&thread, &place, &context);
    assert_int_equal(context.state, CONTEXT_NONE);
    pointer = 8; /* what is there can't be read */
    thread_context_read(&thread, &place, &context);
    assert_int_equal(context.state, CONTEXT_UNREADABLE);
}

#ifdef __x86_64__
static sem_t is_there, may_end;
static pid_t other_tid;
static uint64_t other_pointer;

static void *other(void *unused)
{
    other_tid = gettid();
    other_pointer = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    sem_post(&is_there);
    sem_wait(&may_end);
    return unused;
}

static void test_the_pointer_is_found_without_a_stop(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t pointer = 0;
    assert_int_equal(thread_pointer_find(gettid(), NULL, &pointer), 0);
    assert_int_equal(pointer, (uintptr_t)__builtin_thread_pointer());
    sem_init(&is_there, 0, 0);
    sem_init(&may_end, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
    sem_wait(&is_there);
    assert_int_equal(thread_pointer_find(other_tid, NULL, &pointer), 0);
    assert_int_equal(pointer, other_pointer);
    sem_post(&may_end);
    pthread_join(thread, NULL);
    assert_int_equal(thread_pointer_find(-1, NULL, &pointer), -ESRCH);
}

/* The writer changes its record as often as it can, in place and by setting another pointer. All
 * bytes of a record's value are equal. */
static atomic_bool is_over;
static struct context_place writers_place;

static void *write_on(void *unused)
{
    static struct record records[2];
    writers_place = own_place();
    other_tid = gettid();
    for (unsigned i = 0; !is_over; i++) {
        struct record *record = &records[i % 2];
        bool is_in_place = i & 4;
        *(volatile unsigned char *)&record->valid = 0;
        atomic_signal_fence(memory_order_seq_cst);
        record->bytes = 2 + 200;
        record->attributes[0] = 0;
        record->attributes[1] = 200;
        memset(&record->attributes[2], 'a' + (int)(i % 26), 200);
        atomic_signal_fence(memory_order_seq_cst);
        *(volatile unsigned char *)&record->valid = 1;
        if (!is_in_place)
            own.variable = record;
        if (i == 8)
            sem_post(&is_there);
    }
    own.variable = NULL;
    return unused;
}

static void test_records_are_never_mixed(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t pointer = 0;
    sem_init(&is_there, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, write_on, NULL), 0);
    sem_wait(&is_there);
    const struct context_thread target = {other_tid, NULL, &pointer};
    struct thread_context context;
    size_t changed = 0;
    for (size_t i = 0; i < 20000; i++) {
        thread_context_read_running(&target, &writers_place, &context);
        changed += context.state == CONTEXT_CHANGED;
        if (context.state != CONTEXT_READ)
            continue;
        for (size_t j = 1; j < 200; j++)
            assert_int_equal(context.record[CONTEXT_HEAD_BYTES + 2 + j],
                             context.record[CONTEXT_HEAD_BYTES + 2]);
    }
    assert_true(changed > 0);
    is_over = true;
    pthread_join(thread, NULL);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_is_read_as_long_as_it_says),
        cmocka_unit_test(test_a_record_at_the_end_of_memory),
        cmocka_unit_test(test_a_thread_that_has_no_block_yet),
#ifdef __x86_64__
        cmocka_unit_test(test_the_pointer_is_found_without_a_stop),
        cmocka_unit_test(test_records_are_never_mixed),
#endif
    };
    return cmocka_run_group_tests_name("thread_context", tests, NULL, NULL);
}

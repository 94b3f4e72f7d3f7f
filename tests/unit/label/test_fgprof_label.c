/* The header that programs include: its keys after errors, and in a child. */
#include <sys/mman.h>

/* Replaces madvise in the header. */
static int try_madvise(void *address, size_t bytes, int advice);
#define madvise try_madvise
#include "fgprof_label.h"
#undef madvise
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define WIPE_ON_FORK 18

/* The advice that the kernel refuses; 0: none. */
static int refused_advice;
static void *refused;

static int try_madvise(void *address, size_t bytes, int advice)
{
    if (advice != refused_advice)
        return madvise(address, bytes, advice);
    refused = address;
    errno = EINVAL;
    return -1;
}

/* Setting a label fails, and the memory that the advice was for is unmapped again. */
static void assert_fails_if_refused(int advice)
{
    struct fgprof_label_scope scope;
    unsigned char is_there;
    refused = NULL;
    refused_advice = advice;
    assert_int_equal(fgprof_label_begin(&scope, "key", "1"), -ENOMEM);
    fgprof_label_end(&scope);
    assert_null(otel_thread_ctx_v1);
    assert_non_null(refused);
    assert_int_equal(mincore(refused, 4096, &is_there), -1);
    refused_advice = 0;
}

/* Otherwise a child could wait for its parent's lock for ever. Tested before the first successful
 * use. */
static void test_a_kernel_that_can_not_zero_a_page_in_a_child(void **state)
{
    (void)state;
    assert_fails_if_refused(WIPE_ON_FORK);
    assert_null(fgprof_label_keys.process);
    assert_int_equal(fgprof_label_keys.count, 0);
}

/* Otherwise a child would appear to publish its parent's keys. The process does not retry by
 * itself. */
static void test_a_kernel_that_copies_the_context_to_a_child(void **state)
{
    (void)state;
    assert_fails_if_refused(MADV_DONTFORK);
    assert_int_equal(fgprof_label_keys.process->error, -ENOMEM);
    assert_int_equal(fgprof_label_keys.process->is_published, 0);
    assert_int_equal(fgprof_label_keys.process->lock, 0);
    fgprof_label_keys.process->error = 0;
}

/* A parent's thread holds the lock while it registers a key. */
static void test_a_child_does_not_inherit_the_lock(void **state)
{
    struct fgprof_label_scope scope;
    int status;
    (void)state;
    assert_int_equal(fgprof_label_begin(&scope, "before", "1"), 0);
    fgprof_label_end(&scope);
    fgprof_label_keys.process->lock = 1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(-fgprof_label_begin(&scope, "after", "1"));
    fgprof_label_keys.process->lock = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child, which publishes its own context. */
static int begin_without_files(void)
{
    const struct rlimit none = {0, 0};
    struct fgprof_label_scope scope;
    signal(SIGXFSZ, SIG_DFL);
    return setrlimit(RLIMIT_FSIZE, &none) ? 1 : -fgprof_label_begin(&scope, "key", "1");
}

/* A file larger than the limit would end the program. */
static void test_a_small_limit_of_files(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(begin_without_files());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Every call with the lock held would wait, and then return -EBUSY. */
static void test_errors_that_last_take_no_lock(void **state)
{
    struct fgprof_labels labels = {0};
    char key[16];
    (void)state;
    assert_int_equal(fgprof_labels_put(&labels, "known", "1"), 0);
    fgprof_label_keys.process->error = -EEXIST;
    fgprof_label_keys.process->lock = 1;
    assert_int_equal(fgprof_labels_put(&labels, "new", "1"), -EEXIST);
    fgprof_label_keys.process->error = 0;
    fgprof_label_keys.process->lock = 0;
    while (fgprof_label_keys.count < FGPROF_LABEL_KEYS_MAX) {
        snprintf(key, sizeof key, "%u", fgprof_label_keys.count);
        assert_int_equal(fgprof_labels_put(&labels, key, NULL), 0);
    }
    fgprof_label_keys.process->lock = 1;
    assert_int_equal(fgprof_labels_put(&labels, "new", "1"), -ENOSPC);
    assert_int_equal(fgprof_labels_put(&labels, "known", "2"), 0);
    fgprof_label_keys.process->lock = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kernel_that_can_not_zero_a_page_in_a_child),
        cmocka_unit_test(test_a_kernel_that_copies_the_context_to_a_child),
        cmocka_unit_test(test_a_child_does_not_inherit_the_lock),
        cmocka_unit_test(test_a_small_limit_of_files),
        cmocka_unit_test(test_errors_that_last_take_no_lock),
    };
    return cmocka_run_group_tests_name("fgprof_label", tests, NULL, NULL);
}

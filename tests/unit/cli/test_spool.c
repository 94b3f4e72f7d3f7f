/* Requests that wait to be sent, when their files can't be read. The test replaces the function
 * that reads them. */
#include "unit.h"
#include "cli/push/spool.h"
#include "cli/push/spool_file.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int __wrap_spool_file_read(int directory_fd, const char *name, struct body *ret_body);
int __real_spool_file_read(int directory_fd, const char *name, struct body *ret_body);

/* The results of the next reads. */
static int errors[4];
static unsigned reads;

/* The spool that ends during the next read, if not NULL. */
static struct spool *ending;

int __wrap_spool_file_read(int directory_fd, const char *name, struct body *ret_body)
{
    unsigned number = reads++;
    if (ending)
        spool_end(ending);
    return number < sizeof errors / sizeof *errors && errors[number]
               ? errors[number]
               : __real_spool_file_read(directory_fd, name, ret_body);
}

static char directory[] = "/tmp/fgprof-spool-XXXXXX";
static const struct push_options options = {
    .targets = {{.api = PUSH_OTLP, .given = "otlp=http://localhost"}},
    .target_count = 1,
    .spool = directory,
};

static void open_spool(struct spool *spool)
{
    reads = 0;
    memset(errors, 0, sizeof errors);
    ending = NULL;
    assert_true(spool_open(spool, &options));
}

static int set_up(void **state)
{
    struct spool *spool = malloc(sizeof *spool);
    *state = spool;
    strcpy(directory + sizeof directory - 7, "XXXXXX");
    if (!spool || !mkdtemp(directory))
        return -1;
    open_spool(spool);
    return 0;
}

static int tear_down(void **state)
{
    struct spool *spool = *state;
    char path[64];
    spool_close(spool);
    snprintf(path, sizeof path, "%s/0/lock", directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/0", directory);
    rmdir(path);
    free(spool);
    return rmdir(directory); /* no file is left */
}

static void add(struct spool *spool, const char *text)
{
    struct body body = {.bytes = strdup(text), .length = strlen(text), .type = BODY_OTLP};
    spool_add(spool, 0, &body);
}

static void assert_next(struct spool *spool, const char *text)
{
    struct spool_entry *entry = spool_take(spool, 0);
    assert_non_null(entry);
    assert_int_equal(entry->body.length, strlen(text));
    assert_memory_equal(entry->body.bytes, text, strlen(text));
    spool_settle(spool, entry, SPOOL_SENT);
}

/* Descriptors may be available later: the request is retried, before those that came after it. */
static void test_no_descriptors_for_now(void **state)
{
    struct spool *spool = *state;
    add(spool, "first");
    add(spool, "second");
    errors[0] = -EMFILE;
    assert_next(spool, "first");
    assert_int_equal(reads, 2);
    assert_next(spool, "second");
    assert_int_equal(spool->counts[0].lost, 0);
    assert_int_equal(spool->counts[0].sent, 2);
}

/* The next run sends the request. */
static void test_no_descriptors_at_the_end(void **state)
{
    struct spool *spool = *state;
    add(spool, "first");
    errors[0] = errors[1] = -EMFILE;
    ending = spool;
    assert_null(spool_take(spool, 0));
    assert_int_equal(spool->counts[0].lost, 0);
    spool_close(spool);
    open_spool(spool);
    assert_next(spool, "first");
}

static void test_a_file_that_is_of_no_use(void **state)
{
    struct spool *spool = *state;
    add(spool, "first");
    add(spool, "second");
    errors[0] = -EBADMSG;
    assert_next(spool, "second");
    assert_int_equal(spool->counts[0].lost, 1);
}

#define IN_SPOOL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SPOOL(test_no_descriptors_for_now),
        IN_SPOOL(test_no_descriptors_at_the_end),
        IN_SPOOL(test_a_file_that_is_of_no_use),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}

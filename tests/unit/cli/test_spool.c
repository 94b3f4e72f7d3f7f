/* Requests that wait to be sent: their order, their bounds, and files that can't be read. The test
 * replaces the function that reads them. */
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

static void add_large(struct spool *spool, size_t bytes)
{
    struct body body = {.bytes = calloc(1, bytes), .length = bytes, .type = BODY_OTLP};
    assert_non_null(body.bytes);
    spool_add(spool, 0, &body);
}

static void assert_is(const struct spool_entry *entry, const char *text)
{
    assert_non_null(entry);
    assert_int_equal(entry->body.length, strlen(text));
    assert_memory_equal(entry->body.bytes, text, strlen(text));
}

static void assert_next(struct spool *spool, const char *text)
{
    struct spool_entry *entry = spool_take(spool, 0);
    assert_is(entry, text);
    spool_settle(spool, entry, SPOOL_SENT);
}

/* The server has not taken it this many times. */
static void assert_attempts(struct spool *spool, const char *text, unsigned attempts)
{
    for (unsigned i = 0; i < attempts; i++) {
        struct spool_entry *entry = spool_take(spool, 0);
        assert_is(entry, text);
        spool_settle(spool, entry, SPOOL_KEPT);
    }
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

/* In an outage, the order changes only after ten attempts. Once the server answers, what has waited
 * goes before a request that has had more turns. */
static void test_a_request_that_always_fails_lets_others_pass(void **state)
{
    struct spool *spool = *state;
    add(spool, "first");
    add(spool, "second");
    assert_attempts(spool, "first", 10);
    assert_attempts(spool, "second", 10);
    assert_attempts(spool, "first", 9);
    add(spool, "third");
    assert_next(spool, "third");
    assert_attempts(spool, "first", 1);
    assert_next(spool, "second");
    assert_next(spool, "first");
    assert_int_equal(spool->counts[0].retries, 30);
}

/* Attempts are not counted across runs. */
static void test_the_oldest_is_first_again_in_the_next_run(void **state)
{
    struct spool *spool = *state;
    add(spool, "first");
    add(spool, "second");
    assert_attempts(spool, "first", 10);
    assert_attempts(spool, "second", 1);
    spool_close(spool);
    open_spool(spool);
    assert_next(spool, "first");
    assert_next(spool, "second");
}

/* It is dropped itself, and nothing else. The head of a file counts, too. */
static void test_a_request_that_is_larger_than_the_spool(void **state)
{
    struct spool *spool = *state;
    spool->bytes_max = 64 << 10;
    add(spool, "first");
    add(spool, "second");
    add_large(spool, 100 << 10);
    add_large(spool, 64 << 10);
    assert_int_equal(spool->counts[0].lost, 2);
    assert_int_equal(spool->counts[0].crowded, 0);
    assert_next(spool, "first");
    assert_next(spool, "second");
}

/* A request that is being sent can't make room: then the others need not, either. */
static void test_no_room_beside_what_is_being_sent(void **state)
{
    struct spool *spool = *state;
    spool->bytes_max = 64 << 10;
    add_large(spool, 40 << 10);
    add(spool, "second");
    struct spool_entry *sent = spool_take(spool, 0);
    assert_non_null(sent);
    add_large(spool, 40 << 10);
    assert_int_equal(spool->counts[0].crowded, 1);
    spool_settle(spool, sent, SPOOL_SENT);
    assert_next(spool, "second");
}

#define IN_SPOOL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SPOOL(test_no_descriptors_for_now),
        IN_SPOOL(test_no_descriptors_at_the_end),
        IN_SPOOL(test_a_file_that_is_of_no_use),
        IN_SPOOL(test_a_request_that_always_fails_lets_others_pass),
        IN_SPOOL(test_the_oldest_is_first_again_in_the_next_run),
        IN_SPOOL(test_a_request_that_is_larger_than_the_spool),
        IN_SPOOL(test_no_room_beside_what_is_being_sent),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}

#include "unit.h"
#include "wait/resource.h"

static void assert_named(struct resource resource, const char *link, const char *expected)
{
    char name[RESOURCE_NAME_BYTES];
    resource_name(&resource, link, name);
    assert_string_equal(name, expected);
}

static void assert_equal(struct resource a, struct resource b)
{
    assert_int_equal(a.kind, b.kind);
    assert_int_equal(a.process_id, b.process_id);
    assert_int_equal(a.key, b.key);
}

static void test_links(void **state)
{
    (void)state;
    struct resource pipe = resource_of_link("pipe:[123]", 10, 3);
    struct resource same = resource_of_link("pipe:[123]", 11, 4);
    assert_int_equal(pipe.kind, RESOURCE_PIPE);
    assert_int_equal(pipe.key, 123);
    assert_equal(pipe, same);
    assert_named(pipe, "pipe:[123]", "pipe:[123]");
    struct resource socket = resource_of_link("socket:[123]", 10, 3);
    assert_int_equal(socket.kind, RESOURCE_SOCKET);
    struct resource file = resource_of_link("/var/log/x\n", 10, 3);
    struct resource same_file = resource_of_link("/var/log/x\n", 11, 4);
    assert_int_equal(file.kind, RESOURCE_FILE);
    assert_equal(file, same_file);
    /* Each epoll descriptor is a different resource. */
    struct resource epoll = resource_of_link("anon_inode:[eventpoll]", 10, 3);
    struct resource other = resource_of_link("anon_inode:[eventpoll]", 10, 4);
    assert_int_not_equal(epoll.key, other.key);
    other = resource_of_link("anon_inode:[eventpoll]", 11, 3);
    assert_int_not_equal(epoll.process_id, other.process_id);
    /* The target's files may have any name. */
    assert_int_equal(resource_of_link("pipe:[x]", 10, 3).kind, RESOURCE_FILE);
    assert_int_equal(resource_of_link("", 10, 3).kind, RESOURCE_FILE);
}

static void test_names(void **state)
{
    (void)state;
    assert_named((struct resource){RESOURCE_MUTEX, 10, 0x55d0c0}, NULL, "mutex 0x55d0c0");
    assert_named((struct resource){RESOURCE_POLL, 10, 0}, NULL, "several descriptors");
    assert_named((struct resource){RESOURCE_THREAD, 10, 12}, NULL, "thread 12");
    assert_named((struct resource){RESOURCE_PROCESS, 0, 1234}, NULL, "process 1234");
    assert_named((struct resource){RESOURCE_PROCESS, 10, 0}, NULL, "any child");
    assert_named((struct resource){RESOURCE_FILE_LOCK, 0, 99}, "/tmp/x", "file lock /tmp/x");
    assert_named((struct resource){RESOURCE_FILE_LOCK, 0, 99}, NULL, "file lock");
    assert_named((struct resource){RESOURCE_SEMAPHORES, 0, 7}, NULL, "System V semaphores 7");
    assert_named((struct resource){RESOURCE_SLEEP, 10, 0}, NULL, "sleep");
    assert_named((struct resource){RESOURCE_NOT_KNOWN, 0, 0}, NULL, "");
    for (int kind = 1; kind < RESOURCE_KIND_COUNT; kind++)
        assert_true(*resource_kind_name((enum resource_kind)kind));
    char path[2000], name[RESOURCE_NAME_BYTES];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    resource_name(&(struct resource){RESOURCE_FILE, 0, 1}, path, name);
    assert_int_equal(strlen(name), RESOURCE_NAME_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

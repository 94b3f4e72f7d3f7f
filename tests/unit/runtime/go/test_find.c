/* Lookups of an address in Go's function table. The test replaces the table. */
#include "unit.h"
#include "runtime/go/find.h"

#include <errno.h>
#include <string.h>

#define BIAS 0x1000u

struct table {
    struct queries queries;
    int error;
    struct query_function function;
};

static struct module module = {.is_readable = true};
static const struct go go = {.module = &module, .bias = BIAS};

static int answer(struct queries *queries, struct module *asked, const struct query *query,
                  union query_answer *ret_answer)
{
    const struct table *table = (const struct table *)queries;
    assert_ptr_equal(asked, &module);
    assert_int_equal(query->kind, QUERY_GO_FUNCTION);
    assert_int_equal(query->address, 0x105);
    ret_answer->function = table->function;
    return table->error;
}

static struct table table_of(const char *name, const char *innermost)
{
    struct table table = {{.ask = answer}, 0, {.start = 0x100, .line = 7, .file = "/src/f.go"}};
    strcpy(table.function.name, name);
    strcpy(table.function.innermost, innermost);
    return table;
}

static struct go_function look_up(struct table *table)
{
    struct go_function function;
    assert_int_equal(go_function_at(&table->queries, &go, 0x105 + BIAS, &function), 0);
    return function;
}

static void test_where_it_is(void **state)
{
    (void)state;
    struct table table = table_of("main.f", "");
    struct go_function function = look_up(&table);
    assert_int_equal(function.start, 0x100 + BIAS);
    assert_string_equal(function.text, "main.f (/src/f.go:7)");
    free(function.text);
    table.function.line = 0;
    function = look_up(&table);
    assert_string_equal(function.text, "main.f");
    free(function.text);
}

static void check(const char *name, const char *innermost, bool is_own, enum go_wait_kind lock)
{
    struct table table = table_of(name, innermost);
    struct go_function function = look_up(&table);
    assert_int_equal(function.is_own, is_own);
    assert_int_equal(function.lock, lock);
    free(function.text);
}

static void test_what_it_is(void **state)
{
    (void)state;
    check("main.f", "", false, GO_WAIT_SEMAPHORE);
    check("runtime.gcBgMarkWorker", "", true, GO_WAIT_SEMAPHORE);
    check("runtime.main", "", false, GO_WAIT_SEMAPHORE);
    check("runtimeish.f", "", false, GO_WAIT_SEMAPHORE);
    check("sync.(*Mutex).lockSlow", "", false, GO_WAIT_MUTEX);
    check("main.f", "sync.(*RWMutex).RLock", false, GO_WAIT_READ_LOCK);
    check("sync.(*Mutex).lockSlow", "main.inlined", false, GO_WAIT_SEMAPHORE);
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    struct table table = table_of("runtime.stopm", "");
    struct go_function function;
    table.error = -ENOENT;
    function = look_up(&table);
    assert_int_equal(function.start, 0);
    assert_int_equal(function.lock, GO_WAIT_SEMAPHORE);
    assert_false(function.is_own || function.text);
    table.error = -EAGAIN;
    assert_int_equal(go_function_at(&table.queries, &go, 0x105 + BIAS, &function), -EAGAIN);
    assert_null(function.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_is),
        cmocka_unit_test(test_what_it_is),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}

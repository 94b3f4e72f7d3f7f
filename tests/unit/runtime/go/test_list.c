/* The list of goroutines of a program that is built in this process's memory. */
#include "make_pclntab.h"
#include "runtime/go/find.h"
#include "unit.h"

#include <errno.h>
#include <unistd.h>

#define GOROUTINES 5
#define MAIN MADE_GO_CODE /* where that function begins */
#define ALLGADD (MADE_GO_CODE + 0x100u)

/* The addresses of the program's data. */
enum {
    LIST = MADE_GO_DATA + 0x3000,
    FIRST = MADE_GO_DATA + 0x3018,
    COUNT = MADE_GO_DATA + 0x3020,
    OTHER = MADE_GO_DATA + 0x3028,
};

static struct made_go made;
static struct go go;
static struct pclntab table;
static int error; /* the result of each query; 0: success */
static unsigned char goroutines[GOROUTINES][GOROUTINE_BYTES_MAX] __attribute__((aligned(8)));
static uint64_t pointers[GOROUTINES];

static void put(size_t number, size_t offset, uint64_t value)
{
    memcpy(goroutines[number] + offset, &value, sizeof value);
}

/* Writes code that reads the word `data`; returns the address after it. */
static uint64_t put_code(uint64_t at, uint64_t data)
{
#ifdef __x86_64__
    static const uint8_t load[] = {0x48, 0x8b, 0x05}; /* mov data(%rip), %rax */
    put_go(&made, at, load, sizeof load);
    put_go32(&made, at + 3, data - (at + 7));
    return at + 7;
#else
    uint64_t pages = (data >> 12) - (at >> 12);
    put_go32(&made, at, 0x90000000u | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5); /* adrp */
    put_go32(&made, at + 4, 0xf9400000u | (data & 0xfff) / 8 << 10);                    /* ldr */
    return at + 8;
#endif
}

/* Answers as the reader process would. */
static int answer(struct queries *queries, struct module *asked, const struct query *query,
                  union query_answer *ret_answer)
{
    struct pclntab_function function;
    (void)queries;
    assert_ptr_equal(asked, &made.module);
    assert_int_equal(query->kind, QUERY_GO_FUNCTION);
    if (error || !pclntab_find(&table, query->address, &function))
        return error ? error : -ENOENT;
    ret_answer->function = (struct query_function){.start = function.start};
    return 0;
}

static int begin(void **state)
{
    static const struct made_function functions[] = {
        {.name = "runtime.main", .code_bytes = 0x100},
        {.name = "runtime.allgadd", .code_bytes = 0x100},
    };
    static const uint32_t data[] = {LIST, LIST + 8, FIRST, COUNT, OTHER};
    uint64_t code = ALLGADD;
    (void)state;
    make_go(&made, PCLNTAB_1_20, functions, 2);
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        code = put_code(code, data[i]);
    go = (struct go){.module = &made.module,
                     .layout = go_layout_of(26),
                     .bias = (uintptr_t)made.bytes - 0x400000,
                     .runtime = {.adding = {ALLGADD, code}, .idle_count = 1}};
    made.module.is_readable = true;
    error = 0;
    assert_true(pclntab_open(&table, &made.module));
    memset(goroutines, 0, sizeof goroutines);
    for (size_t i = 0; i < GOROUTINES; i++) {
        pointers[i] = (uintptr_t)goroutines[i];
        put(i, 0, 0x10000);
        put(i, 8, 0x12000);
        put(i, go.layout->g_sched, 0x11f00);
        put(i, go.layout->g_id, 1 + i);
        put(i, go.layout->g_start, MAIN + go.bias);
        goroutines[i][go.layout->g_status] = 4;
    }
    put_go64(&made, LIST, (uintptr_t)pointers);
    put_go64(&made, LIST + 8, GOROUTINES);
    put_go64(&made, LIST + 16, 8);
    put_go64(&made, FIRST, (uintptr_t)pointers);
    put_go64(&made, COUNT, GOROUTINES);
    put_go64(&made, OTHER, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    made_go_free(&made);
    return 0;
}

static int find(void)
{
    struct queries queries = {.ask = answer};
    return go_find_list(&queries, &go, getpid(), NULL);
}

static bool is_found(void)
{
    assert_int_equal(find(), 0);
    return go.place.layout;
}

static void test_the_list(void **state)
{
    (void)state;
    assert_true(is_found());
    assert_int_equal(go.place.first, FIRST + go.bias);
    assert_int_equal(go.place.count, COUNT + go.bias);
}

/* The program is still starting. */
static void test_it_is_found_later(void **state)
{
    (void)state;
    put_go64(&made, COUNT, 0);
    put_go64(&made, LIST + 8, 0);
    assert_false(is_found());
    put_go64(&made, COUNT, GOROUTINES);
    put_go64(&made, LIST + 8, GOROUTINES);
    assert_true(is_found());
}

/* A word that contradicts the runtime's layout. */
static void test_what_does_not_agree(void **state)
{
    static const struct {
        uint32_t at;
        uint64_t value;
    } wrong[] = {
        {FIRST, 0},
        {COUNT, GOROUTINES - 1},
        {LIST, 0x10},
        {LIST + 8, GOROUTINES + 1},
        {LIST, 1},
        {LIST + 16, 1},
        {LIST + 16, 1ull << 40},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t before;
        memcpy(&before, made.bytes + (wrong[i].at - 0x400000), sizeof before);
        put_go64(&made, wrong[i].at, wrong[i].value);
        assert_false(is_found());
        put_go64(&made, wrong[i].at, before);
    }
    assert_true(is_found());
}

/* Everything is consistent, but the listed addresses are not goroutines. */
static void test_made_up_goroutines(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOROUTINES; i++)
        put(i, go.layout->g_start, MAIN + go.bias + 1); /* no function begins there */
    assert_false(is_found());
    for (size_t i = 0; i < GOROUTINES; i++)
        put(i, go.layout->g_start, MAIN + go.bias);
    put(1, go.layout->g_status, 77);
    assert_false(is_found());
    put(1, go.layout->g_status, 4);
    put(2, 8, 0x1000); /* its stack ends before it begins */
    assert_false(is_found());
    put(2, 8, 0x12000);
    pointers[3] = 16;
    assert_false(is_found());
    pointers[3] = (uintptr_t)goroutines[3];
    assert_true(is_found());
}

static void test_a_file_that_can_not_be_read(void **state)
{
    (void)state;
    error = -EAGAIN;
    assert_int_equal(find(), -EAGAIN);
    assert_null(go.place.layout);
    error = 0;
    assert_true(is_found());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_list, begin, end),
        cmocka_unit_test_setup_teardown(test_it_is_found_later, begin, end),
        cmocka_unit_test_setup_teardown(test_what_does_not_agree, begin, end),
        cmocka_unit_test_setup_teardown(test_made_up_goroutines, begin, end),
        cmocka_unit_test_setup_teardown(test_a_file_that_can_not_be_read, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

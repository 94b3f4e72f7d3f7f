/* Which goroutine a thread runs, read from this process's memory. */
#include "runtime/go/abi.h"
#include "unit.h"
#include "worker/goroutines.h"

#include <unistd.h>

#define ID 18

static unsigned files_read;

/* The real function reads a file of the process. */
pid_t __wrap_observation_live_tid(const struct observation *observation);
pid_t __wrap_observation_live_tid(const struct observation *observation)
{
    files_read++;
    return observation->tid;
}

static const struct go_layout *layout;
static unsigned char current[GOROUTINE_BYTES_MAX], own[GOROUTINE_BYTES_MAX];
static uint64_t m[1], stack[64], own_stack[64];
static struct program_goroutines goroutines;
static struct program_maps maps;
static struct program program;
static struct snapshot snapshot;

static void put(unsigned char *goroutine, size_t offset, const void *address)
{
    uint64_t word = (uintptr_t)address;
    memcpy(goroutine + offset, &word, sizeof word);
}

static int begin(void **state)
{
    (void)state;
    layout = go_layout_of(26);
    goroutines = (struct program_goroutines){.is_told = true, .go.place.layout = layout};
    program = (struct program){.process_id = getpid(), .proc_fd = -1, .mem_fd = -1};
    put(current, 0, stack);
    put(current, 8, stack + 64);
    put(current, layout->g_m, m);
    put(current, layout->g_id, (void *)(uintptr_t)ID);
    put(own, 0, own_stack);
    put(own, 8, own_stack + 64);
    m[0] = (uintptr_t)own;
    return 0;
}

static uint32_t find(const void *register_value, const uint64_t *sp)
{
    const struct observation observation = {
        .tid = getpid(), .process_id = getpid(), .program = &program, .snapshot = &snapshot};
    registers_set(&snapshot.registers, architecture.sp, (uintptr_t)sp);
    registers_set(&snapshot.registers, go_current_register, (uintptr_t)register_value);
    return program_goroutines_current(&goroutines, &maps, &observation);
}

static void test_on_its_stack(void **state)
{
    (void)state;
    assert_int_equal(find(current, stack + 3), ID);
}

static void test_in_the_vdso(void **state)
{
    (void)state;
    assert_int_equal(find(current, own_stack + 3), ID);
}

/* The scheduler's own code, C code, and values that are not addresses. */
static void test_none(void **state)
{
    static const uint64_t elsewhere[1];
    (void)state;
    assert_int_equal(find(own, own_stack + 3), 0);
    assert_int_equal(find(current, elsewhere), 0);
    assert_int_equal(find(stack, stack + 3), 0);
    assert_int_equal(find(NULL, stack + 3), 0);
    assert_int_equal(find((const void *)UINTPTR_MAX, stack + 3), 0);
    m[0] = 8;
    assert_int_equal(find(current, own_stack + 3), 0);
}

static void test_registers_that_were_not_read(void **state)
{
    (void)state;
    assert_int_equal(find(current, stack + 3), ID);
    snapshot.registers.known &= ~(1ull << go_current_register);
    const struct observation observation = {
        .tid = getpid(), .process_id = getpid(), .program = &program, .snapshot = &snapshot};
    assert_int_equal(program_goroutines_current(&goroutines, &maps, &observation), 0);
}

/* The program's memory is not read at each observation. */
static void test_programs_that_have_no_goroutines(void **state)
{
    (void)state;
    struct space space = {.mapping_count = 3};
    struct program_maps known = {.space = &space};
    struct program_goroutines none = {.mapping_count = 3};
    const struct observation observation = {
        .tid = getpid(), .process_id = getpid(), .program = &program, .snapshot = &snapshot};
    files_read = 0;
    assert_int_equal(program_goroutines_update(&none, NULL, &known, &observation), 0);
    assert_int_equal(program_goroutines_current(&none, &known, &observation), 0);
    assert_int_equal(files_read, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_on_its_stack, begin),
        cmocka_unit_test_setup(test_in_the_vdso, begin),
        cmocka_unit_test_setup(test_none, begin),
        cmocka_unit_test_setup(test_registers_that_were_not_read, begin),
        cmocka_unit_test_setup(test_programs_that_have_no_goroutines, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

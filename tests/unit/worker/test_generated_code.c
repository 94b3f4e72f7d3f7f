/* Reading what a program says of the code that it generates: here this process's own perf map. */
#include "unit.h"
#include "unwind/rule_tables.h"
#include "worker/generated_code.h"

#include <stdio.h>

static struct results results;
static struct own_lookups lookups;
static struct rule_tables rules;
static struct generated_code generated;
static struct program program;
static struct space *space;
static char path[32];
static int map;
static unsigned reads, forgotten;

void __real_rule_tables_forget_generated(struct rule_tables *from, uint32_t of);
void __wrap_rule_tables_forget_generated(struct rule_tables *from, uint32_t of);
void __wrap_rule_tables_forget_generated(struct rule_tables *from, uint32_t of)
{
    forgotten++;
    __real_rule_tables_forget_generated(from, of);
}

static int read_code(struct lookups *own, const struct jit_source *source, off_t most,
                     struct jit_reading *reading)
{
    (void)own;
    reads++;
    return jit_source_read(source, most, reading);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    program = (struct program){.process_id = getpid(), .mem_fd = -1, .maps_fd = -1};
    program.proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    generated = (struct generated_code){0};
    own_lookups_init(&lookups);
    lookups.lookups.read_code = read_code;
    rules = (struct rule_tables){.lookups = &lookups.lookups};
    reads = forgotten = 0;
    space = calloc(1, sizeof *space);
    return map < 0 || program.proc_fd < 0 || !space || results_init(&results) ||
           space_note_jit(space, 0x1008);
}

static int tear_down(void **state)
{
    (void)state;
    int err = generated_finish(&generated, &rules, &results, space);
    space_free(space);
    rule_tables_free(&rules);
    own_lookups_free(&lookups);
    results_free(&results);
    close(program.proc_fd);
    close(map);
    unlink(path);
    return err;
}

static void append(const char *text)
{
    assert_int_equal(write(map, text, strlen(text)), strlen(text));
}

/* In a round that begins long after the one before. */
static void update(void)
{
    const struct observation observation = {
        .program = &program, .tid = getpid(), .round_ns = UINT64_MAX};
    generated.reading.cost_ns = 0;
    assert_int_equal(generated_update(&generated, &rules, &results, &observation, &space), 0);
}

static void check(unsigned expected_reads, unsigned expected_forgotten)
{
    assert_int_equal(reads, expected_reads);
    assert_int_equal(forgotten, expected_forgotten);
}

/* Writers have buffers, so that a file mostly ends within a line. */
static void test_a_map_that_ends_within_a_line(void **state)
{
    (void)state;
    append("1000 10 first\n2000 10 sec");
    for (unsigned tick = 0; tick < 3; tick++)
        update();
    check(1, 1);
    assert_int_not_equal(jit_code_find(&space->jit->code, 0x1008), JIT_NO_SYMBOL);
    assert_int_equal(jit_code_find(&space->jit->code, 0x2008), JIT_NO_SYMBOL);
    /* More of the same line: it is read, but tells nothing yet. */
    append("o");
    for (unsigned tick = 0; tick < 3; tick++)
        update();
    check(2, 1);
    append("nd\n");
    for (unsigned tick = 0; tick < 3; tick++)
        update();
    check(3, 2);
    assert_int_not_equal(jit_code_find(&space->jit->code, 0x2008), JIT_NO_SYMBOL);
}

static void test_a_map_without_anything(void **state)
{
    (void)state;
    update();
    update();
    check(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_map_that_ends_within_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_map_without_anything, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("generated_code", tests, NULL, NULL);
}

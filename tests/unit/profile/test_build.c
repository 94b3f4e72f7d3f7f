/* Building a profile without modules: stacks without frames, their labels, and generated code. */
#include "unit.h"
#include "mapping/modules.h"
#include "profile/build.h"
#include "count/deadlocks.h"
#include "count/waits.h"
#include "wait/resource.h"

#include <errno.h>
#include <sys/syscall.h>

struct tables {
    struct stack_table table;
    struct waits waits;
    struct deadlocks deadlocks;
    struct spaces spaces;
    struct strings strings;
};

static int set_up(void **state)
{
    struct tables *counted = calloc(1, sizeof *counted);
    *state = counted;
    uint32_t name, process;
    return counted && !strings_init(&counted->strings) &&
                   !strings_intern(&counted->strings, "idle", &name) &&
                   !stack_table_add_process(&counted->table, 1, name, &process) &&
                   !strings_intern(&counted->strings, "app", &name) &&
                   !stack_table_add_process(&counted->table, 7, name, &process)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct tables *counted = *state;
    spaces_free(&counted->spaces);
    stack_table_free(&counted->table);
    waits_free(&counted->waits);
    deadlocks_free(&counted->deadlocks);
    strings_free(&counted->strings);
    free(counted);
    return 0;
}

static void add(struct tables *counted, enum stack_cut cut, const char *thread,
                enum thread_state thread_state, int32_t syscall_number, const char *wait_channel)
{
    struct stack stack = {.cut = cut};
    struct sample_labels labels = {
        .state = thread_state, .syscall_number = syscall_number, .process = 1};
    uint32_t sample;
    assert_int_equal(strings_intern(&counted->strings, thread, &labels.thread_name), 0);
    assert_int_equal(strings_intern(&counted->strings, wait_channel, &labels.wait_channel), 0);
    assert_int_equal(stack_table_add(&counted->table, UINT32_MAX, &stack, &labels, 2, 20, &sample),
                     0);
}

static struct fgprof_profile *named(const struct tables *counted)
{
    const struct counted all = {
        .table = &counted->table,
        .waits = &counted->waits,
        .deadlocks = &counted->deadlocks,
        .begin_ns = 1000000000u,
        .spaces = &counted->spaces,
        .strings = &counted->strings,
    };
    struct name_sources sources = {.names = FGPROF_NAMES_SHORT};
    struct fgprof_profile *profile;
    assert_int_equal(reader_new(READER_LIMIT_MS, &sources.reader), 0);
    assert_int_equal(name_profile(&all, &sources, &profile), 0);
    reader_free(sources.reader);
    return profile;
}

static void assert_sample(const struct fgprof_profile *profile, size_t number,
                          enum thread_state thread_state, const char *syscall_name,
                          const char *wait_channel)
{
    const struct profile_sample *sample = &profile->samples[number];
    assert_int_equal(sample->state, thread_state);
    assert_string_equal(strings_get(&profile->strings, sample->syscall_name), syscall_name);
    assert_string_equal(strings_get(&profile->strings, sample->wait_channel), wait_channel);
    assert_string_equal(strings_get(&profile->strings, sample->thread_name), "app");
    /* Only the process that has samples is there. */
    assert_int_equal(profile->process_count, 1);
    assert_int_equal(sample->process, 0);
    assert_int_equal(profile->processes[0].pid, 7);
    assert_string_equal(strings_get(&profile->strings, profile->processes[0].name), "app");
    assert_int_equal(sample->count, 2);
    assert_int_equal(sample->time_ns, 20);
}

static void test_labels_are_named(void **state)
{
    struct tables *counted = *state;
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_RUNNING, -1, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_SLEEPING, SYS_futex, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_SLEEPING, 99999, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_SLEEPING, -1, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_UNINTERRUPTIBLE, SYS_read, "io_schedule");
    add(counted, STACK_CUT_NOT_CAPTURED, "app", THREAD_UNKNOWN, -1, "");
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->sample_count, 6);
    assert_sample(profile, 0, THREAD_RUNNING, "", "");
    assert_sample(profile, 1, THREAD_SLEEPING, "futex", "");
    assert_sample(profile, 2, THREAD_SLEEPING, "syscall_99999", "");
    assert_sample(profile, 3, THREAD_SLEEPING, "", "");
    assert_sample(profile, 4, THREAD_UNINTERRUPTIBLE, "read", "io_schedule");
    assert_sample(profile, 5, THREAD_UNKNOWN, "", "");
    fgprof_profile_free(profile);
}

static struct deadlock_thread in_deadlock(struct tables *counted, uint32_t tid, const char *name)
{
    struct deadlock_thread thread = {.tid = tid, .since_ns = 3500000000u};
    assert_int_equal(strings_intern(&counted->strings, name, &thread.name), 0);
    return thread;
}

static void test_deadlocks_are_put_into_words(void **state)
{
    struct tables *counted = *state;
    struct deadlock_thread two[] = {in_deadlock(counted, 12, "one"),
                                    in_deadlock(counted, 13, "other")};
    struct deadlock_thread one = in_deadlock(counted, 14, "alone");
    assert_int_equal(deadlocks_add(&counted->deadlocks, two, 2), 0);
    assert_int_equal(deadlocks_add(&counted->deadlocks, &one, 1), 0);
    struct fgprof_profile *profile = named(counted);
    assert_string_equal(fgprof_profile_deadlock(profile, 0),
                        "deadlock since 2.5 s: \"one\" (12) waits for a lock of \"other\" (13), "
                        "which waits for a lock of \"one\" (12)");
    assert_string_equal(
        fgprof_profile_deadlock(profile, 1),
        "deadlock since 2.5 s: \"alone\" (14) waits for a lock, which it has itself");
    assert_null(fgprof_profile_deadlock(profile, 2));
    fgprof_profile_free(profile);
}

/* One process was idle for half of its second, and another has no samples. */
static void test_elapsed_time(void **state)
{
    struct tables *counted = *state;
    struct elapsed elapsed[2];
    struct parallelism parallelism = {.ticks = {[2] = 1}};
    elapsed_begin(&elapsed[0], 500, 10, 1);
    elapsed_begin(&elapsed[1], 500, 10, 1);
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_RUNNING, -1, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_SLEEPING, -1, "");
    assert_int_equal(counted->table.process_count, 2);
    counted->table.samples[0].part_ns = 400;
    counted->table.samples[1].waited_ticks = 1;
    elapsed[1].idle_ticks = 5;
    const struct counted all = {
        .table = &counted->table,
        .waits = &counted->waits,
        .deadlocks = &counted->deadlocks,
        .spaces = &counted->spaces,
        .strings = &counted->strings,
        .elapsed = elapsed,
        .parallelism = &parallelism,
        .until_ns = 1500,
    };
    const struct name_sources sources = {.names = FGPROF_NAMES_SHORT};
    struct fgprof_profile *profile;
    uint64_t row_ns;
    assert_int_equal(name_profile(&all, &sources, &profile), 0);
    assert_true(profile->has_elapsed);
    assert_int_equal(profile->sample_count, 4);
    assert_int_equal(profile->process_count, 2);
    assert_int_equal(profile->samples[0].elapsed_ns, 400);
    assert_int_equal(profile->samples[1].elapsed_ns, 100);
    assert_false(sample_is_idle(&profile->samples[1]));
    for (size_t i = 2; i < 4; i++) {
        const struct profile_sample *idle = &profile->samples[i];
        assert_true(sample_is_idle(idle));
        assert_int_equal(idle->elapsed_ns, i == 2 ? 1000 : 500);
        assert_int_equal(idle->process, i == 2);
    }
    assert_int_equal(profile->samples[0].process, 0);
    assert_int_equal(fgprof_profile_parallelism(profile, 0, &row_ns), 0);
    assert_int_equal(row_ns, 1600);
    assert_int_equal(fgprof_profile_parallelism(profile, 2, &row_ns), 0);
    assert_int_equal(row_ns, 400);
    assert_int_equal(fgprof_profile_parallelism(profile, 3, &row_ns), -ERANGE);
    fgprof_profile_free(profile);
}

static void test_sleeps(void **state)
{
    struct tables *counted = *state;
    add(counted, STACK_WHOLE, "app", THREAD_SLEEPING, 202, "");
    stack_table_count_sleeps(&counted->table, 0, 9);
    struct fgprof_profile *profile = named(counted);
    assert_true(profile->has_sleeps);
    assert_int_equal(profile->samples[0].sleeps, 9);
    fgprof_profile_free(profile);
}

static void test_cut_stacks_end_in_a_note(void **state)
{
    struct tables *counted = *state;
    add(counted, STACK_CUT_NOT_CAPTURED, "app", THREAD_UNKNOWN, -1, "");
    struct fgprof_profile *profile = named(counted);
    const struct profile_stack *stack = &profile->stacks[profile->samples[0].stack];
    assert_int_equal(stack->depth, 1);
    const struct profile_location *note =
        &profile->locations[profile->stack_locations[stack->first_location]];
    assert_true(note->is_note);
    const struct profile_function *function =
        &profile->functions[profile->lines[note->first_line].function];
    assert_string_equal(strings_get(&profile->strings, function->name),
                        "[truncated: thread not observed in time]");
    fgprof_profile_free(profile);
}

/* Checks the functions in a sample's stack, leaf first: "a b c". */
static void assert_stack(const struct fgprof_profile *profile, size_t sample, const char *expected)
{
    const struct profile_stack *stack = &profile->stacks[profile->samples[sample].stack];
    char names[256] = "";
    for (size_t i = 0; i < stack->depth; i++) {
        const struct profile_location *location =
            &profile->locations[profile->stack_locations[stack->first_location + i]];
        const struct profile_function *function =
            &profile->functions[profile->lines[location->first_line].function];
        strcat(strcat(names, i ? " " : ""), strings_get(&profile->strings, function->name));
        strcat(names, location->is_kernel ? "_k" : "");
    }
    assert_string_equal(names, expected);
}

static void test_the_kernels_functions_are_above(void **state)
{
    struct tables *counted = *state;
    static const char *const kernel_stacks[] = {"futex_wait\nentry\n", "", "schedule\nentry\n"};
    for (size_t i = 0; i < 3; i++) {
        struct stack stack = {.cut = STACK_CUT_NOT_CAPTURED};
        struct sample_labels labels = {.state = THREAD_SLEEPING, .syscall_number = -1};
        uint32_t sample;
        assert_int_equal(strings_intern(&counted->strings, kernel_stacks[i], &labels.kernel_stack),
                         0);
        assert_int_equal(
            stack_table_add(&counted->table, UINT32_MAX, &stack, &labels, 2, 20, &sample), 0);
    }
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->sample_count, 3);
    assert_stack(profile, 0, "futex_wait_k entry_k [truncated: thread not observed in time]");
    assert_stack(profile, 1, "[truncated: thread not observed in time]");
    assert_stack(profile, 2, "schedule_k entry_k [truncated: thread not observed in time]");
    /* One mapping for all, and one location per function. */
    assert_int_equal(profile->mapping_count, 1);
    assert_string_equal(strings_get(&profile->strings, profile->mappings[0].path),
                        "[kernel.kallsyms]");
    assert_true(profile->mappings[0].has_functions);
    assert_int_equal(profile->location_count, 4);
    fgprof_profile_free(profile);
}

/* Adds a space with a page of generated code at 0x1000. */
static struct space *add_space(struct tables *counted)
{
    static const char maps[] = "1000-2000 rwxp 00000000 00:00 0 \n";
    struct modules modules = {0};
    struct space *space;
    int fd = file_of_text(maps), proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_int_equal(spaces_add(&counted->spaces, &modules, 7, proc_fd, getpid(), fd, &space), 0);
    close(proc_fd);
    close(fd);
    return space;
}

static void add_generated(struct tables *counted, struct space *space, uint64_t address)
{
    struct stack stack = {.addresses = &address, .depth = 1};
    struct sample_labels labels = {.state = THREAD_RUNNING, .syscall_number = -1};
    uint32_t sample;
    assert_int_equal(stack_table_add(&counted->table, space->id, &stack, &labels, 2, 20, &sample),
                     0);
    assert_int_equal(space_note_jit(space, address), 0);
}

static const struct profile_location *location_of(const struct fgprof_profile *profile,
                                                  size_t sample)
{
    const struct profile_stack *stack = &profile->stacks[profile->samples[sample].stack];
    return &profile->locations[profile->stack_locations[stack->first_location]];
}

static void assert_generated(const struct fgprof_profile *profile, size_t sample, const char *name,
                             const char *file, uint32_t line)
{
    const struct profile_location *location = location_of(profile, sample);
    assert_int_equal(location->line_count, 1);
    const struct profile_line *row = &profile->lines[location->first_line];
    assert_string_equal(strings_get(&profile->strings, profile->functions[row->function].name),
                        name);
    assert_string_equal(strings_get(&profile->strings, profile->functions[row->function].file),
                        file);
    assert_int_equal(row->line, line);
    assert_int_equal(location->jit_function_plus_1, row->function + 1);
    assert_string_equal(strings_get(&profile->strings, profile->mappings[location->mapping].path),
                        "[jit]");
}

static void test_generated_code(void **state)
{
    struct tables *counted = *state;
    struct space *space = add_space(counted);
    bool is_replaced;
    add_generated(counted, space, 0x1008);
    add_generated(counted, space, 0x1800);
    struct jit *jit = space->jit;
    assert_int_equal(jit_code_add_line(&jit->code, 4, "a.lua", 5, 12), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x10, "_ZN1a1bEv", 9, 1), 0);
    assert_int_equal(jit_take_in(jit, &is_replaced), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x10, "second", 6, 0), 0);
    assert_int_equal(jit_take_in(jit, &is_replaced), 0);
    assert_true(is_replaced);
    assert_int_equal(spaces_branch(&counted->spaces, &space), 0);
    add_generated(counted, space, 0x1008);
    jit_settle(jit);
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->sample_count, 3);
    assert_generated(profile, 0, "a::b", "a.lua", 12);
    assert_int_equal(location_of(profile, 0)->function_offset, 8);
    assert_int_equal(location_of(profile, 1)->line_count, 0);
    assert_int_equal(location_of(profile, 1)->jit_function_plus_1, 0);
    assert_generated(profile, 2, "second", "", 0);
    /* Each mapping claims only what is true of it. */
    const struct profile_mapping *jit_mapping =
        &profile->mappings[location_of(profile, 0)->mapping];
    const struct profile_mapping *anonymous = &profile->mappings[location_of(profile, 1)->mapping];
    assert_true(jit_mapping->has_functions);
    assert_false(jit_mapping->has_files || jit_mapping->has_lines || jit_mapping->has_inlined);
    assert_string_equal(strings_get(&profile->strings, anonymous->path), "[anon]");
    assert_false(anonymous->has_functions);
    assert_int_equal(profile->summary.samples_unnamed, 2);
    fgprof_profile_free(profile);
}

/* The stack shows where it is cut, and the summary shows why. */
static void test_a_module_that_unwinding_could_not_read(void **state)
{
    struct tables *counted = *state;
    struct space *space = add_space(counted);
    static char path[] = "/lib/broken.so";
    static struct module module = {
        .path = path, .is_readable = true, .unread = "its reader crashed", .users = 1};
    uint64_t address = 0x1008;
    const struct stack stack = {.addresses = &address, .depth = 1, .cut = STACK_CUT_UNREAD};
    struct sample_labels labels = {.state = THREAD_RUNNING, .syscall_number = -1};
    uint32_t sample;
    free(space->mappings[0].path);
    space->mappings[0].path = path; /* belongs to the module */
    space->mappings[0].module = &module;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            stack_table_add(&counted->table, space->id, &stack, &labels, 2, 20, &sample), 0);
        address++;
    }
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->unreadable_count, 1);
    assert_string_equal(strings_get(&profile->strings, profile->unreadable[0]),
                        "/lib/broken.so (its reader crashed)");
    const struct profile_stack *row = &profile->stacks[profile->samples[0].stack];
    assert_int_equal(row->depth, 2);
    const struct profile_location *note =
        &profile->locations[profile->stack_locations[row->first_location + 1]];
    assert_true(note->is_note);
    const struct profile_function *function =
        &profile->functions[profile->lines[note->first_line].function];
    assert_string_equal(strings_get(&profile->strings, function->name),
                        "[truncated: unwind info not read in broken.so]");
    fgprof_profile_free(profile);
}

static void test_nothing_counted(void **state)
{
    struct fgprof_profile *profile = named(*state);
    assert_int_equal(profile->sample_count, 0);
    assert_int_equal(profile->summary.samples_unnamed, 0);
    fgprof_profile_free(profile);
}

/* The owner's stack is kept while a sample's thread waits for it. */
static void test_stacks_without_samples_are_left_out(void **state)
{
    struct tables *counted = *state;
    struct counted_wait wait = {
        .kind = RESOURCE_PIPE, .process = 1, .owner_process = 1, .owner_stack = 1};
    add(counted, STACK_CUT_AT_MAX_DEPTH, "gone", THREAD_SLEEPING, -1, "");
    add(counted, STACK_CUT_UNREADABLE, "owner", THREAD_SLEEPING, -1, "");
    add(counted, STACK_CUT_NOT_CAPTURED, "app", THREAD_SLEEPING, -1, "");
    counted->table.samples[0].count = counted->table.samples[0].time_ns = 0;
    counted->table.samples[1].count = counted->table.samples[1].time_ns = 0;
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->stack_count, 1);
    assert_int_equal(profile->sample_count, 1);
    fgprof_profile_free(profile);
    assert_int_equal(
        waits_add(&counted->waits, &wait, &counted->table.samples[2].labels.wait_plus_1), 0);
    profile = named(counted);
    assert_int_equal(profile->stack_count, 2);
    const struct profile_wait *named_wait = sample_wait(profile, &profile->samples[0]);
    assert_int_not_equal(named_wait->owner_stack, profile->samples[0].stack);
    fgprof_profile_free(profile);
}

/* A timeline with a run of a sample whose counts have since been moved to another sample. */
static void test_runs_of_a_sample_that_was_moved(void **state)
{
    struct tables *counted = *state;
    struct timeline timeline = {0};
    struct timeline_cursor cursor = {0};
    const uint64_t booked_ns[TIMELINE_ACCOUNTS] = {500};
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_RUNNING, -1, "");
    add(counted, STACK_CUT_UNREADABLE, "app", THREAD_SLEEPING, -1, "");
    add(counted, STACK_CUT_NOT_CAPTURED, "app", THREAD_SLEEPING, -1, "");
    stack_table_move(&counted->table, 1, 2, 2, 20, 0);
    timeline_want(&timeline, 100, 100, false);
    timeline_book(&timeline, &cursor, 7, 1000000000u, booked_ns);
    timeline_give(&timeline, &cursor, 0, 0, 1);
    const struct counted all = {
        .table = &counted->table,
        .waits = &counted->waits,
        .deadlocks = &counted->deadlocks,
        .begin_ns = 1000000000u,
        .timeline = &timeline,
        .spaces = &counted->spaces,
        .strings = &counted->strings,
    };
    const struct name_sources sources = {.names = FGPROF_NAMES_SHORT};
    struct fgprof_profile *profile;
    assert_int_equal(name_profile(&all, &sources, &profile), 0);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->timeline_count, 1);
    assert_int_equal(profile->timelines[0].run_count, 1);
    const struct profile_run *run = &profile->runs[profile->timelines[0].first_run];
    assert_int_equal(run->time_ns, 500);
    assert_int_equal(run->sample, 1); /* the second of the remaining samples */
    fgprof_profile_free(profile);
    timeline_free(&timeline);
}

#define WITH_COUNTED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COUNTED(test_labels_are_named),
        WITH_COUNTED(test_deadlocks_are_put_into_words),
        WITH_COUNTED(test_elapsed_time),
        WITH_COUNTED(test_sleeps),
        WITH_COUNTED(test_cut_stacks_end_in_a_note),
        WITH_COUNTED(test_the_kernels_functions_are_above),
        WITH_COUNTED(test_generated_code),
        WITH_COUNTED(test_stacks_without_samples_are_left_out),
        WITH_COUNTED(test_runs_of_a_sample_that_was_moved),
        WITH_COUNTED(test_a_module_that_unwinding_could_not_read),
        WITH_COUNTED(test_nothing_counted),
    };
    return cmocka_run_group_tests_name("name_profile", tests, NULL, NULL);
}

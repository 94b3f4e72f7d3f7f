/* What compaction keeps of the results, and that all references to it are updated. */
#include "owners_world.h"
#include "base/array.h"
#include "recorder/copy.h"
#include "worker/compact.h"
#include "worker/ended_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a sample with a stack of its own. Its serial is its number. */
static uint32_t add(struct world *world)
{
    uint64_t address = 0x1000 + world->results.stacks.samples_added;
    struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1000, &sample),
                     0);
    return sample;
}

static void add_many(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(add(world), i);
}

static void assert_is(const struct world *world, uint32_t sample, uint64_t serial)
{
    const struct stack_table *table = &world->results.stacks;
    assert_true(sample < table->sample_count);
    assert_int_equal(table->samples[sample].serial, serial);
    const struct counted_stack *stack = &table->stacks[table->samples[sample].stack];
    assert_int_equal(table->addresses[stack->first_address], 0x1000 + serial);
}

/* Drops samples that have not been counted since the epoch. */
static int compact_from(struct world *world, uint32_t epoch)
{
    const struct compaction how = {.old = OLD_GO, .epoch = epoch};
    return compact(&world->results, &world->threads, &world->owners, &how);
}

static void compact_until_now(struct world *world)
{
    uint32_t epoch = world->results.stacks.epoch++;
    assert_int_equal(compact_from(world, epoch), 0);
}

static void test_what_was_counted_since_stays(void **state)
{
    struct world *world = *state;
    struct stack_table *table = &world->results.stacks;
    add_many(world, 6);
    table->epoch = 1;
    stack_table_count(table, 2, 1, 1, 1);
    table->epoch = 2;
    stack_table_count_waited(table, 5, 1);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(table->sample_count, 2);
    assert_int_equal(table->stack_count, 2);
    assert_is(world, 0, 2);
    assert_is(world, 1, 5);
    assert_int_equal(compact_from(world, 1), 0);
    assert_int_equal(table->sample_count, 1);
    assert_is(world, 0, 5);
}

static struct thread_account *account(struct world *world, uint32_t number)
{
    struct counted_thread *thread = counted_threads_get(&world->threads, number, (pid_t)number + 1);
    assert_non_null(thread);
    return &thread->account;
}

/* Each of these refers to a different sample; the samples in between are dropped. */
static void test_what_threads_refer_to_stays(void **state)
{
    struct world *world = *state;
    add_many(world, 40);
    struct thread_account *first = account(world, 0);
    first->last_sample = 1;
    first->unowned_sample = 3;
    first->awake_sample = 5;
    first->wait.sample = 7;
    first->wait.chain_sample = 9;
    for (uint32_t i = 0; i < ACCOUNT_COUNT; i++) {
        first->ledger.last_sample[i] = 11 + 2 * i;
        assert_int_equal(window_add(&first->ledger.windows[i], 17 + 2 * i, 1, 1), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(window_add(&first->ledger.windows[0], 23 + 2 * i, 1, 1), 0);
    struct thread_account *second = account(world, 1);
    second->last_sample = 29;
    compact_until_now(world);

    /* The 15 samples, and sample 0, which the fields that are not set refer to. */
    assert_int_equal(world->results.stacks.sample_count, 16);
    first = account(world, 0);
    assert_is(world, first->last_sample, 1);
    assert_is(world, first->unowned_sample, 3);
    assert_is(world, first->awake_sample, 5);
    assert_is(world, first->wait.sample, 7);
    assert_is(world, first->wait.chain_sample, 9);
    for (uint32_t i = 0; i < ACCOUNT_COUNT; i++) {
        assert_is(world, first->ledger.last_sample[i], 11 + 2 * i);
        assert_is(world, window_rows(&first->ledger.windows[i])[0].sample, 17 + 2 * i);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_is(world, window_rows(&first->ledger.windows[0])[1 + i].sample, 23 + 2 * i);
    assert_is(world, account(world, 1)->last_sample, 29);
}

static void test_what_elapsed_time_and_timelines_refer_to_stays(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct timeline_cursor cursor = {0};
    const uint64_t booked_ns[] = {0, 0, 100};
    const struct elapsed_wait wait = {
        .sample = 3, .first_tick = 1, .last_tick = ELAPSED_OPEN, .is_blocked = true};
    uint64_t number;
    add_many(world, 10);
    assert_int_equal(array_reserve(&results->elapsed, &results->elapsed_capacity, 1), 0);
    results->elapsed[0] = (struct elapsed){0};
    results->elapsed_count = 1;
    assert_int_equal(elapsed_add_wait(&results->elapsed[0], &wait, &number), 0);
    timeline_want(&results->timeline, 10, 100, true);
    timeline_book(&results->timeline, &cursor, 7, 1000, booked_ns);
    timeline_give(&results->timeline, &cursor, 0, ACCOUNT_ASLEEP, 8);
    compact_until_now(world);
    assert_int_equal(results->stacks.sample_count, 2);
    assert_is(world, results->elapsed[0].waits[0].sample, 3);
    assert_is(world, results->timeline.runs[0].sample, 8);
}

/* A wait is kept with its sample, its chain and its owners' stacks; so is a deadlock. */
static void test_waits_and_deadlocks(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct stack_table *table = &results->stacks;
    uint32_t gone, end, chain, dead, sample;
    add_many(world, 10);
    struct counted_wait wait = {.key = 1, .owner_stack = 1};
    assert_int_equal(waits_add(&results->waits, &wait, &gone), 0);
    wait = (struct counted_wait){.key = 2, .owner_stack = 3};
    assert_int_equal(waits_add(&results->waits, &wait, &end), 0);
    wait = (struct counted_wait){.key = 3, .owner_stack = 5, .owner_wait_plus_1 = end};
    assert_int_equal(waits_add(&results->waits, &wait, &chain), 0);
    wait = (struct counted_wait){.key = 4, .owner_stack = WAIT_NO_STACK};
    assert_int_equal(waits_add(&results->waits, &wait, &dead), 0);
    struct deadlock_thread row = {.stack = 7, .wait_plus_1 = dead};
    assert_int_equal(deadlocks_add(&results->deadlocks, &row, 1), 0);
    assert_int_equal(stack_table_in_wait(table, 6, gone, &sample), 0);
    assert_int_equal(stack_table_in_wait(table, 9, chain, &sample), 0);
    table->epoch++;
    stack_table_count(table, sample, 1, 1, 1);
    assert_int_equal(compact_from(world, 0), 0);

    assert_int_equal(table->sample_count, 1);
    assert_int_equal(results->waits.count, 3);
    const struct counted_wait *waits = results->waits.rows;
    const struct counted_wait *of_sample = &waits[table->samples[0].labels.wait_plus_1 - 1];
    assert_int_equal(of_sample->key, 3);
    assert_int_equal(waits[of_sample->owner_wait_plus_1 - 1].key, 2);
    assert_int_equal(waits[results->deadlocks.rows[0].wait_plus_1 - 1].key, 4);
    /* Stacks 3 and 5 of owners, 7 of the deadlock, 9 of the sample. */
    assert_int_equal(table->stack_count, 4);
    const uint32_t stacks[] = {waits[of_sample->owner_wait_plus_1 - 1].owner_stack,
                               of_sample->owner_stack, results->deadlocks.rows[0].stack,
                               table->samples[0].stack};
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(table->addresses[table->stacks[stacks[i]].first_address], 0x1003 + 2 * i);
}

static uint32_t label_set(struct world *world, const char *value)
{
    const struct label_text label = {"route", value};
    uint32_t set_plus_1;
    bool is_limited;
    assert_int_equal(
        label_sets_add(&world->results.label_sets, &label, 1, &set_plus_1, &is_limited), 0);
    return set_plus_1;
}

static uint32_t add_labelled(struct world *world, uint32_t set_plus_1)
{
    uint64_t address = 0x2000;
    const struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1, .label_set_plus_1 = set_plus_1};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1000, &sample),
                     0);
    return sample;
}

static void set_samples(struct thread_account *of_thread, uint32_t sample)
{
    of_thread->last_sample = of_thread->awake_sample = of_thread->unowned_sample = sample;
    of_thread->wait.sample = of_thread->wait.chain_sample = sample;
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        of_thread->ledger.last_sample[i] = sample;
}

static void test_label_sets_stay_with_their_samples(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    add_labelled(world, label_set(world, "/gone"));
    uint32_t stays = add_labelled(world, label_set(world, "/stays"));
    account(world, 0);
    struct counted_thread *thread = &world->threads.items[0];
    thread->kept.labels.label_set_plus_1 = label_set(world, "/kept");
    set_samples(&thread->account, stays);
    compact_until_now(world);
    assert_int_equal(results->label_sets.set_count, 2);
    assert_int_equal(results->stacks.sample_count, 1);
    const struct sample_labels *labels = &results->stacks.samples[0].labels;
    const struct label_sets *sets = &results->label_sets;
    assert_string_equal(label_sets_value(sets, labels->label_set_plus_1, "route"), "/stays");
    assert_string_equal(label_sets_value(sets, thread->kept.labels.label_set_plus_1, "route"),
                        "/kept");
    /* Another sample with these labels is found as the same one. */
    assert_int_equal(add_labelled(world, label_set(world, "/stays")), 0);
}

/* The address space of a program that has ended, with one mapping. */
static uint32_t add_space(struct world *world)
{
    struct spaces *spaces = &world->results.spaces;
    struct space *space = calloc(1, sizeof *space);
    assert_non_null(space);
    assert_int_equal(array_reserve(&spaces->items, &spaces->capacity, spaces->count + 1), 0);
    assert_int_equal(array_reserve(&space->mappings, &space->mapping_capacity, 1), 0);
    space->mappings[0] = (struct mapping){.end = 100, .path = strdup(""), .is_sampled = true};
    space->mapping_count = 1;
    space->is_retired = true;
    space->id = (uint32_t)spaces->count;
    spaces->items[spaces->count++] = space;
    return space->id;
}

/* Mappings are kept for stacks, locks, and stacks that may be counted later. */
static void test_mappings_stay_with_what_is_in_them(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const uint64_t address = 1;
    const struct stack stack = {.addresses = (uint64_t *)&address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1};
    const struct counted_wait wait = {.key = 4, .space = 2, .owner_stack = WAIT_NO_STACK};
    uint32_t samples[3], waiting;
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(add_space(world), i);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(
            stack_table_add(&results->stacks, 3 + i, &stack, &labels, 1, 1, &samples[i]), 0);
    assert_int_equal(waits_add(&results->waits, &wait, &waiting), 0);
    assert_int_equal(stack_table_in_wait(&results->stacks, samples[1], waiting, &samples[2]), 0);
    account(world, 0);
    struct counted_thread *thread = &world->threads.items[0];
    thread->kept = (struct kept_stack){.is_there = true, .space = 1};
    results->stacks.epoch++;
    stack_table_count(&results->stacks, samples[2], 1, 1, 1);
    set_samples(&thread->account, samples[2]);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(results->stacks.sample_count, 1);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(results->spaces.items[i]->mapping_count, i == 1 || i == 2 || i == 4);
}

/* Generated code is kept for stacks in it, and for those that may be counted later. */
static void test_code_stays_with_what_is_in_it(void **state)
{
    struct world *world = *state;
    const struct sample_labels labels = {.syscall_number = -1};
    add_space(world);
    struct space *space = world->results.spaces.items[0];
    space->is_retired = false;
    for (uint64_t address = 1; address <= 3; address++) {
        const struct stack stack = {.addresses = &address, .depth = address < 3};
        uint32_t sample;
        assert_int_equal(space_note_jit(space, address), 0);
        assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1, &sample),
                         0);
    }
    set_samples(account(world, 0), 1);
    struct stack *kept = &world->threads.items[0].kept.stack;
    world->threads.items[0].kept.is_there = true;
    assert_int_equal(array_reserve(&kept->addresses, &kept->capacity, 1), 0);
    kept->addresses[kept->depth++] = 3;
    world->results.stacks.epoch++;
    stack_table_count(&world->results.stacks, 1, 1, 1, 1);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(space->jit->use_count, 2);
    assert_int_equal(space->jit->uses[0].address, 2);
    assert_int_equal(space->jit->uses[1].address, 3);
}

static void test_what_is_known_of_stacks_moves_with_them(void **state)
{
    struct world *world = *state;
    struct lock_sites *sites = &world->owners.sites;
    add_many(world, 5);
    assert_int_equal(array_reserve(&sites->items, &sites->capacity, 4), 0);
    for (uint32_t i = 0; i < 4; i++)
        sites->items[i] = (struct lock_site){.kind = RESOURCE_NOT_KNOWN + i};
    sites->count = 4;
    world->results.stacks.epoch++;
    stack_table_count(&world->results.stacks, 3, 1, 1, 1);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(sites->count, 1);
    assert_int_equal(sites->items[0].kind, RESOURCE_NOT_KNOWN + 3);
}

/* Objects live as long as their program: a stack that made some is kept, however old it is. */
static void test_what_made_objects_stays(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const uint64_t address = 0x1003;
    add_many(world, 6);
    const struct object_maker maker = {
        .process = 1, .bytes = 64, .stack = results->stacks.samples[3].stack};
    assert_int_equal(objects_made(&results->objects, &maker, 5, 1), 0);
    compact_until_now(world);
    compact_until_now(world);
    assert_int_equal(results->stacks.sample_count, 0);
    assert_int_equal(results->stacks.stack_count, 1);
    const struct counted_maker *row = &results->objects.makers[0];
    const struct counted_stack *stack = &results->stacks.stacks[row->maker.stack];
    assert_int_equal(stack->depth, 1);
    assert_int_equal(results->stacks.addresses[stack->first_address], address);
    objects_gone(&results->objects, 1, 0, 5);
    assert_int_equal(row->gone, 1);
}

static uint32_t string(struct world *world, const char *text)
{
    uint32_t id;
    assert_int_equal(strings_intern(&world->results.strings, text, &id), 0);
    return id;
}

static void assert_text(const struct world *world, uint32_t id, const char *text)
{
    assert_true(id < world->results.strings.count);
    assert_string_equal(strings_get(&world->results.strings, id), text);
}

/* A process of that name with a sample that has every kind of time, in a file that is mapped at
 * `bias`, in a space of its own. It ends at 5000, after 3000, in which it ran for 1000. */
static uint32_t add_process(struct world *world, struct module *module, const char *name,
                            uint64_t bias)
{
    struct results *results = &world->results;
    uint32_t space = add_space(world), process, sample;
    struct mapping *mapping = &results->spaces.items[space]->mappings[0];
    mapping_drop(mapping);
    module->users++;
    *mapping = (struct mapping){.start = bias + 0x1000,
                                .end = bias + 0x2000,
                                .offset = 0x1000,
                                .bias = bias,
                                .has_bias = true,
                                .module = module,
                                .path = module->path};
    assert_int_equal(stack_table_add_process(&results->stacks, 90, string(world, name), &process),
                     0);
    assert_int_equal(array_reserve(&results->elapsed, &results->elapsed_capacity, process + 1u), 0);
    while (results->elapsed_count <= process)
        elapsed_begin(&results->elapsed[results->elapsed_count++], 2000, 1000, 1);
    elapsed_begin(&results->elapsed[process], 2000, 1000, 1);
    uint64_t address = bias + 0x1234;
    const struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1, .process = process, .tid = 90};
    assert_int_equal(stack_table_add(&results->stacks, space, &stack, &labels, 1, 1000, &sample),
                     0);
    stack_table_count(&results->stacks, sample, 0, 0, 1000);
    stack_table_count_waited(&results->stacks, sample, 1.5);
    results->elapsed[process].idle_ticks = 1;
    elapsed_end(&results->elapsed[process], &results->stacks, 5000);
    return process;
}

/* The elapsed time and the number of the samples of processes with this name. */
static uint64_t time_of(const struct world *world, const char *name, size_t *ret_samples)
{
    const struct stack_table *table = &world->results.stacks;
    uint64_t sample_ns[16], idle_ns[16], sum_ns = 0;
    assert_true(table->sample_count <= 16 && table->process_count <= 16);
    assert_int_equal(elapsed_divide(table, world->results.elapsed, 2000, sample_ns, idle_ns), 0);
    *ret_samples = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        uint32_t process = table->samples[i].labels.process;
        const char *has = strings_get(&world->results.strings, table->processes[process].name);
        if (strcmp(has, name) != 0 || counted_sample_is_empty(&table->samples[i]))
            continue;
        sum_ns += sample_ns[i];
        ++*ret_samples;
    }
    return sum_ns;
}

/* They are joined with equal stacks, though each had its file at another address, and with all of
 * their time: of 3,000 ns, each ran for 1,000, and three fifths of the rest belong to its sample.
 */
static void test_processes_that_have_ended_are_joined(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    char path[] = "/bin/cc";
    struct module module = {.number = 3, .path = path};
    size_t samples;
    sample_at(world, 7); /* row 0 is what unset fields refer to */
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++)
            add_process(world, &module, i == 2 ? "as" : "cc", 0x10000 * (1 + round * 3 + i));
        const struct compaction how = {.old = OLD_JOIN, .epoch = results->stacks.epoch++};
        assert_int_equal(compact(results, &world->threads, &world->owners, &how), 0);
        assert_int_equal(time_of(world, "cc", &samples), (round + 1) * 2 * 2200);
        assert_int_equal(samples, 1);
        assert_int_equal(time_of(world, "as", &samples), (round + 1) * 2200);
        assert_int_equal(samples, 1);
        /* The rows of joined processes and their mappings are reused. */
        assert_int_equal(results->stacks.process_count, round ? 7 : 5);
        size_t spaces = 0;
        for (size_t i = 0; i < results->spaces.count; i++)
            spaces += !results->spaces.items[i]->is_free;
        assert_int_equal(spaces, 1); /* the space that they share */
        assert_int_equal(module.users, 1);
        assert_int_equal(results->counts.processes_joined,
                         round * 3 + 1); /* into the first one of each name */
    }
    assert_int_equal(results->stacks.processes_added, 2 + 9);
    assert_int_equal(stack_table_find_process(&results->stacks, 10), PROCESS_NONE);
    assert_int_equal(stack_table_find_process(&results->stacks, 1), 1);
}

/* Adds a sample whose leaf is in code, and whose caller is a function of an interpreter. */
static void add_interpreted(struct world *world, uint32_t process, uint64_t code, uint64_t function)
{
    struct stack_table *table = &world->results.stacks;
    uint64_t addresses[] = {code, function};
    const struct stack stack = {.addresses = addresses, .depth = 2};
    const struct sample_labels labels = {.syscall_number = -1, .process = process, .tid = 90};
    uint32_t sample, space = table->stacks[table->stack_count - 1].space;
    assert_int_equal(stack_table_add(table, space, &stack, &labels, 1, 1000, &sample), 0);
}

static size_t samples_in(const struct stack_table *table, uint64_t function)
{
    size_t found = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        const struct counted_stack *stack = &table->stacks[table->samples[i].stack];
        found += stack->depth == 2 && !counted_sample_is_empty(&table->samples[i]) &&
                 table->addresses[stack->first_address + 1] == function;
    }
    return found;
}

/* They belong to no space, and keep their meaning. */
static void test_functions_of_interpreters_outlive_their_processes(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    char path[] = "/bin/python3";
    struct module module = {.number = 3, .path = path};
    uint64_t functions[2];
    sample_at(world, 7);
    for (uint32_t i = 0; i < 4; i++) {
        const struct runtime_frame frame = {.line = 10 + i % 2};
        uint64_t bias = 0x10000 * (1 + i);
        assert_int_equal(runtime_frames_add(&results->runtime_frames, &frame, &functions[i % 2]),
                         0);
        uint32_t process = add_process(world, &module, "python3", bias);
        add_interpreted(world, process, bias + 0x1234, functions[i % 2]);
    }
    const struct compaction how = {.old = OLD_JOIN, .epoch = results->stacks.epoch++};
    assert_int_equal(compact(results, &world->threads, &world->owners, &how), 0);
    assert_int_equal(samples_in(&results->stacks, functions[0]), 1);
    assert_int_equal(samples_in(&results->stacks, functions[1]), 1);
}

/* Adds a line of an interpreter's function, which has two. */
static uint64_t add_line(struct world *world, uint32_t line)
{
    struct runtime_frames *frames = &world->results.runtime_frames;
    struct runtime_frame frame = {.line = line};
    char name[32];
    uint64_t address;
    snprintf(name, sizeof name, "f%u", line / 2);
    assert_int_equal(runtime_frames_text(frames, name, &frame.name), 0);
    assert_int_equal(runtime_frames_text(frames, "app.py", &frame.file), 0);
    assert_int_equal(runtime_frames_add(frames, &frame, &address), 0);
    return address;
}

static void assert_line(const struct results *results, uint64_t address, const char *name,
                        uint32_t line)
{
    const struct runtime_frames *frames = &results->runtime_frames;
    const struct runtime_frame *frame = runtime_frames_find(frames, address);
    assert_non_null(frame);
    assert_string_equal(strings_get(&frames->strings, frame->name), name);
    assert_string_equal(strings_get(&frames->strings, frame->file), *name == '[' ? "" : "app.py");
    assert_int_equal(frame->line, line);
}

static uint64_t leaf(const struct results *results, uint32_t sample)
{
    const struct stack_table *table = &results->stacks;
    return table->addresses[table->stacks[table->samples[sample].stack].first_address];
}

/* A program whose code objects refer to texts of the interpreter's functions. */
static void add_python(struct programs *programs, uint32_t text)
{
    struct program_tables *tables;
    const struct program program = {.number = 0};
    assert_int_equal(programs_get(programs, &program, &tables), 0);
    struct program_python *python = &tables->python;
    const struct known_code code = {.name = text};
    assert_int_equal(
        array_append(&python->codes, &python->code_count, &python->code_capacity, code), 0);
}

/* Drops what is older than now, but for two stacks: one was counted again, and the thread may count
 * the other. */
static void compact_but_for(struct world *world, struct programs *programs, uint32_t sample,
                            uint64_t address)
{
    struct results *results = &world->results;
    const struct compaction how = {
        .old = OLD_GO, .epoch = results->stacks.epoch++, .programs = programs};
    account(world, 0);
    struct kept_stack *kept = &world->threads.items[0].kept;
    struct stack *stack = &kept->stack;
    kept->is_there = true;
    kept->space = add_space(world);
    assert_int_equal(array_append(&stack->addresses, &stack->depth, &stack->capacity, address), 0);
    set_samples(&world->threads.items[0].account, sample);
    stack_table_count(&results->stacks, sample, 1, 1, 1);
    assert_int_equal(compact(results, &world->threads, &world->owners, &how), 0);
}

/* Otherwise all lines of later programs would be [other] until the recording ends. */
static void test_lines_make_room_once_no_stack_is_in_them(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct runtime_frames *frames = &results->runtime_frames;
    struct programs programs = {0};
    struct copy copy = {0};
    const struct sampling_state now = {0};
    uint64_t kept = 0;
    for (uint32_t i = 0; i < RUNTIME_FRAMES_MAX; i++) {
        uint64_t address = add_line(world, i);
        assert_int_equal(sample_at(world, address), i);
        kept = i == 50000 ? address : kept;
    }
    assert_line(results, add_line(world, RUNTIME_FRAMES_MAX), STRING_OTHER, 0);
    assert_int_equal(copy_update(&copy, results, &now), 0);
    add_python(&programs, frames->items[50000].name);
    compact_but_for(world, &programs, 40000, kept);
    assert_int_equal(results->stacks.sample_count, 1);
    assert_int_equal(frames->count, 2);
    assert_int_equal(frames->strings.count, 4);
    assert_int_equal(programs.items[0].tables->python.code_count, 0);
    assert_line(results, leaf(results, 0), "f20000", 40000);
    assert_line(results, world->threads.items[0].kept.stack.addresses[0], "f25000", 50000);
    assert_int_equal(add_line(world, 40000), leaf(results, 0));
    assert_int_equal(sample_at(world, leaf(results, 0)), 0);
    assert_int_equal(sample_at(world, add_line(world, RUNTIME_FRAMES_MAX)), 1);
    assert_int_equal(frames->count, 3);
    assert_int_equal(copy_update(&copy, results, &now), 0);
    assert_line(&copy.results, leaf(&copy.results, 0), "f20000", 40000);
    assert_line(&copy.results, leaf(&copy.results, 1), "f32768", RUNTIME_FRAMES_MAX);
    results_free(&copy.results);
    programs_end_all(&programs, results, NULL);
    programs_free(&programs);
}

/* A line may never have been counted. */
static void test_lines_go_even_if_all_stacks_stay(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const struct compaction how = {.old = OLD_STAY};
    for (uint32_t i = 0; i < RUNTIME_FRAMES_MAX / 2; i++)
        add_line(world, i);
    sample_at(world, add_line(world, 7));
    assert_int_equal(compact(results, &world->threads, &world->owners, &how), 0);
    assert_int_equal(results->stacks.sample_count, 1);
    assert_int_equal(results->runtime_frames.count, 1);
    assert_line(results, leaf(results, 0), "f3", 7);
}

/* Code need not be read again while there is much room. */
static void test_few_lines_stay(void **state)
{
    struct world *world = *state;
    struct programs programs = {0};
    uint64_t lines[3];
    for (uint32_t i = 0; i < 3; i++) {
        lines[i] = add_line(world, 2 * i);
        sample_at(world, lines[i]);
    }
    add_python(&programs, world->results.runtime_frames.items[2].name);
    compact_but_for(world, &programs, 1, lines[1]);
    assert_int_equal(world->results.stacks.sample_count, 1);
    assert_int_equal(leaf(&world->results, 0), lines[1]);
    assert_line(&world->results, lines[2], "f2", 4);
    assert_int_equal(programs.items[0].tables->python.code_count, 1);
    programs_end_all(&programs, &world->results, NULL);
    programs_free(&programs);
}

/* Otherwise its stack and its name might be dropped. */
static void test_a_waker_of_no_sample_is_forgotten(void **state)
{
    struct world *world = *state;
    add_many(world, 10);
    struct waker waker = {.kind = WAKER_THREAD,
                          .name = string(world, "waker"),
                          .stack_plus_1 = (uint32_t)world->results.stacks.stack_count};
    struct thread_account *first = account(world, 0);
    uint32_t sample;
    first->last_sample = 1;
    wakers_note_ended(&first->wakers, 5000, &waker);
    compact_until_now(world);
    first = account(world, 0);
    sample = first->last_sample;
    assert_int_equal(wakers_place(&first->wakers, &world->results, 5000, &sample), 0);
    assert_int_equal(sample, first->last_sample);
    assert_int_equal(world->results.waits.count, 0);
}

/* A module's file stays open while a stack has an address in it. The data read from it is dropped
 * once no program has it mapped. */
static void test_modules_go_with_what_refers_to_them(void **state)
{
    struct world *world = *state;
    struct modules *modules = &world->results.modules;
    struct module *module = calloc(1, sizeof *module);
    unsigned char byte;
    assert_int_equal(image_open_fd(&module->image, open("/proc/self/exe", O_RDONLY)), 0);
    assert_true(image_read(&module->image, 0, &byte, 1));
    int fd = module->image.fd;
    module->path = strdup("/bin/cc");
    assert_int_equal(array_reserve(&modules->items, &modules->capacity, 1), 0);
    modules->items[modules->count++] = module;
    modules->open_files = modules->open_for_names_max = 1;
    sample_at(world, 7);
    add_process(world, module, "cc", 0x10000);
    struct space *space = world->results.spaces.items[world->results.spaces.count - 1];
    const struct compaction keeps = {.old = OLD_STAY};
    space->is_retired = false;
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, &keeps), 0);
    assert_non_null(module->image.pages);
    space->is_left = true;
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, &keeps), 0);
    assert_ptr_equal(modules->items[0], module);
    assert_null(module->image.pages);
    assert_true(image_read(&module->image, 0, &byte, 1));
    assert_int_equal(compact_from(world, 0), 0);
    assert_null(modules->items[0]);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A sample that was counted since then, or a live object, keeps its process. */
static void test_processes_of_use_stay(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    char path[] = "/bin/cc";
    struct module module = {.number = 3, .path = path};
    size_t samples;
    sample_at(world, 7);
    add_process(world, &module, "old", 0x10000);
    uint32_t maker = add_process(world, &module, "maker", 0x20000);
    const struct object_maker made = {.process = maker, .bytes = 64, .stack = 1};
    assert_int_equal(objects_made(&results->objects, &made, 5, 1), 0);
    results->stacks.epoch++;
    uint32_t recent = add_process(world, &module, "recent", 0x30000);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(results->stacks.processes[recent].pid, 90);
    assert_int_equal(results->stacks.processes[maker].pid, 90);
    assert_int_equal(time_of(world, "recent", &samples), 2200);
    assert_int_equal(samples, 1);
    assert_int_equal(stack_table_find_process(&results->stacks, 2), PROCESS_NONE);
    objects_forget(&results->objects, maker, 0);
    assert_int_equal(compact_from(world, 0), 0);
    /* What it made is kept, by name. */
    assert_int_equal(results->objects.makers[0].made, 1);
    assert_int_equal(results->stacks.processes[results->objects.makers[0].maker.process].pid, 0);
}

/* Each field that refers to a string gets its own; the strings in between are dropped. */
static void test_strings_stay_with_what_has_them(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const uint64_t booked_ns[] = {0, 0, 100};
    struct timeline_cursor cursor = {0};
    struct stack stack = {.depth = 0};
    uint32_t pipe, mutex, sample;
    struct sample_labels labels = {.syscall_number = -1, .thread_name = string(world, "gone")};
    assert_int_equal(stack_table_add(&results->stacks, 0, &stack, &labels, 1, 1, &sample), 0);
    labels.thread_name = string(world, "sample");
    labels.wait_channel = string(world, "channel");
    string(world, "gone, too");
    labels.kernel_stack = string(world, "kernel");
    assert_int_equal(stack_table_add(&results->stacks, 0, &stack, &labels, 1, 1, &sample), 0);
    struct counted_wait wait = {.kind = RESOURCE_PIPE, .owner_stack = WAIT_NO_STACK};
    wait.key = string(world, "pipe");
    wait.owner_name = string(world, "owner");
    assert_int_equal(waits_add(&results->waits, &wait, &pipe), 0);
    wait = (struct counted_wait){
        .kind = RESOURCE_MUTEX, .key = 1, .owner_stack = WAIT_NO_STACK, .owner_wait_plus_1 = pipe};
    assert_int_equal(waits_add(&results->waits, &wait, &mutex), 0);
    assert_int_equal(stack_table_in_wait(&results->stacks, sample, mutex, &sample), 0);
    struct deadlock_thread row = {.name = string(world, "deadlock")};
    assert_int_equal(deadlocks_add(&results->deadlocks, &row, 1), 0);
    timeline_want(&results->timeline, 10, 100, true);
    timeline_book(&results->timeline, &cursor, 7, 1000, booked_ns);
    timeline_give(&results->timeline, &cursor, string(world, "timeline"), ACCOUNT_ASLEEP, sample);
    set_samples(account(world, 0), sample);
    world->threads.items[0].name = string(world, "thread");
    world->threads.items[0].kept.labels.kernel_stack = string(world, "kept");
    results->stacks.processes[0].name = string(world, "process");
    const struct object_maker maker = {
        .kind = OBJECT_VALUE, .bytes = 1, .name = string(world, "maker")};
    assert_int_equal(objects_made(&results->objects, &maker, 1, 1), 0);
    compact_until_now(world);

    assert_int_equal(results->strings.count, 1 + 11);
    const struct sample_labels *kept = &results->stacks.samples[0].labels;
    assert_int_equal(results->stacks.sample_count, 1);
    assert_text(world, kept->thread_name, "sample");
    assert_text(world, kept->wait_channel, "channel");
    assert_text(world, kept->kernel_stack, "kernel");
    const struct counted_wait *waits = results->waits.rows;
    assert_int_equal(waits[kept->wait_plus_1 - 1].key, 1);
    const struct counted_wait *chain = &waits[waits[kept->wait_plus_1 - 1].owner_wait_plus_1 - 1];
    assert_text(world, (uint32_t)chain->key, "pipe");
    assert_text(world, chain->owner_name, "owner");
    assert_text(world, results->deadlocks.rows[0].name, "deadlock");
    assert_text(world, results->timeline.threads[0].name, "timeline");
    assert_text(world, world->threads.items[0].name, "thread");
    assert_text(world, world->threads.items[0].kept.labels.kernel_stack, "kept");
    assert_text(world, results->stacks.processes[0].name, "process");
    assert_text(world, results->objects.makers[0].maker.name, "maker");
}

static uint32_t add_of(struct world *world, uint32_t tid, const char *name)
{
    struct stack stack = {.depth = 0};
    const struct sample_labels labels = {
        .syscall_number = -1, .tid = tid, .thread_name = string(world, name)};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 2, 30, &sample),
                     0);
    return sample;
}

static int join_until_now(struct world *world)
{
    const struct compaction how = {.old = OLD_JOIN, .epoch = world->results.stacks.epoch++};
    return compact(&world->results, &world->threads, &world->owners, &how);
}

static const struct counted_sample *sample_of(const struct world *world, uint32_t tid,
                                              const char *name)
{
    const struct stack_table *table = &world->results.stacks;
    const struct counted_sample *found = NULL;
    for (size_t i = 0; i < table->sample_count; i++) {
        const struct sample_labels *labels = &table->samples[i].labels;
        if (labels->tid == tid &&
            strcmp(strings_get(&world->results.strings, labels->thread_name), name) == 0) {
            assert_null(found);
            found = &table->samples[i];
        }
    }
    return found;
}

/* Thread 1 lives, thread 5 has been counted since then, and thread 6's sample is still referred to.
 */
static void test_samples_of_ended_threads_are_joined(void **state)
{
    struct world *world = *state;
    uint32_t first = add_of(world, 1, "main");
    set_samples(account(world, 0), first);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t tid = 2; tid < 6; tid++)
            add_of(world, tid, "short");
        account(world, 0)->awake_sample = add_of(world, 6, "referred");
        const struct compaction how = {.old = OLD_JOIN, .epoch = world->results.stacks.epoch++};
        add_of(world, 5, "short");
        assert_int_equal(compact(&world->results, &world->threads, &world->owners, &how), 0);
    }
    const struct counted_sample *joined = sample_of(world, 0, "short");
    assert_non_null(joined);
    assert_int_equal(joined->labels.has_ended, 1);
    assert_int_equal(joined->count, 3 * 3 * 2);
    assert_int_equal(joined->time_ns, 3 * 3 * 30);
    assert_int_equal(sample_of(world, 1, "main")->count, 2);
    assert_int_equal(sample_of(world, 5, "short")->count, 3 * 2 * 2);
    assert_int_equal(sample_of(world, 6, "referred")->count, 3 * 2);
    assert_int_equal(world->results.stacks.sample_count, 4);
}

/* Timelines that keep everything: with checkpoints, runs keep their thread's own sample. */
static void test_timelines_follow_joined_samples(void **state)
{
    struct world *world = *state;
    struct timeline *timeline = &world->results.timeline;
    const uint64_t booked_ns[] = {0, 0, 100};
    const struct stack_table *table = &world->results.stacks;
    timeline_want(timeline, 10, 100, false);
    set_samples(account(world, 0), add_of(world, 1, "main"));
    for (uint32_t tid = 2; tid < 5; tid++) {
        struct timeline_cursor cursor = {0};
        timeline_book(timeline, &cursor, tid, 1000, booked_ns);
        timeline_give(timeline, &cursor, 0, ACCOUNT_ASLEEP, add_of(world, tid, "short"));
    }
    assert_int_equal(join_until_now(world), 0);
    const struct counted_sample *joined = sample_of(world, 0, "short");
    assert_non_null(joined);
    assert_int_equal(table->sample_count, 2);
    assert_int_equal(timeline->run_count, 3);
    for (size_t i = 0; i < timeline->run_count; i++)
        assert_int_equal(timeline->runs[i].sample, joined - table->samples);
    timeline->is_ring = true;
    struct timeline_cursor cursor = {0};
    timeline_book(timeline, &cursor, 5, 1000, booked_ns);
    timeline_give(timeline, &cursor, 0, ACCOUNT_ASLEEP, add_of(world, 5, "short"));
    assert_int_equal(join_until_now(world), 0);
    assert_non_null(sample_of(world, 5, "short"));
}

/* Besides the names that are kept, there is one for all others. */
static void test_names_of_ended_threads_are_limited(void **state)
{
    struct world *world = *state;
    char name[32];
    set_samples(account(world, 0), add_of(world, 1, "main"));
    for (uint32_t i = 0; i < 3 * ENDED_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "own-%u", i);
        add_of(world, 100 + i, name);
        if (i % 400 == 399)
            assert_int_equal(join_until_now(world), 0);
    }
    assert_int_equal(join_until_now(world), 0);
    assert_int_equal(world->results.stacks.sample_count, 1 + ENDED_NAMES_MAX + 1);
    assert_int_equal(sample_of(world, 0, ENDED_NAME_OTHER)->count, 2 * 2 * ENDED_NAMES_MAX);
    assert_int_equal(sample_of(world, 0, "own-999")->count, 2);
    assert_int_equal(world->results.strings.count, 1 + 1 + ENDED_NAMES_MAX + 1);
}

/* A thread that renames itself after each request that it serves. */
static void test_names_that_a_living_thread_has_had_are_limited(void **state)
{
    struct world *world = *state;
    char name[32];
    set_samples(account(world, 0), add_of(world, 1, "now"));
    world->threads.items[0].name = string(world, "now");
    for (uint32_t i = 0; i < 3 * ENDED_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "request-%u", i);
        add_of(world, 1, name);
        if (i % 400 == 399)
            assert_int_equal(join_until_now(world), 0);
    }
    assert_int_equal(join_until_now(world), 0);
    assert_int_equal(world->results.stacks.sample_count, 1 + ENDED_NAMES_MAX + 1);
    assert_int_equal(sample_of(world, 0, ENDED_NAME_OTHER)->count, 2 * 2 * ENDED_NAMES_MAX);
    assert_int_equal(sample_of(world, 1, "now")->count, 2);
}

/* Goroutine 1 was parked in a place where it is no longer. Thread 1 lives. */
static void test_a_goroutine_with_the_id_of_a_living_thread(void **state)
{
    struct world *world = *state;
    struct stack stack = {.depth = 0};
    uint32_t sample;
    set_samples(account(world, 0), add_of(world, 1, "app"));
    world->threads.items[0].name = string(world, "app");
    const struct sample_labels labels = {.syscall_number = -1,
                                         .tid = 1,
                                         .thread_name = string(world, "app"),
                                         .task = TASK_GOROUTINE};
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 3, 30, &sample),
                     0);
    assert_int_equal(join_until_now(world), 0);
    assert_int_equal(sample_of(world, 1, "app")->labels.task, TASK_THREAD);
    assert_int_equal(sample_of(world, 0, "app")->count, 3);
}

static void make_thread(struct world *world, uint32_t tid, uint32_t maker_tid)
{
    const struct object_maker maker = {.kind = OBJECT_THREAD, .tid = tid, .maker = maker_tid};
    assert_int_equal(objects_made(&world->results.objects, &maker, tid, 1), 0);
}

/* 20 created 21 and 22, 21 created 31, and 22 created 32. All but 31 have ended, and 32 has a
 * sample. So has goroutine 20. */
static void test_makers_of_ended_threads_are_joined(void **state)
{
    struct world *world = *state;
    struct objects *objects = &world->results.objects;
    struct stack stack = {.depth = 0};
    const struct sample_labels labels = {.syscall_number = -1, .tid = 32},
                               goroutine = {
                                   .syscall_number = -1, .tid = 20, .task = TASK_GOROUTINE};
    static const uint32_t threads[][2] = {{20, 0}, {21, 20}, {22, 20}, {31, 21}, {32, 22}};
    uint32_t sample;
    for (size_t i = 0; i < 5; i++) {
        make_thread(world, threads[i][0], threads[i][1]);
        if (threads[i][0] != 31)
            objects_gone(objects, 0, OBJECT_THREAD, threads[i][0]);
    }
    world->results.stacks.epoch = 1;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1, &sample), 0);
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &goroutine, 1, 1, &sample),
                     0);
    assert_int_equal(compact_from(world, 0), 0);
    assert_int_equal(objects->maker_count, 5);
    assert_int_equal(objects->makers[0].maker.tid, 0);
    assert_int_equal(objects->makers[1].maker.tid, 21);
    assert_int_equal(objects->makers[2].maker.tid, 22);
    assert_int_equal(compact_from(world, 1), 0);
    assert_int_equal(objects->maker_count, 3);
    assert_int_equal(objects->makers[0].made, 3);
    assert_int_equal(objects->makers[1].maker.tid, 21);
    assert_int_equal(objects->makers[2].maker.tid, 31);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_counted_since_stays),
        TEST(test_what_threads_refer_to_stays),
        TEST(test_what_elapsed_time_and_timelines_refer_to_stays),
        TEST(test_waits_and_deadlocks),
        TEST(test_label_sets_stay_with_their_samples),
        TEST(test_mappings_stay_with_what_is_in_them),
        TEST(test_code_stays_with_what_is_in_it),
        TEST(test_what_is_known_of_stacks_moves_with_them),
        TEST(test_what_made_objects_stays),
        TEST(test_processes_that_have_ended_are_joined),
        TEST(test_functions_of_interpreters_outlive_their_processes),
        TEST(test_lines_make_room_once_no_stack_is_in_them),
        TEST(test_lines_go_even_if_all_stacks_stay),
        TEST(test_few_lines_stay),
        TEST(test_a_waker_of_no_sample_is_forgotten),
        TEST(test_modules_go_with_what_refers_to_them),
        TEST(test_processes_of_use_stay),
        TEST(test_strings_stay_with_what_has_them),
        TEST(test_a_goroutine_with_the_id_of_a_living_thread),
        TEST(test_makers_of_ended_threads_are_joined),
        TEST(test_samples_of_ended_threads_are_joined),
        TEST(test_timelines_follow_joined_samples),
        TEST(test_names_of_ended_threads_are_limited),
        TEST(test_names_that_a_living_thread_has_had_are_limited),
    };
    return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}

/* Naming the kernel's functions in call chains, with made-up symbols. */
#include "kallsyms_text.h"
#include "base/clock.h"
#include "worker/kernel_names.h"

#include <stdio.h>

struct world {
    struct kernel_names names;
    struct strings strings;
    uint64_t addresses[KERNEL_CHAIN_MAX];
    struct kernel_chain chain;
};

static void setup(struct world *world, const char *symbols)
{
    *world = (struct world){0};
    world->chain.addresses = world->addresses;
    assert_int_equal(strings_init(&world->strings), 0);
    assert_int_equal(kallsyms_read_text(symbols, &world->names.kallsyms), 0);
    world->names.reading.done_ns = monotonic_ns(); /* this machine's symbols are not read */
}

static void teardown(struct world *world)
{
    kernel_names_free(&world->names);
    strings_free(&world->strings);
}

static const char *name(struct world *world)
{
    uint32_t id;
    assert_int_equal(kernel_names_intern(&world->names, &world->chain, &world->strings, &id), 0);
    return strings_get(&world->strings, id);
}

static const char three[] = "1000 T entry\n"
                            "1100 T do_it\n"
                            "1200 T leaf\n"
                            "1300 D data\n";

/* A call may be a function's last instruction: it then returns to the start of the next function.
 */
static void test_callers_are_looked_up_at_their_calls(void **state)
{
    (void)state;
    struct world world;
    setup(&world, three);
    world.addresses[0] = 0x1200;
    world.addresses[1] = 0x1200;
    world.addresses[2] = 0x1010;
    world.chain.count = 3;
    assert_string_equal(name(&world), "leaf\ndo_it\nentry\n");
    teardown(&world);
}

static void assert_sleep(struct world *world, const char *functions)
{
    uint32_t id;
    assert_int_equal(kernel_names_intern_sleep(&world->names, &world->chain, &world->strings, &id),
                     0);
    assert_string_equal(strings_get(&world->strings, id), functions);
}

/* Leaves out the functions of the record, of the switch, and of the requested lock. */
static void test_a_sleep_is_shown_without_the_scheduler(void **state)
{
    (void)state;
    struct world world;
    setup(&world, "1000 T entry\n"
                  "1100 T do_it\n"
                  "1200 T bpf_trace_run4\n"
                  "1300 T __sched_text_start\n"
                  "1300 T __schedule\n"
                  "1400 T mutex_lock\n"
                  "1500 T __sched_text_end\n");
    assert_sleep(&world, "");
    static const uint64_t chain[] = {0x1210, 0x1310, 0x1410, 0x1110, 0x1010};
    memcpy(world.addresses, chain, sizeof chain);
    world.chain.count = 5;
    assert_sleep(&world, "do_it\nentry\n");
    world.chain.is_cut = true;
    assert_sleep(&world, "do_it\nentry\n[unknown]\n");
    assert_int_equal(world.chain.count, 5);
    /* A chain without a switch. */
    world.chain.is_cut = false;
    world.addresses[1] = world.addresses[2] = 0x1110;
    assert_sleep(&world, "bpf_trace_run4\ndo_it\ndo_it\ndo_it\nentry\n");
    teardown(&world);
}

static void test_unknown_places_and_cut_chains(void **state)
{
    (void)state;
    struct world world;
    setup(&world, three);
    assert_string_equal(name(&world), "");
    world.addresses[0] = 0x1310;
    world.addresses[1] = 0x1110;
    world.chain.count = 2;
    assert_string_equal(name(&world), "[unknown]\ndo_it\n");
    world.chain.is_cut = true;
    assert_string_equal(name(&world), "[unknown]\ndo_it\n[unknown]\n");
    teardown(&world);
}

static void test_long_names(void **state)
{
    (void)state;
    struct world world;
    char symbols[600] = "1000 T ";
    memset(symbols + strlen(symbols), 'x', 500);
    strcat(symbols, "\n1100 D end\n");
    setup(&world, symbols);
    world.chain.count = KERNEL_CHAIN_MAX;
    for (size_t i = 0; i < KERNEL_CHAIN_MAX; i++)
        world.addresses[i] = 0x1010;
    const char *text = name(&world);
    assert_int_equal(strlen(text) % 501, strlen("[unknown]\n"));
    assert_in_range(strlen(text), KERNEL_STACK_BYTES - 600, KERNEL_STACK_BYTES - 1);
    assert_string_equal(text + strlen(text) - 10, "[unknown]\n");
    teardown(&world);
}

static void test_distinct_stacks_are_bounded(void **state)
{
    (void)state;
    struct world world;
    setup(&world, three);
    world.addresses[0] = 0x1200;
    world.addresses[1] = 0x1010;
    world.chain.count = 1;
    assert_string_equal(name(&world), "leaf\n");
    assert_int_equal(world.names.text_bytes, 5);
    assert_string_equal(name(&world), "leaf\n");
    assert_int_equal(world.names.text_bytes, 5);
    world.names.text_bytes = KERNEL_NAMES_BYTES_MAX;
    assert_string_equal(name(&world), "leaf\n");
    world.chain.count = 2;
    assert_string_equal(name(&world), "[unknown]\n");
    teardown(&world);
}

/* This machine's own symbols, if it shows them. */
static void test_symbols_are_read_once_they_are_needed(void **state)
{
    (void)state;
    struct world world;
    setup(&world, three);
    if (kallsyms_check(KALLSYMS_PATH) != 0)
        skip();
    world.addresses[0] = 0x1310;
    world.chain.count = 1;
    assert_string_equal(name(&world), "[unknown]\n");
    assert_int_equal(world.names.kallsyms.count, 4);
    world.names.reading.done_ns = 0;
    assert_string_equal(name(&world), "[unknown]\n");
    size_t count = world.names.kallsyms.count;
    assert_true(count > 1000);
    uint64_t read_ns = world.names.reading.done_ns;
    assert_string_equal(name(&world), "[unknown]\n");
    assert_int_equal(world.names.reading.done_ns, read_ns);
    teardown(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callers_are_looked_up_at_their_calls),
        cmocka_unit_test(test_a_sleep_is_shown_without_the_scheduler),
        cmocka_unit_test(test_unknown_places_and_cut_chains),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_distinct_stacks_are_bounded),
        cmocka_unit_test(test_symbols_are_read_once_they_are_needed),
    };
    return cmocka_run_group_tests_name("kernel_names", tests, NULL, NULL);
}

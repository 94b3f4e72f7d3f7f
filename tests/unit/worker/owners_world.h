/* Threads, their owners and the counted results, without a target. */
#ifndef FGPROF_TESTS_WORKER_OWNERS_WORLD_H
#define FGPROF_TESTS_WORKER_OWNERS_WORLD_H

#include "unit.h"
#include "worker/owners.h"

struct world {
    struct results results;
    struct counted_threads threads;
    struct owners owners;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    if (!world || results_init(&world->results))
        return -1;
    world->owners.threads = &world->threads;
    uint32_t process;
    return stack_table_add_process(&world->results.stacks, 70, 0, &process) ||
           stack_table_add_process(&world->results.stacks, 80, 0, &process);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    owners_free(&world->owners);
    counted_threads_free(&world->threads);
    results_free(&world->results);
    free(world);
    return 0;
}

/* A sample of a sleeping thread at this address. */
static inline uint32_t sample_at(struct world *world, uint64_t address)
{
    struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.state = THREAD_SLEEPING, .syscall_number = -1};
    uint32_t sample;
    assert_int_equal(
        stack_table_add(&world->results.stacks, NO_SPACE, &stack, &labels, 0, 0, &sample), 0);
    return sample;
}

#endif

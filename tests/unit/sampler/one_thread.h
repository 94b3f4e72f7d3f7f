/* A sampler with one process, which has one thread. Nothing runs by itself: a test calls the
 * functions that it tests. */
#ifndef FGPROF_TESTS_SAMPLER_ONE_THREAD_H
#define FGPROF_TESTS_SAMPLER_ONE_THREAD_H

#include "unit.h"
#include "base/clock.h"
#include "sampler/state.h"

#include <stdio.h>

#define PERIOD_NS 10000000u

struct one_thread {
    struct sampler_options options;
    struct sampler sampler;
    struct sampled_process process;
    struct thread thread;
    uint64_t due_tick;
};

/* The thread is the first one of process `pid`. */
static inline struct one_thread *one_thread_new(pid_t pid)
{
    struct one_thread *world = calloc(1, sizeof *world);
    char path[32];
    assert_non_null(world);
    world->options.period_ns = PERIOD_NS;
    world->sampler.options = &world->options;
    world->sampler.clock.ticks.period_ns = PERIOD_NS;
    world->sampler.clock.ticks.start_ns = monotonic_ns();
    assert_int_equal(channel_new(&world->sampler.channel), 0);
    snprintf(path, sizeof path, "/proc/%d", pid);
    world->process.process.pid = pid;
    world->process.process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(world->process.process.proc_fd >= 0);
    world->process.threads =
        (struct threads){.items = &world->thread, .count = 1, .due_ticks = &world->due_tick};
    world->process.activity_check.cpu_ns = UINT64_MAX; /* unknown */
    world->thread.tid = pid;
    world->thread.phase = PHASE_AWAKE;
    return world;
}

/* A test's teardown, if *state is the world. */
static inline int one_thread_free(void **state)
{
    struct one_thread *world = *state;
    close(world->process.process.proc_fd);
    watches_free(&world->sampler.watches);
    numbers_free(&world->sampler.numbers);
    thread_choice_free(&world->options.choice);
    free(world->process.names_due.tids);
    channel_free(world->sampler.channel);
    free(world);
    return 0;
}

#endif

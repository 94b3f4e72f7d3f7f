/* The worker from its messages to its results, with observations of this thread itself. */
#include "unit.h"
#include "base/clock.h"
#include "observe/registers.h"
#include "proc/stack_areas.h"
#include "wait/resource.h"
#include "worker/idle.h"
#include "worker/worker.h"
#include "own_stack.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#define PERIOD_NS 10000000u
#define MS 1000000u

struct world {
    struct worker_options options;
    struct channel *channel;
    struct results results;
    struct worker *worker;
    struct program *program;
    struct stack_areas areas;
    struct wait_list waits;
    pthread_t thread;
    struct request requests[64];
    size_t request_count;
    unsigned copies, orders;
    uint64_t samples_in_copy;
};

/* For this process, which process_open refuses. */
static struct program *own_program(uint32_t number)
{
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    atomic_init(&program->references, 1);
    program->number = number;
    program->process_id = program->tid = getpid();
    program->proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    program->mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    program->maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(program->proc_fd >= 0 && program->mem_fd >= 0 && program->maps_fd >= 0);
    return program;
}

static void take_copy(void *context, const struct results *results, const struct message *message)
{
    struct world *world = context;
    assert_int_equal(message->kind, MESSAGE_COPY);
    world->copies++;
    world->samples_in_copy = results->counts.samples;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    assert_non_null(world);
    world->options = (struct worker_options){
        .period_ns = PERIOD_NS,
        .max_depth = 100,
        .copy = take_copy,
        .context = world,
    };
    assert_int_equal(channel_new(&world->channel), 0);
    assert_int_equal(results_init(&world->results), 0);
    world->program = own_program(3);
    assert_int_equal(stack_areas_read(&world->areas, world->program->maps_fd), 0);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    worker_free(world->worker);
    wait_list_free(&world->waits);
    program_release(world->program);
    channel_free(world->channel);
    results_free(&world->results);
    stack_areas_free(&world->areas);
    free(world);
    return 0;
}

static void *work(void *context)
{
    struct world *world = context;
    return (void *)(intptr_t)worker_run(world->worker);
}

static void send(struct world *world, const struct message *message)
{
    assert_int_equal(channel_send(world->channel, message), 0);
}

/* Starts the worker with one process, which is this one. */
static void start(struct world *world)
{
    struct message message = {.kind = MESSAGE_PROCESS};
    message.process.pid = getpid();
    strcpy(message.process.name, "unnamed");
    assert_int_equal(worker_new(&world->options, world->channel, &world->results, &world->worker),
                     0);
    assert_int_equal(pthread_create(&world->thread, NULL, work, world), 0);
    send(world, &message);
}

/* Waits until the worker has handled all messages, and keeps its requests. */
static void settle(struct world *world)
{
    channel_ring(world->channel);
    while (!channel_is_settled(world->channel)) {
        while (channel_next_request(world->channel, &world->requests[world->request_count])) {
            stack_areas_free(&world->requests[world->request_count].areas);
            assert_true(++world->request_count < 64);
        }
        usleep(100);
    }
}

static void end(struct world *world)
{
    const struct message message = {.kind = MESSAGE_END};
    void *result;
    send(world, &message);
    settle(world);
    assert_int_equal(pthread_join(world->thread, &result), 0);
    assert_null(result);
}

static struct reading at(uint64_t at_ns, uint64_t running_ns)
{
    return (struct reading){
        .at_ns = at_ns, .has_activity = true, .activity = {running_ns, 0, 1, false}};
}

/* Asleep until `now`, with nothing copied yet. Not the first observation of this thread. */
static struct observation asleep(const struct world *world, uint32_t thread, struct reading now)
{
    return (struct observation){
        .thread = thread,
        .tid = getpid() + (pid_t)thread, /* number 0 is this thread itself */
        .program = world->program,
        .round_ns = monotonic_ns(),
        .evidence = EVIDENCE_ASLEEP,
        .state = THREAD_SLEEPING,
        .wait.syscall_number = SYS_clock_nanosleep,
        .now = now,
        .ticks = 1,
    };
}

static struct observation first(const struct world *world, uint32_t thread, struct reading now)
{
    struct observation observation = asleep(world, thread, now);
    observation.before.begins = true;
    observation.before.begin = (struct reading){.has_activity = true};
    return observation;
}

static void tell(struct world *world, struct observation observation)
{
    struct message message = {.kind = MESSAGE_OBSERVATION, .observation = observation};
    message.observation.program = observation.program ? program_hold(observation.program) : NULL;
    send(world, &message);
}

/* Copies up to `limit` bytes of this thread's stack into the observation, and sends it. */
__attribute__((noinline)) static void tell_copy(struct world *world, struct observation observation,
                                                size_t limit)
{
    static const struct stack_place none = {0};
    ucontext_t context;
    struct snapshot *snapshot = snapshot_pool_take(channel_snapshots(world->channel), limit, &none);
    assert_non_null(snapshot);
    assert_int_equal(getcontext(&context), 0);
    set_registers(&snapshot->registers, &context);
    snapshot_copy_stacks(snapshot, getpid(), &world->areas, limit, &none);
    observation.snapshot = snapshot;
    tell(world, observation);
}

static void tell_whole(struct world *world, struct observation observation)
{
    tell_copy(world, observation, 1u << 20);
}

/* Settles, after which everything that was counted has its time. */
static void settle_copy(struct world *world)
{
    const struct message copy = {.kind = MESSAGE_COPY};
    send(world, &copy);
    settle(world);
}

static struct observation gone(const struct world *world, uint32_t thread, uint64_t until_ns)
{
    struct observation observation = asleep(world, thread, (struct reading){.at_ns = until_ns});
    observation.evidence = EVIDENCE_GONE;
    observation.state = THREAD_RUNNABLE;
    return observation;
}

static uint64_t time_in(const struct world *world, enum thread_state state)
{
    const struct stack_table *stacks = &world->results.stacks;
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < stacks->sample_count; i++)
        sum_ns += stacks->samples[i].labels.state == state ? stacks->samples[i].time_ns : 0;
    return sum_ns;
}

static uint64_t ticks_of_all(const struct world *world)
{
    const struct stack_table *stacks = &world->results.stacks;
    uint64_t sum = 0;
    for (size_t i = 0; i < stacks->sample_count; i++)
        sum += stacks->samples[i].count;
    assert_int_equal(sum, world->results.counts.samples);
    return sum;
}

static void test_time_goes_to_what_was_found(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 2 * MS)));
    /* It slept until 30 ms, was running when observed at 40, and was stopped after that. */
    struct observation running = asleep(world, 0, at(41 * MS, 6 * MS));
    running.before.asleep = at(30 * MS, 2 * MS);
    running.before.look = at(40 * MS, 5 * MS);
    running.evidence = EVIDENCE_STOPPED;
    running.state = THREAD_RUNNING;
    running.wait.syscall_number = -1;
    tell_whole(world, running);
    settle_copy(world);
    /* Its sleep between the observations goes to the place where it is known to have slept. */
    assert_int_equal(time_in(world, THREAD_SLEEPING), 35 * MS);
    assert_int_equal(time_in(world, THREAD_RUNNING), 6 * MS);
    assert_int_equal(world->results.counts.running_ns, 6 * MS);
    tell(world, gone(world, 0, 45 * MS));
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 35 * MS);
    /* The time since then is unknown; it was last seen running. */
    assert_int_equal(time_in(world, THREAD_RUNNING) + time_in(world, THREAD_RUNNABLE), 10 * MS);
    assert_int_equal(ticks_of_all(world), 4);
    assert_int_equal(world->results.carry_ns, 5 * MS);
    assert_int_equal(world->results.counts.samples_cut, 0);
    assert_int_equal(atomic_load(&worker_progress(world->worker)->samples), 4);
    assert_int_equal(atomic_load(&worker_progress(world->worker)->stacks),
                     world->results.stacks.stack_count);
    for (size_t i = 0; i < world->request_count; i++)
        assert_int_equal(world->requests[i].kind, REQUEST_STACK); /* in case more is needed */
}

static void test_a_sleep_goes_on(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation unmoved = asleep(world, 0, at(1000 * MS, 0));
    unmoved.evidence = EVIDENCE_UNMOVED;
    unmoved.before.asleep = unmoved.now;
    tell(world, unmoved);
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 1000 * MS);
    assert_int_equal(ticks_of_all(world), 100);
    assert_int_equal(world->results.stacks.sample_count, 1);
}

/* Asleep at 10 ms, and found woken at 20 and 30. The kernel reports the 15 ms for which it waited
 * only once it has got a CPU; until then they look like sleep, so less sleep is left afterwards. */
static void test_a_wait_for_a_cpu_is_where_it_slept(void **state)
{
    struct world *world = *state;
    const struct stack_table *stacks = &world->results.stacks;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation woken = asleep(world, 0, at(20 * MS, 0));
    woken.evidence = EVIDENCE_WOKEN;
    woken.state = THREAD_RUNNABLE;
    woken.wait.syscall_number = -1;
    tell(world, woken);
    woken.now = at(30 * MS, 0);
    tell(world, woken);
    struct observation ran = gone(world, 0, 60 * MS);
    ran.before.look = at(60 * MS, 5 * MS);
    ran.before.look.activity.waiting_ns = 15 * MS;
    tell(world, ran);
    end(world);
    assert_int_equal(stacks->samples[1].labels.state, THREAD_RUNNABLE);
    assert_int_equal(stacks->samples[1].stack, stacks->samples[0].stack);
    assert_int_equal(stacks->samples[1].labels.syscall_number, -1);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 40 * MS);
    assert_int_equal(time_in(world, THREAD_RUNNABLE), 15 * MS);
}

/* Asleep from tick 2 to 6, woken at tick 7, and sampled while it runs before tick 9. */
static void test_at_which_ticks_a_thread_was_where(void **state)
{
    struct world *world = *state;
    const struct timeline *timeline = &world->results.timeline;
    timeline_want(&world->results.timeline, PERIOD_NS, 100, false);
    world->results.timeline.ticks.runs_max = 100;
    start(world);
    struct observation asleep_there = first(world, 0, at(15 * MS, 0));
    asleep_there.tick = 2;
    asleep_there.record.departed_ns = 12 * MS;
    tell_whole(world, asleep_there);
    struct observation unmoved = asleep(world, 0, at(45 * MS, 0));
    unmoved.evidence = EVIDENCE_UNMOVED;
    unmoved.before.asleep = unmoved.now;
    unmoved.before.asleep_ticks = 3;
    unmoved.tick = unmoved.before.asleep_tick = 5;
    tell(world, unmoved);
    struct observation woken = asleep(world, 0, at(65 * MS, 0));
    woken.evidence = EVIDENCE_WOKEN;
    woken.state = THREAD_RUNNABLE;
    woken.wait.syscall_number = -1;
    woken.before.asleep = at(55 * MS, 0);
    woken.before.asleep_ticks = 1;
    woken.before.asleep_tick = 6;
    woken.tick = 7;
    tell(world, woken);
    struct observation running = asleep(world, 0, (struct reading){0});
    running.evidence = EVIDENCE_SAMPLED;
    running.state = THREAD_RUNNING;
    running.wait.syscall_number = -1;
    running.sampled.at_ns = 85 * MS;
    tell_whole(world, running);
    end(world);
    static const struct {
        enum thread_state state;
        uint32_t last_tick, ticks, ran;
    } expected[] = {
        {THREAD_SLEEPING, 6, 5, 0}, {THREAD_RUNNABLE, 7, 1, 0}, {THREAD_RUNNING, 9, 1, 1}};
    assert_int_equal(timeline->ticks.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < timeline->ticks.count; i++) {
        const struct tick_run *run = &timeline->ticks.runs[i];
        assert_int_equal(timeline->threads[run->thread].tid, getpid());
        assert_int_equal(world->results.stacks.samples[run->sample].labels.state,
                         expected[i].state);
        assert_int_equal(run->last_tick, expected[i].last_tick);
        assert_int_equal(run->ticks, expected[i].ticks);
        assert_int_equal(run->ran, expected[i].ran);
    }
}

/* It was awake in between, so its place is unknown now. */
static void test_a_wait_for_a_cpu_of_a_thread_that_has_moved(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation assumed = asleep(world, 0, at(20 * MS, 0));
    assumed.evidence = EVIDENCE_ASSUMED;
    tell(world, assumed);
    struct observation woken = asleep(world, 0, at(30 * MS, 0));
    woken.evidence = EVIDENCE_WOKEN;
    woken.state = THREAD_RUNNABLE;
    tell(world, woken);
    tell(world, gone(world, 0, 40 * MS));
    end(world);
    assert_int_equal(time_in(world, THREAD_RUNNABLE), 0);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 40 * MS);
}

static uint64_t time_in_call(const struct world *world, int32_t syscall_number)
{
    const struct stack_table *stacks = &world->results.stacks;
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < stacks->sample_count; i++)
        sum_ns += stacks->samples[i].labels.syscall_number == syscall_number
                      ? stacks->samples[i].time_ns
                      : 0;
    return sum_ns;
}

/* Asleep in one call at four ticks, observed at two of them, and in another call at one tick. */
static void tell_two_sleeps(struct world *world, uint32_t thread, uint64_t from_ns)
{
    tell_whole(world, first(world, thread, at(from_ns + 10 * MS, 0)));
    struct observation other = asleep(world, thread, at(from_ns + 50 * MS, 0));
    other.before.asleep = at(from_ns + 40 * MS, 0);
    other.before.asleep_ticks = 3;
    other.wait.syscall_number = SYS_futex;
    tell_whole(world, other);
}

/* Each tick has the same weight, in copies, at a thread's end, and at the end of the recording. */
static void test_time_is_divided_by_ticks(void **state)
{
    struct world *world = *state;
    start(world);
    tell_two_sleeps(world, 0, 0);
    settle(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 0);
    assert_int_equal(atomic_load(&worker_progress(world->worker)->samples),
                     5); /* none of them has its time yet */
    settle_copy(world);
    assert_int_equal(time_in_call(world, SYS_clock_nanosleep), 40 * MS);
    assert_int_equal(time_in_call(world, SYS_futex), 10 * MS);
    /* Time after the copy goes to samples after it. */
    struct observation again = asleep(world, 0, at(80 * MS, 0));
    again.wait.syscall_number = SYS_futex;
    tell_whole(world, again);
    tell(world, gone(world, 0, 80 * MS));
    settle(world);
    assert_int_equal(time_in_call(world, SYS_clock_nanosleep), 40 * MS);
    assert_int_equal(time_in_call(world, SYS_futex), 40 * MS);
    tell_two_sleeps(world, 1, 0);
    tell(world, gone(world, 1, 50 * MS));
    tell_two_sleeps(world, 2, 0);
    end(world);
    assert_int_equal(time_in_call(world, SYS_clock_nanosleep), 120 * MS);
    assert_int_equal(time_in_call(world, SYS_futex), 60 * MS);
    assert_int_equal(ticks_of_all(world), 18);
    assert_int_equal(atomic_load(&worker_progress(world->worker)->samples), 18);
    assert_int_equal(world->results.counts.owed_ns, 0);
}

/* The kernel's own samples have no reading: their time comes with the next one. */
static void test_samples_without_a_reading(void **state)
{
    static const struct reading none = {0};
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    for (unsigned i = 0; i < 3; i++) {
        struct observation sampled = asleep(world, 0, none);
        sampled.evidence = EVIDENCE_STOPPED;
        sampled.state = THREAD_RUNNING;
        sampled.wait.syscall_number = -1;
        sampled.has_name = true;
        strcpy(sampled.name, i ? "one" : "other");
        tell_whole(world, sampled);
    }
    settle_copy(world);
    assert_int_equal(time_in(world, THREAD_RUNNING), 0);
    tell_whole(world, asleep(world, 0, at(50 * MS, 30 * MS)));
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 20 * MS);
    assert_int_equal(time_in(world, THREAD_RUNNING), 30 * MS);
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < world->results.stacks.sample_count; i++) {
        const struct counted_sample *sample = &world->results.stacks.samples[i];
        if (sample->labels.state == THREAD_RUNNING && sample->time_ns > longest_ns)
            longest_ns = sample->time_ns;
    }
    assert_int_equal(longest_ns, 20 * MS);
}

/* Nobody has to request it: counting happens once a second. */
static void test_a_long_recording_is_counted_on_the_way(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation unmoved = asleep(world, 0, at(1010 * MS, 0));
    unmoved.evidence = EVIDENCE_UNMOVED;
    unmoved.before.asleep = unmoved.now;
    unmoved.before.asleep_ticks = 100;
    tell(world, unmoved);
    settle(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 1010 * MS);
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 1010 * MS);
}

/* The copy was too short: a longer one is requested, and the time waits for it. */
static void test_time_waits_for_a_longer_copy(void **state)
{
    struct world *world = *state;
    start(world);
    tell_copy(world, first(world, 0, at(10 * MS, 0)), 64);
    settle(world);
    assert_int_equal(world->request_count, 1);
    assert_int_equal(world->requests[0].kind, REQUEST_STACK_ANEW);
    assert_int_equal(world->requests[0].tid, getpid());
    assert_int_equal(world->results.counts.samples, 0);
    struct observation unmoved = asleep(world, 0, at(15 * MS, 0));
    unmoved.evidence = EVIDENCE_UNMOVED;
    tell(world, unmoved);
    settle(world);
    assert_int_equal(world->results.counts.samples, 0);
    tell_whole(world, asleep(world, 0, at(30 * MS, 0)));
    settle_copy(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 30 * MS);
    assert_int_equal(ticks_of_all(world), 3);
    assert_int_equal(world->results.stacks.stack_count, 1);
    assert_int_equal(world->results.counts.samples_cut, 0);
    end(world);
}

/* An interrupt or the hypervisor took a fifth of each tick. */
static void test_stolen_time_is_not_given_to_the_next_sleep(void **state)
{
    struct world *world = *state;
    enum { TICKS = 250, TICK_MS = 10 };
    start(world);
    for (unsigned i = 1; i <= TICKS; i++) {
        struct reading now = at(i * TICK_MS * MS, i * TICK_MS * MS / 5 * 4);
        struct observation running = i == 1 ? first(world, 0, now) : asleep(world, 0, now);
        running.evidence = EVIDENCE_STOPPED;
        running.state = THREAD_RUNNING;
        running.wait.syscall_number = -1;
        tell_whole(world, running);
        settle(world);
    }
    tell_whole(world, asleep(world, 0, at((TICKS + 5) * TICK_MS * MS, 2000 * MS)));
    settle_copy(world);
    uint64_t slept_ns = time_in(world, THREAD_SLEEPING), ran_ns = time_in(world, THREAD_RUNNING);
    /* 50 ms, and what was stolen since the last window of a second closed. */
    assert_in_range(slept_ns, 50 * MS, 50 * MS + 200 * MS);
    assert_int_equal(ran_ns + slept_ns, (TICKS + 5) * TICK_MS * MS);
    assert_int_equal(world->results.counts.running_ns, ran_ns);
    end(world);
}

/* It was proven asleep, and is observed again 300 ms later, while it runs. Nothing says when it
 * woke, except the kernel's count of its running time. */
static void test_sleep_before_a_late_look_is_sleep(void **state)
{
    struct world *world = *state;
    enum { TICKS = 130 };
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation still = asleep(world, 0, at(2000 * MS, 0));
    still.evidence = EVIDENCE_UNMOVED;
    still.before.asleep = still.now;
    still.before.asleep_ticks = 199;
    tell(world, still);
    for (unsigned i = 0; i < TICKS; i++) {
        struct observation running = asleep(world, 0, at((2300 + 10 * i) * MS, (1 + 10 * i) * MS));
        running.evidence = EVIDENCE_STOPPED;
        running.state = THREAD_RUNNING;
        running.wait.syscall_number = -1;
        running.ticks = i ? 1 : 30;
        tell_whole(world, running);
        settle(world);
    }
    tell(world, gone(world, 0, (2300 + 10 * (TICKS - 1)) * MS));
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 2299 * MS);
    assert_int_equal(time_in(world, THREAD_RUNNING), (1 + 10 * (TICKS - 1)) * MS);
}

static void test_what_was_found_counts_if_nothing_better_comes(void **state)
{
    struct world *world = *state;
    start(world);
    tell_copy(world, first(world, 0, at(10 * MS, 0)), 64);
    tell(world, gone(world, 0, 20 * MS));
    end(world);
    assert_int_equal(ticks_of_all(world), 2);
    assert_int_equal(world->results.counts.samples_cut, 2);
    assert_int_equal(world->results.counts.samples_not_captured, 0);
    assert_int_equal(world->results.stacks.sample_count, 1);
    assert_true(world->results.stacks.stacks[0].depth > 0);
}

static void test_threads_that_were_not_seen_have_no_stack(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation begins = gone(world, 0, 30 * MS);
    begins.before.begins = true;
    begins.before.begin = (struct reading){.at_ns = 5 * MS};
    begins.has_name = true;
    strcpy(begins.name, "short");
    tell(world, begins);
    end(world);
    const struct counted_sample *sample = &world->results.stacks.samples[0];
    assert_int_equal(world->results.stacks.sample_count, 1);
    assert_int_equal(sample->time_ns, 25 * MS);
    assert_int_equal(sample->labels.state, THREAD_UNKNOWN);
    assert_int_equal(world->results.stacks.stacks[0].cut, STACK_CUT_NOT_CAPTURED);
    assert_int_equal(world->results.stacks.stacks[0].space, NO_SPACE);
    assert_string_equal(strings_get(&world->results.strings, sample->labels.thread_name), "short");
}

/* A dead thread's part of a tick goes to the next one that dies, not to threads that live on. */
static void test_parts_of_ticks_are_carried_over(void **state)
{
    struct world *world = *state;
    start(world);
    for (uint32_t i = 0; i < 10; i++) {
        tell_whole(world, first(world, i, at(4 * MS, 0)));
        tell(world, gone(world, i, 4 * MS));
    }
    settle(world);
    assert_int_equal(ticks_of_all(world), 4);
    for (uint32_t i = 10; i < 20; i++) {
        tell_whole(world, first(world, i, at(4 * MS, 0)));
        struct observation last = gone(world, i, 4 * MS);
        last.end.is_at_end = last.end.is_certain = true;
        tell(world, last);
    }
    end(world);
    assert_int_equal(ticks_of_all(world), 4);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 80 * MS);
}

static void test_what_could_not_be_observed_is_assumed(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation assumed = asleep(world, 0, (struct reading){.at_ns = 40 * MS});
    assumed.evidence = EVIDENCE_ASSUMED;
    assumed.state = THREAD_RUNNABLE;
    tell(world, assumed);
    end(world);
    assert_int_equal(time_in(world, THREAD_UNKNOWN), 30 * MS);
    assert_int_equal(world->results.counts.samples_not_captured, 3);
    assert_int_equal(ticks_of_all(world), 4);
}

/* A thread that ended without a stack must not stay in the timeline for good. */
static void test_a_thread_without_a_stack_leaves_the_timeline(void **state)
{
    struct world *world = *state;
    struct timeline *timeline = &world->results.timeline;
    timeline_want(timeline, PERIOD_NS, 100, true);
    start(world);
    struct observation assumed = first(world, 0, (struct reading){.at_ns = 20 * MS});
    assumed.evidence = EVIDENCE_ASSUMED;
    assumed.state = THREAD_RUNNABLE;
    tell(world, assumed);
    tell(world, gone(world, 0, 40 * MS));
    settle(world);
    assert_int_equal(timeline->thread_count, 1);
    assert_int_equal(timeline_forget(timeline, 1000 * MS), 0);
    assert_int_equal(timeline->thread_count, 0);
    end(world);
}

static void count_order(void *context)
{
    ((struct world *)context)->orders++;
}

/* Room is made if many rows were added, also if these are of threads' makers alone. */
static void test_makers_of_objects_are_rows_as_well(void **state)
{
    struct world *world = *state;
    world->options.order_checkpoint = count_order;
    world->options.bytes_max = 1u << 20;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    settle(world);
    assert_int_equal(world->orders, 0);
    for (uint32_t tid = 1; tid < 100000; tid++) {
        const struct object_maker maker = {.kind = OBJECT_THREAD, .tid = tid};
        assert_int_equal(objects_made(&world->results.objects, &maker, tid, 1), 0);
    }
    tell_whole(world, asleep(world, 0, at(20 * MS, 0)));
    end(world);
    assert_int_equal(world->orders, 1);
}

/* The last `ticks` ticks found this thread awake; the `idle_ticks` before them found no thread
 * awake. */
static void tell_tick(struct world *world, uint64_t number, uint64_t idle_ticks, uint64_t ticks,
                      uint64_t end_ns)
{
    struct message message = {.kind = MESSAGE_TICK};
    message.tick.number = number;
    message.tick.idle_ticks = idle_ticks;
    message.tick.ticks = ticks;
    message.tick.end_ns = end_ns;
    if (ticks) {
        message.tick.threads = calloc(1, sizeof *message.tick.threads);
        assert_non_null(message.tick.threads);
        message.tick.threads[0].tid = getpid();
        message.tick.thread_count = 1;
    }
    send(world, &message);
}

static struct observation at_tick(struct observation observation, uint64_t tick, uint64_t switches)
{
    observation.tick = tick;
    observation.now.activity.switches = switches;
    return observation;
}

static uint64_t parts_of_all(const struct world *world)
{
    uint64_t part_ns = 0;
    for (size_t i = 0; i < world->results.stacks.sample_count; i++)
        part_ns += world->results.stacks.samples[i].part_ns;
    return part_ns;
}

static double waited_by_all(const struct world *world)
{
    double ticks = 0;
    for (size_t i = 0; i < world->results.stacks.sample_count; i++)
        ticks += world->results.stacks.samples[i].waited_ticks;
    return ticks;
}

/* It sleeps for ten ticks, is awake at the eleventh, and sleeps again. */
static void test_elapsed_time(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, at_tick(first(world, 0, at(10 * MS, 0)), 1, 1));
    /* Observed again in the same sleep, after a request. */
    tell_whole(world, at_tick(asleep(world, 0, at(20 * MS, 0)), 2, 1));
    tell_tick(world, 11, 10, 1, 0);
    tell_whole(world, at_tick(asleep(world, 0, at(120 * MS, 9 * MS)), 12, 2));
    tell_tick(world, 13, 2, 0, 0);
    struct observation last = gone(world, 0, 130 * MS);
    last.state = THREAD_SLEEPING;
    last.tick = 13;
    last.end.is_at_end = last.end.is_certain = true;
    tell(world, last);
    tell_tick(world, 13, 0, 0, 130 * MS);
    end(world);
    assert_int_equal(parts_of_all(world), 9 * MS);
    assert_true(waited_by_all(world) == 12);
    assert_int_equal(world->results.elapsed[0].idle_ticks, 0);
    assert_int_equal(world->results.elapsed[0].end_ns, 130 * MS);
    assert_true(world->results.parallelism.ticks[1] == 1);
}

/* Waits on a futex whose word names its owner by its thread id in the process. */
static struct observation for_lock_of(struct observation observation, uint32_t owner)
{
    struct memory_range ranges[CALL_RANGES_MAX];
    observation.wait.has_call = true;
    observation.wait.call =
        (struct call_target){.kind = CALL_FUTEX, .address = 0x8000, .is_pi = true};
    unsigned count = call_ranges(&observation.wait.call, &observation.wait.memory, ranges);
    for (unsigned i = 0; i < count; i++)
        ranges[i].got = ranges[i].bytes;
    call_note_read(&observation.wait.memory, ranges, count);
    observation.wait.memory.words[FUTEX_WORDS_BEFORE] = owner | FUTEX_WAITERS;
    return observation;
}

static struct observation with_id(struct observation observation, pid_t inner_tid)
{
    observation.inner_tid = inner_tid;
    return observation;
}

/* The only sample with elapsed time of a wait. */
static const struct counted_sample *waited_sample(const struct world *world)
{
    const struct counted_sample *found = NULL;
    for (size_t i = 0; i < world->results.stacks.sample_count; i++) {
        const struct counted_sample *sample = &world->results.stacks.samples[i];
        assert_true(!found || !sample->waited_ticks);
        found = sample->waited_ticks ? sample : found;
    }
    assert_non_null(found);
    return found;
}

/* The owner is known at the end of the round: at tick 3, where it is found awake. */
static void test_elapsed_time_of_a_wait_with_an_owner(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation owner = with_id(first(world, 1, at(10 * MS, 0)), 51);
    owner.evidence = EVIDENCE_ASSUMED;
    owner.state = THREAD_RUNNING;
    owner.tick = 1;
    tell(world, owner);
    struct observation waits = with_id(first(world, 0, at(10 * MS, 0)), 50);
    tell_whole(world, for_lock_of(at_tick(waits, 2, 1), 51));
    tell_tick(world, 3, 2, 1, 0);
    settle_copy(world);
    struct observation last = gone(world, 0, 30 * MS);
    last.tick = 3;
    tell(world, last);
    tell_tick(world, 3, 0, 0, 30 * MS);
    end(world);
    const struct counted_sample *sample = waited_sample(world);
    assert_int_not_equal(sample->labels.wait_plus_1, 0);
    assert_int_equal(world->results.waits.rows[sample->labels.wait_plus_1 - 1].owner_process, 0);
    assert_true(sample->waited_ticks == 1);
}

static uint64_t sleeps_with_owner(const struct world *world, bool has_owner)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < world->results.stacks.sample_count; i++) {
        const struct counted_sample *sample = &world->results.stacks.samples[i];
        uint32_t wait_plus_1 = sample->labels.wait_plus_1;
        bool is_owned = wait_plus_1 &&
                        world->results.waits.rows[wait_plus_1 - 1].owner_process != WAIT_NO_OWNER;
        sum += is_owned == has_owner ? sample->sleeps : 0;
    }
    return sum;
}

static struct observation unmoved(struct observation observation, uint64_t tick)
{
    observation.evidence = EVIDENCE_UNMOVED;
    observation.tick = tick;
    observation.before.asleep = observation.now;
    observation.before.asleep_ticks = 1;
    return observation;
}

/* A wait is counted once, however often it is observed, copied or stopped. */
static void test_sleeps_are_counted_where_they_are_found(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation sleeper = at_tick(first(world, 0, at(10 * MS, 0)), 1, 7);
    tell_whole(world, sleeper);
    tell_whole(world, at_tick(asleep(world, 0, at(20 * MS, 0)), 2, 7));
    tell(world, unmoved(at_tick(asleep(world, 0, at(30 * MS, 0)), 3, 7), 3));
    settle_copy(world);
    assert_int_equal(sleeps_with_owner(world, false), 1);
    struct observation running = at_tick(asleep(world, 0, at(40 * MS, MS)), 4, 9);
    running.evidence = EVIDENCE_STOPPED;
    running.state = THREAD_RUNNING;
    running.wait.syscall_number = -1;
    tell_whole(world, running);
    tell_whole(world, at_tick(asleep(world, 0, at(50 * MS, 2 * MS)), 5, 12));
    end(world);
    assert_int_equal(sleeps_with_owner(world, false), 5);
}

/* Without a call, with one whose owner is unknown, and with an owner. */
static void test_missed_ticks_count_as_well(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation owner = with_id(first(world, 3, at(11 * MS, 0)), 53);
    owner.evidence = EVIDENCE_ASSUMED;
    owner.state = THREAD_RUNNING;
    tell(world, owner);
    for (uint32_t i = 0; i < 3; i++) {
        tell_whole(world, with_id(first(world, i, at(10 * MS, 0)), 60 + (pid_t)i));
        struct observation missed = with_id(asleep(world, i, at(50 * MS, 0)), 60 + (pid_t)i);
        missed.wait.syscall_number = SYS_futex;
        missed.missed_ticks = 3;
        tell_whole(world, i == 0 ? missed : for_lock_of(missed, i == 1 ? 99 : 53));
    }
    end(world);
    assert_int_equal(world->results.waits.count, 2);
    assert_int_equal(time_in_call(world, SYS_clock_nanosleep), 3 * 10 * MS);
    assert_int_equal(time_in_call(world, SYS_futex), 3 * 40 * MS);
}

/* The owner is known only from the second observation on, and at the third, another thread has the
 * lock: the wait counts for the first owner. */
static void test_a_wait_is_its_first_owners(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation waits = with_id(at_tick(first(world, 0, at(10 * MS, 0)), 1, 7), 50);
    tell_whole(world, for_lock_of(waits, 51));
    for (uint32_t i = 1; i <= 2; i++) {
        struct observation owner = with_id(first(world, i, at(11 * MS, 0)), 50 + (pid_t)i);
        owner.has_name = true;
        owner.name[0] = (char)('a' + i);
        owner.evidence = EVIDENCE_ASSUMED;
        owner.state = THREAD_RUNNING;
        owner.tick = 1;
        tell(world, owner);
    }
    settle_copy(world);
    assert_int_equal(sleeps_with_owner(world, false), 1);
    waits = with_id(at_tick(asleep(world, 0, at(20 * MS, 0)), 2, 7), 50);
    tell(world, for_lock_of(unmoved(waits, 2), 51));
    settle_copy(world);
    assert_int_equal(sleeps_with_owner(world, false), 0);
    assert_int_equal(sleeps_with_owner(world, true), 1);
    waits = with_id(at_tick(asleep(world, 0, at(30 * MS, 0)), 3, 7), 50);
    tell(world, for_lock_of(unmoved(waits, 3), 52));
    settle_copy(world);
    assert_int_equal(world->results.waits.count, 3);
    assert_int_equal(sleeps_with_owner(world, true), 1);
    /* Four later waits. */
    waits = with_id(at_tick(asleep(world, 0, at(40 * MS, MS)), 4, 11), 50);
    tell_whole(world, for_lock_of(waits, 52));
    end(world);
    assert_int_equal(sleeps_with_owner(world, true), 5);
    assert_int_equal(sleeps_with_owner(world, false), 0);
}

/* It waits for a lock whose owner sleeps for longer than a second: that owner is what it waits for.
 */
static void test_elapsed_time_at_the_end_of_a_chain(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, at_tick(with_id(first(world, 1, at(10 * MS, 0)), 51), 1, 1));
    struct observation waits = at_tick(with_id(first(world, 0, at(20 * MS, 0)), 50), 2, 1);
    tell_whole(world, for_lock_of(waits, 51));
    /* At tick 101 and the one before, an unknown thread has the lock. */
    struct observation unmoved = at_tick(with_id(asleep(world, 0, at(1010 * MS, 0)), 50), 101, 1);
    unmoved.evidence = EVIDENCE_UNMOVED;
    unmoved.before.asleep = unmoved.now;
    unmoved.before.asleep_ticks = 2;
    tell(world, for_lock_of(unmoved, 99));
    tell_tick(world, 300, 300, 0, 0);
    for (uint32_t thread = 0; thread < 2; thread++) {
        struct observation last = gone(world, thread, 3000 * MS);
        last.state = THREAD_SLEEPING;
        last.tick = 300;
        last.end.is_at_end = last.end.is_certain = last.end.never_moved = true;
        tell(world, last);
    }
    tell_tick(world, 300, 0, 0, 3000 * MS);
    end(world);
    assert_int_equal(waited_sample(world)->labels.wait_plus_1, 0);
    assert_true(waited_sample(world)->waited_ticks == 98);
    assert_int_equal(world->results.elapsed[0].idle_ticks, 202);
}

/* It sleeps for longer than a second, and then for ever: all of that is idle. */
static void test_elapsed_time_of_long_waits(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, at_tick(first(world, 0, at(10 * MS, 0)), 1, 1));
    tell_whole(world, at_tick(asleep(world, 0, at(2000 * MS, 0)), 200, 2));
    tell_tick(world, 300, 300, 0, 0);
    struct observation last = gone(world, 0, 3000 * MS);
    last.tick = 300;
    last.end.is_at_end = last.end.is_certain = last.end.never_moved = true;
    tell(world, last);
    tell_tick(world, 300, 0, 0, 3000 * MS);
    end(world);
    assert_true(waited_by_all(world) == 0);
    assert_int_equal(world->results.elapsed[0].idle_ticks, 300);
}

/* Uninterruptible sleep is not idle, however long it is. */
static void test_elapsed_time_of_a_disk(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation waits = at_tick(first(world, 0, at(10 * MS, 0)), 1, 1);
    waits.state = THREAD_UNINTERRUPTIBLE;
    tell_whole(world, waits);
    tell_tick(world, 400, 400, 0, 0);
    struct observation moved = at_tick(asleep(world, 0, at(4010 * MS, 0)), 401, 2);
    tell_whole(world, moved);
    tell_tick(world, 500, 100, 0, 0);
    struct observation last = gone(world, 0, 5000 * MS);
    last.tick = 500;
    tell(world, last);
    tell_tick(world, 500, 0, 0, 5000 * MS);
    end(world);
    assert_true(waited_by_all(world) == 500);
    assert_int_equal(world->results.elapsed[0].idle_ticks, 0);
}

static void test_a_program_that_is_gone_leaves_no_stack(void **state)
{
    struct world *world = *state;
    start(world);
    close(world->program->maps_fd);
    world->program->maps_fd = file_of_text("");
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    tell_whole(world, asleep(world, 0, at(20 * MS, 0)));
    struct observation without = asleep(world, 0, at(30 * MS, 0));
    without.program = NULL;
    tell_whole(world, without);
    end(world);
    assert_int_equal(world->results.counts.samples_not_captured, 3);
    assert_int_equal(time_in(world, THREAD_UNKNOWN), 30 * MS);
    assert_int_equal(world->results.spaces.count, 0);
}

/* A number is reused by another thread; one thread may be counted in two parts. */
static void test_numbers_are_used_again(void **state)
{
    struct world *world = *state;
    world->options.tells_threads_apart = true;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    tell(world, gone(world, 0, 10 * MS));
    struct observation other = first(world, 0, at(50 * MS, 0));
    other.tid += 7;
    other.before.begin.at_ns = 40 * MS;
    tell_whole(world, other);
    struct observation again = other;
    again.evidence = EVIDENCE_GONE;
    again.before.begins = false;
    tell(world, again);
    again = other;
    again.before.begin = at(90 * MS, 0);
    again.now = at(100 * MS, 0);
    tell_whole(world, again);
    end(world);
    const struct stack_table *stacks = &world->results.stacks;
    uint64_t own_ns = 0, other_ns = 0;
    for (size_t i = 0; i < stacks->sample_count; i++) {
        uint64_t *time_ns =
            stacks->samples[i].labels.tid == (uint32_t)getpid() ? &own_ns : &other_ns;
        *time_ns += stacks->samples[i].time_ns;
    }
    assert_int_equal(own_ns, 10 * MS);
    assert_int_equal(other_ns, 20 * MS);
}

static void test_the_first_thread_names_its_process(void **state)
{
    struct world *world = *state;
    start(world);
    settle(world);
    const struct counted_process *process = &world->results.stacks.processes[0];
    const struct strings *strings = &world->results.strings;
    assert_int_equal(process->pid, getpid());
    assert_string_equal(strings_get(strings, process->name), "unnamed");
    struct observation leader = first(world, 0, at(10 * MS, 0));
    struct observation other = first(world, 1, at(10 * MS, 0));
    leader.has_name = other.has_name = true;
    strcpy(leader.name, "leader");
    strcpy(other.name, "other");
    tell_whole(world, leader);
    tell_whole(world, other);
    end(world);
    assert_string_equal(strings_get(strings, world->results.stacks.processes[0].name), "leader");
    assert_int_equal(world->results.stacks.sample_count, 2);
    const struct sample_labels *labels = &world->results.stacks.samples[1].labels;
    assert_string_equal(strings_get(strings, labels->thread_name), "other");
    assert_int_equal(labels->syscall_number, SYS_clock_nanosleep);
    assert_int_equal(labels->tid, 0);
}

static void test_copies_are_made_on_the_way(void **state)
{
    struct world *world = *state;
    const struct message copy = {.kind = MESSAGE_COPY};
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    send(world, &copy);
    tell_whole(world, asleep(world, 0, at(20 * MS, 0)));
    end(world);
    assert_int_equal(world->copies, 1);
    assert_int_equal(world->samples_in_copy, 1);
    assert_int_equal(ticks_of_all(world), 2);
}

/* Before the recording ends: `serve` shows the sizes at the last copy. */
static void test_what_is_kept_is_known_since_the_last_copy(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    settle(world);
    assert_int_equal(atomic_load(&worker_progress(world->worker)->kept[KEPT_STACKS]), 0);
    settle_copy(world);
    assert_true(atomic_load(&worker_progress(world->worker)->kept[KEPT_STACKS]) > 0);
    end(world);
}

static void test_a_program_that_has_ended_keeps_what_names_need(void **state)
{
    struct world *world = *state;
    struct message message = {.kind = MESSAGE_PROGRAM_ENDED, .program = world->program};
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    settle(world);
    assert_int_equal(world->results.spaces.count, 1);
    size_t mappings = world->results.spaces.items[0]->mapping_count;
    program_hold(message.program);
    send(world, &message);
    settle(world);
    assert_true(world->results.spaces.items[0]->mapping_count < mappings);
    assert_true(world->results.spaces.items[0]->mapping_count > 0);
    /* A program that was never observed has nothing to end. */
    message.program = own_program(900);
    send(world, &message);
    end(world);
    assert_int_equal(atomic_load(&world->program->references), 1);
}

static void test_idle_threads_are_noted_if_threads_are_told_apart(void **state)
{
    struct world *world = *state;
    world->options.tells_threads_apart = true;
    start(world);
    for (uint32_t i = 0; i < 3; i++) {
        tell_whole(world, first(world, i, at(20 * MS, 0)));
        struct observation last = gone(world, i, 20 * MS);
        last.end.is_certain = last.end.is_at_end = true;
        last.end.never_moved = i != 1;
        tell(world, last);
    }
    end(world);
    assert_int_equal(world->results.idle_tid_count, 2);
    assert_int_equal(ticks_of_all(world), 6);
    idle_sort(&world->results);
    idle_drop(&world->results, false);
    assert_int_equal(ticks_of_all(world), 2);
    assert_int_equal(world->results.counts.idle_ns, 40 * MS);
    for (size_t i = 0; i < world->results.stacks.sample_count; i++)
        assert_int_equal(world->results.stacks.samples[i].labels.tid, 0);
}

static void test_idle_threads_are_not_noted_otherwise(void **state)
{
    struct world *world = *state;
    start(world);
    struct observation last = gone(world, 0, 20 * MS);
    last.before.begins = last.end.never_moved = last.end.is_certain = last.end.is_at_end = true;
    tell(world, last);
    end(world);
    assert_int_equal(world->results.idle_tid_count, 0);
    assert_int_equal(ticks_of_all(world), 2);
}

static void tell_certain_end(struct world *world, uint32_t thread)
{
    struct observation last = gone(world, thread, 50 * MS);
    last.end.is_certain = last.end.is_at_end = true;
    tell(world, last);
}

/* Each thread that existed is in a dump once, even if its stack never arrived. */
static void test_a_dump_has_each_thread_once(void **state)
{
    struct world *world = *state;
    world->options.waits = &world->waits;
    world->options.tells_threads_apart = true;
    start(world);
    for (unsigned i = 0; i < 2; i++) {
        struct observation observation = first(world, 0, at(10 * MS, 0));
        observation.before.begins = i == 0;
        tell_whole(world, observation);
    }
    struct observation unseen = gone(world, 1, 50 * MS);
    unseen.before.begins = unseen.end.is_certain = true;
    tell(world, unseen);
    struct observation uncertain = gone(world, 2, 50 * MS);
    uncertain.before.begins = true;
    tell(world, uncertain);
    tell_copy(world, first(world, 3, at(10 * MS, 0)), 64);
    tell_certain_end(world, 0);
    tell_certain_end(world, 3);
    end(world);
    assert_int_equal(ticks_of_all(world), 3);
    assert_int_equal(world->results.counts.samples_not_captured, 1);
    assert_int_equal(world->results.counts.samples_cut, 2);
    assert_int_equal(world->waits.count, 3);
    const struct wait_facts *facts = &world->waits.items[0];
    assert_int_equal(facts->tid, getpid());
    assert_int_equal(facts->process_id, getpid());
    assert_true(facts->inner_tid > 0);
    assert_true(facts->has_arguments);
    assert_true(facts->has_gone_on); /* this thread runs */
    assert_null(facts->program);
    assert_true(wait_list_has_thread(&world->waits, getpid(), getpid()));
    assert_false(wait_list_has_thread(&world->waits, getpid(), 1));
    /* None of the process's files is still open. */
    assert_int_equal(atomic_load(&world->program->references), 1);
}

/* With an address where there is no function. */
static void test_kernel_functions_of_running_threads(void **state)
{
    struct world *world = *state;
    static const struct stack_place none = {0};
    struct observation sampled = first(world, 0, at(10 * MS, 4 * MS));
    ucontext_t context;
    sampled.evidence = EVIDENCE_SAMPLED;
    sampled.state = THREAD_RUNNING;
    start(world);
    struct snapshot *snapshot =
        snapshot_pool_take(channel_snapshots(world->channel), 1 << 20, &none);
    assert_non_null(snapshot);
    assert_int_equal(getcontext(&context), 0);
    set_registers(&snapshot->registers, &context);
    snapshot_copy_stacks(snapshot, getpid(), &world->areas, 1 << 20, &none);
    struct kernel_chain *chain = snapshot_kernel_chain(snapshot);
    assert_non_null(chain);
    chain->addresses[0] = 1;
    chain->count = 1;
    sampled.snapshot = snapshot;
    tell(world, sampled);
    end(world);
    const struct sample_labels *labels = &world->results.stacks.samples[0].labels;
    assert_int_equal(labels->state, THREAD_RUNNING);
    assert_string_equal(strings_get(&world->results.strings, labels->kernel_stack), "[unknown]\n");
}

/* Even if the kernel reports that it had waited for a CPU before. */
static void test_a_dump_has_a_sampled_thread_once(void **state)
{
    struct world *world = *state;
    struct observation sampled = first(world, 0, at(10 * MS, 4 * MS));
    sampled.evidence = EVIDENCE_SAMPLED;
    sampled.state = THREAD_RUNNING;
    sampled.now.activity.waiting_ns = 5 * MS;
    world->options.waits = &world->waits;
    world->options.tells_threads_apart = true;
    start(world);
    tell_whole(world, sampled);
    tell_certain_end(world, 0);
    end(world);
    assert_int_equal(world->results.stacks.sample_count, 1);
    assert_int_equal(world->results.stacks.samples[0].labels.state, THREAD_RUNNING);
    assert_int_equal(ticks_of_all(world), 1);
    assert_int_equal(world->waits.count, 1);
    assert_int_equal(world->waits.items[0].evidence, EVIDENCE_SAMPLED);
    assert_false(world->waits.items[0].has_arguments);
}

/* The lock's word names its owner, as with priority inheritance. */
static void test_an_owner_that_waits_for_a_cpu(void **state)
{
    struct world *world = *state;
    struct observation owner = first(world, 0, at(10 * MS, 2 * MS));
    struct observation waiter = first(world, 1, at(10 * MS, 0));
    start(world);
    owner.evidence = EVIDENCE_WAITING;
    owner.state = THREAD_RUNNABLE;
    owner.wait.syscall_number = -1;
    owner.inner_tid = 50;
    waiter.inner_tid = 51;
    waiter.wait.has_call = true;
    waiter.wait.call = (struct call_target){.kind = CALL_FUTEX, .address = 0x8000, .is_pi = true};
    struct memory_range ranges[CALL_RANGES_MAX];
    unsigned count = call_ranges(&waiter.wait.call, &waiter.wait.memory, ranges);
    for (unsigned i = 0; i < count; i++)
        ranges[i].got = ranges[i].bytes;
    call_note_read(&waiter.wait.memory, ranges, count);
    waiter.wait.memory.words[FUTEX_WORDS_BEFORE] = 50 | FUTEX_WAITERS;
    tell_whole(world, owner);
    tell_whole(world, waiter);
    settle_copy(world);
    assert_int_equal(world->results.waits.count, 1);
    const struct counted_wait *wait = &world->results.waits.rows[0];
    const struct stack_table *stacks = &world->results.stacks;
    assert_int_equal(stacks->samples[0].labels.state, THREAD_RUNNABLE);
    assert_int_equal(wait->owner_stack, stacks->samples[0].stack);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 10 * MS);
    end(world);
}

/* A thread waits for a CPU at a tick, and another thread has that CPU. */
static struct observation behind(const struct world *world, uint64_t at_ns,
                                 const struct cpu_user *user)
{
    struct observation waiter = first(world, 1, at(at_ns, 0));
    waiter.before.begins = at_ns == 10 * MS;
    waiter.evidence = EVIDENCE_WAITING;
    waiter.state = THREAD_RUNNABLE;
    waiter.wait.syscall_number = -1;
    waiter.record.cpu_user = *user;
    return waiter;
}

static void test_which_thread_had_the_cpu(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"CPU", "CPU used by compress in backup/991",
                                        "CPU used by backup/991",
                                        "CPU used by kernel thread kswapd", "idle CPU"};
    struct observation owner = first(world, 0, at(10 * MS, 2 * MS));
    struct cpu_user user = {.is_known = true, .is_sampled = true, .tid = getpid()};
    start(world);
    owner.evidence = EVIDENCE_STOPPED;
    owner.state = THREAD_RUNNING;
    owner.wait.syscall_number = -1;
    tell_whole(world, owner);
    tell_whole(world, behind(world, 10 * MS, &user));
    user = (struct cpu_user){.is_known = true,
                             .process_id = 991,
                             .tid = 992,
                             .name = "compress",
                             .process_name = "backup"};
    tell_whole(world, behind(world, 20 * MS, &user));
    strcpy(user.name, "backup");
    tell_whole(world, behind(world, 30 * MS, &user));
    user.kind = WAKE_BY_KERNEL_THREAD;
    strcpy(user.name, "kswapd");
    tell_whole(world, behind(world, 40 * MS, &user));
    user.kind = WAKE_BY_IDLE;
    tell_whole(world, behind(world, 50 * MS, &user));
    /* Unknown. */
    user.is_known = false;
    tell_whole(world, behind(world, 60 * MS, &user));
    settle_copy(world);
    const struct results *results = &world->results;
    const struct stack_table *stacks = &results->stacks;
    assert_int_equal(results->waits.count, 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct counted_wait *wait = &results->waits.rows[i];
        assert_int_equal(wait->kind, RESOURCE_CPU);
        assert_string_equal(strings_get(&results->strings, (uint32_t)wait->key), names[i]);
        assert_int_equal(wait->owner_process, i ? WAIT_NO_OWNER : 0);
    }
    assert_int_equal(results->waits.rows[0].owner_stack, stacks->samples[0].stack);
    size_t found = 0;
    for (size_t i = 0; i < stacks->sample_count; i++) {
        const struct counted_sample *sample = &stacks->samples[i];
        found += sample->labels.wait_plus_1 && sample->labels.state == THREAD_RUNNABLE;
    }
    assert_int_equal(found, 5);
    end(world);
}

/* All snapshots are returned, so more observations can be sent than there are snapshots. */
static void test_snapshots_come_back(void **state)
{
    struct world *world = *state;
    start(world);
    for (unsigned i = 0; i < 3 * SNAPSHOTS_MAX; i++) {
        struct observation observation = first(world, 0, at((i + 1) * (uint64_t)MS, 0));
        observation.before.begins = i == 0;
        tell_copy(world, observation, 65536);
        if (i % 100 == 99)
            settle(world);
    }
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 3 * SNAPSHOTS_MAX * (uint64_t)MS);
}

static void test_a_closed_channel_is_the_end(void **state)
{
    struct world *world = *state;
    void *result;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    channel_close(world->channel);
    assert_int_equal(pthread_join(world->thread, &result), 0);
    assert_null(result);
    assert_int_equal(ticks_of_all(world), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_time_goes_to_what_was_found),
        TEST(test_a_sleep_goes_on),
        TEST(test_a_wait_for_a_cpu_is_where_it_slept),
        TEST(test_at_which_ticks_a_thread_was_where),
        TEST(test_a_wait_for_a_cpu_of_a_thread_that_has_moved),
        TEST(test_time_is_divided_by_ticks),
        TEST(test_samples_without_a_reading),
        TEST(test_a_long_recording_is_counted_on_the_way),
        TEST(test_time_waits_for_a_longer_copy),
        TEST(test_stolen_time_is_not_given_to_the_next_sleep),
        TEST(test_sleep_before_a_late_look_is_sleep),
        TEST(test_what_was_found_counts_if_nothing_better_comes),
        TEST(test_threads_that_were_not_seen_have_no_stack),
        TEST(test_parts_of_ticks_are_carried_over),
        TEST(test_what_could_not_be_observed_is_assumed),
        TEST(test_a_thread_without_a_stack_leaves_the_timeline),
        TEST(test_makers_of_objects_are_rows_as_well),
        TEST(test_elapsed_time),
        TEST(test_elapsed_time_of_a_wait_with_an_owner),
        TEST(test_sleeps_are_counted_where_they_are_found),
        TEST(test_missed_ticks_count_as_well),
        TEST(test_a_wait_is_its_first_owners),
        TEST(test_elapsed_time_at_the_end_of_a_chain),
        TEST(test_elapsed_time_of_long_waits),
        TEST(test_elapsed_time_of_a_disk),
        TEST(test_a_program_that_is_gone_leaves_no_stack),
        TEST(test_numbers_are_used_again),
        TEST(test_the_first_thread_names_its_process),
        TEST(test_copies_are_made_on_the_way),
        TEST(test_what_is_kept_is_known_since_the_last_copy),
        TEST(test_a_program_that_has_ended_keeps_what_names_need),
        TEST(test_idle_threads_are_noted_if_threads_are_told_apart),
        TEST(test_idle_threads_are_not_noted_otherwise),
        TEST(test_a_dump_has_each_thread_once),
        TEST(test_kernel_functions_of_running_threads),
        TEST(test_a_dump_has_a_sampled_thread_once),
        TEST(test_an_owner_that_waits_for_a_cpu),
        TEST(test_which_thread_had_the_cpu),
        TEST(test_snapshots_come_back),
        TEST(test_a_closed_channel_is_the_end),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}

/* The worker from its messages to its results, with observations of this very thread. */
#include "unit.h"
#include "base/clock.h"
#include "observe/registers.h"
#include "proc/stack_areas.h"
#include "worker/idle.h"
#include "worker/worker.h"
#include "own_stack.h"

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
    unsigned copies;
    uint64_t samples_in_copy;
};

/* Of this process, which process_open refuses. */
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
        .copy_context = world,
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

/* From here on there is a worker, and one process, which is this one. */
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

/* Until the worker is done with all, whose requests are kept. */
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

/* Asleep until `now`, with nothing copied yet. It is one after the first with this number. */
static struct observation asleep(const struct world *world, uint32_t thread, struct reading now)
{
    return (struct observation){
        .thread = thread,
        .tid = getpid() + (pid_t)thread, /* that of number 0 is this thread's */
        .program = world->program,
        .round_ns = monotonic_ns(),
        .evidence = EVIDENCE_ASLEEP,
        .state = THREAD_SLEEPING,
        .syscall_number = SYS_clock_nanosleep,
        .now = now,
    };
}

static struct observation first(const struct world *world, uint32_t thread, struct reading now)
{
    struct observation observation = asleep(world, thread, now);
    observation.begins = true;
    observation.begin = (struct reading){.has_activity = true};
    return observation;
}

static void tell(struct world *world, struct observation observation)
{
    struct message message = {.kind = MESSAGE_OBSERVATION, .observation = observation};
    message.observation.program = observation.program ? program_hold(observation.program) : NULL;
    send(world, &message);
}

/* Copies up to `limit` bytes of this thread's stack for it. */
__attribute__((noinline)) static void tell_copy(struct world *world, struct observation observation,
                                                size_t limit)
{
    static const struct stack_place none = {0};
    ucontext_t context;
    struct snapshot *snapshot = snapshots_take(channel_snapshots(world->channel), limit, &none);
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
    /* It slept until 30 ms, ran at a look at 40, and was stopped after that. */
    struct observation running = asleep(world, 0, at(41 * MS, 6 * MS));
    running.asleep = at(30 * MS, 2 * MS);
    running.look = at(40 * MS, 5 * MS);
    running.evidence = EVIDENCE_STOPPED;
    running.state = THREAD_RUNNING;
    running.syscall_number = -1;
    tell_whole(world, running);
    settle(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 28 * MS);
    assert_int_equal(time_in(world, THREAD_RUNNING), 6 * MS);
    assert_int_equal(world->results.counts.running_ns, 6 * MS);
    tell(world, gone(world, 0, 45 * MS));
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 35 * MS);
    /* What it did since then is not known: it was seen running last. */
    assert_int_equal(time_in(world, THREAD_RUNNING) + time_in(world, THREAD_RUNNABLE), 10 * MS);
    assert_int_equal(ticks_of_all(world), 4);
    assert_int_equal(world->results.carry_ns, 5 * MS);
    assert_int_equal(world->results.counts.samples_cut, 0);
    assert_int_equal(worker_samples(world->worker), 4);
    assert_int_equal(worker_stacks(world->worker), world->results.stacks.stack_count);
    for (size_t i = 0; i < world->request_count; i++)
        assert_int_equal(world->requests[i].kind, REQUEST_STACK); /* to be ready for more */
}

static void test_a_sleep_goes_on(void **state)
{
    struct world *world = *state;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    struct observation unmoved = asleep(world, 0, at(1000 * MS, 0));
    unmoved.evidence = EVIDENCE_UNMOVED;
    unmoved.asleep = unmoved.now;
    tell(world, unmoved);
    end(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 1000 * MS);
    assert_int_equal(ticks_of_all(world), 100);
    assert_int_equal(world->results.stacks.sample_count, 1);
}

/* The copy was too short: more is asked for, and the time waits for it. */
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
    settle(world);
    assert_int_equal(time_in(world, THREAD_SLEEPING), 30 * MS);
    assert_int_equal(ticks_of_all(world), 3);
    assert_int_equal(world->results.stacks.stack_count, 1);
    assert_int_equal(world->results.counts.samples_cut, 0);
    end(world);
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
    begins.begins = true;
    begins.begin = (struct reading){.at_ns = 5 * MS};
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

/* A dead thread's part of a tick is taken over by the next; not from those that live on. */
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
        last.is_at_end = last.is_certain = true;
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

/* A number is another thread's later; a thread may be counted in two pieces. */
static void test_numbers_are_used_again(void **state)
{
    struct world *world = *state;
    world->options.tells_threads_apart = true;
    start(world);
    tell_whole(world, first(world, 0, at(10 * MS, 0)));
    tell(world, gone(world, 0, 10 * MS));
    struct observation other = first(world, 0, at(50 * MS, 0));
    other.tid += 7;
    other.begin.at_ns = 40 * MS;
    tell_whole(world, other);
    struct observation again = other;
    again.evidence = EVIDENCE_GONE;
    again.begins = false;
    tell(world, again);
    again = other;
    again.begin = at(90 * MS, 0);
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
    /* One that was never observed has nothing to end. */
    message.program = own_program(900);
    send(world, &message);
    end(world);
    assert_int_equal(atomic_load(&world->program->references), 1);
}

static void test_idle_threads_are_noted_if_they_are_to_be_dropped(void **state)
{
    struct world *world = *state;
    world->options.tells_threads_apart = world->options.drops_idle = true;
    start(world);
    for (uint32_t i = 0; i < 3; i++) {
        tell_whole(world, first(world, i, at(20 * MS, 0)));
        struct observation last = gone(world, i, 20 * MS);
        last.is_certain = last.is_at_end = true;
        last.never_moved = i != 1;
        tell(world, last);
    }
    end(world);
    assert_int_equal(world->results.idle_tid_count, 2);
    assert_int_equal(ticks_of_all(world), 6);
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
    last.begins = last.never_moved = last.is_certain = last.is_at_end = true;
    tell(world, last);
    end(world);
    assert_int_equal(world->results.idle_tid_count, 0);
    assert_int_equal(ticks_of_all(world), 2);
}

static void tell_certain_end(struct world *world, uint32_t thread)
{
    struct observation last = gone(world, thread, 50 * MS);
    last.is_certain = last.is_at_end = true;
    tell(world, last);
}

/* Each thread is in a dump once, if it was there; also one whose stack never came. */
static void test_a_dump_has_each_thread_once(void **state)
{
    struct world *world = *state;
    world->options.waits = &world->waits;
    world->options.tells_threads_apart = true;
    start(world);
    for (unsigned i = 0; i < 2; i++) {
        struct observation observation = first(world, 0, at(10 * MS, 0));
        observation.begins = i == 0;
        tell_whole(world, observation);
    }
    struct observation unseen = gone(world, 1, 50 * MS);
    unseen.begins = unseen.is_certain = true;
    tell(world, unseen);
    struct observation uncertain = gone(world, 2, 50 * MS);
    uncertain.begins = true;
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
    assert_null(world->waits.programs);
    assert_true(wait_list_has_thread(&world->waits, getpid(), getpid()));
    assert_false(wait_list_has_thread(&world->waits, getpid(), 1));
    /* Nothing of the process is open any more. */
    assert_int_equal(atomic_load(&world->program->references), 1);
}

/* All snapshots go back, and so more observations can be told of than there are. */
static void test_snapshots_come_back(void **state)
{
    struct world *world = *state;
    start(world);
    for (unsigned i = 0; i < 3 * SNAPSHOTS_MAX; i++) {
        struct observation observation = first(world, 0, at((i + 1) * (uint64_t)MS, 0));
        observation.begins = i == 0;
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
        TEST(test_time_waits_for_a_longer_copy),
        TEST(test_what_was_found_counts_if_nothing_better_comes),
        TEST(test_threads_that_were_not_seen_have_no_stack),
        TEST(test_parts_of_ticks_are_carried_over),
        TEST(test_what_could_not_be_observed_is_assumed),
        TEST(test_a_program_that_is_gone_leaves_no_stack),
        TEST(test_numbers_are_used_again),
        TEST(test_the_first_thread_names_its_process),
        TEST(test_copies_are_made_on_the_way),
        TEST(test_a_program_that_has_ended_keeps_what_names_need),
        TEST(test_idle_threads_are_noted_if_they_are_to_be_dropped),
        TEST(test_idle_threads_are_not_noted_otherwise),
        TEST(test_a_dump_has_each_thread_once),
        TEST(test_snapshots_come_back),
        TEST(test_a_closed_channel_is_the_end),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}

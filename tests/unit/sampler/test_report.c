/* Reports to the worker about a thread's life. */
#include "one_thread.h"
#include "sampler/requests.h"
#include "sampler/report.h"

static int set_up(void **state)
{
    struct one_thread *world = one_thread_new(getppid());
    *state = world;
    world->sampler.watches.keep_fds_below = 1000;
    world->process.number = 3;
    strcpy(world->thread.naming.name, "worker");
    const struct reading begin = {.at_ns = 1000, .has_activity = true};
    report_begin(&world->thread, &begin);
    assert_int_equal(numbers_give(&world->sampler.numbers, &world->process, world->thread.tid,
                                  &world->thread.number),
                     0);
    return 0;
}

static struct observation next(struct one_thread *world)
{
    struct message message;
    assert_true(channel_receive(world->sampler.channel, false, &message));
    assert_int_equal(message.kind, MESSAGE_OBSERVATION);
    channel_done(world->sampler.channel);
    return message.observation;
}

static void assert_nothing_more(struct one_thread *world)
{
    struct message message;
    assert_false(channel_receive(world->sampler.channel, false, &message));
}

static void observe_in(struct one_thread *world, uint64_t at_ns, enum evidence evidence,
                       enum thread_state state)
{
    struct observation observation = {
        .evidence = evidence,
        .state = state,
        .now.at_ns = at_ns,
        .snapshot = snapshot_pool_take(channel_snapshots(world->sampler.channel), 64,
                                       &(const struct stack_place){0}),
    };
    assert_non_null(observation.snapshot);
    assert_int_equal(
        report_observed(&world->sampler, &world->process, &world->thread, &observation), 0);
}

static void observe_as(struct one_thread *world, uint64_t at_ns, enum evidence evidence)
{
    observe_in(world, at_ns, evidence,
               evidence == EVIDENCE_ASLEEP ? THREAD_SLEEPING : THREAD_RUNNING);
}

static void observe(struct one_thread *world, uint64_t at_ns)
{
    observe_as(world, at_ns, EVIDENCE_ASLEEP);
}

static void test_the_first_one_says_when_it_began(void **state)
{
    struct one_thread *world = *state;
    observe(world, 5000);
    observe(world, 6000);
    struct observation first = next(world), second = next(world);
    assert_true(first.before.begins && first.before.begin.at_ns == 1000 &&
                first.before.begin.has_activity);
    assert_true(first.has_name);
    assert_string_equal(first.name, "worker");
    assert_int_equal(first.process, 3);
    assert_int_equal(first.tid, getppid());
    assert_false(second.before.begins || second.has_name);
}

static void test_a_proof_of_sleep_is_reported_once(void **state)
{
    struct one_thread *world = *state;
    observe(world, 5000);
    world->thread.schedule.proven = (struct reading){.at_ns = 7000};
    world->thread.schedule.proven_ticks = 12;
    observe(world, 9000);
    observe(world, 10000);
    assert_int_equal(next(world).before.asleep.at_ns, 0);
    const struct observation proof = next(world);
    assert_int_equal(proof.before.asleep.at_ns, 7000);
    assert_int_equal(proof.before.asleep_ticks, 12);
    assert_int_equal(next(world).before.asleep.at_ns, 0);
    assert_int_equal(world->thread.schedule.proven_ticks, 0);
}

/* A look that found it running without stopping it would have given a sample like the next one. */
static void test_a_sample_stands_for_looks_that_were_spared(void **state)
{
    struct one_thread *world = *state;
    world->thread.schedule.look_ticks = 2;
    world->thread.wants.spared_ticks = 5;
    observe(world, 5000);
    assert_int_equal(next(world).ticks, 2);
    /* It slept at the tick for which it was stopped. */
    observe_in(world, 5500, EVIDENCE_STOPPED, THREAD_SLEEPING);
    assert_int_equal(next(world).ticks, 2);
    for (unsigned i = 0; i < 2; i++) {
        observe_as(world, 6000, EVIDENCE_STOPPED);
        assert_int_equal(next(world).ticks, i ? 2 : 7);
    }
}

static void test_a_look_that_found_it_running_is_reported(void **state)
{
    struct one_thread *world = *state;
    world->thread.running.now = (struct reading){.at_ns = 4000, .has_activity = true};
    const struct reading until = {.at_ns = 4500};
    assert_int_equal(report_gone(&world->sampler, &world->process, &world->thread, &until, true),
                     0);
    const struct observation gone = next(world);
    assert_int_equal(gone.evidence, EVIDENCE_GONE);
    assert_int_equal(gone.before.look.at_ns, 4000);
    assert_int_equal(gone.now.at_ns, 4500);
    assert_true(gone.before.begins && gone.end.is_certain);
}

static void test_time_that_does_not_count_is_not_told(void **state)
{
    struct one_thread *world = *state;
    const struct reading until = {.at_ns = 4500};
    world->thread.phase = PHASE_UNWANTED;
    assert_int_equal(report_gone(&world->sampler, &world->process, &world->thread, &until, true),
                     0);
    world->thread.phase = PHASE_AWAKE;
    world->thread.life.has_exited = true;
    assert_int_equal(report_gone(&world->sampler, &world->process, &world->thread, &until, true),
                     0);
    assert_int_equal(report_assumed(&world->sampler, &world->process, &world->thread), 0);
    assert_nothing_more(world);
}

/* A late tick is not a gap. */
static void test_a_short_gap_is_not_assumed(void **state)
{
    struct one_thread *world = *state;
    observe(world, monotonic_ns() + 1000000000u); /* not passed yet, however long this takes */
    next(world);
    assert_int_equal(report_assumed(&world->sampler, &world->process, &world->thread), 0);
    assert_nothing_more(world);
    world->thread.life.reported_ns = 1;
    world->thread.running.now.at_ns = monotonic_ns() + 1000000000u; /* it was seen to run */
    assert_int_equal(report_assumed(&world->sampler, &world->process, &world->thread), 0);
    assert_nothing_more(world);
    world->thread.running.now.at_ns = 0;
    assert_int_equal(report_assumed(&world->sampler, &world->process, &world->thread), 0);
    const struct observation assumed = next(world);
    assert_true(assumed.ticks > 1);
    assert_int_equal(assumed.evidence, EVIDENCE_ASSUMED);
    assert_null(assumed.snapshot);
}

static void request(struct one_thread *world, enum request_kind kind, pid_t tid)
{
    const struct request request = {
        .kind = kind,
        .thread = world->thread.number,
        .tid = tid,
        .stack_limit = 123456,
        .asleep = {.pc = 0x400, .sp = 0x7000},
    };
    assert_int_equal(channel_request(world->sampler.channel, &request), 0);
}

static void test_requests_change_what_is_wanted(void **state)
{
    struct one_thread *world = *state;
    struct thread *thread = &world->thread;
    request(world, REQUEST_STACK, thread->tid + 1); /* its number was another thread's */
    assert_int_equal(requests_serve(&world->sampler), 0);
    assert_int_equal(thread->wants.stack_limit, 0);
    request(world, REQUEST_STACK, thread->tid);
    assert_int_equal(requests_serve(&world->sampler), 0);
    assert_int_equal(thread->wants.stack_limit, 123456);
    assert_false(thread->wants.copy);
    request(world, REQUEST_FRAME_POINTER, thread->tid);
    assert_int_equal(requests_serve(&world->sampler), 0);
    assert_int_equal(thread->phase, PHASE_TO_STOP);
    assert_true(thread->wants.copy);
    assert_int_equal(thread->wants.asleep.sp, 0x7000);
    assert_int_equal(world->process.turns.stops_left, 1);
    /* It is to be stopped anyway. */
    request(world, REQUEST_ANEW, thread->tid);
    assert_int_equal(requests_serve(&world->sampler), 0);
    assert_int_equal(world->process.turns.stops_left, 1);
    assert_true(channel_is_settled(world->sampler.channel));
}

static bool is_in_a_hurry(struct one_thread *world)
{
    observe(world, 5000);
    bool has_rung = channel_ring_if_due(world->sampler.channel, 0);
    next(world);
    channel_ring(world->sampler.channel);
    return has_rung;
}

static void test_a_thread_that_brings_no_requests_is_reported_without_hurry(void **state)
{
    struct one_thread *world = *state;
    for (unsigned i = 0; i < 2; i++) {
        unsigned hurried = 0;
        while (is_in_a_hurry(world) && hurried < 1000)
            hurried++;
        assert_true(hurried > 1 && hurried < 1000);
        assert_false(is_in_a_hurry(world));
        request(world, REQUEST_STACK, world->thread.tid);
        assert_int_equal(requests_serve(&world->sampler), 0);
    }
}

static void test_a_program_whose_code_changes_is_in_a_hurry(void **state)
{
    struct one_thread *world = *state;
    struct program program = {.number = 7, .references = 100};
    const struct request request = {.kind = REQUEST_HURRY, .program = 7};
    struct sampled_process *process = &world->process;
    process->program = &program;
    world->sampler.processes = &process;
    world->sampler.process_count = 1;
    world->thread.wants.unasked = 16;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(is_in_a_hurry(world), i);
        assert_int_equal(channel_request(world->sampler.channel, &request), 0);
        assert_int_equal(requests_serve(&world->sampler), 0);
    }
    for (unsigned i = 0; i < 50; i++)
        assert_true(is_in_a_hurry(world));
    world->process.program = NULL;
}

static void test_areas_of_a_program_that_has_ended(void **state)
{
    struct one_thread *world = *state;
    struct request request = {.kind = REQUEST_AREAS, .program = 9};
    request.areas = (struct stack_areas){.items = malloc(64), .count = 1, .capacity = 1};
    assert_int_equal(channel_request(world->sampler.channel, &request), 0);
    assert_int_equal(requests_serve(&world->sampler), 0);
    assert_int_equal(world->process.areas.count, 0);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, one_thread_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_the_first_one_says_when_it_began),
        IN_WORLD(test_a_proof_of_sleep_is_reported_once),
        IN_WORLD(test_a_sample_stands_for_looks_that_were_spared),
        IN_WORLD(test_a_look_that_found_it_running_is_reported),
        IN_WORLD(test_time_that_does_not_count_is_not_told),
        IN_WORLD(test_a_short_gap_is_not_assumed),
        IN_WORLD(test_requests_change_what_is_wanted),
        IN_WORLD(test_a_thread_that_brings_no_requests_is_reported_without_hurry),
        IN_WORLD(test_a_program_whose_code_changes_is_in_a_hurry),
        IN_WORLD(test_areas_of_a_program_that_has_ended),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}

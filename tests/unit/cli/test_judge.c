/* Whether triggers fire, on made-up polls. */
#include "make_profile.h"
#include "cli/record/judge.h"

#include <stdlib.h>

#define MS 1000000ull
#define START_NS (1000000 * MS)

struct judging {
    struct trigger trigger;
    struct judge judge;
    char *reason;
};

static struct judging judging_of(const char *text)
{
    struct judging judging = {0};
    struct trigger_error error;
    assert_int_equal(trigger_parse(text, &judging.trigger, &error), 0);
    return judging;
}

static bool holds(struct judging *judging, const struct evidence *evidence)
{
    size_t bytes;
    free(judging->reason);
    if (!judging->judge.conditions)
        assert_int_equal(judge_init(&judging->judge, &judging->trigger), 0);
    FILE *reason = open_memstream(&judging->reason, &bytes);
    assert_non_null(reason);
    bool does = judge_holds(&judging->judge, evidence, reason);
    fclose(reason);
    return does;
}

static void assert_reason(const struct judging *judging, const char *expected)
{
    assert_string_equal(judging->reason, expected);
}

static void judging_free(struct judging *judging)
{
    judge_free(&judging->judge);
    trigger_free(&judging->trigger);
    free(judging->reason);
}

/* A profile from `begin_ms` to `end_ms` of two threads. From `from_ms` to `until_ms`, thread 7 was
 * in stall, and if `both`, thread 8 too; otherwise they did other things. */
static struct fgprof_profile *make_stall(uint64_t begin_ms, uint64_t from_ms, uint64_t until_ms,
                                         uint64_t end_ms, bool both)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "nap", "", 0);
    uint32_t stall = make_function(profile, 0x2000, PROFILE_NO_MAPPING, "stall", "", 0);
    uint32_t process, count = 0;
    static const uint32_t numbers[] = {0, 1};
    assert_int_equal(profile_add_process(profile, 70, "app", &process), 0);
    MAKE_SAMPLE(profile, "io", 7, 1, place);
    MAKE_SAMPLE(profile, "io", 7, 1, place, stall);
    profile->samples[0].state = profile->samples[1].state = THREAD_SLEEPING;
    struct timeline_thread threads[] = {
        {.tid = 7, .name = make_string(profile, "io"), .begin_ns = begin_ms * MS},
        {.tid = 8, .name = make_string(profile, "io"), .begin_ns = begin_ms * MS}};
    struct timeline_run runs[6];
    for (uint32_t thread = 0; thread < (both ? 2 : 1); thread++) {
        const uint64_t times_ms[] = {from_ms - begin_ms, until_ms - from_ms, end_ms - until_ms};
        for (uint32_t i = 0; i < 3; i++) {
            if (times_ms[i])
                runs[count++] = (struct timeline_run){
                    .time_ns = times_ms[i] * MS, .sample = i == 1, .thread = thread};
        }
    }
    const struct timeline timeline = {.is_wanted = true,
                                      .start_ns = begin_ms * MS,
                                      .threads = threads,
                                      .thread_count = both ? 2 : 1,
                                      .runs = runs,
                                      .run_count = count};
    assert_int_equal(profile_set_timelines(profile, &timeline, numbers, &profile->strings), 0);
    profile->start_time_ns = START_NS + begin_ms * MS;
    profile->summary.elapsed_ns = (end_ms - begin_ms) * MS;
    return profile;
}

/* Polls once, and reports the trigger if it fires and `tells` is set. */
static bool poll_stall(struct judging *judging, uint64_t begin_ms, uint64_t from_ms,
                       uint64_t until_ms, uint64_t end_ms, bool tells)
{
    struct fgprof_profile *profile = make_stall(begin_ms, from_ms, until_ms, end_ms, false);
    const struct evidence evidence = {.profile = profile, .since_ns = 1000 * MS};
    bool does = holds(judging, &evidence);
    if (does && tells)
        judge_tell(&judging->judge);
    fgprof_profile_free(profile);
    return does;
}

static void test_a_stall_is_told_once(void **state)
{
    (void)state;
    struct judging judging = judging_of("thread ^io$ in stall for 300ms");
    assert_false(poll_stall(&judging, 0, 900, 1000, 1000, true)); /* not yet */
    assert_true(poll_stall(&judging, 200, 900, 1310, 2000, true));
    assert_reason(&judging, "thread ^io$ in stall for 300ms: thread \"io\"/7 in stall for 410 ms "
                            "(at nap)");
    assert_false(poll_stall(&judging, 300, 900, 1310, 2200, true));   /* the same stall again */
    assert_false(poll_stall(&judging, 1200, 1200, 1310, 3000, true)); /* its end */
    assert_true(poll_stall(&judging, 2200, 3100, 3500, 4000, true));  /* another stall */
    judging_free(&judging);
}

/* Each poll sees the stall: the first with its beginning, later ones without. */
static void test_a_stall_that_goes_on(void **state)
{
    (void)state;
    struct judging judging = judging_of("any in stall for 300ms");
    assert_true(poll_stall(&judging, 0, 600, 1000, 1000, true));
    assert_false(poll_stall(&judging, 200, 600, 2000, 2000, true));
    for (uint64_t end_ms = 3000; end_ms < 20000; end_ms += 1000)
        assert_false(poll_stall(&judging, end_ms - 1800, end_ms - 1800, end_ms, end_ms, true));
    /* A time that no poll looked at. */
    assert_false(poll_stall(&judging, 22000, 22000, 22000, 22500, true));
    assert_false(poll_stall(&judging, 18000, 18000, 23000, 23000, true));
    /* It ends, and another stall begins at once. */
    assert_true(poll_stall(&judging, 23050, 23100, 23500, 24000, true));
    judging_free(&judging);
}

/* As when no file may be written: it fires while the stall goes on, and not after its end. */
static void test_what_was_not_told(void **state)
{
    (void)state;
    struct judging judging = judging_of("any in stall for 300ms");
    assert_true(poll_stall(&judging, 0, 600, 1000, 1000, false));
    assert_true(poll_stall(&judging, 200, 600, 1500, 2000, false));
    assert_false(poll_stall(&judging, 200, 600, 1500, 2600, false));
    judging_free(&judging);
}

static void test_each_thread_has_its_own(void **state)
{
    (void)state;
    struct judging judging = judging_of("any in stall for 300ms");
    assert_true(poll_stall(&judging, 0, 600, 1000, 1000, true));
    struct fgprof_profile *profile = make_stall(200, 600, 2000, 2000, true);
    const struct evidence evidence = {.profile = profile, .since_ns = 1000 * MS};
    assert_true(holds(&judging, &evidence)); /* for the other thread */
    assert_reason(&judging, "any in stall for 300ms: thread \"io\"/8 in stall for 1.40 s (at nap)");
    judge_tell(&judging.judge);
    assert_false(holds(&judging, &evidence));
    judge_forget(&judging.judge); /* another recording */
    assert_true(holds(&judging, &evidence));
    fgprof_profile_free(profile);
    judging_free(&judging);
}

static void test_rates(void **state)
{
    (void)state;
    static const struct {
        const char *trigger;
        double cpu, wanted, runnable;
        const char *reason; /* NULL: it does not fire */
    } cases[] = {
        {"cpu above 180%", 181, 200, 9, "cpu above 180%: 181 % of a CPU used"},
        {"cpu above 180%", 180, 200, 9, NULL},
        {"cpu below 5%", 4, 9, 9, "cpu below 5%: 4 % of a CPU used"},
        {"cpu below 5%", 5, 9, 9, NULL},
        {"runnable 20%", 80, 100, 20,
         "runnable 20%: threads waited for a CPU 20 % of the time they wanted one"},
        {"runnable 20%", 80, 100, 19, NULL},
        {"runnable 20%", 4, 9, 50, NULL}, /* of almost no CPU time */
        {"cpu above 50% and runnable 20%", 80, 100, 20,
         "cpu above 50% and runnable 20%: 80 % of a CPU used; threads waited for a CPU "
         "20 % of the time they wanted one"},
        {"cpu above 50% and runnable 20%", 80, 100, 10, NULL},
        {"cpu above 90% and runnable 20%", 80, 100, 20, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct judging judging = judging_of(cases[i].trigger);
        struct evidence evidence = {.has_rates = true,
                                    .cpu_percent = cases[i].cpu,
                                    .wanted_percent = cases[i].wanted,
                                    .runnable_percent = cases[i].runnable};
        assert_int_equal(holds(&judging, &evidence), cases[i].reason != NULL);
        if (cases[i].reason)
            assert_reason(&judging, cases[i].reason);
        evidence.has_rates = false;
        assert_false(holds(&judging, &evidence));
        judging_free(&judging);
    }
}

static void test_deadlocks_and_exit(void **state)
{
    (void)state;
    struct judging deadlock = judging_of("deadlock"), end = judging_of("exit");
    struct fgprof_profile *profile = make_profile();
    struct evidence evidence = {.profile = profile};
    uint32_t lines[] = {make_string(profile, "deadlock one"), make_string(profile, "deadlock two")};
    assert_false(holds(&deadlock, &evidence));
    assert_false(holds(&end, &evidence));
    profile->deadlocks = lines;
    for (size_t i = 1; i <= 2; i++) {
        profile->deadlock_count = profile->summary.deadlocks = i;
        assert_true(holds(&deadlock, &evidence));
        assert_true(holds(&deadlock, &evidence)); /* no file was written */
        assert_reason(&deadlock, i == 1 ? "deadlock: deadlock one" : "deadlock: deadlock two");
        judge_tell(&deadlock.judge);
        assert_false(holds(&deadlock, &evidence));
    }
    evidence.has_ended = true;
    assert_true(holds(&end, &evidence));
    assert_reason(&end, "exit: the processes have ended");
    profile->deadlocks = NULL;
    profile->deadlock_count = 0;
    fgprof_profile_free(profile);
    judging_free(&deadlock);
    judging_free(&end);
}

struct asked {
    unsigned times;
    bool answer;
};

static bool ask(const char *command, void *context)
{
    struct asked *asked = context;
    assert_string_equal(command, "x y");
    asked->times++;
    return asked->answer;
}

static void test_a_command_is_asked_last(void **state)
{
    (void)state;
    struct judging judging = judging_of("cpu above 50% and command x y");
    struct asked asked = {0};
    struct evidence evidence = {
        .has_rates = true, .cpu_percent = 40, .command = ask, .context = &asked};
    assert_false(holds(&judging, &evidence));
    assert_int_equal(asked.times, 0);
    evidence.cpu_percent = 60;
    assert_false(holds(&judging, &evidence));
    assert_int_equal(asked.times, 1);
    asked.answer = true;
    assert_true(holds(&judging, &evidence));
    assert_reason(&judging, "cpu above 50% and command x y: 60 % of a CPU used; the command exited "
                            "with 0");
    evidence.command = NULL; /* not to be run now */
    assert_false(holds(&judging, &evidence));
    judging_free(&judging);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stall_is_told_once),
        cmocka_unit_test(test_a_stall_that_goes_on),
        cmocka_unit_test(test_what_was_not_told),
        cmocka_unit_test(test_each_thread_has_its_own),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_deadlocks_and_exit),
        cmocka_unit_test(test_a_command_is_asked_last),
    };
    return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}

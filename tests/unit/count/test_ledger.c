#include "unit.h"
#include "base/random.h"
#include "count/ledger.h"

/* A period of 10 makes ticks easy to count. */
#define PERIOD_NS 10

static struct activity activity_of(uint64_t running_ns, uint64_t waiting_ns)
{
    return (struct activity){.running_ns = running_ns, .waiting_ns = waiting_ns, .switches = 1};
}

static void book(struct ledger *ledger, uint64_t now_ns, uint64_t running_ns, uint64_t waiting_ns,
                 enum account account)
{
    const struct activity activity = activity_of(running_ns, waiting_ns);
    ledger_book(ledger, now_ns, &activity, account);
}

/* Gives the account's only sample, number 7, the time owed to the account. */
static struct share take(struct ledger *ledger, enum account account)
{
    struct settlement settlements[WINDOW_ROWS_MAX];
    assert_int_equal(ledger_add(ledger, account, 7, 1, 1), 0);
    unsigned count = ledger_close(ledger, account, PERIOD_NS, settlements);
    assert_true(count <= 1 && (count == 0 || settlements[0].sample == 7));
    return count ? settlements[0].share : (struct share){0};
}

static void assert_share(struct share share, uint64_t ticks, uint64_t time_ns)
{
    assert_int_equal(share.ticks, ticks);
    assert_int_equal(share.time_ns, time_ns);
}

static void test_accounts_of_states(void **state)
{
    (void)state;
    assert_int_equal(ledger_account(THREAD_RUNNING), ACCOUNT_RUNNING);
    assert_int_equal(ledger_account(THREAD_RUNNABLE), ACCOUNT_RUNNABLE);
    assert_int_equal(ledger_account(THREAD_SLEEPING), ACCOUNT_ASLEEP);
    assert_int_equal(ledger_account(THREAD_UNINTERRUPTIBLE), ACCOUNT_ASLEEP);
    assert_int_equal(ledger_account(THREAD_STOPPED), ACCOUNT_ASLEEP);
}

/* Nothing is known before the first reading: all the time goes to the state that was found. */
static void test_first_time_goes_to_the_state_found(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 115, 5000, 300, ACCOUNT_ASLEEP);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 1, 15);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 0, 0);
}

/* Every tick finds the thread asleep, though it ran most of the time: the sampler took its CPU. */
static void test_time_is_the_kernels(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 1000, 0, ACCOUNT_ASLEEP);
    take(&ledger, ACCOUNT_ASLEEP);
    book(&ledger, 120, 1007, 1, ACCOUNT_ASLEEP);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 0, 2);
    book(&ledger, 130, 1014, 2, ACCOUNT_ASLEEP);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 0, 2);
    /* Once it is found running, all its running time goes to that sample. */
    book(&ledger, 140, 1021, 3, ACCOUNT_RUNNING);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 2, 21);
    book(&ledger, 150, 1028, 4, ACCOUNT_RUNNABLE);
    assert_share(take(&ledger, ACCOUNT_RUNNABLE), 0, 4);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 0, 4);
}

/* Parts of a tick are carried over within an account, so rounding favours none. */
static void test_ticks_are_whole_periods_of_an_account(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 0, .has_activity = true};
    uint64_t ran = 0, slept = 0;
    for (uint64_t tick = 1; tick <= 100; tick++) {
        book(&ledger, tick * 10, tick * 4, 0, ACCOUNT_RUNNING);
        ran += take(&ledger, ACCOUNT_RUNNING).ticks;
        slept += take(&ledger, ACCOUNT_ASLEEP).ticks;
    }
    assert_int_equal(ran, 40);
    assert_int_equal(slept, 60);
}

/* The two clocks are not read at the same instant: time that does not fit is booked with the next
 * reading. */
static void test_figures_that_run_ahead(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 500, 0, ACCOUNT_RUNNING);
    take(&ledger, ACCOUNT_RUNNING);
    book(&ledger, 120, 513, 0, ACCOUNT_RUNNING);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 1, 10);
    book(&ledger, 130, 520, 0, ACCOUNT_RUNNING);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 1, 10);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 0, 0);
}

static void test_time_is_booked_once(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    ledger_book(&ledger, 120, NULL, ACCOUNT_ASLEEP);
    ledger_book(&ledger, 120, NULL, ACCOUNT_ASLEEP);
    ledger_book(&ledger, 90, NULL, ACCOUNT_ASLEEP);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 2, 20);
    assert_int_equal(ledger.booked_ns, 120);
}

/* Kernels that only count switches provide no times. */
static void test_activity_without_times(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    const struct activity activity = {.switches = 7, .counts_ends = true};
    ledger_book(&ledger, 110, &activity, ACCOUNT_RUNNING);
    ledger_book(&ledger, 120, &activity, ACCOUNT_ASLEEP);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 1, 10);
    assert_share(take(&ledger, ACCOUNT_ASLEEP), 1, 10);
}

/* After exec, another thread has the id: its counters say nothing about the time before. */
static void test_another_thread_of_the_same_id(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 1000000, 500, ACCOUNT_RUNNING);
    take(&ledger, ACCOUNT_RUNNING);
    book(&ledger, 120, 40, 0, ACCOUNT_RUNNING);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 1, 10);
    book(&ledger, 130, 47, 0, ACCOUNT_RUNNING);
    assert_share(take(&ledger, ACCOUNT_RUNNING), 0, 7);
}

/* The kernel's counts from before the beginning do not go to the first sample. */
static void test_the_beginning(void **state)
{
    (void)state;
    const struct activity before = {.running_ns = 5 * PERIOD_NS, .waiting_ns = 7 * PERIOD_NS},
                          now = {.running_ns = 6 * PERIOD_NS, .waiting_ns = 9 * PERIOD_NS};
    struct ledger known = {0}, unknown = {0};
    ledger_begin(&known, 0, &before);
    ledger_book(&known, 10 * PERIOD_NS, &now, ACCOUNT_RUNNING);
    assert_int_equal(known.owed_ns[ACCOUNT_RUNNING], PERIOD_NS);
    assert_int_equal(known.owed_ns[ACCOUNT_RUNNABLE], 2 * PERIOD_NS);
    assert_int_equal(known.owed_ns[ACCOUNT_ASLEEP], 7 * PERIOD_NS);
    ledger_begin(&unknown, 0, NULL);
    ledger_book(&unknown, 10 * PERIOD_NS, &now, ACCOUNT_RUNNING);
    assert_int_equal(unknown.owed_ns[ACCOUNT_RUNNING], 10 * PERIOD_NS);
}

static void test_settlement_gives_all(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    struct settlement settlements[ACCOUNT_COUNT];
    uint64_t ticks = 0, time_ns = 0;
    book(&ledger, 116, 0, 0, ACCOUNT_RUNNING);
    struct share share = take(&ledger, ACCOUNT_RUNNING);
    ledger_note_sample(&ledger, ACCOUNT_RUNNING, 7);
    ticks += share.ticks;
    time_ns += share.time_ns;
    book(&ledger, 132, 8, 2, ACCOUNT_ASLEEP);
    share = take(&ledger, ACCOUNT_ASLEEP);
    ledger_note_sample(&ledger, ACCOUNT_ASLEEP, 9);
    ticks += share.ticks;
    time_ns += share.time_ns;
    unsigned count = ledger_settle(&ledger, PERIOD_NS, NULL, settlements);
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < count; i++) {
        assert_true(settlements[i].sample == 7 || settlements[i].sample == 9);
        ticks += settlements[i].share.ticks;
        time_ns += settlements[i].share.time_ns;
    }
    /* 32 in all: the wait for a CPU, which has no sample, is added to the running time. */
    assert_int_equal(time_ns, 32);
    assert_int_equal(ticks, 3);
    assert_int_equal(ledger.given_ns[ACCOUNT_RUNNING], 16 + 8 + 2);
}

static void test_settlement_without_a_sample(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    struct settlement settlements[ACCOUNT_COUNT];
    ledger_book(&ledger, 150, NULL, ACCOUNT_RUNNABLE);
    assert_int_equal(ledger_settle(&ledger, PERIOD_NS, NULL, settlements), 0);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNABLE], 50);
}

/* Many threads that live for less than a tick or a little more: only the last part of a tick is
 * lost. */
static void test_parts_of_ticks_are_carried_over(void **state)
{
    (void)state;
    uint64_t carry_ns = 0, ticks = 0, time_ns = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct ledger ledger = {.booked_ns = 100};
        struct settlement settlements[ACCOUNT_COUNT];
        uint64_t lived_ns = i % 2 ? 4 : 13;
        ledger_book(&ledger, 100 + lived_ns, NULL, ACCOUNT_ASLEEP);
        ledger_note_sample(&ledger, ACCOUNT_ASLEEP, i);
        assert_int_equal(ledger_settle(&ledger, PERIOD_NS, &carry_ns, settlements), 1);
        assert_int_equal(settlements[0].sample, i);
        assert_in_range(settlements[0].share.ticks, lived_ns / PERIOD_NS, lived_ns / PERIOD_NS + 1);
        ticks += settlements[0].share.ticks;
        time_ns += settlements[0].share.time_ns;
        assert_int_equal(ticks * PERIOD_NS + carry_ns, time_ns);
    }
    assert_int_equal(time_ns, 50 * (4 + 13));
    assert_int_equal(ticks, 50 * (4 + 13) / PERIOD_NS);
}

static void add(struct ledger *ledger, enum account account, uint32_t sample, uint64_t ticks)
{
    assert_int_equal(ledger_add(ledger, account, sample, ticks, 1), 0);
}

/* Samples share an account's time by their ticks, however and in whatever order it was booked. */
static void test_samples_share_by_ticks(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct settlement settlements[WINDOW_ROWS_MAX];
    const struct activity none = {0};
    ledger_begin(&ledger, 100, &none);
    book(&ledger, 110, 1, 0, ACCOUNT_RUNNING);
    add(&ledger, ACCOUNT_RUNNING, 5, 1);
    book(&ledger, 400, 200, 0, ACCOUNT_ASLEEP);
    add(&ledger, ACCOUNT_ASLEEP, 6, 29); /* the thread slept at all of these ticks */
    add(&ledger, ACCOUNT_RUNNING, 7, 3);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements), 2);
    assert_int_equal(settlements[0].sample, 5);
    assert_share(settlements[0].share, 5, 50);
    assert_int_equal(settlements[1].sample, 7);
    assert_share(settlements[1].share, 15, 150);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_ASLEEP, PERIOD_NS, settlements), 1);
    assert_share(settlements[0].share, 10, 100);
    assert_false(ledger_owes(&ledger));
    ledger_free(&ledger);
}

/* As with the kernel's samples, which arrive before the reading that has their time. */
static void test_samples_wait_for_time_and_time_for_samples(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct settlement settlements[WINDOW_ROWS_MAX];
    const struct activity none = {0};
    ledger_begin(&ledger, 100, &none);
    add(&ledger, ACCOUNT_RUNNING, 1, 1);
    add(&ledger, ACCOUNT_RUNNING, 2, 1);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements), 0);
    add(&ledger, ACCOUNT_RUNNING, 1, 1);
    book(&ledger, 190, 90, 0, ACCOUNT_ASLEEP);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements), 2);
    assert_share(settlements[0].share, 6, 60);
    assert_share(settlements[1].share, 3, 30);
    book(&ledger, 290, 190, 0, ACCOUNT_ASLEEP);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements), 0);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNING], 100);
    add(&ledger, ACCOUNT_RUNNING, 3, 1);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements), 1);
    assert_share(settlements[0].share, 10, 100);
    ledger_free(&ledger);
}

/* A full window is closed, even if its samples get nothing. */
static void test_samples_without_end_and_without_time(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct settlement settlements[WINDOW_ROWS_MAX];
    ledger_begin(&ledger, 100, NULL);
    for (uint32_t i = 0; i < 10 * WINDOW_ROWS_MAX; i++) {
        add(&ledger, ACCOUNT_RUNNING, i, 1);
        bool is_full = i % WINDOW_ROWS_MAX == WINDOW_ROWS_MAX - 1;
        assert_int_equal(ledger_is_due(&ledger, ACCOUNT_RUNNING), is_full);
        assert_int_equal(ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements),
                         is_full ? WINDOW_ROWS_MAX : 0);
    }
    ledger_free(&ledger);
}

/* What a thread did in one second gets no time from the next one. */
static void test_phases_stay_apart(void **state)
{
    (void)state;
    enum { MS = 1000000 };
    struct ledger ledger = {0};
    struct settlement settlements[WINDOW_ROWS_MAX];
    uint64_t time_ns[4] = {0};
    ledger_begin(&ledger, 0, NULL);
    for (uint64_t i = 1; i <= 4000; i++) {
        uint64_t ran_ns = i <= 1000 ? i * MS / 100 : 10 * MS + (i - 1000) * MS / 2;
        book(&ledger, i * MS, ran_ns, 0, ACCOUNT_RUNNING);
        /* The first second has as many samples as the others, and a fiftieth of the running time.
         */
        add(&ledger, ACCOUNT_RUNNING, (uint32_t)((i - 1) / 1000), 1);
        unsigned count = 0;
        if (ledger_is_due(&ledger, ACCOUNT_RUNNING))
            count = ledger_close(&ledger, ACCOUNT_RUNNING, PERIOD_NS, settlements);
        for (unsigned j = 0; j < count; j++)
            time_ns[settlements[j].sample] += settlements[j].share.time_ns;
    }
    /* The first reading's millisecond goes to the state that was found. */
    assert_int_equal(time_ns[0], 1 * MS + 999 * MS / 100);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(time_ns[i], 500 * MS);
    ledger_free(&ledger);
}

/* Books `periods`, in each of which the thread was found running, ran for `ran_ns` more and
 * switched `switches` times more. Returns how much sleep was denied. */
static uint64_t deny_after(struct ledger *ledger, uint64_t period_ns, uint64_t periods,
                           uint64_t ran_ns, uint64_t switches)
{
    struct activity now = {.running_ns = ledger->running_ns,
                           .waiting_ns = ledger->waiting_ns,
                           .switches = ledger->switches};
    for (uint64_t i = 0; i < periods; i++) {
        now.running_ns += ran_ns;
        now.switches += switches;
        ledger_book(ledger, ledger->booked_ns + period_ns, &now, ACCOUNT_RUNNING);
    }
    return ledger_deny_sleep(ledger, period_ns);
}

enum { LOOK_NS = 10000000 };

static struct ledger begun(void)
{
    struct ledger ledger = {0};
    const struct activity none = {.switches = 1000000};
    ledger_begin(&ledger, 100, &none);
    return ledger;
}

/* The hypervisor took a fifth of the time, which the kernel counts nowhere. */
static void test_stolen_time_is_no_sleep(void **state)
{
    (void)state;
    struct ledger ledger = begun();
    assert_int_equal(deny_after(&ledger, LOOK_NS, 79, LOOK_NS / 5 * 4, 1),
                     0); /* less than 16 ticks so far */
    assert_int_equal(deny_after(&ledger, LOOK_NS, 1, LOOK_NS / 5 * 4, 1), 16 * LOOK_NS);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNING], 80 * LOOK_NS);
    assert_int_equal(ledger.owed_ns[ACCOUNT_ASLEEP], 0);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 80, LOOK_NS / 5 * 4, 1), 16 * LOOK_NS);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNING], 160 * LOOK_NS);
    ledger_free(&ledger);
}

/* Sleeps that are too short to observe: each has a context switch. */
static void test_short_sleeps_are_sleep(void **state)
{
    (void)state;
    struct ledger ledger = begun();
    assert_int_equal(deny_after(&ledger, LOOK_NS, 1000, LOOK_NS / 5 * 4, 20), 0);
    assert_int_equal(ledger.owed_ns[ACCOUNT_ASLEEP], 200 * LOOK_NS);
    ledger_free(&ledger);
}

/* Observed sleep is owed until a sample takes it, which may be held back for a while. Sleep after
 * that may be denied. */
static void test_sleep_that_was_seen_is_sleep(void **state)
{
    (void)state;
    struct ledger ledger = begun();
    struct settlement settlements[WINDOW_ROWS_MAX];
    book(&ledger, ledger.booked_ns + 50 * LOOK_NS, 0, 0, ACCOUNT_ASLEEP);
    ledger_note_asleep(&ledger, 0);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 31, LOOK_NS / 2, 1), 0);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 1, LOOK_NS / 2, 1), 16 * LOOK_NS);
    add(&ledger, ACCOUNT_ASLEEP, 3, 50);
    assert_int_equal(ledger_close(&ledger, ACCOUNT_ASLEEP, LOOK_NS, settlements), 1);
    assert_share(settlements[0].share, 50, 50 * LOOK_NS);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 100, LOOK_NS / 2, 1), 50 * LOOK_NS);
    ledger_free(&ledger);
}

/* The kernel adds a wait for a CPU when it ends; until then it looks like sleep. */
static void test_a_long_wait_for_a_cpu_is_not_denied(void **state)
{
    (void)state;
    struct ledger ledger = begun();
    struct activity now = {.switches = ledger.switches};
    for (unsigned i = 0; i < 50; i++)
        ledger_book(&ledger, ledger.booked_ns + LOOK_NS, &now, ACCOUNT_RUNNABLE);
    now.waiting_ns = 50 * (uint64_t)LOOK_NS;
    now.switches++;
    ledger_book(&ledger, ledger.booked_ns + LOOK_NS, &now, ACCOUNT_RUNNING);
    assert_int_equal(ledger_deny_sleep(&ledger, LOOK_NS), 0);
    /* Once the thread has slept for as long, each account has its correct time. */
    for (unsigned i = 0; i < 50; i++)
        ledger_book(&ledger, ledger.booked_ns + LOOK_NS, &now, ACCOUNT_ASLEEP);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNABLE], 50 * (uint64_t)LOOK_NS);
    assert_int_equal(ledger.owed_ns[ACCOUNT_ASLEEP], 51 * (uint64_t)LOOK_NS);
    ledger_free(&ledger);
}

/* After exec, the other thread has more CPU time than this one had, and fewer switches. */
static void test_fewer_switches_are_another_threads(void **state)
{
    (void)state;
    struct ledger ledger = begun();
    struct activity other = {.running_ns = 5 * (uint64_t)LOOK_NS, .switches = ledger.switches - 1};
    ledger_book(&ledger, ledger.booked_ns + 20 * (uint64_t)LOOK_NS, &other, ACCOUNT_ASLEEP);
    assert_int_equal(ledger.owed_ns[ACCOUNT_ASLEEP], 20 * (uint64_t)LOOK_NS);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNING], 0);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 100, LOOK_NS / 2, 1), 70 * (uint64_t)LOOK_NS);
    ledger_free(&ledger);
}

/* For a thread that existed before, nothing says how often it had slept. */
static void test_switches_count_from_the_first_figures(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    ledger_begin(&ledger, 100, NULL);
    const struct activity first = {.running_ns = 5, .switches = 1000000};
    ledger_book(&ledger, 101, &first, ACCOUNT_RUNNING);
    assert_int_equal(deny_after(&ledger, LOOK_NS, 100, LOOK_NS / 2, 1), 50 * LOOK_NS);
    ledger_free(&ledger);
}

static struct share sum_of(const struct settlement *settlements, unsigned count)
{
    struct share sum = {0};
    for (unsigned i = 0; i < count; i++) {
        sum.time_ns += settlements[i].share.time_ns;
        sum.ticks += settlements[i].share.ticks;
        sum.part_ns += settlements[i].share.part_ns;
    }
    return sum;
}

/* Closes the window, and adds what its samples got to *sum. */
static void close_window(struct ledger *ledger, enum account account, struct share *sum)
{
    struct settlement settlements[WINDOW_ROWS_MAX];
    unsigned count = ledger_close(ledger, account, PERIOD_NS, settlements);
    struct share more = sum_of(settlements, count);
    *sum = (struct share){sum->ticks + more.ticks, sum->time_ns + more.time_ns,
                          sum->part_ns + more.part_ns};
}

/* Some time passes, some of it the thread's own, and possibly a sample is taken. */
static void happen(struct ledger *ledger, uint64_t seed, uint64_t *draw, uint64_t *now_ns,
                   struct activity *activity, struct share *sum)
{
    enum account account = (enum account)random_below(ACCOUNT_COUNT, seed, (*draw)++);
    uint32_t sample = (uint32_t)random_below(100, seed, (*draw)++);
    bool has_activity = random_below(10, seed, (*draw)++) > 0;
    *now_ns += random_below(50, seed, (*draw)++);
    activity->running_ns += random_below(20, seed, (*draw)++);
    activity->waiting_ns += random_below(20, seed, (*draw)++);
    ledger_book(ledger, *now_ns, has_activity ? activity : NULL, account);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        ledger->part_ns[i] = ledger->owed_ns[i] / 2;
    if (random_below(3, seed, (*draw)++)) {
        add(ledger, account, sample, 1 + random_below(9, seed, (*draw)++));
        ledger_note_sample(ledger, account, sample);
    }
    if (ledger_is_due(ledger, account) || !random_below(20, seed, (*draw)++))
        close_window(ledger, account, sum);
}

/* Whatever happens to a thread, its samples get exactly its time, and its whole ticks. */
static void test_nothing_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct ledger ledger = {0};
        struct settlement settlements[ACCOUNT_COUNT];
        struct activity activity = {.running_ns = 77, .waiting_ns = 5, .switches = 1};
        uint64_t begin_ns = 1000, now_ns = begin_ns, draw = 0;
        struct share sum = {0};
        ledger_begin(&ledger, begin_ns, seed % 2 ? &activity : NULL);
        add(&ledger, ACCOUNT_RUNNABLE, 100, 1);
        ledger_note_sample(&ledger, ACCOUNT_RUNNABLE, 100);
        for (uint64_t i = 0; i < 10 * seed; i++)
            happen(&ledger, seed, &draw, &now_ns, &activity, &sum);
        for (unsigned account = 0; account < ACCOUNT_COUNT; account++)
            close_window(&ledger, account, &sum);
        struct share last =
            sum_of(settlements, ledger_settle(&ledger, PERIOD_NS, NULL, settlements));
        assert_int_equal(sum.time_ns + last.time_ns, now_ns - begin_ns);
        assert_int_equal(sum.ticks + last.ticks, (now_ns - begin_ns) / PERIOD_NS);
        assert_true(sum.part_ns + last.part_ns <= (now_ns - begin_ns) / 2);
        for (unsigned account = 0; account < ACCOUNT_COUNT; account++)
            assert_int_equal(ledger.part_ns[account], 0);
        ledger_free(&ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accounts_of_states),
        cmocka_unit_test(test_first_time_goes_to_the_state_found),
        cmocka_unit_test(test_time_is_the_kernels),
        cmocka_unit_test(test_ticks_are_whole_periods_of_an_account),
        cmocka_unit_test(test_figures_that_run_ahead),
        cmocka_unit_test(test_time_is_booked_once),
        cmocka_unit_test(test_activity_without_times),
        cmocka_unit_test(test_another_thread_of_the_same_id),
        cmocka_unit_test(test_the_beginning),
        cmocka_unit_test(test_settlement_gives_all),
        cmocka_unit_test(test_settlement_without_a_sample),
        cmocka_unit_test(test_parts_of_ticks_are_carried_over),
        cmocka_unit_test(test_samples_share_by_ticks),
        cmocka_unit_test(test_samples_wait_for_time_and_time_for_samples),
        cmocka_unit_test(test_samples_without_end_and_without_time),
        cmocka_unit_test(test_phases_stay_apart),
        cmocka_unit_test(test_stolen_time_is_no_sleep),
        cmocka_unit_test(test_short_sleeps_are_sleep),
        cmocka_unit_test(test_sleep_that_was_seen_is_sleep),
        cmocka_unit_test(test_a_long_wait_for_a_cpu_is_not_denied),
        cmocka_unit_test(test_fewer_switches_are_another_threads),
        cmocka_unit_test(test_switches_count_from_the_first_figures),
        cmocka_unit_test(test_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

/* What ticks and the ledger together report for threads whose behaviour is known exactly. */
#include "unit.h"
#include "base/random.h"
#include "count/ledger.h"
#include "base/ticks.h"

#include <math.h>

#define PERIOD_NS 10101010u /* 99 Hz */
#define START_NS 1000000000u
#define US 1000u
#define PLACES 4

/* A time that a thread spends in one place. */
struct stretch {
    enum account account;
    uint32_t place;
    uint64_t time_ns;
};

/* The state of a simulated thread. `next` returns its stretches one by one. */
struct simulated {
    struct stretch (*next)(struct simulated *simulated);
    uint64_t seed, count; /* of stretches so far */
    uint64_t cycle_ns;    /* for next_wait */
    struct stretch now;   /* the current one, */
    uint64_t end_ns;      /* which ends here */
    uint64_t spent_ns[ACCOUNT_COUNT][PLACES];
};

static void advance(struct simulated *simulated, uint64_t until_ns)
{
    while (simulated->end_ns <= until_ns) {
        simulated->spent_ns[simulated->now.account][simulated->now.place] += simulated->now.time_ns;
        simulated->now = simulated->next(simulated);
        simulated->count++;
        simulated->end_ns += simulated->now.time_ns;
    }
}

/* The kernel's counter at `at_ns`, which is within the current stretch. */
static uint64_t running_ns(const struct simulated *simulated, uint64_t at_ns)
{
    const struct stretch *now = &simulated->now;
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < PLACES; i++)
        sum_ns += simulated->spent_ns[ACCOUNT_RUNNING][i];
    if (now->account == ACCOUNT_RUNNING)
        sum_ns += now->time_ns - (simulated->end_ns - at_ns);
    return sum_ns;
}

/* The reported times. */
struct shown {
    struct ledger ledger;
    uint64_t time_ns[ACCOUNT_COUNT][PLACES];
    uint64_t ticks;
    bool takes_all; /* each sample immediately takes all that is owed: no windows */
};

static void close_window(struct shown *shown, enum account account)
{
    struct settlement settlements[WINDOW_ROWS_MAX];
    unsigned count = ledger_close(&shown->ledger, account, PERIOD_NS, settlements);
    for (unsigned i = 0; i < count; i++) {
        shown->time_ns[account][settlements[i].sample] += settlements[i].share.time_ns;
        shown->ticks += settlements[i].share.ticks;
    }
}

static void sample(struct shown *shown, struct simulated *simulated, uint64_t at_ns)
{
    advance(simulated, at_ns);
    const struct activity activity = {.running_ns = running_ns(simulated, at_ns), .switches = 1};
    enum account account = simulated->now.account;
    ledger_book(&shown->ledger, at_ns, &activity, account);
    assert_int_equal(ledger_add(&shown->ledger, account, simulated->now.place, 1, 1), 0);
    if (shown->takes_all || ledger_is_due(&shown->ledger, account))
        close_window(shown, account);
}

static void begin(struct shown *shown, struct simulated *simulated)
{
    const struct activity none = {0};
    simulated->end_ns = START_NS;
    ledger_begin(&shown->ledger, START_NS, &none);
}

static void end(struct shown *shown)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        close_window(shown, i);
    ledger_free(&shown->ledger);
}

static double share(const uint64_t time_ns[PLACES], unsigned place)
{
    uint64_t all_ns = 0;
    for (unsigned i = 0; i < PLACES; i++)
        all_ns += time_ns[i];
    return (double)time_ns[place] / (double)all_ns;
}

/* Waits for 40, 120 and 400 us in turn, each a little longer, and followed by a little work, so
 * that a cycle takes `cycle_ns`. */
static struct stretch next_wait(struct simulated *simulated)
{
    static const uint64_t waits_ns[] = {40 * US, 120 * US, 400 * US};
    uint32_t place = simulated->count / 2 % 3;
    uint64_t rest_ns = (simulated->cycle_ns - 560 * US) / 6;
    if (simulated->count % 2)
        return (struct stretch){ACCOUNT_RUNNING, 3, rest_ns};
    return (struct stretch){ACCOUNT_ASLEEP, place, waits_ns[place] + rest_ns};
}

/* The largest error of the waits' shares, in standard deviations of as many independent
 * observations. */
static double wait_error(uint64_t cycle_ns, bool is_strict, uint64_t seed)
{
    enum { TICKS = 2000 };
    const struct ticks ticks = {.start_ns = START_NS, .period_ns = PERIOD_NS, .seed = seed};
    struct simulated simulated = {.next = next_wait, .cycle_ns = cycle_ns};
    struct shown shown = {0};
    double worst = 0;
    begin(&shown, &simulated);
    for (uint64_t tick = 0; tick < TICKS; tick++) {
        uint64_t strict_ns = START_NS + (tick + 1) * PERIOD_NS;
        sample(&shown, &simulated, is_strict ? strict_ns : ticks_due_ns(&ticks, tick));
    }
    end(&shown);
    for (unsigned place = 0; place < 3; place++) {
        double truth = share(simulated.spent_ns[ACCOUNT_ASLEEP], place);
        double deviation = sqrt(truth * (1 - truth) / TICKS);
        double off = fabs(share(shown.time_ns[ACCOUNT_ASLEEP], place) - truth) / deviation;
        worst = off > worst ? off : worst;
    }
    return worst;
}

static void test_short_waits_have_their_shares(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        assert_true(wait_error(620 * US, false, seed) < 3);
        assert_true(wait_error(PERIOD_NS / 16, false, seed) < 3);
    }
}

/* Why ticks are at random times: strictly periodic ones stay in step with this cycle, and observe
 * one wait only. */
static void test_strict_ticks_would_not_show_them(void **state)
{
    (void)state;
    assert_true(wait_error(PERIOD_NS / 16, true, 0) > 10);
}

/* An exponentially distributed random time with this mean. */
static uint64_t exponential_ns(struct simulated *simulated, double mean_ns)
{
    double uniform = (double)(random_number(simulated->seed, 2 * simulated->count) >> 11) / 0x1p53;
    return 1 + (uint64_t)(-log(1 - uniform) * mean_ns);
}

/* Runs in bursts of 0.3 ms in one of two places, and sleeps for about 10 ms after each. */
static struct stretch next_burst(struct simulated *simulated)
{
    uint32_t place = random_below(10, simulated->seed, 2 * simulated->count + 1) < 3;
    if (simulated->count % 2)
        return (struct stretch){ACCOUNT_RUNNING, place, exponential_ns(simulated, 300 * US)};
    return (struct stretch){ACCOUNT_ASLEEP, 0, exponential_ns(simulated, 10000 * US)};
}

/* The mean square error of one place's share, over many recordings. */
static double burst_error(bool takes_all)
{
    enum { RECORDINGS = 200, TICKS = 6000 };
    double squares = 0;
    for (uint64_t i = 0; i < RECORDINGS; i++) {
        const struct ticks ticks = {.start_ns = START_NS, .period_ns = PERIOD_NS, .seed = 500 + i};
        struct simulated simulated = {.next = next_burst, .seed = i};
        struct shown shown = {.takes_all = takes_all};
        begin(&shown, &simulated);
        for (uint64_t tick = 0; tick < TICKS; tick++)
            sample(&shown, &simulated, ticks_due_ns(&ticks, tick));
        uint64_t ran_ns = running_ns(&simulated, shown.ledger.booked_ns);
        end(&shown);
        /* The total running time is exact, whatever was observed. */
        assert_int_equal(shown.time_ns[ACCOUNT_RUNNING][0] + shown.time_ns[ACCOUNT_RUNNING][1] +
                             shown.ledger.owed_ns[ACCOUNT_RUNNING],
                         ran_ns);
        double off = share(shown.time_ns[ACCOUNT_RUNNING], 1) -
                     share(simulated.spent_ns[ACCOUNT_RUNNING], 1);
        squares += off * off;
    }
    return squares / RECORDINGS;
}

/* The distances between samples of bursts are exponentially distributed, too; as weights, they
 * would double the variance. */
static void test_equal_weights_spread_less(void **state)
{
    (void)state;
    double window = burst_error(false), takes_all = burst_error(true);
    assert_true(window < 0.65 * takes_all);
    /* About 175 independent observations find it running: p * (1 - p) / n. */
    double independent = 0.3 * 0.7 / 175;
    assert_true(window > 0.7 * independent && window < 1.2 * independent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_waits_have_their_shares),
        cmocka_unit_test(test_strict_ticks_would_not_show_them),
        cmocka_unit_test(test_equal_weights_spread_less),
    };
    return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}

/* A thread that computes all the time and repeats itself argv[1] times a second, as often as it is
 * sampled: for the first 60 % of each period in one function, and then in another. */
#include "account.h"

#define CHECK_STEPS 200
#define FIRST_PERCENT 60

void first_60(struct account *account, uint64_t until_ns);
void last_40(struct account *account, uint64_t until_ns);

static uint64_t period_ns;

static inline __attribute__((always_inline)) void compute_until(uint64_t until_ns)
{
    while (now_ns() < until_ns)
        compute_steps(CHECK_STEPS);
}

__attribute__((noinline)) void first_60(struct account *account, uint64_t until_ns)
{
    compute_until(until_ns);
    end_of(account, 0);
}

__attribute__((noinline)) void last_40(struct account *account, uint64_t until_ns)
{
    compute_until(until_ns);
    end_of(account, 1);
}

static void *run(void *argument)
{
    begin(argument);
    for (uint64_t begin_ns = now_ns();; begin_ns += period_ns) {
        first_60(argument, begin_ns + period_ns * FIRST_PERCENT / 100);
        last_40(argument, begin_ns + period_ns);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    period_ns = 1000000000u / number_of(argc, argv, 1, 999);
    start(run, (struct account){.thread = "worker", .functions = {"first_60", "last_40"}});
    serve_accounts();
    return 0;
}

/* argv[1] threads that compute all the time, in functions that take 50, 30, 15 and 5 % of it. */
#include "account.h"

void share_50(struct account *account, double us);
void share_30(struct account *account, double us);
void share_15(struct account *account, double us);
void share_5(struct account *account, double us);

__attribute__((noinline)) void share_50(struct account *account, double us)
{
    compute_us(us);
    end_of(account, 0);
}

__attribute__((noinline)) void share_30(struct account *account, double us)
{
    compute_us(us);
    end_of(account, 1);
}

__attribute__((noinline)) void share_15(struct account *account, double us)
{
    compute_us(us);
    end_of(account, 2);
}

__attribute__((noinline)) void share_5(struct account *account, double us)
{
    compute_us(us);
    end_of(account, 3);
}

static void *run(void *argument)
{
    begin(argument);
    for (;;) {
        double round_us = 200 + 400 * chance(argument);
        share_50(argument, 0.5 * round_us);
        share_30(argument, 0.3 * round_us);
        share_15(argument, 0.15 * round_us);
        share_5(argument, 0.05 * round_us);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned threads = number_of(argc, argv, 1, 4);
    learn_speed();
    for (unsigned i = 0; i < threads; i++)
        start(run, (struct account){.thread = "worker",
                                    .functions = {"share_50", "share_30", "share_15", "share_5"}});
    serve_accounts();
    return 0;
}

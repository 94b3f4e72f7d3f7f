/* A thread that waits for 300 us, computes for 200 us and waits for 1 ms, beside argv[1] threads
 * that compute all the time: after a wakeup it also waits for a CPU, with the stack of its wait. */
#include "account.h"

void wait_short(struct account *account);
void work(struct account *account);
void wait_long(struct account *account);
void crowd(struct account *account);

__attribute__((noinline)) void wait_short(struct account *account)
{
    nap(300);
    end_of(account, 0);
}

__attribute__((noinline)) void work(struct account *account)
{
    compute_us(200);
    end_of(account, 1);
}

__attribute__((noinline)) void wait_long(struct account *account)
{
    nap(1000);
    end_of(account, 2);
}

__attribute__((noinline)) void crowd(struct account *account)
{
    compute_us(500);
    end_of(account, 0);
}

static void *run_sleeper(void *argument)
{
    begin(argument);
    for (;;) {
        wait_short(argument);
        work(argument);
        wait_long(argument);
    }
    return NULL;
}

static void *run_crowd(void *argument)
{
    begin(argument);
    for (;;)
        crowd(argument);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned threads = number_of(argc, argv, 1, 4);
    learn_speed();
    start(run_sleeper, (struct account){.thread = "sleeper",
                                        .functions = {"wait_short", "work", "wait_long"},
                                        .has_delay = true});
    for (unsigned i = 0; i < threads; i++)
        start(run_crowd, (struct account){.thread = "crowd", .functions = {"crowd"}});
    serve_accounts();
    return 0;
}

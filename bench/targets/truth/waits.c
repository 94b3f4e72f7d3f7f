/* A thread that only waits:
 *   steady   40, 120 and 400 us by turns, in a separate function for each
 *   mixed    30 us to 50 ms at random, in functions by length: longer waits are less likely, so
 * that each power of ten has the same share of the time */
#include "account.h"

#define LEAST_US 30.0
#define MOST_US 50000.0

void wait_40(struct account *account);
void wait_120(struct account *account);
void wait_400(struct account *account);
void wait_to_100_us(struct account *account, double us);
void wait_to_1_ms(struct account *account, double us);
void wait_to_10_ms(struct account *account, double us);
void wait_to_50_ms(struct account *account, double us);

__attribute__((noinline)) void wait_40(struct account *account)
{
    nap(40);
    end_of(account, 0);
}

__attribute__((noinline)) void wait_120(struct account *account)
{
    nap(120);
    end_of(account, 1);
}

__attribute__((noinline)) void wait_400(struct account *account)
{
    nap(400);
    end_of(account, 2);
}

__attribute__((noinline)) void wait_to_100_us(struct account *account, double us)
{
    nap(us);
    end_of(account, 0);
}

__attribute__((noinline)) void wait_to_1_ms(struct account *account, double us)
{
    nap(us);
    end_of(account, 1);
}

__attribute__((noinline)) void wait_to_10_ms(struct account *account, double us)
{
    nap(us);
    end_of(account, 2);
}

__attribute__((noinline)) void wait_to_50_ms(struct account *account, double us)
{
    nap(us);
    end_of(account, 3);
}

static void *run_steady(void *argument)
{
    begin(argument);
    for (;;) {
        wait_40(argument);
        wait_120(argument);
        wait_400(argument);
    }
    return NULL;
}

static void *run_mixed(void *argument)
{
    begin(argument);
    for (;;) {
        /* The inverse is uniform: the density falls with the square of the length, and density
         * times length is the same for each ratio. */
        double us = 1 / (1 / MOST_US + chance(argument) * (1 / LEAST_US - 1 / MOST_US));
        if (us < 100)
            wait_to_100_us(argument, us);
        else if (us < 1000)
            wait_to_1_ms(argument, us);
        else if (us < 10000)
            wait_to_10_ms(argument, us);
        else
            wait_to_50_ms(argument, us);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "mixed") == 0)
        start(run_mixed,
              (struct account){
                  .thread = "waiter",
                  .functions = {"wait_to_100_us", "wait_to_1_ms", "wait_to_10_ms", "wait_to_50_ms"},
              });
    else
        start(run_steady, (struct account){.thread = "waiter",
                                           .functions = {"wait_40", "wait_120", "wait_400"}});
    serve_accounts();
    return 0;
}

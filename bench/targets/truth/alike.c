/* argv[1] pairs of threads, all alike. One of a pair computes for 60, 250 and 90 us by turns, and
 * meanwhile the other waits for as long; then they change roles. With as many pairs as there are
 * CPUs, the scheduler moves threads from one CPU to another. */
#include "account.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#define PAIRS_MAX 16

enum { WAITS_60, WAITS_250, WAITS_90, WORKS };

void wait_60(struct account *account);
void wait_250(struct account *account);
void wait_90(struct account *account);
void work(struct account *account, double us);

/* The number of finished turns of each pair: the first thread has the even ones. */
static _Atomic uint32_t turns[PAIRS_MAX];
static const double durations_us[] = {60, 250, 90};

static __attribute__((noinline)) void await_turn(const struct account *account)
{
    _Atomic uint32_t *turn = &turns[account->number / 2];
    uint32_t now;
    while (((now = *turn) ^ account->number) & 1u)
        syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

__attribute__((noinline)) void wait_60(struct account *account)
{
    await_turn(account);
    end_of(account, WAITS_60);
}

__attribute__((noinline)) void wait_250(struct account *account)
{
    await_turn(account);
    end_of(account, WAITS_250);
}

__attribute__((noinline)) void wait_90(struct account *account)
{
    await_turn(account);
    end_of(account, WAITS_90);
}

__attribute__((noinline)) void work(struct account *account, double us)
{
    _Atomic uint32_t *turn = &turns[account->number / 2];
    compute_us(us);
    (*turn)++;
    syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    end_of(account, WORKS);
}

/* Turn t lasts for durations_us[t % 3]. */
static void *run(void *argument)
{
    static void (*const waits[])(struct account *) = {wait_60, wait_250, wait_90};
    struct account *account = argument;
    begin(account);
    for (unsigned turn = 0;; turn++) {
        if ((turn ^ account->number) & 1u)
            waits[turn % 3](account);
        else
            work(account, durations_us[turn % 3]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned pairs = number_of(argc, argv, 1, 2);
    require(pairs <= PAIRS_MAX, "pairs");
    learn_speed();
    for (unsigned i = 0; i < 2 * pairs; i++)
        start(run, (struct account){.thread = "alike",
                                    .functions = {"wait_60", "wait_250", "wait_90", "work"}});
    serve_accounts();
    return 0;
}

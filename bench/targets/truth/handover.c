/* Two threads that pass a lock back and forth: "left" holds it for 80 us and "right" for 240 us,
 * computing, and each waits for it while the other has it. */
#include "account.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { HOLDS, WAITS };

void left_holds(struct account *account);
void left_waits(struct account *account);
void right_holds(struct account *account);
void right_waits(struct account *account);

/* The number of the thread whose turn it is. */
static _Atomic uint32_t holder;

static __attribute__((noinline)) void hand_over(uint32_t to)
{
    holder = to;
    syscall(SYS_futex, &holder, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static __attribute__((noinline)) void await_turn(uint32_t number)
{
    uint32_t now;
    while ((now = holder) != number)
        syscall(SYS_futex, &holder, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

__attribute__((noinline)) void left_holds(struct account *account)
{
    compute_us(80);
    hand_over(1);
    end_of(account, HOLDS);
}

__attribute__((noinline)) void left_waits(struct account *account)
{
    await_turn(0);
    end_of(account, WAITS);
}

__attribute__((noinline)) void right_holds(struct account *account)
{
    compute_us(240);
    hand_over(0);
    end_of(account, HOLDS);
}

__attribute__((noinline)) void right_waits(struct account *account)
{
    await_turn(1);
    end_of(account, WAITS);
}

static void *run_left(void *argument)
{
    begin(argument);
    for (;;) {
        left_holds(argument);
        left_waits(argument);
    }
    return NULL;
}

static void *run_right(void *argument)
{
    begin(argument);
    for (;;) {
        right_waits(argument);
        right_holds(argument);
    }
    return NULL;
}

int main(void)
{
    learn_speed();
    start(run_left, (struct account){.thread = "left", .functions = {"left_holds", "left_waits"}});
    start(run_right,
          (struct account){.thread = "right", .functions = {"right_holds", "right_waits"}});
    serve_accounts();
    return 0;
}

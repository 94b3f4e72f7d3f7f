/* Frames as C compilers create them. */
#include "stay.h"

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile int some = 40;

/* ---- Inlined functions, and functions with inlined ones ---- */

static inline __attribute__((always_inline)) void innermost(void)
{
    stay();
    STAY_GO_ON();
}

static inline __attribute__((always_inline)) int middle(int number)
{
    innermost();
    return number + some;
}

static int outer(int number)
{
    number += middle(number);
    return number * some;
}

static void in_nest(void)
{
    some = outer(some) ? some : 1;
}

/* ---- The call is the function's last instruction: another function follows it ---- */

static __attribute__((noinline, noreturn)) void never_returns(void)
{
    stay();
    abort();
}

static __attribute__((noinline)) void in_noreturn(void)
{
    never_returns();
}

/* ---- Frames of unknown size, realigned frames, and frames with arguments ---- */

static __attribute__((noinline)) void in_alloca(void)
{
    char *room = (char *)alloca((size_t)some);
    memset(room, some, (size_t)some);
    stay();
    some = room[3];
}

static __attribute__((noinline)) void in_aligned(void)
{
    _Alignas(64) char aligned[64];
    char *room = (char *)alloca((size_t)some);
    memset(aligned, some, sizeof aligned);
    memset(room, some, (size_t)some);
    stay();
    some = aligned[some & 63] + room[3];
}

static __attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
    stay();
    return a + b + c + d + e + f + g + h + some;
}

static __attribute__((noinline)) void in_arguments(void)
{
    some = many(some, some, some, some, some, some, some, some);
}

static __attribute__((noinline)) void in_tail_call(void)
{
    stay();
}

/* ---- Callbacks from the C library ---- */

static int compare(const void *left, const void *right)
{
    stay();
    return *(const int *)left - *(const int *)right;
}

static void in_callback(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    some = numbers[0];
}

/* ---- Signals ---- */

static void handle(int number)
{
    (void)number;
    stay();
    STAY_GO_ON();
}

static void handle_with(int number, int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

static void in_handler(void)
{
    handle_with(SIGUSR1, 0);
    raise(SIGUSR1);
    STAY_GO_ON();
}

static void in_alternate(void)
{
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_size = 65536;
    stack.ss_sp =
        mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    handle_with(SIGUSR2, SA_ONSTACK);
    raise(SIGUSR2);
    STAY_GO_ON();
}

/* At its first instruction, the caller's frame has nothing on the stack but the return address; the
 * byte before it belongs to another function. */
void trap_at_once(void);
__asm__(".text\n.p2align 4\n.globl trap_at_once\n.type trap_at_once,@function\n"
        "trap_at_once:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
        ".size trap_at_once, .-trap_at_once\n");

static void in_trap(void)
{
    handle_with(SIGILL, 0);
    trap_at_once();
    STAY_GO_ON();
}

static void (*volatile nowhere)(void);

static void in_nowhere(void)
{
    handle_with(SIGSEGV, 0);
    nowhere();
    STAY_GO_ON();
}

int main(void)
{
    static const struct place places[] = {
        {"nest", in_nest, 0},           {"noreturn", in_noreturn, 0},
        {"alloca", in_alloca, 0},       {"aligned", in_aligned, 0},
        {"arguments", in_arguments, 0}, {"tail_call", in_tail_call, 0},
        {"callback", in_callback, 0},   {"handler", in_handler, 0},
        {"alternate", in_alternate, 0}, {"trap", in_trap, 0},
        {"nowhere", in_nowhere, 0},
    };
    return stay_start(places, sizeof places / sizeof *places);
}

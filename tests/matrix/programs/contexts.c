/* Stacks that no thread began on, and code without a compiler. */
void stay(void);
#define STAY_LINKAGE
#include "stay.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (64u << 10)

void with_room(void), with_frame_pointer(void), with_other_register(void), with_expression(void);
void switch_to(void **ret_old, void *other), fiber_start(void);
void switch_at_1(void **ret_old, void *other), switch_at_2(void **ret_old, void *other);
void switch_at_3(void **ret_old, void *other), switch_at_4(void **ret_old, void *other);
void switch_at_5(void **ret_old, void *other), switch_at_6(void **ret_old, void *other);

static void *mapped_stack(void)
{
    return mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- The C library's contexts ---- */

static _Thread_local ucontext_t before, inside;

static void in_context(void)
{
    stay();
    STAY_GO_ON();
}

static void enter(void *stack)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK_BYTES;
    inside.uc_link = &before;
    makecontext(&inside, in_context, 0);
    swapcontext(&before, &inside);
    STAY_GO_ON();
}

static void on_mapped(void)
{
    enter(mapped_stack());
}

static void on_heap(void)
{
    enter(malloc(STACK_BYTES));
}

static void on_own_stack(void)
{
    char stack[STACK_BYTES];
    enter(stack);
}

/* ---- Hand-written contexts ---- */

struct fiber {
    void *here, *thread;
    void (*leave)(void **ret_old, void *other);
};

static void in_fiber(struct fiber *fiber)
{
    if (fiber->leave) {
        __atomic_fetch_add(&stay_arrived, 1, __ATOMIC_SEQ_CST);
        fiber->leave(&fiber->here, fiber->thread);
    } else {
        stay();
    }
    STAY_GO_ON();
}

static void run_fiber(void (*leave)(void **ret_old, void *other))
{
    struct fiber fiber = {.leave = leave};
    void **top = (void **)((char *)mapped_stack() + STACK_BYTES - 64);
    *--top = (void *)fiber_start;
    *--top = NULL; /* rbp */
    *--top = (void *)in_fiber;
    *--top = &fiber;
    *--top = NULL;
    fiber.here = top;
    switch_to(&fiber.thread, fiber.here);
    STAY_GO_ON();
}

static void in_plain_fiber(void)
{
    run_fiber(NULL);
}

/* A blocking thread that switches has nothing to block in. */
#define SWITCHING(number)                                                                          \
    static void switching_##number(void)                                                           \
    {                                                                                              \
        run_fiber(stay_spins ? switch_at_##number : NULL);                                         \
    }
SWITCHING(1)
SWITCHING(2)
SWITCHING(3)
SWITCHING(4)
SWITCHING(5)
SWITCHING(6)

int main(void)
{
    static const struct place places[] = {
        {"context_mapped", on_mapped, 0},
        {"context_heap", on_heap, 0},
        {"context_own", on_own_stack, 0},
        {"fiber", in_plain_fiber, 0},
        {"switching_1", switching_1, 0},
        {"switching_2", switching_2, 0},
        {"switching_3", switching_3, 0},
        {"switching_4", switching_4, 0},
        {"switching_5", switching_5, 0},
        {"switching_6", switching_6, 0},
        {"room", with_room, 0},
        {"frame_pointer", with_frame_pointer, 0},
        {"other_register", with_other_register, 0},
        {"expression", with_expression, 0},
    };
    return stay_start(places, sizeof places / sizeof *places);
}

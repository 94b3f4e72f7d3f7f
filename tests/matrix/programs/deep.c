/* A recursion of 100,000 frames. */
#include "stay.h"

static volatile int depth = 100000;

static __attribute__((noinline)) int recurse(int left)
{
    if (!left) {
        stay();
        return 0;
    }
    return recurse(left - 1) + depth;
}

static void in_recursion(void)
{
    depth = recurse(depth);
}

int main(void)
{
    static const struct place places[] = {{"deep", in_recursion, 0}};
    return stay_start(places, 1);
}

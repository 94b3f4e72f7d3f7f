#include "sampler/clock.h"
#include "base/clock.h"

uint64_t clock_now_ns(const struct clock *clock)
{
    return clock->end_ns ? clock->end_ns : monotonic_ns();
}

uint64_t clock_tick_at(const struct clock *clock, uint64_t now_ns)
{
    return now_ns < clock->start_ns ? 0 : (now_ns - clock->start_ns) / clock->period_ns;
}

#include "sampler/clock.h"
#include "base/clock.h"
#include "base/random.h"

uint64_t clock_now_ns(const struct clock *clock)
{
    return clock->end_ns ? clock->end_ns : monotonic_ns();
}

uint64_t clock_period_at(const struct clock *clock, uint64_t now_ns)
{
    return now_ns < clock->start_ns ? 0 : (now_ns - clock->start_ns) / clock->period_ns;
}

uint64_t clock_tick_ns(const struct clock *clock, uint64_t period)
{
    return clock->start_ns + period * clock->period_ns +
           random_below((uint32_t)clock->period_ns, clock->seed, period);
}

uint64_t clock_tick_at(const struct clock *clock, uint64_t now_ns)
{
    uint64_t period = clock_period_at(clock, now_ns);
    return period + (now_ns >= clock_tick_ns(clock, period));
}

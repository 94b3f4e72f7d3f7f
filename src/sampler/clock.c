#include "sampler/clock.h"
#include "base/clock.h"

uint64_t clock_now_ns(const struct clock *clock)
{
    return clock->end_ns ? clock->end_ns : monotonic_ns();
}

struct ticks clock_ticks(const struct clock *clock)
{
    return (struct ticks){clock->start_ns, clock->period_ns, clock->seed};
}

uint64_t clock_period_at(const struct clock *clock, uint64_t now_ns)
{
    const struct ticks ticks = clock_ticks(clock);
    return ticks_period_at(&ticks, now_ns);
}

uint64_t clock_tick_ns(const struct clock *clock, uint64_t period)
{
    const struct ticks ticks = clock_ticks(clock);
    return ticks_due_ns(&ticks, period);
}

uint64_t clock_tick_at(const struct clock *clock, uint64_t now_ns)
{
    const struct ticks ticks = clock_ticks(clock);
    return ticks_until(&ticks, now_ns);
}

#include "sampler/yield.h"

/* About how long a woken thread may wait for a round. */
#define EACH_NS 40000u
/* Woken threads are soon asleep again: several together take less than this. */
#define SHORT_NS 100000u
/* Longer yields may take this part of the time. */
#define PART_OF_TIME 100

bool yield_is_due(const struct throttle *given, uint64_t now_ns)
{
#ifdef FGPROF_WITHOUT_YIELD
    return false;
#endif
    return throttle_allows(given, now_ns, EACH_NS, PART_OF_TIME);
}

void yield_note(struct throttle *given, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t took_ns = end_ns - begin_ns;
    *given = (struct throttle){end_ns, took_ns < SHORT_NS ? 0 : took_ns};
}

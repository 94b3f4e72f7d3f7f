#include "sampler/yield.h"

/* How long a thread that was woken may wait for a round, about. */
#define EACH_NS 40000u
/* Some woken threads take less than this together, as they are soon asleep again. */
#define SHORT_NS 100000u
/* What takes longer may take this part of all time. */
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

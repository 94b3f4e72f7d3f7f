#include "observe/woken.h"

bool woken_after(uint64_t tick_ns, const struct reading *look, const struct reading *stopped,
                 uint64_t stopped_ns)
{
#ifdef FGPROF_WITHOUT_WOKEN
    return false;
#endif
    const struct activity *before = &look->activity, *after = &stopped->activity;
    if (!tick_ns || !look->has_activity || !stopped->has_activity || before->counts_ends ||
        after->counts_ends || after->waiting_ns <= before->waiting_ns)
        return false;
    uint64_t waited_ns = after->waiting_ns - before->waiting_ns;
    return waited_ns < stopped_ns && stopped_ns - waited_ns > tick_ns;
}

#include "wait/deadlock.h"

/* While this runs, a value of count + 1 or more tells which walk passed a thread. */
size_t deadlocks_find(const size_t *waits_for, size_t count, size_t *cycles)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        cycles[i] = 0;
    for (size_t start = 0; start < count; start++) {
        size_t walk = count + 1 + start, at = start;
        while (at < count && !cycles[at]) {
            cycles[at] = walk;
            at = waits_for[at];
        }
        /* The walk came back to a place where it had been: all from there on are the cycle. */
        if (at < count && cycles[at] == walk) {
            found++;
            for (; cycles[at] == walk; at = waits_for[at])
                cycles[at] = found;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (cycles[i] > count)
            cycles[i] = 0;
    }
    return found;
}

#include "wait/deadlock.h"

/* While it goes on, a number from count + 1 on says in which walk one was passed. */
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
        /* Came round to where this walk had been: all from there to there are the circle. */
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

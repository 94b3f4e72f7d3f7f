/* The durations of a scene: fixed ones, or new ones drawn from a seed, so that no profiler can be
 * tuned to them. Short and long ones are equally likely: each power of ten has the same chance. */
#ifndef TRUTH_DURATIONS_H
#define TRUTH_DURATIONS_H

#include "account.h"

#include <math.h>

static inline void draw_durations(unsigned seed, double least_us, double most_us, double *us,
                                  unsigned count)
{
    uint64_t random = random_seed(seed);
    /* Similar seeds give similar first numbers. */
    for (int i = 0; i < 16; i++)
        random_share(&random);
    for (unsigned i = 0; i < count; i++)
        us[i] = least_us * pow(most_us / least_us, random_share(&random));
}

#endif

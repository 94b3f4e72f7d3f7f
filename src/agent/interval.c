#include "agent/interval.h"
#include "base/random.h"

#define RATE_MAX (1ull << 50) /* 44 times it, the longest interval, is far from overflowing */

/* -ln(number / 2^64), for a number of at least 1, with an error below 1e-9. There is no libm here.
 *
 * number = mantissa * 2^(63 - zeros) with a mantissa from 1 to 2, and with z = (mantissa - 1) /
 * (mantissa + 1), which is at most 1/3, ln(mantissa) = 2 (z + z^3/3 + z^5/5 + ...). */
static double negative_log(uint64_t number)
{
    const double ln2 = 0.693147180559945309;
    int zeros = __builtin_clzll(number);
    double mantissa = (double)(number << zeros >> 11) / (double)(1ull << 52);
    double z = (mantissa - 1) / (mantissa + 1), square = z * z, sum = 0;
    for (int n = 17; n > 1; n -= 2)
        sum = square * (sum + 1.0 / n);
    return (zeros + 1) * ln2 - 2 * z * (1 + sum);
}

int64_t interval_draw(uint64_t *random, uint64_t rate)
{
    uint64_t number = random_number(*random, 0);
    *random += 0x9e3779b97f4a7c15u; /* as if the next number of the same seed were asked for */
    if (rate > RATE_MAX)
        rate = RATE_MAX;
    return (int64_t)((double)rate * negative_log(number ? number : 1));
}

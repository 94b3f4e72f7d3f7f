#include "base/histogram.h"

#include <stddef.h>

/* Values below 16 have a bucket each; above, the four bits after the leading one choose it. */
static size_t bucket_of(uint64_t value)
{
    if (value < HISTOGRAM_SUB_BUCKETS)
        return value;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(value);
    uint64_t sub = (value >> (exponent - 4)) & (HISTOGRAM_SUB_BUCKETS - 1);
    return (size_t)(exponent - 3) * HISTOGRAM_SUB_BUCKETS + sub;
}

static uint64_t bucket_start(size_t bucket)
{
    if (bucket < HISTOGRAM_SUB_BUCKETS)
        return bucket;
    unsigned exponent = (unsigned)(bucket / HISTOGRAM_SUB_BUCKETS) + 3;
    uint64_t sub = bucket % HISTOGRAM_SUB_BUCKETS;
    return (HISTOGRAM_SUB_BUCKETS + sub) << (exponent - 4);
}

void histogram_add(struct histogram *histogram, uint64_t value_ns)
{
    histogram->buckets[bucket_of(value_ns)]++;
    histogram->count++;
    histogram->sum_ns += value_ns;
    if (value_ns > histogram->max_ns)
        histogram->max_ns = value_ns;
}

uint64_t histogram_quantile_ns(const struct histogram *histogram, unsigned per_mille)
{
    if (!histogram->count)
        return 0;
    uint64_t rank = (histogram->count * per_mille + 999) / 1000;
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof histogram->buckets / sizeof *histogram->buckets; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank && seen)
            return bucket_start(i);
    }
    return histogram->max_ns;
}

void histogram_subtract(struct histogram *histogram, const struct histogram *before)
{
    size_t highest = 0;
    for (size_t i = 0; i < sizeof histogram->buckets / sizeof *histogram->buckets; i++) {
        histogram->buckets[i] -= before->buckets[i];
        if (histogram->buckets[i])
            highest = i;
    }
    histogram->count -= before->count;
    histogram->sum_ns -= before->sum_ns;
    if (highest < bucket_of(histogram->max_ns) || !histogram->count)
        histogram->max_ns = bucket_start(highest);
}

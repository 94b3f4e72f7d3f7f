/* A histogram of durations with 1/16 relative resolution, in fixed memory. */
#ifndef FGPROF_BASE_HISTOGRAM_H
#define FGPROF_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BUCKETS 16 /* per power of two */

struct histogram {
    uint64_t buckets[64 * HISTOGRAM_SUB_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
};

void histogram_add(struct histogram *histogram, uint64_t value_ns);

/* The value at or below which `per_mille` of 1000 values lie, rounded down to the start of its
 * bucket. 0 if nothing was added. */
uint64_t histogram_quantile_ns(const struct histogram *histogram, unsigned per_mille);

/* Subtracts `before`, an earlier state of this histogram. max_ns then becomes the start of the
 * highest bucket that still has a value, unless that bucket has the maximum. */
void histogram_subtract(struct histogram *histogram, const struct histogram *before);

#endif

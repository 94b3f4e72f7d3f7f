/* Numbers that look random and can be repeated: number n of a seed is always the same, and no other
 * has to be drawn first.
 *
 * The generator is SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators" (OOPSLA 2014), with the constants of https://prng.di.unimi.it/splitmix64.c. */
#ifndef FGPROF_BASE_RANDOM_H
#define FGPROF_BASE_RANDOM_H

#include <stdint.h>

/* Number `n` of the seed, of 64 bits. */
static inline uint64_t random_number(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The same number, scaled to at least 0 and less than `limit`. Numbers are equally likely but for
 * one part in 2^32. */
static inline uint64_t random_below(uint32_t limit, uint64_t seed, uint64_t n)
{
    return (random_number(seed, n) >> 32) * limit >> 32;
}

#endif
